//! Reranking in the words of this wire: `top_k` results, which stand in `data`.

use bytes::Bytes;

use crate::fault::Fault;
use crate::models::request::ModelRequest;
use crate::models::rerank::RerankFacts;
use crate::models::wires::ranking::{Words, encode as encode_in};
use crate::models::wires::wire::Target;

const WORDS: Words = Words {
    top_n: "top_k",
    bounds: &[],
    repeats_documents: false,
};

pub(super) fn encode(
    request: &ModelRequest,
    facts: &RerankFacts,
    target: &Target<'_>,
) -> Result<Vec<Bytes>, Fault> {
    encode_in(request, facts, target, &WORDS, |key| key == "truncation")
}
