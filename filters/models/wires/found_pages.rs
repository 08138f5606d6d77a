//! Searches of the web in the words of providers, and their results.

use super::codec::BodySlice;
use super::decoder::{Decoder, WholeReply};
use super::error_body::classify_error;
use super::failure::Failure;
use super::scan::malformed;
use super::wire::Target;
use crate::fault::{Fault, FaultKind};
use crate::json::{Error, Object, Str, Type, Walker};
use crate::models::reply::Sink;
use crate::models::request::{ModelRequest, RequestMember};
use crate::models::search::{FoundPage, SearchFacts};
use crate::models::usage::Usage;
use crate::money::{Unit, UnitCounts};

/// Options of the convention that have no place in the facts: only providers with words for them are asked.
const OF_THE_CONVENTION: [&str; 6] = [
    "max_tokens",
    "max_tokens_per_page",
    "search_context_size",
    "search_language_filter",
    "last_updated_after_filter",
    "last_updated_before_filter",
];

/// What a provider with words of its own can be told of a search.
pub(super) struct SearchWords {
    pub(super) max_results: u64,
    pub(super) country: bool,
    /// The recencies that it knows.
    pub(super) recencies: &'static [&'static str],
}

/// Encodes a request to a provider with words of its own: the query, and what `write` adds.
///
/// Errors: a 400 that names the option that the provider has no word for.
pub(super) fn encode(
    request: &ModelRequest,
    facts: &SearchFacts,
    target: &Target<'_>,
    words: &SearchWords,
    write: impl FnOnce(&mut Object<'_>),
) -> Result<Vec<BodySlice>, Fault> {
    check(request, facts, target, words)?;
    let query = request.source.member("query");
    let query = query.map(|member| only_query(request, member)).transpose();
    let query = query.map_err(|error| {
        Fault::new(FaultKind::Internal, "the request could not be translated")
            .with_detail(format!("a checked query does not walk: {error}"))
    })?;
    let mut body = Vec::with_capacity(request.source.body.len() + 256);
    let mut object = Object::open(&mut body);
    object.raw("query", query.unwrap_or("\"\""));
    write(&mut object);
    object.close();
    Ok(vec![body.into()])
}

/// The query, as JSON: also that of an array of one.
fn only_query<'r>(request: &'r ModelRequest, member: &RequestMember) -> Result<&'r str, Error> {
    let mut walk = Walker::new(request.source.value(member))?;
    if walk.peek()? == Type::String {
        return walk.skip();
    }
    let mut only = "\"\"";
    walk.array(|walk, _| {
        only = walk.skip()?;
        Ok::<(), Error>(())
    })?;
    Ok(only)
}

fn check(
    request: &ModelRequest,
    facts: &SearchFacts,
    target: &Target<'_>,
    words: &SearchWords,
) -> Result<(), Fault> {
    let provider = target.provider;
    let refuse = |param: &'static str, said: String| Err(Fault::invalid(param, said));
    if facts.queries > 1 {
        let said = format!("{provider} takes one query at once");
        return refuse("query", said);
    }
    check_kind(facts, target)?;
    if facts.max_results > words.max_results {
        let most = words.max_results;
        return refuse(
            "max_results",
            format!("{provider} finds at most {most} pages"),
        );
    }
    if facts.country.is_some() && !words.country {
        return refuse("country", format!("{provider} has no word for `country`"));
    }
    if let Some(recency) = facts.recency.filter(|it| !words.recencies.contains(it)) {
        let said = format!("{provider} has no word for {recency:?}");
        return refuse("search_recency_filter", said);
    }
    let source = &request.source;
    let is_given = |key: &&&str| {
        let member = source.member(key);
        member.is_some_and(|member| !source.is_null(member))
    };
    match OF_THE_CONVENTION.iter().find(is_given) {
        Some(option) => refuse(option, format!("{provider} has no word for `{option}`")),
        None => Ok(()),
    }
}

/// Refuses a mapping whose kind of search, which is its model, is not the one that the request names.
pub(super) fn check_kind(facts: &SearchFacts, target: &Target<'_>) -> Result<(), Fault> {
    if facts.accepts(target.model) {
        return Ok(());
    }
    let kind = facts.kind.map_or("", |kind| kind.as_str());
    let said = format!(
        "the search {:?} of {} is not of the type {kind:?}",
        target.model, target.provider
    );
    Err(Fault::invalid("search_type", said))
}

