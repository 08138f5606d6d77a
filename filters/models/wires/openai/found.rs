//! Searches of the web in Perplexity's form, which is the convention's: options and results pass as they are.

use crate::fault::Fault;
use crate::models::request::ModelRequest;
use crate::models::search::{SearchFacts, SearchKind};
use crate::models::wires::codec::{BodySlice, OperationCodec};
use crate::models::wires::found_pages::{self, check_kind};
use crate::models::wires::splice::Splice;
use crate::models::wires::wire::Target;

/// Members of the convention; a strict provider gets no others.
const KNOWN: [&str; 15] = [
    "model",
    "query",
    "search_type",
    "max_results",
    "max_tokens",
    "max_tokens_per_page",
    "search_context_size",
    "country",
    "search_language_filter",
    "search_domain_filter",
    "search_recency_filter",
    "search_after_date_filter",
    "search_before_date_filter",
    "last_updated_after_filter",
    "last_updated_before_filter",
];

pub(super) static CODEC: OperationCodec<SearchFacts> =
    OperationCodec::new("search", encode, |_, facts, _, _| {
        found_pages::decoder(facts, found_pages::read_own)
    });

/// Encodes a request. Where the model is a kind of search, it stands in `search_type`, because such an API has no models.
fn encode(
    request: &ModelRequest,
    facts: &SearchFacts,
    target: &Target<'_>,
) -> Result<Vec<BodySlice>, Fault> {
    let source = &request.source;
    let mut splice = Splice::new(&source.body);
    let kinds = SearchKind::ALL.map(SearchKind::as_str);
    let is_kind = kinds.contains(&target.model);
    if is_kind {
        check_kind(facts, target)?;
        splice.new_bytes(b"{\"search_type\":");
    } else {
        splice.new_bytes(b"{\"model\":");
    }
    splice.new_string(target.model);
    for member in &source.members {
        let passes = match &*member.key {
            "model" => false,
            "search_type" => !is_kind,
            key => target.quirks.passes(key, &KNOWN),
        };
        if passes {
            splice.new_bytes(b",");
            splice.slice(member.whole.clone());
        }
    }
    splice.new_bytes(b"}");
    Ok(splice.finish())
}
