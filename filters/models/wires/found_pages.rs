//! Searches of the web in the words of providers, and their results.

use super::codec::BodySlice;
use super::decoder::{Decoder, WholeReply};
use super::failure::Failure;
use super::scan::{items, object, reply, string};
use super::wire::Target;
use crate::fault::{Fault, FaultKind};
use crate::json::{Error, Object, Str, Type, Walker};
use crate::models::reply::Sink;
use crate::models::request::{ModelRequest, RequestMember};
use crate::models::search::SearchFacts;
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
pub(super) fn write_list(object: &mut Object<'_>, key: &'static str, texts: &[Box<str>]) {
    if !texts.is_empty() {
        object.array(key, texts, |text, out| Str::Plain(text).write(out));
    }
}

/// Writes a result as the convention does. Returns whether it is one.
pub(super) type ReadPage = fn(page: &str, out: &mut Vec<u8>) -> bool;

/// Returns the decoder of a reply, whose results `read_page` writes.
pub(super) fn decoder(facts: &SearchFacts, read_page: ReadPage) -> Box<dyn Decoder> {
    let most = usize::try_from(facts.max_results).unwrap_or(usize::MAX);
    let most = most.saturating_mul(facts.queries.max(1));
    Box::new(WholeReply::new(move |body, sink| {
        read(body, most, read_page, sink)
    }))
}

fn read(body: &[u8], most: usize, read_page: ReadPage, sink: &mut dyn Sink) -> Result<(), Failure> {
    let [pages, server_time] = reply(body, ["results", "server_time"])?;
    let bad = || Failure::malformed("the provider's reply does not hold the results of a search");
    // The results of several queries may stand in an array each.
    let pages = items(pages).ok_or_else(bad)?.into_iter();
    let pages = pages.flat_map(|page| items(page).unwrap_or_else(|| vec![page]));
    let mut written = Vec::new();
    for page in pages.take(most) {
        let mut out = Vec::new();
        if !read_page(page, &mut out) {
            return Err(bad());
        }
        written.push(out);
    }
    written.iter().for_each(|page| sink.item(page));
    if string(server_time).is_some() {
        sink.member("server_time", server_time);
    }
    sink.usage(Usage {
        units: UnitCounts::ZERO
            .with(Unit::Search, 1)
            .with(Unit::Document, written.len() as u64),
        ..Usage::default()
    });
    Ok(())
}

/// Writes a result of the convention's own shape as it came.
pub(super) fn read_own(page: &str, out: &mut Vec<u8>) -> bool {
    out.extend_from_slice(page.as_bytes());
    let members = object(page, ["title", "url"]);
    members.is_some_and(|[title, url]| string(title).is_some() && string(url).is_some())
}
