//! Exceptions of AWS: how its services say failures, in refusals, within streams and inside a 200.
//!
//! Source: docs/facts/wire-formats.md 5.1.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::failure::{Failure, ProviderWords};
use crate::json::members::find_text;
use crate::models::chat::text::Text;

/// The shapes seen: `{message}`, `{Message}`, `{__type, message}`, `{Output: {__type}, Version}`, and in streams
/// `{message, originalStatusCode, originalMessage}`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Body<'a> {
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow, rename = "Message")]
    older_message: Option<&'a RawValue>,
    #[serde(borrow, rename = "__type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow, rename = "Output")]
    output: Option<&'a RawValue>,
    #[serde(borrow, rename = "originalStatusCode")]
    status: Option<&'a RawValue>,
    #[serde(borrow, rename = "originalMessage")]
    original: Option<&'a RawValue>,
}

impl<'a> Body<'a> {
    fn read(body: &'a [u8]) -> Self {
        serde_json::from_slice(body).unwrap_or_default()
    }

    fn message(&self) -> Cow<'a, str> {
        let said = [self.original, self.message, self.older_message];
        let mut texts = said.into_iter().flatten().filter_map(text);
        texts.next().unwrap_or_default()
    }

    /// Returns the name of the exception.
    fn kind(&self) -> Option<String> {
        let inner = || find_text(self.output?.get(), "__type");
        let kind = self.kind.and_then(text).or_else(inner)?;
        Some(bare(&kind).to_owned())
    }
}

/// Returns the name of an exception without the namespace before it and the address behind it.
fn bare(kind: &str) -> &str {
    let kind = kind.split(':').next().unwrap_or(kind);
    kind.rsplit('#').next().unwrap_or(kind)
}

/// Returns a value that is a text.
fn text(value: &RawValue) -> Option<Cow<'_, str>> {
    serde_json::from_str::<Text<'_>>(value.get())
        .ok()
        .map(|text| text.0)
}

/// A refusal of this status.
pub(super) fn classify(status: u16, body: &[u8]) -> Failure {
    let body = Body::read(body);
    let kind = body.kind();
    let failure = refused(status, kind.as_deref().unwrap_or_default(), &body.message());
    // The model has failed, not the request.
    let by_model = status == MODEL_FAILED;
    Failure {
        is_retryable: failure.is_retryable || by_model || by_quota(kind.as_deref()),
        ..failure
    }
}

/// An exception within a stream, or in its place.
pub(super) fn classify_exception(kind: &str, payload: &[u8]) -> Failure {
    let body = Body::read(payload);
    let own = body.status.and_then(|status| status.get().parse().ok());
    let own = own.filter(|status: &u16| (400..600).contains(status));
    let status = own.or_else(|| status_of(kind)).unwrap_or(500);
    retryable(refused(status, kind, &body.message()))
}

/// A failure that the service does not describe; `message` is no JSON.
pub(super) fn classify_error(code: &str, message: &[u8]) -> Failure {
    let message = String::from_utf8_lossy(message);
    retryable(refused(status_of(code).unwrap_or(500), code, &message))
}

/// Returns the failure of a 200 whose body is an exception; `None`: it is none. A path that the service does not know is
/// answered so.
pub(super) fn in_success(body: &[u8]) -> Option<Failure> {
    let body = Body::read(body);
    let kind = body.kind()?;
    let status = status_of(&kind).unwrap_or(500);
    Some(retryable(refused(status, &kind, &body.message())))
}

/// The status of a model that has failed.
const MODEL_FAILED: u16 = 424;

fn refused(status: u16, kind: &str, message: &str) -> Failure {
    let words = ProviderWords {
        message: message.into(),
        code: (!kind.is_empty()).then(|| kind.into()),
        param: None,
    };
    Failure::refused_with(status, words)
}

/// Nothing of this answer has been seen, so the next provider may try whatever the words.
fn retryable(failure: Failure) -> Failure {
    Failure {
        is_retryable: true,
        ..failure
    }
}

/// Returns whether an account has used up what it may, by the exception that the head of a refusal names.
pub fn names_quota(told: &str) -> bool {
    by_quota(Some(bare(told)))
}

/// Whether an account has used up what it may: this is not the request's fault, although its status says so.
fn by_quota(kind: Option<&str>) -> bool {
    kind == Some("ServiceQuotaExceededException")
}

