//! Rankings of documents in the words of all providers that offer them: they differ in few words only.

use bytes::Bytes;

use super::codec::BodySlice;
use super::decoder::{Decoder, ReplyHead, WholeReply};
use super::exception;
use super::failure::Failure;
use super::scan::{count, items, number, object, reply};
use super::splice::Splice;
use super::wire::Target;
use crate::fault::{Fault, FaultKind};
use crate::json::Error;
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
    /// The version of the API, which stands in place of the model where the path names that; `None`: the model stands there.
    pub(super) version_for_model: Option<u8>,
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
    match words.version_for_model {
        Some(version) => splice.new_bytes(format!("{{\"api_version\":{version}").as_bytes()),
        None => {
            splice.new_bytes(b"{\"model\":");
            splice.new_string(target.model);
        }
    }
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
    Box::new(WholeReply::new(move |body, sink| {
        let read = read(body, &asked, sink);
        // A cloud may say in a 200 that it has no such path.
        read.map_err(|failure| exception::in_success(body).unwrap_or(failure))
    }))
}

fn read(body: &[u8], asked: &RankingRequest, sink: &mut dyn Sink) -> Result<(), Failure> {
    let [results, data, usage, meta] = reply(body, ["results", "data", "usage", "meta"])?;
    let results = items(results).or_else(|| items(data)).unwrap_or_default();
    let results = sort(&results, &asked.facts).ok_or_else(|| {
        Failure::malformed("the provider's reply does not rank the documents of the request")
    })?;
    let mut out = Vec::new();
    for (index, score) in results.into_iter().take(asked.facts.most_results()) {
        out.clear();
        let document = asked.facts.returns_documents;
        let document = document.then(|| asked.facts.document(&asked.body, index));
        write_result(index, score, document, &mut out);
        sink.item(&out);
    }
    let [billed] = object(meta, ["billed_units"]).unwrap_or_default();
    let (mut tokens, mut searches) = (None, None);
    for units in [usage, billed] {
        // Tokens or searches.
        let keys = [
            "prompt_tokens",
            "input_tokens",
            "total_tokens",
            "search_units",
        ];
        let [prompt, input, total, units] = object(units, keys).unwrap_or_default();
        let counted = [prompt, input, total].into_iter().find_map(count);
        tokens = counted.or(tokens);
        searches = count(units).or(searches);
    }
    if tokens.is_some() || searches.is_some() {
        let searches = searches.unwrap_or(asked.units.get(Unit::Search));
        sink.usage(Usage {
            prompt: tokens.unwrap_or(0),
            units: asked.units.with(Unit::Search, searches),
            ..Usage::default()
        });
    }
    Ok(())
}

/// Returns index and score of all results, the highest score first; `None`: a result is not of the documents, or there is none.
fn sort<'a>(results: &[&'a str], facts: &RerankFacts) -> Option<Vec<(usize, &'a str)>> {
    let mut seen = vec![false; facts.documents.len()];
    let mut sorted = Vec::with_capacity(results.len());
    for result in results {
        let [index, relevance, score] = object(result, ["index", "relevance_score", "score"])?;
        let index: usize = index.parse().ok()?;
        if std::mem::replace(seen.get_mut(index)?, true) {
            return None;
        }
        let text = number(relevance).or_else(|| number(score))?;
        let score: f64 = text.parse().ok()?;
        sorted.push((index, text, Some(score).filter(|score| score.is_finite())?));
    }
    sorted.sort_by(|(one, _, a), (other, _, b)| b.total_cmp(a).then(one.cmp(other)));
    let sorted = sorted.into_iter();
    (sorted.len() > 0).then(|| sorted.map(|(index, text, _)| (index, text)).collect())
}
