//! The failure of an attempt at a provider, and whether the next provider may try.

use std::borrow::Cow;

use super::scrub::scrub;
use super::{blame, opaque};
use crate::fault::FaultKind;
use crate::json::{Str, write_number};

/// The maximum length of an upstream's code that is passed on.
const MAX_CODE_BYTES: usize = 64;
/// The maximum length of an upstream's parameter that is passed on.
const MAX_PARAM_BYTES: usize = 100;

/// What kind of failure it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FailureKind {
    /// No reply: refused, reset, TLS.
    Connect,
    /// No reply, or no next event, in time.
    Timeout,
    /// A reply of this status, or an error inside a 200 that amounts to it.
    Status(u16),
    /// A 200 that is not what the wire says.
    Malformed,
    /// The reply ended before its end.
    Truncated,
    /// The source of the provider's credentials gives none, so nothing was sent.
    Credential,
    /// No failure: the attempt was cancelled, because another one beside it answered first, or because its client left.
    Cancelled,
}

/// Why an attempt failed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Failure {
    pub kind: FailureKind,
    /// Whether the next provider may try. Source: docs/decisions.md 5.
    pub is_retryable: bool,
    /// Whether it says that the key is bad or its account empty.
    pub blames_key: bool,
    /// Whether it says that the state of earlier turns, which went back to it, is not its own.
    pub refuses_state: bool,
    /// After how many milliseconds it may be asked again, where its body says so. Of 32 bits, so that results stay small.
    pub retry_after_ms: Option<u32>,
    /// The cause in our words, or the upstream's message without secrets and cut; empty where there was none.
    pub message: Cow<'static, str>,
    /// The upstream's `code` or error type word, where it gave one that is harmless to pass on.
    pub code: Option<Box<str>>,
    pub param: Option<Box<str>>,
    pub(super) words: ProviderWords,
}

/// What the upstream said, as it said it. It may quote the key and the address that it was asked with, which no wire
/// knows, so [`Failure::scrubbed`] alone passes it on.
#[derive(Clone, Default, Eq, PartialEq)]
pub(super) struct ProviderWords {
    pub message: Box<str>,
    pub code: Option<Box<str>>,
    pub param: Option<Box<str>>,
}

impl std::fmt::Debug for ProviderWords {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ProviderWords(…)")
    }
}

impl Failure {
    /// A failure without a reply, or with a reply that cannot be read. Always retryable.
    pub fn new(kind: FailureKind) -> Self {
        Self {
            kind,
            is_retryable: true,
            blames_key: false,
            refuses_state: false,
            retry_after_ms: None,
            message: Cow::Borrowed(""),
            code: None,
            param: None,
            words: ProviderWords::default(),
        }
    }

    /// Sets the cause in our own words, which never hold the upstream's.
    #[must_use]
    pub fn because(mut self, cause: impl Into<Cow<'static, str>>) -> Self {
        self.message = cause.into();
        self
    }

    /// A 200 that is not what the wire says; `detail` is ours, never the upstream's body.
    pub fn malformed(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(FailureKind::Malformed).because(detail)
    }

    /// A refusal of this status with the upstream's message, which [`Self::scrubbed`] passes on.
    ///
    /// Retryable: 401, 402, 403, 404, 405, 408, 425, 429, 5xx, and any 4xx whose wording says bad credential or
    /// empty account. Source: docs/decisions.md 5.
    pub fn refused(status: u16, message: &str) -> Self {
        Self::refused_with(
            status,
            ProviderWords {
                message: message.into(),
                ..ProviderWords::default()
            },
        )
    }

    /// A refusal of this status with what the upstream said.
    pub(super) fn refused_with(status: u16, words: ProviderWords) -> Self {
        let by_status = matches!(status, 401..=405 | 408 | 425 | 429 | 500..=599);
        let is_ours = (400..500).contains(&status);
        let blames_key = is_ours
            && (blame::by_message(&words.message)
                || words.code.as_deref().is_some_and(blame::by_code));
        let refuses_state = is_ours && opaque::is_refused(words.code.as_deref(), &words.message);
        Self {
            is_retryable: by_status || !is_ours || blames_key,
            blames_key,
            refuses_state,
            words,
            ..Self::new(FailureKind::Status(status))
        }
    }

    /// Returns whether the provider's filter has refused the request or its answer.
    pub(super) fn is_by_filter(&self) -> bool {
        const CODES: [&str; 3] = [
            "moderation_blocked",
            "content_policy_violation",
            "content_filter",
        ];
        let code = self.words.code.as_deref();
        code.is_some_and(|code| CODES.contains(&code))
    }

    /// Marks a refusal whose code says that the key is bad or its account empty.
    #[must_use]
    pub(super) fn about_the_key(self) -> Self {
        let is_ours = matches!(self.kind, FailureKind::Status(400..=499));
        Self {
            is_retryable: self.is_retryable || is_ours,
            blames_key: self.blames_key || is_ours,
            ..self
        }
    }

    /// Passes on what the upstream said, without secrets: neither the `exact` ones, which are the credential and the
    /// addresses of this attempt, nor what looks like one. A code or a parameter that would have to be changed is left
    /// out.
    #[must_use]
    pub fn scrubbed(mut self, exact: &[impl AsRef<str>]) -> Self {
        let words = std::mem::take(&mut self.words);
        let is_clean = |text: &str| scrub(text, exact) == text;
        if !words.message.is_empty() {
            self.message = scrub(&words.message, exact).into();
        }
        self.code = words.code.filter(|code| is_word(code) && is_clean(code));
        self.param = words
            .param
            .filter(|param| param.len() <= MAX_PARAM_BYTES && is_clean(param));
        self
    }