/// Returns the status that an exception has outside of streams, in which its name begins with a small letter.
fn status_of(kind: &str) -> Option<u16> {
    const STATUSES: [(&str, u16); 13] = [
        ("ValidationException", 400),
        ("AccessDeniedException", 403),
        ("ResourceNotFoundException", 404),
        ("UnknownOperationException", 404),
        ("ModelTimeoutException", 408),
        ("ModelErrorException", MODEL_FAILED),
        ("ModelStreamErrorException", MODEL_FAILED),
        ("ThrottlingException", 429),
        ("ModelNotReadyException", 429),
        ("ServiceQuotaExceededException", 429),
        ("InternalServerException", 500),
        ("ServiceUnavailableException", 503),
        ("ExpiredTokenException", 403),
    ];
    let mut statuses = STATUSES.iter();
    let found = statuses.find(|(name, _)| name.eq_ignore_ascii_case(kind));
    found.map(|(_, status)| *status)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::wires::failure::FailureKind;

    #[test]
    fn a_refusal_is_the_requests_or_lets_the_next_provider_try() {
        let message = r#"{"message":"Input is too long for requested model."}"#;
        let quota = r#"{"__type":"ServiceQuotaExceededException","message":"no more"}"#;
        for (status, body, is_retryable) in [
            (400, message, false),
            (400, quota, true),
            (403, r#"{"Message":"no"}"#, true),
            (404, message, true),
            (408, message, true),
            (424, message, true),
            (429, message, true),
            (500, "<html>", true),
            (503, message, true),
        ] {
            let failure = classify(status, body.as_bytes());
            assert_eq!(failure.kind, FailureKind::Status(status), "{body}");
            assert_eq!(failure.is_retryable, is_retryable, "{status} {body}");
        }
        let failure = classify(400, message.as_bytes()).scrubbed(&[""; 0]);
        assert_eq!(&*failure.message, "Input is too long for requested model.");
    }

    #[test]
    fn a_head_may_name_the_exception_with_its_namespace_and_its_address() {
        for told in [
            "ServiceQuotaExceededException",
            "ServiceQuotaExceededException:http://internal.amazon.com/coral/com.amazon.bedrock/",
            "com.amazon.bedrock#ServiceQuotaExceededException",
        ] {
            assert!(names_quota(told), "{told}");
        }
        for told in [
            "",
            "#",
            ":",
            "ValidationException:http://a/ServiceQuotaExceededException",
        ] {
            assert!(!names_quota(told), "{told}");
        }
    }

    #[test]
    fn an_exception_in_a_stream_has_the_status_that_it_has_outside() {
        for (kind, payload, status) in [
            ("throttlingException", r#"{"message":"slow"}"#, 429),
            ("modelStreamErrorException", r#"{"message":"x"}"#, 424),
            (
                "modelStreamErrorException",
                r#"{"message":"x","originalStatusCode":503,"originalMessage":"y"}"#,
                503,
            ),
            (
                "modelStreamErrorException",
                r#"{"originalStatusCode":200}"#,
                424,
            ),
            ("validationException", "{}", 400),
            ("unheardOf", "\u{0}", 500),
        ] {
            let failure = classify_exception(kind, payload.as_bytes());
            assert_eq!(failure.kind, FailureKind::Status(status), "{kind}");
            assert!(failure.is_retryable, "{kind}");
        }
        let failure = classify_error("throttlingException", b"slow").scrubbed(&[""; 0]);
        assert_eq!(failure.kind, FailureKind::Status(429));
        assert_eq!(&*failure.message, "slow");
    }

    #[test]
    fn a_200_may_be_an_exception() {
        let unknown = br#"{"Output":{"__type":"com.amazon.coral.service#UnknownOperationException"},"Version":"1.0"}"#;
        let failure = in_success(unknown).map(|failure| failure.scrubbed(&[""; 0]));
        let failure = failure.unwrap_or_else(|| Failure::malformed(""));
        assert_eq!(failure.kind, FailureKind::Status(404));
        assert_eq!(failure.code.as_deref(), Some("UnknownOperationException"));
        let typed = br#"{"__type":"ThrottlingException:http://x","message":"slow"}"#;
        let failure = in_success(typed).unwrap_or_else(|| Failure::malformed(""));
        assert_eq!(failure.kind, FailureKind::Status(429));
        for plain in [&b"{}"[..], b"[", b"{\"output\":{}}"] {
            assert!(in_success(plain).is_none());
        }
    }
}
