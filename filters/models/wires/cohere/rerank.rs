//! Rankings, which never repeat documents.

use crate::models::rerank::RerankFacts;
use crate::models::wires::codec::OperationCodec;
use crate::models::wires::ranking::{self, Words};

const WORDS: Words = Words {
    top_n: "top_n",
    bounds: &["max_tokens_per_doc"],
    repeats_documents: false,
    version_for_model: None,
};

/// How a cloud invokes it: the path names the model, and the body the version of the API.
const INVOKED_WORDS: Words = Words {
    bounds: &[],
    version_for_model: Some(2),
    ..WORDS
};

pub(super) static CODEC: OperationCodec<RerankFacts> = OperationCodec::new(
    "/rerank",
    |request, facts, target| {
        ranking::encode(request, facts, target, &WORDS, |key| key == "priority")
    },
    ranking::decoder,
);

pub(super) static INVOKED_CODEC: OperationCodec<RerankFacts> = OperationCodec::new(
    "/model/{model}/invoke",
    |request, facts, target| ranking::encode(request, facts, target, &INVOKED_WORDS, |_| false),
    ranking::decoder,
);
