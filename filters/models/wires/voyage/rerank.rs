//! Rankings, of which `top_k` results stand in `data`.

use crate::models::rerank::RerankFacts;
use crate::models::wires::codec::OperationCodec;
use crate::models::wires::ranking::{self, Words};

const WORDS: Words = Words {
    top_n: "top_k",
    bounds: &[],
    repeats_documents: false,
    version_for_model: None,
};

pub(super) static CODEC: OperationCodec<RerankFacts> = OperationCodec::new(
    "/rerank",
    |request, facts, target| {
        ranking::encode(request, facts, target, &WORDS, |key| key == "truncation")
    },
    ranking::decoder,
);
