//! Errors in the words by which clients of the vendor decide whether they ask again. Source: docs/facts/responses.md 3.

use std::borrow::Cow;

use crate::fault::Fault;
use crate::json::Object;
use crate::models::fronts::too_long;

/// An error as clients of this API read it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ResponsesError<'a> {
    pub status: u16,
    pub code: Option<Cow<'a, str>>,
    pub message: Cow<'a, str>,
    error_type: &'static str,
    param: Option<&'a str>,
    /// What stands beside it: a JSON object.
    metadata: Option<&'a [u8]>,
}

impl<'a> ResponsesError<'a> {
    /// Returns the error that a fault is.
    pub fn new(fault: &'a Fault) -> Self {
        let mut error = Self {
            status: fault.status(),
            code: fault.code().map(Cow::Borrowed),
            message: Cow::Borrowed(&fault.message),
            error_type: fault.error_type(),
            param: fault.param.as_deref(),
            metadata: fault.metadata(),
        };
        if too_long::is_told_by(fault) {
            error.code = Some("context_length_exceeded".into());
            return error;
        }
        match error.status {
            // Clients ask again behind any other status, and an empty account has nothing for them.
            402 => {
                error.status = 429;
                error.error_type = "insufficient_quota";
                error.code = Some("insufficient_quota".into());
            }
            429 => {
                error.code = Some("rate_limit_exceeded".into());
                if let Some(seconds) = fault.retry_after_s {
                    let said = format!("{} Please try again in {seconds}s.", fault.message);
                    error.message = said.into();
                }
            }
            503 | 529 => error.code = Some("server_is_overloaded".into()),
            _ => {}
        }
        error
    }

    /// Returns the body: `{"error": {"message", "type", "param", "code"}}`, and `metadata` where the fault has it.
    pub fn body(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(self.message.len() + 128);
        let mut object = Object::open(&mut body);
        object.object("error", |error| {
            error.text("message", &self.message);
            error.text("type", self.error_type);
            error.text_or_null("param", self.param);
            error.text_or_null("code", self.code.as_deref());
        });
        if let Some(metadata) = self.metadata {
            object.value("metadata", |out| out.extend_from_slice(metadata));
        }
        object.close();
        body
    }

    /// Returns what a response that failed says of itself: `{"code", "message"}`.
    pub(super) fn of_response(&self) -> String {
        let mut out = Vec::new();
        let mut error = Object::open(&mut out);
        error.text("code", self.code.as_deref().unwrap_or("server_error"));
        error.text("message", &self.message);
        error.close();
        String::from_utf8(out).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::{Value, json};

    use super::*;
    use crate::fault::FaultKind;

    fn error(fault: &Fault) -> (u16, Value) {
        let error = ResponsesError::new(fault);
        let body: Value = serde_json::from_slice(&error.body()).unwrap();
        (error.status, body["error"].clone())
    }

    #[test]
    fn clients_read_whether_they_may_ask_again() {
        for (kind, status, code) in [
            (FaultKind::Invalid, 400, Value::Null),
            (FaultKind::Unauthenticated, 401, "invalid_api_key".into()),
            (FaultKind::Payment, 429, "insufficient_quota".into()),
            (FaultKind::ModelNotFound, 404, "model_not_found".into()),
            (FaultKind::RateLimited, 429, "rate_limit_exceeded".into()),
            (
                FaultKind::UpstreamUnavailable,
                503,
                "server_is_overloaded".into(),
            ),
            (FaultKind::Overloaded, 529, "server_is_overloaded".into()),
            (
                FaultKind::UpstreamFailed,
                502,
                "all_providers_failed".into(),
            ),
        ] {
            let (came, body) = error(&Fault::new(kind, "so"));
            assert_eq!((came, &body["code"]), (status, &code), "{kind:?}");
            assert_eq!(body["message"], "so");
        }
    }

    #[test]
    fn metadata_stands_beside_the_error() {
        let fault = Fault::new(FaultKind::UpstreamFailed, "so");
        let fault = fault.with_metadata(br#"{"routing":[]}"#.to_vec());
        let body: Value = serde_json::from_slice(&ResponsesError::new(&fault).body()).unwrap();
        assert_eq!(body["metadata"], json!({"routing": []}));
        assert_eq!(body["error"]["code"], "all_providers_failed");
    }

    #[test]
    fn a_limit_says_when_it_ends_and_a_prompt_that_is_too_long_that_it_is() {
        let fault = Fault::new(FaultKind::RateLimited, "slow down.").with_retry_after_s(7);
        let (_, body) = error(&fault);
        assert_eq!(body["message"], "slow down. Please try again in 7s.");
        let said = "the provider refused the request: This model's maximum context length is 128000 tokens.";
        let fault = Fault::invalid("input", said).with_provider_code("x");
        let (status, body) = error(&fault);
        assert_eq!(status, 400);
        assert_eq!(
            body,
            json!({"message": said, "type": "invalid_request_error", "param": "input", "code": "context_length_exceeded"})
        );
        let failed: Value =
            serde_json::from_str(&ResponsesError::new(&fault).of_response()).unwrap();
        assert_eq!(
            failed,
            json!({"code": "context_length_exceeded", "message": said})
        );
    }
}
