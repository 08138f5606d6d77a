//! Reranking as servers of the convention offer it beside their chat: Jina's form, which most have taken over.

use crate::models::rerank::RerankFacts;
use crate::models::wires::codec::OperationCodec;
use crate::models::wires::ranking::{self, KNOWN, Words};

const WORDS: Words = Words {
    top_n: "top_n",
    bounds: &["max_tokens_per_doc", "max_chunks_per_doc"],
    repeats_documents: true,
    version_for_model: None,
};

pub(super) static CODEC: OperationCodec<RerankFacts> = OperationCodec::new(
    "rerank",
    |request, facts, target| {
        let quirks = target.quirks;
        ranking::encode(request, facts, target, &WORDS, |key| {
            quirks.passes_unknown(key, &KNOWN)
        })
    },
    ranking::decoder,
);
