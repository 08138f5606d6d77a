//! Errors in the words by which the vendor's clients recognize them. Source: docs/facts/messages.md 3.

use std::borrow::Cow;

use crate::fault::Fault;
use crate::json::Object;
use crate::models::fronts::too_long;

/// An error as clients of this API read it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MessagesError {
    pub status: u16,
    /// `{"type": "error", "error": {"type", "message", "details"}, "request_id"}`; `details` is `{"error_code"}`, where the fault
    /// has a code of its own.
    pub body: Vec<u8>,
    /// Whether the client should not repeat the request, whatever its status says.
    pub is_final: bool,
}

impl MessagesError {
    /// Returns the error that a fault is.
    pub fn new(fault: &Fault, request_id: &str) -> Self {
        let status = fault.status();
        // Clients repeat a 529 and name it, and of an empty account they show the words of a 429.
        let (status, kind) = match status {
            402 => (429, "billing_error"),
            503 | 529 => (529, "overloaded_error"),
            401 => (401, "authentication_error"),
            403 => (403, "permission_error"),
            404 | 410 => (404, "not_found_error"),
            408 | 504 => (status, "timeout_error"),
            413 => (413, "request_too_large"),
            429 => (429, "rate_limit_error"),
            400..=499 => (400, "invalid_request_error"),
            status => (status, "api_error"),
        };
        let mut body = Vec::with_capacity(fault.message.len() + 128);
        let mut object = Object::open(&mut body);
        object.text("type", "error");
        object.object("error", |error| {
            error.text("type", kind);
            error.text("message", &message(fault));
            if let Some(code) = fault.own_code() {
                error.object("details", |details| details.text("error_code", code));
            }
        });
        object.text("request_id", request_id);
        object.close();
        Self {
            status,
            body,
            is_final: kind == "billing_error",
        }
    }
}

/// Returns the message. Of a prompt that is too long, clients recognize one wording alone, and make it shorter then.
fn message(fault: &Fault) -> Cow<'_, str> {
    let said: &str = &fault.message;
    if !too_long::is_told_by(fault) {
        return Cow::Borrowed(said);
    }
    let numbers = said.split(|c: char| !c.is_ascii_digit() && c != ',');
    let numbers = numbers.filter_map(|number| number.replace(',', "").parse::<u64>().ok());
    let mut numbers: Vec<u64> = numbers.filter(|number| *number >= 256).collect();
    numbers.sort_unstable();
    numbers.dedup();
    match (numbers.first(), numbers.last()) {
        (Some(most), Some(came)) if came > most => {
            format!("prompt is too long: {came} tokens > {most} maximum").into()
        }
        _ => format!("prompt is too long (capability_rejected: prompt_too_long): {said}").into(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::{Value, json};

    use super::*;
    use crate::fault::FaultKind;
    use crate::fault_code::FaultCode;

    fn error(kind: FaultKind, message: &str) -> (u16, Value) {
        let error = MessagesError::new(&Fault::new(kind, message.to_owned()), "r1");
        (error.status, serde_json::from_slice(&error.body).unwrap())
    }

    #[test]
    fn a_code_of_its_own_is_told() {
        let fault =
            Fault::new(FaultKind::Invalid, "so").with_code(FaultCode::ThreadUnsupportedRequest);
        let body: Value = serde_json::from_slice(&MessagesError::new(&fault, "r1").body).unwrap();
        let details = json!({"error_code": "thread_unsupported_request"});
        assert_eq!(body["error"]["details"], details);
    }

    #[test]
    fn each_kind_has_the_status_and_the_type_that_clients_know() {
        for (kind, status, name) in [
            (FaultKind::Invalid, 400, "invalid_request_error"),
            (FaultKind::Unauthenticated, 401, "authentication_error"),
            (FaultKind::Payment, 429, "billing_error"),
            (FaultKind::Forbidden, 403, "permission_error"),
            (FaultKind::ModelNotFound, 404, "not_found_error"),
            (FaultKind::Gone, 404, "not_found_error"),
            (FaultKind::TooLarge, 413, "request_too_large"),
            (FaultKind::MediaType, 400, "invalid_request_error"),
            (FaultKind::RateLimited, 429, "rate_limit_error"),
            (FaultKind::Internal, 500, "api_error"),
            (FaultKind::UpstreamFailed, 502, "api_error"),
            (FaultKind::UpstreamUnavailable, 529, "overloaded_error"),
            (FaultKind::UpstreamTimeout, 504, "timeout_error"),
            (FaultKind::Overloaded, 529, "overloaded_error"),
        ] {
            let expected = json!({"type": "error", "error": {"type": name, "message": "so"}, "request_id": "r1"});
            assert_eq!(error(kind, "so"), (status, expected), "{kind:?}");
        }
        let billing = Fault::new(FaultKind::Payment, "none left");
        assert!(MessagesError::new(&billing, "").is_final);
    }

    #[test]
    fn a_prompt_that_is_too_long_is_told_in_the_words_that_clients_know() {
        for (said, told) in [
            (
                "the provider refused the request: This model's maximum context length is 128000 tokens. However, your messages resulted in 130,512 tokens.",
                "prompt is too long: 130512 tokens > 128000 maximum",
            ),
            (
                "the provider refused the request: prompt is too long: 213462 tokens > 200000 maximum",
                "prompt is too long: 213462 tokens > 200000 maximum",
            ),
            (
                "the provider refused the request: The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).",
                "prompt is too long: 1048577 tokens > 1048576 maximum",
            ),
            (
                "the provider refused the request: Input is too long for requested model.",
                "prompt is too long (capability_rejected: prompt_too_long): the provider refused the request: Input is too long for requested model.",
            ),
        ] {
            let (_, body) = error(FaultKind::Invalid, said);
            assert_eq!(body.pointer("/error/message").unwrap(), told);
        }
        let (_, other) = error(FaultKind::UpstreamFailed, "the context window broke");
        assert_eq!(
            other.pointer("/error/message").unwrap(),
            "the context window broke"
        );
    }
}
