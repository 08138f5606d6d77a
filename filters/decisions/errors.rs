//! Faults that all protocols share, and the body of a fault.

use crate::fault::Fault;

/// Seconds after which a project without a usable datafile may have one.
pub const DATAFILE_RETRY_AFTER_S: u32 = 5;

/// The body of a fault.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ErrorBody {
    /// The bytes; empty: no body.
    pub bytes: Vec<u8>,
    /// The bytes are plain text, whatever they look like.
    pub is_text: bool,
}

/// The JSON text of a fault. Shape: `{"error":"…"}`. Source: docs/decision-agent.md 7.
pub(super) fn write_json(fault: &Fault) -> Vec<u8> {
    serde_json::json!({ "error": fault.message })
        .to_string()
        .into_bytes()
}
