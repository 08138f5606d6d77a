//! Errors of this wire, alone or as the only item of an array. Source: docs/facts/wire-formats.md 4.6.

use serde_json::Value;

use crate::models::wires::blame;
use crate::models::wires::failure::Failure;
use crate::models::wires::rate_limit::told_rest_ms;
use crate::models::wires::scan;

/// A reply of this status.
pub(super) fn classify(status: u16, body: &[u8]) -> Failure {
    let error = &find_error(body).unwrap_or_default();
    // A bad key is a 400 here; its reason distinguishes it from a bad request.
    let text =
        |name: &'static str| details(error).filter_map(move |detail| detail.get(name)?.as_str());
    let blames_key = text("reason").any(blame::by_code);
    let failure = Failure {
        retry_after_ms: text("retryDelay")
            .find_map(told_rest_ms)
            .and_then(|ms| u32::try_from(ms).ok()),
        ..Failure::refused(status, message(error))
    };
    if blames_key {
        failure.about_the_key()
    } else {
        failure
    }
}

/// An error inside a 200. Nothing of the answer has been seen, so the next provider may try.
pub(super) fn classify_error(error: &Value) -> Failure {
    let status = error.get("code").and_then(Value::as_u64).unwrap_or(500) as u16;
    Failure {
        is_retryable: true,
        ..Failure::refused(status, message(error))
    }
}

/// Returns the error of a body, which is an object or the first item of an array.
pub(super) fn find_error(body: &[u8]) -> Option<Value> {
    let [error] = scan::object(scan::first_item(body)?, ["error"])?;
    serde_json::from_str(error).ok()
}

/// What an error says beside its message: reasons, and a `RetryInfo` with the time until another try.
fn details(error: &Value) -> impl Iterator<Item = &Value> {
    let details = error.get("details").and_then(Value::as_array);
    details.into_iter().flatten()
}

fn message(error: &Value) -> &str {
    error
        .get("message")
        .and_then(Value::as_str)
        .unwrap_or_default()
}
