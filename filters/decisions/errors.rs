//! Faults that all protocols share, and the body of a fault.

use crate::fault::Fault;

/// The seconds after which to retry a project without a usable datafile.
pub const DATAFILE_RETRY_AFTER_S: u32 = 5;

/// The body of a fault.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ErrorBody {
    /// The bytes, which are empty if there is no body.
    pub bytes: Vec<u8>,
    /// Whether the bytes are sent as plain text, even if they are JSON.
    pub is_text: bool,
}

/// Writes a fault as JSON. Shape: `{"error":"…"}`. Source: docs/decision-agent.md 7.
pub(super) fn write_json(fault: &Fault) -> Vec<u8> {
    serde_json::json!({ "error": fault.message })
        .to_string()
        .into_bytes()
}