/// Writes strings as a JSON array, if there are any.
pub(super) fn write_list(object: &mut Object<'_>, key: &str, texts: &[Box<str>]) {
    if !texts.is_empty() {
        object.array(key, texts, |text, out| Str::Plain(text).write(out));
    }
}

/// Writes a result as the convention does. Returns whether it is one.
pub(super) type ReadPage = fn(page: &str, out: &mut Vec<u8>) -> Result<bool, Error>;

/// Returns the decoder of a reply, whose results `read_page` writes.
pub(super) fn decoder(facts: &SearchFacts, read_page: ReadPage) -> Box<dyn Decoder> {
    let most = usize::try_from(facts.max_results).unwrap_or(usize::MAX);
    let most = most.saturating_mul(facts.queries.max(1));
    Box::new(WholeReply::new(move |body, sink| {
        read(body, most, read_page, sink)
    }))
}

/// What a reply holds.
#[derive(Default)]
struct SearchReply<'a> {
    pages: Option<Vec<&'a str>>,
    server_time: Option<&'a str>,
    failure: Option<Failure>,
}

fn read(body: &[u8], most: usize, read_page: ReadPage, sink: &mut dyn Sink) -> Result<(), Failure> {
    let mut found = SearchReply::default();
    let mut walk = Walker::new(body).map_err(malformed)?;
    let walked = walk.object(|walk, key| {
        match (&*key, walk.peek()?) {
            ("error", kind) if kind != Type::Null => {
                found.failure = Some(classify_error(walk.skip()?));
            }
            ("results", Type::Array) => found.pages = Some(pages(walk)?),
            ("server_time", Type::String) => found.server_time = Some(walk.skip()?),
            _ => _ = walk.skip()?,
        }
        Ok::<(), Error>(())
    });
    walked.and_then(|()| walk.end()).map_err(malformed)?;
    if let Some(failure) = found.failure {
        return Err(failure);
    }
    let bad = || Failure::malformed("the provider's reply does not hold the results of a search");
    let pages = found.pages.ok_or_else(bad)?;
    let mut written = Vec::with_capacity(pages.len().min(most));
    for page in pages.into_iter().take(most) {
        let mut out = Vec::new();
        if !read_page(page, &mut out).map_err(malformed)? {
            return Err(bad());
        }
        written.push(out);
    }
    written.iter().for_each(|page| sink.item(page));
    if let Some(time) = found.server_time {
        sink.member("server_time", time);
    }
    sink.usage(Usage {
        units: UnitCounts::ZERO
            .with(Unit::Search, 1)
            .with(Unit::Document, written.len() as u64),
        ..Usage::default()
    });
    Ok(())
}

/// The results. Those of several queries may stand in an array each.
fn pages<'a>(walk: &mut Walker<'a>) -> Result<Vec<&'a str>, Error> {
    let mut pages = Vec::new();
    walk.array(|walk, _| {
        if walk.peek()? != Type::Array {
            pages.push(walk.skip()?);
            return Ok(());
        }
        walk.array(|walk, _| {
            pages.push(walk.skip()?);
            Ok::<(), Error>(())
        })
    })?;
    Ok(pages)
}

/// Writes a result of the convention's own shape as it came.
pub(super) fn read_own(page: &str, out: &mut Vec<u8>) -> Result<bool, Error> {
    let mut found = FoundPage::default();
    let is_object = read_members(page, |walk, key| {
        match key {
            "title" => found.title = text(walk)?,
            "url" => found.url = text(walk)?,
            _ => _ = walk.skip()?,
        }
        Ok(())
    })?;
    out.extend_from_slice(page.as_bytes());
    Ok(is_object && found.title.is_some() && found.url.is_some())
}

/// Walks the members of a result. Returns whether it is an object.
pub(super) fn read_members<'a>(
    page: &'a str,
    mut member: impl FnMut(&mut Walker<'a>, &str) -> Result<(), Error>,
) -> Result<bool, Error> {
    let mut walk = Walker::over(page);
    if walk.peek()? != Type::Object {
        return Ok(false);
    }
    walk.object(|walk, key| member(walk, &key))?;
    Ok(true)
}

/// The string that comes next; anything else is skipped.
pub(super) fn text<'a>(walk: &mut Walker<'a>) -> Result<Option<Str<'a>>, Error> {
    match walk.peek()? {
        Type::String => walk.string().map(Some),
        _ => walk.skip().map(|_| None),
    }
}
