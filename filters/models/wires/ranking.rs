//! Rankings of documents in the words of all providers that offer them: they differ in few words only.

use bytes::Bytes;

use super::codec::BodySlice;
use super::decoder::{Decoder, ReplyHead, WholeReply};
use super::error_body::classify_error;
use super::failure::Failure;
use super::scan::malformed;
use super::splice::Splice;
use super::wire::Target;
use crate::fault::{Fault, FaultKind};
use crate::json::{Error, Type, Walker};
use crate::models::reply::Sink;
use crate::models::request::{ModelRequest, RequestMember};
use crate::models::rerank::{RerankFacts, write_result};
use crate::models::usage::Usage;
use crate::money::{Unit, UnitCounts};

/// The members of a request, in the words of a provider.
pub(super) struct Words {
    /// The most results.
    pub(super) top_n: &'static str,
    /// Bounds of what of a long document is read, where the provider has a word for them.
    pub(super) bounds: &'static [&'static str],
    pub(super) repeats_documents: bool,
}

/// Members of the convention that are said in the words of the provider.
pub(super) const KNOWN: [&str; 7] = [
    "model",
    "query",
    "documents",
    "top_n",
    "return_documents",
    "max_tokens_per_doc",
    "max_chunks_per_doc",
];

/// Encodes a request. Documents that are objects become their texts; `passes`: whether an unknown member goes out.
///
/// The documents of results are taken from the request, so no provider has to repeat them. Errors: a 400 that names the
/// bound that the provider has no word for.
pub(super) fn encode(
    request: &ModelRequest,
    facts: &RerankFacts,
    target: &Target<'_>,
    words: &Words,
    passes: impl Fn(&str) -> bool,
) -> Result<Vec<BodySlice>, Fault> {
    let source = &request.source;
    let mut splice = Splice::new(&source.body);
    splice.new_bytes(b"{\"model\":");
    splice.new_string(target.model);
    let slice = |splice: &mut Splice<'_>, member: &RequestMember| {
        splice.new_bytes(b",");
        splice.slice(member.whole.clone());
    };
    for member in &source.members {
        let is_null = source.is_null(member);
        match &*member.key {
            "model" | "return_documents" => {}
            "documents" if facts.has_objects => {
                let mut texts = b",\"documents\":".to_vec();
                facts
                    .write_texts(&source.body, &mut texts)
                    .map_err(internal)?;
                splice.new_bytes(&texts);
            }
            "query" | "documents" => slice(&mut splice, member),
            "top_n" if !is_null => {
                splice.new_bytes(format!(",\"{}\":", words.top_n).as_bytes());
                splice.slice(member.value.clone());
            }
            "top_n" => {}
            bound @ ("max_tokens_per_doc" | "max_chunks_per_doc") if !is_null => {
                if !words.bounds.contains(&bound) {
                    let said = format!("{} has no word for `{bound}`", target.provider);
                    return Err(Fault::invalid(bound.to_owned(), said));
                }
                slice(&mut splice, member);
            }
            "max_tokens_per_doc" | "max_chunks_per_doc" => {}
            key if passes(key) => slice(&mut splice, member),
            _ => {}
        }
    }
    if words.repeats_documents {
        splice.new_bytes(b",\"return_documents\":false");
    }
    splice.new_bytes(b"}");
    Ok(splice.finish())
}

fn internal(error: Error) -> Fault {
    Fault::new(FaultKind::Internal, "the request could not be translated")
        .with_detail(format!("checked documents do not walk: {error}"))
}

/// What a reply is an answer to.
struct RankingRequest {
    body: Bytes,
    facts: RerankFacts,
    units: UnitCounts,
}

/// Returns the decoder of a reply.
pub(super) fn decoder(
    request: &ModelRequest,
    facts: &RerankFacts,
    _: &Target<'_>,
    _: &ReplyHead,
) -> Box<dyn Decoder> {
    let asked = RankingRequest {
        body: request.source.body.clone(),
        facts: facts.clone(),
        units: request.units,
    };
    Box::new(WholeReply::new(move |body, sink| read(body, &asked, sink)))
}

/// One result of a reply.
#[derive(Clone, Copy, Default)]
struct Ranked<'a> {
    index: Option<usize>,
    /// As it is written, and for comparing.
    score: Option<(&'a str, f64)>,
}

/// What a reply holds.
#[derive(Default)]
struct RankingReply<'a> {
    results: Vec<Ranked<'a>>,
    tokens: Option<u64>,
    searches: Option<u64>,
    failure: Option<Failure>,
}