    /// Appends the cause as a JSON string: what kind of failure, and its message.
    pub fn write_cause(&self, out: &mut Vec<u8>) {
        out.push(b'"');
        match self.kind {
            FailureKind::Connect => out.extend_from_slice(b"no connection"),
            FailureKind::Timeout => out.extend_from_slice(b"timeout"),
            FailureKind::Status(status) => {
                out.extend_from_slice(b"status ");
                write_number(status.into(), out);
            }
            FailureKind::Malformed => out.extend_from_slice(b"malformed"),
            FailureKind::Truncated => out.extend_from_slice(b"cut off"),
            FailureKind::Credential => out.extend_from_slice(b"no credential"),
            FailureKind::Cancelled => out.extend_from_slice(b"cancelled"),
        }
        if !self.message.is_empty() {
            out.extend_from_slice(b": ");
            Str::Plain(&self.message).write_contents(out);
        }
        out.push(b'"');
    }

    /// Returns whether another key of the same provider may succeed.
    pub fn is_about_the_key(&self) -> bool {
        self.blames_key || matches!(self.kind, FailureKind::Status(401..=403 | 429))
    }

    /// Returns what the client is told of a refusal that no other provider may mend: the status of the contract that says the
    /// same. Source: docs/model-gateway.md 7; docs/decisions.md 5.
    pub fn refusal(status: u16) -> FaultKind {
        match status {
            404 | 410 => FaultKind::NotFound,
            413 | 414 | 431 => FaultKind::TooLarge,
            415 => FaultKind::MediaType,
            451 => FaultKind::Forbidden,
            _ => FaultKind::Invalid,
        }
    }

    /// The status to report in `metadata.routing`; 0 where no reply came.
    pub fn status(&self) -> u16 {
        match self.kind {
            FailureKind::Connect
            | FailureKind::Timeout
            | FailureKind::Credential
            | FailureKind::Cancelled => 0,
            FailureKind::Status(status) => status,
            FailureKind::Malformed | FailureKind::Truncated => 200,
        }
    }

    /// The word for `metadata.routing[].error_type`. Source: docs/decisions.md 3.
    pub fn error_type(&self) -> &'static str {
        match self.kind {
            FailureKind::Connect | FailureKind::Timeout => "network_error",
            FailureKind::Status(429) => "rate_limited",
            FailureKind::Status(401 | 403) => "gateway_error",
            FailureKind::Credential => "credential_unavailable",
            FailureKind::Cancelled => "cancelled",
            _ => "upstream_error",
        }
    }
}

fn is_word(code: &str) -> bool {
    code.len() <= MAX_CODE_BYTES
        && code
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_refusal_that_blames_the_request_is_not_retryable() {
        for status in [400, 409, 413, 422] {
            assert!(
                !Failure::refused(status, "max_tokens is too large").is_retryable,
                "{status}"
            );
        }
    }

    #[test]
    fn a_refusal_that_blames_our_account_is_retryable_whatever_its_status() {
        assert!(
            Failure::refused(400, "Your credit balance is too low to access the API").is_retryable
        );
        assert!(
            Failure::refused(400, "API key not valid. Please pass a valid API key.").is_retryable
        );
    }

    #[test]
    fn a_failure_is_about_the_key_by_its_status_or_its_words() {
        for (status, message, is_it) in [
            (401, "", true),
            (402, "", true),
            (403, "", true),
            (429, "", true),
            (400, "Your credit balance is too low", true),
            (400, "API key not valid.", true),
            (400, "max_tokens is too large", false),
            (404, "", false),
            (500, "billing", false),
        ] {
            let failure = Failure::refused(status, message);
            assert_eq!(failure.is_about_the_key(), is_it, "{status} {message}");
        }
    }

    #[test]
    fn the_table_of_retryable_statuses_holds() {
        for status in [401, 402, 403, 404, 405, 408, 425, 429, 500, 502, 503, 529] {
            assert!(Failure::refused(status, "").is_retryable, "{status}");
        }
    }

    #[test]
    fn nothing_that_was_said_passes_before_it_is_scrubbed() {
        let words = || ProviderWords {
            message: "no short-key here".into(),
            code: Some("short-key".into()),
            param: Some("a.short-key".into()),
        };
        let failure = Failure::refused_with(400, words());
        assert_eq!((&*failure.message, &failure.code), ("", &None));
        assert!(!format!("{failure:?}").contains("short-key"));
        let failure = failure.scrubbed(&["short-key"]);
        assert_eq!(&*failure.message, "no [removed] here");
        assert_eq!((&failure.code, &failure.param), (&None, &None));
        let harmless = Failure::refused_with(400, words()).scrubbed(&["another-key"]);
        assert_eq!(harmless.code.as_deref(), Some("short-key"));
        assert_eq!(harmless.param.as_deref(), Some("a.short-key"));
    }

    #[test]
    fn a_cause_is_a_json_string_of_kind_and_message() {
        let written = |failure: Failure| {
            let mut out = Vec::new();
            failure.write_cause(&mut out);
            serde_json::from_slice::<String>(&out).unwrap()
        };
        let refused = Failure::refused(400, "a \"b\"").scrubbed(&[""; 0]);
        assert_eq!(written(refused), "status 400: a \"b\"");
        assert_eq!(written(Failure::new(FailureKind::Timeout)), "timeout");
    }
}
