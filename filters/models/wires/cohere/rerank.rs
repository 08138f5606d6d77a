//! Rankings, which never repeat documents.

use crate::models::rerank::RerankFacts;
use crate::models::wires::codec::OperationCodec;
use crate::models::wires::ranking::{self, Words};

const WORDS: Words = Words {
    top_n: "top_n",
    bounds: &["max_tokens_per_doc"],
    repeats_documents: false,
};

pub(super) static CODEC: OperationCodec<RerankFacts> = OperationCodec::new(
    "/rerank",
    |request, facts, target| {
        ranking::encode(request, facts, target, &WORDS, |key| key == "priority")
    },
    ranking::decoder,
);
