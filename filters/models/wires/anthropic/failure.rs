//! Errors of this wire. Source: docs/facts/wire-formats.md 3.6.

use serde::Deserialize;

use crate::models::wires::failure::Failure;

/// `{type: error, error: {type, message}}`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Body {
    error: ErrorBody,
}

/// The inner object.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ErrorBody {
    #[serde(rename = "type")]
    kind: String,
    message: String,
}

/// A reply of this status; a body that is not JSON, as a gateway in between writes it, says nothing.
pub(super) fn classify(status: u16, body: &[u8]) -> Failure {
    let body: Body = serde_json::from_slice(body).unwrap_or_default();
    Failure::refused(status, &body.error.message)
}

/// An error event, or an error in the body of a 200.
pub(super) fn classify_error(error: &ErrorBody) -> Failure {
    let status = match error.kind.as_str() {
        "invalid_request_error" => 400,
        "authentication_error" => 401,
        "billing_error" => 402,
        "permission_error" => 403,
        "not_found_error" => 404,
        "conflict_error" => 409,
        "request_too_large" => 413,
        "rate_limit_error" => 429,
        "timeout_error" => 504,
        "overloaded_error" => 529,
        _ => 500,
    };
    // Nothing of this answer has been seen, so the next provider may try whatever the words.
    Failure {
        is_retryable: true,
        ..Failure::refused(status, &error.message)
    }
}
