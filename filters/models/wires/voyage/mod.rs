//! Voyage's wire: embeddings, rerank. Its replies have the shapes of OpenAI's convention, its requests have words of their own.

mod embeddings;
mod rerank;

use crate::models::operation::Operation;
use crate::models::wires::wire::Wire;

/// The wire.
pub(super) static VOYAGE: Wire = Wire {
    codecs: &[
        (Operation::Embeddings, &embeddings::CODEC),
        (Operation::Rerank, &rerank::CODEC),
    ],
    ..Wire::OF_ITS_OWN
};