fn read(body: &[u8], asked: &RankingRequest, sink: &mut dyn Sink) -> Result<(), Failure> {
    let mut found = RankingReply::default();
    let mut walk = Walker::new(body).map_err(malformed)?;
    let walked = walk.object(|walk, key| {
        match &*key {
            "error" if walk.peek()? != Type::Null => {
                found.failure = Some(classify_error(walk.skip()?));
            }
            "results" | "data" if walk.peek()? == Type::Array => walk.array(|walk, _| {
                found.results.push(ranked(walk)?);
                Ok::<(), Error>(())
            })?,
            "usage" => read_units(walk, &mut found)?,
            "meta" => members(walk, |walk, key| match key {
                "billed_units" => read_units(walk, &mut found),
                _ => walk.skip().map(|_| ()),
            })?,
            _ => _ = walk.skip()?,
        }
        Ok::<(), Error>(())
    });
    walked.and_then(|()| walk.end()).map_err(malformed)?;
    if let Some(failure) = found.failure {
        return Err(failure);
    }
    let results = sort(&found.results, &asked.facts)?;
    let mut out = Vec::new();
    for (index, score) in results.into_iter().take(asked.facts.most_results()) {
        out.clear();
        let document = asked.facts.returns_documents;
        let document = document.then(|| asked.facts.document(&asked.body, index));
        write_result(index, score, document, &mut out);
        sink.item(&out);
    }
    if found.tokens.is_some() || found.searches.is_some() {
        let searches = found.searches.unwrap_or(asked.units.get(Unit::Search));
        sink.usage(Usage {
            prompt: found.tokens.unwrap_or(0),
            units: asked.units.with(Unit::Search, searches),
            ..Usage::default()
        });
    }
    Ok(())
}

/// Returns index and score of all results, the highest score first.
///
/// Errors: a result is not of the documents, or there is none.
fn sort<'a>(results: &[Ranked<'a>], facts: &RerankFacts) -> Result<Vec<(usize, &'a str)>, Failure> {
    let bad =
        || Failure::malformed("the provider's reply does not rank the documents of the request");
    let mut seen = vec![false; facts.documents.len()];
    let mut sorted = Vec::with_capacity(results.len());
    for result in results {
        let (index, (text, score)) = result.index.zip(result.score).ok_or_else(bad)?;
        let place = seen.get_mut(index).ok_or_else(bad)?;
        if std::mem::replace(place, true) {
            return Err(bad());
        }
        sorted.push((index, text, score));
    }
    if sorted.is_empty() {
        return Err(bad());
    }
    sorted.sort_by(|(one, _, a), (other, _, b)| b.total_cmp(a).then(one.cmp(other)));
    let sorted = sorted.into_iter();
    Ok(sorted.map(|(index, text, _)| (index, text)).collect())
}

fn ranked<'a>(walk: &mut Walker<'a>) -> Result<Ranked<'a>, Error> {
    let mut ranked = Ranked::default();
    members(walk, |walk, key| {
        match key {
            "index" => ranked.index = walk.skip()?.parse().ok(),
            "relevance_score" | "score" if walk.peek()? == Type::Number => {
                let text = walk.number()?;
                let score: Option<f64> = text.parse().ok();
                ranked.score = score.filter(|score| score.is_finite()).map(|it| (text, it));
            }
            _ => _ = walk.skip()?,
        }
        Ok(())
    })?;
    Ok(ranked)
}

/// Reads what the provider bills: tokens or searches.
fn read_units(walk: &mut Walker<'_>, found: &mut RankingReply<'_>) -> Result<(), Error> {
    let (mut prompt, mut total) = (None, None);
    members(walk, |walk, key| {
        let count = |walk: &mut Walker<'_>| walk.skip().map(whole);
        match key {
            "prompt_tokens" | "input_tokens" => prompt = count(walk)?,
            "total_tokens" => total = count(walk)?,
            "search_units" => found.searches = count(walk)?,
            _ => _ = walk.skip()?,
        }
        Ok(())
    })?;
    found.tokens = prompt.or(total).or(found.tokens);
    Ok(())
}

/// A whole number, which some providers write with a fraction.
fn whole(text: &str) -> Option<u64> {
    let whole = text.split_once('.').map_or(text, |(whole, _)| whole);
    whole.parse().ok()
}

/// Walks an object; anything else is skipped.
fn members<'a>(
    walk: &mut Walker<'a>,
    mut member: impl FnMut(&mut Walker<'a>, &str) -> Result<(), Error>,
) -> Result<(), Error> {
    if walk.peek()? != Type::Object {
        return walk.skip().map(|_| ());
    }
    walk.object(|walk, key| member(walk, &key))
}
