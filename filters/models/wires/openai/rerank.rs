//! Reranking as servers of the convention offer it beside their chat: Jina's form, which most have taken over.

use bytes::Bytes;

use crate::fault::Fault;
use crate::models::request::ModelRequest;
use crate::models::rerank::RerankFacts;
use crate::models::wires::ranking::{KNOWN, Words, encode as encode_in};
use crate::models::wires::wire::Target;

const WORDS: Words = Words {
    top_n: "top_n",
    bounds: &["max_tokens_per_doc", "max_chunks_per_doc"],
    repeats_documents: true,
};

pub(super) fn encode(
    request: &ModelRequest,
    facts: &RerankFacts,
    target: &Target<'_>,
) -> Result<Vec<Bytes>, Fault> {
    let quirks = target.quirks;
    encode_in(request, facts, target, &WORDS, |key| {
        quirks.passes_unknown(key, &KNOWN)
    })
}
