//! The event that ends a broken stream, in all fronts of our own convention. Source: docs/decisions.md 2.

use crate::fault::Fault;

/// Returns an error event. Shape: `event: error`, `data: {"error": {message, type, param, code, usage?}, metadata?}`.
pub(crate) fn error_event(fault: &Fault, usage: Option<&[u8]>) -> Vec<u8> {
    let mut error = fault.compatible_error();
    let usage = usage.and_then(|usage| serde_json::from_slice(usage).ok());
    if let (Some(error), Some(usage)) = (error.as_object_mut(), usage) {
        error.insert("usage".to_owned(), usage);
    }
    let mut event = b"event: error\ndata: ".to_vec();
    event.extend_from_slice(&fault.body_of(&error));
    event.extend_from_slice(b"\n\n");
    event
}
