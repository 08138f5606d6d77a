//! Titan's wire: embeddings, one text at once.

mod embeddings;

use crate::models::operation::Operation;
use crate::models::wires::exception;
use crate::models::wires::wire::Wire;

/// The wire.
pub(super) static TITAN: Wire = Wire {
    codecs: &[(Operation::Embeddings, &embeddings::CODEC)],
    classify: exception::classify,
    ..Wire::OF_ITS_OWN
};
