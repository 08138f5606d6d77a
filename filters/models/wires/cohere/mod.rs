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
    classify: failure::classify,
    ..Wire::OF_ITS_OWN
};
