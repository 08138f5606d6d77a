//! Errors in the words of the vendor, by which its clients decide whether they ask again. Source: docs/facts/contents.md 3.

use crate::fault::{Fault, FaultKind};
use crate::json::Object;

/// An error as clients of this API read it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ContentsError {
    pub status: u16,
    /// `{"error": {"code", "message", "status", "details"}}`.
    pub body: Vec<u8>,
}

/// The longest wait that clients are told. They wait for as long as they are told, and give up beyond some minutes.
const MAX_WAIT_S: u32 = 60;

impl ContentsError {
    /// Returns the error that a fault is.
    pub fn new(fault: &Fault) -> Self {
        let status = match fault.status() {
            // Clients ask again behind a 429, and an empty account has nothing for them.
            402 => 403,
            529 => 503,
            status => status,
        };
        let mut body = Vec::with_capacity(fault.message.len() + 256);
        let mut object = Object::open(&mut body);
        object.object("error", |error| write(fault, status, error));
        object.close();
        Self { status, body }
    }
}

fn write(fault: &Fault, status: u16, error: &mut Object<'_>) {
    error.number("code", status.into());
    error.text("message", &fault.message);
    error.text("status", status_word(status));
    let reason = match fault.kind {
        FaultKind::Unauthenticated => Some("API_KEY_INVALID"),
        FaultKind::Payment => Some("BILLING_DISABLED"),
        _ => None,
    };
    let wait = fault
        .retry_after_s
        .filter(|_| fault.kind != FaultKind::Payment);
    let code = fault.code();
    error.value("details", |out| {
        out.push(b'[');
        let mut info = Object::open(out);
        info.text("@type", "type.googleapis.com/google.rpc.ErrorInfo");
        info.text("reason", reason.or(code).unwrap_or(status_word(status)));
        info.text("domain", "weirgate");
        if let Some(param) = fault.param.as_deref() {
            info.object("metadata", |metadata| metadata.text("field", param));
        }
        info.close();
        if let Some(param) = fault.param.as_deref() {
            out.push(b',');
            let mut request = Object::open(out);
            request.text("@type", "type.googleapis.com/google.rpc.BadRequest");
            request.array("fieldViolations", [param], |param, out| {
                let mut violation = Object::open(out);
                violation.text("field", param);
                violation.text("description", &fault.message);
                violation.close();
            });
            request.close();
        }
        if let Some(seconds) = wait {
            out.push(b',');
            let mut retry = Object::open(out);
            retry.text("@type", "type.googleapis.com/google.rpc.RetryInfo");
            retry.text("retryDelay", &format!("{}s", seconds.min(MAX_WAIT_S)));
            retry.close();
        }
        out.push(b']');
    });
}

/// Returns the vendor's word for a status.
fn status_word(status: u16) -> &'static str {
    match status {
        400 | 405 | 411 | 413..=415 | 422 | 431 => "INVALID_ARGUMENT",
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 | 410 => "NOT_FOUND",
        408 | 504 => "DEADLINE_EXCEEDED",
        409 => "ABORTED",
        429 => "RESOURCE_EXHAUSTED",
        499 => "CANCELLED",
        501 => "UNIMPLEMENTED",
        502 | 503 => "UNAVAILABLE",
        _ => "INTERNAL",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use serde_json::{Value, json};

    use super::*;

    fn error(fault: &Fault) -> (u16, Value) {
        let error = ContentsError::new(fault);
        let body: Value = serde_json::from_slice(&error.body).unwrap();
        (error.status, body["error"].clone())
    }

    #[test]
    fn clients_read_what_went_wrong_in_the_words_of_the_vendor() {
        for (kind, status, word, reason) in [
            (
                FaultKind::Invalid,
                400,
                "INVALID_ARGUMENT",
                "INVALID_ARGUMENT",
            ),
            (
                FaultKind::Unauthenticated,
                401,
                "UNAUTHENTICATED",
                "API_KEY_INVALID",
            ),
            (
                FaultKind::Payment,
                403,
                "PERMISSION_DENIED",
                "BILLING_DISABLED",
            ),
            (
                FaultKind::Forbidden,
                403,
                "PERMISSION_DENIED",
                "permission_denied",
            ),
            (
                FaultKind::ModelNotFound,
                404,
                "NOT_FOUND",
                "model_not_found",
            ),
            (
                FaultKind::RateLimited,
                429,
                "RESOURCE_EXHAUSTED",
                "rate_limit_exceeded",
            ),
            (FaultKind::Overloaded, 503, "UNAVAILABLE", "overloaded"),
            (
                FaultKind::UpstreamTimeout,
                504,
                "DEADLINE_EXCEEDED",
                "upstream_timeout",
            ),
            (FaultKind::Internal, 500, "INTERNAL", "INTERNAL"),
        ] {
            let (came, body) = error(&Fault::new(kind, "so"));
            assert_eq!((came, &body["status"]), (status, &json!(word)), "{kind:?}");
            assert_eq!(
                (&body["code"], &body["message"]),
                (&json!(status), &json!("so"))
            );
            assert_eq!(body["details"][0]["reason"], reason, "{kind:?}");
        }
    }

    #[test]
    fn a_limit_says_when_it_ends_and_a_bad_field_which_it_is() {
        let fault = Fault::new(FaultKind::RateLimited, "slow down").with_retry_after_s(7);
        let (_, body) = error(&fault);
        let retry =
            json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7s"});
        assert_eq!(body["details"][1], retry);
        let fault = Fault::new(FaultKind::RateLimited, "slow down").with_retry_after_s(7000);
        assert_eq!(error(&fault).1["details"][1]["retryDelay"], "60s");
        let fault = Fault::new(FaultKind::Payment, "no credit").with_retry_after_s(7);
        assert_eq!(error(&fault).1["details"].as_array().unwrap().len(), 1);
        let (_, body) = error(&Fault::invalid("contents", "`contents` is missing"));
        let violation = json!({"field": "contents", "description": "`contents` is missing"});
        assert_eq!(body["details"][1]["fieldViolations"], json!([violation]));
    }
}
