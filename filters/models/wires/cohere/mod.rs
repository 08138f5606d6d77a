//! Cohere's wire, version 2 of its API: embeddings, rerank.

mod embeddings;
mod failure;
mod rerank;

use crate::models::operation::Operation;
use crate::models::wires::wire::Wire;

/// The wire.
pub(super) static COHERE: Wire = Wire {
    codecs: &[
        (Operation::Embeddings, &embeddings::CODEC),
        (Operation::Rerank, &rerank::CODEC),
    ],
    list_path: Some("/v1/models?page_size=1000"),
    classify: failure::classify,
    ..Wire::OF_ITS_OWN
};
