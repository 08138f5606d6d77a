//! Errors of this wire. Source: docs/facts/wire-formats.md 3.6.
//!
//! A cloud that serves it may write errors of its own, alone or as the only item of an array. Their message may hold the error of this
//! wire as JSON, which then counts in their place. Source: docs/facts/clouds.md 3.

use serde::Deserialize;
use serde_json::Value;

use crate::models::wires::failure::Failure;
use crate::models::wires::rate_limit::told_rest_ms;
use crate::models::wires::scan;

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
    /// The status of an error of a cloud, and what that says beside its message.
    code: Value,
    details: Value,
}

impl ErrorBody {
    /// Returns the error of this wire that the whole message of another one is. In the middle of a message it may be what the
    /// caller has said.
    fn inner(&self) -> Option<Self> {
        let body: Body = serde_json::from_str(&self.message).ok()?;
        let is_of_wire = self.kind.is_empty() && !body.error.kind.is_empty();
        is_of_wire.then_some(body.error)
    }

    /// Returns the status of an error of a cloud.
    fn told_status(&self) -> Option<u16> {
        let status = u16::try_from(self.code.as_u64()?).ok();
        status.filter(|status| (400..600).contains(status))
    }

    /// Returns the status that errors of this kind have; `None`: the kind is not known.
    fn status(&self) -> Option<u16> {
        Some(match self.kind.as_str() {
            "invalid_request_error" => 400,
            "authentication_error" => 401,
            "billing_error" => 402,
            "permission_error" => 403,
            "not_found_error" => 404,
            "conflict_error" => 409,
            "request_too_large" => 413,
            "rate_limit_error" => 429,
            "api_error" => 500,
            "timeout_error" => 504,
            "overloaded_error" => 529,
            _ => return None,
        })
    }

    /// Returns after how many milliseconds the provider may be asked again, where the error says so.
    fn retry_after_ms(&self) -> Option<u32> {
        let details = self.details.as_array()?;
        let mut delays = details
            .iter()
            .filter_map(|detail| detail.get("retryDelay")?.as_str());
        delays
            .find_map(told_rest_ms)
            .and_then(|ms| u32::try_from(ms).ok())
    }
}

/// A reply of this status; a body that is not JSON, as a gateway in between writes it, says nothing.
pub(super) fn classify(status: u16, body: &[u8]) -> Failure {
    let body = scan::first_item(body).and_then(|body| serde_json::from_str(body).ok());
    let Body { error } = body.unwrap_or_default();
    let failure = match error.inner() {
        Some(inner) => Failure::refused(inner.status().unwrap_or(status), &inner.message),
        None => Failure::refused(status, &error.message),
    };
    Failure {
        retry_after_ms: error.retry_after_ms(),
        ..failure
    }
}

/// An error event, or an error in the body of a 200.
pub(super) fn classify_error(error: &ErrorBody) -> Failure {
    let inner = error.inner();
    let said = inner.as_ref().unwrap_or(error);
    let status = said.status().or_else(|| error.told_status());
    // Nothing of this answer has been seen, so the next provider may try whatever the words.
    Failure {
        is_retryable: true,
        retry_after_ms: error.retry_after_ms(),
        ..Failure::refused(status.unwrap_or(500), &said.message)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::json;

    use super::*;
    use crate::models::wires::failure::FailureKind;

    fn said(status: u16, body: &Value) -> Failure {
        classify(status, body.to_string().as_bytes()).scrubbed(&[""; 0])
    }

    /// An error of a cloud, whose message holds the error of this wire.
    fn wrapped(kind: &str) -> Value {
        let inner = json!({"type": "error", "error": {"type": kind, "message": "why"}, "request_id": "req_vrtx_1"});
        json!({"error": {"code": 400, "message": format!("{inner}\n"), "status": "FAILED_PRECONDITION"}})
    }

    #[test]
    fn an_error_within_the_error_of_a_cloud_counts_as_it_does_alone() {
        for (kind, status) in [
            ("invalid_request_error", 400),
            ("permission_error", 403),
            ("not_found_error", 404),
            ("request_too_large", 413),
            ("rate_limit_error", 429),
            ("api_error", 500),
            ("overloaded_error", 529),
            ("a_new_error", 400),
        ] {
            let own = json!({"type": "error", "error": {"type": kind, "message": "why"}});
            let alone = said(status, &own);
            assert_eq!(alone.kind, FailureKind::Status(status));
            let nested = wrapped(kind);
            for body in [&nested, &json!([nested])] {
                assert_eq!(said(400, body), alone, "{body}");
            }
        }
    }

    #[test]
    fn an_error_of_a_cloud_alone_says_its_message_and_its_delay() {
        let error = json!({"code": 429, "message": "Resource exhausted", "status": "RESOURCE_EXHAUSTED",
            "details": [{"@type": "a"}, {"retryDelay": "17s"}]});
        for body in [&json!({"error": error}), &json!([{"error": error}])] {
            let failure = said(429, body);
            assert_eq!(failure.kind, FailureKind::Status(429));
            assert_eq!(&*failure.message, "Resource exhausted");
            assert_eq!(failure.retry_after_ms, Some(17_000));
        }
    }

    #[test]
    fn what_only_looks_like_an_error_within_stays_a_message() {
        for message in [
            "{",
            "{}",
            "a {\"error\": 1}",
            "{\"error\": {\"type\": \"\", \"message\": \"x\"}}",
            "{\"error\": {\"type\": \"overloaded_error\"}} and more",
            "no such field: {\"error\": {\"type\": \"overloaded_error\"}}",
        ] {
            let failure = said(400, &json!({"error": {"code": 400, "message": message}}));
            assert_eq!(failure.kind, FailureKind::Status(400), "{message}");
            assert_eq!(&*failure.message, message);
        }
        // What the vendor quotes is what the caller said.
        let quoted = json!({"type": "error", "error": {"type": "invalid_request_error", "message":
            "bad: {\"error\": {\"type\": \"overloaded_error\", \"message\": \"x\"}}"}});
        assert_eq!(said(400, &quoted).kind, FailureKind::Status(400));
    }

    #[test]
    fn hostile_bodies_say_nothing() {
        for body in [
            "",
            "[",
            "[]",
            "[1]",
            "null",
            "<html>",
            "[{\"error\":{\"message\":\"x\"}}",
            "{\"error\":{\"message\":7}}",
            "{\"error\":\"x\"}",
            "{\"error\":{\"message\":\"{\\\"error\\\"",
        ] {
            let failure = classify(503, body.as_bytes()).scrubbed(&[""; 0]);
            assert_eq!(failure.kind, FailureKind::Status(503), "{body}");
            assert_eq!(&*failure.message, "", "{body}");
        }
        assert_eq!(&*classify(400, b"\xff[").message, "");
    }

    #[test]
    fn an_error_in_place_of_an_answer_is_read_alike() {
        let body: Body = serde_json::from_value(wrapped("overloaded_error")).unwrap();
        let failure = classify_error(&body.error);
        assert_eq!(failure.kind, FailureKind::Status(529));
        assert!(failure.is_retryable);
        for (code, status) in [(json!(429), 429), (json!(200), 500), (json!("x"), 500)] {
            let error = json!({"code": code, "message": "slow", "status": "RESOURCE_EXHAUSTED"});
            let error: ErrorBody = serde_json::from_value(error).unwrap();
            assert_eq!(classify_error(&error).kind, FailureKind::Status(status));
        }
    }
}
