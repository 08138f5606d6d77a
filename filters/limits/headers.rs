//! The headers with which a response of the model gateway describes its quota.

use http::header::{HeaderName, HeaderValue, RETRY_AFTER};

use super::window::Verdict;

pub(crate) const X_RATELIMIT_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const X_RATELIMIT_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const X_RATELIMIT_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const STATE: HeaderName = HeaderName::from_static("ratelimit");
const LIMIT: HeaderName = HeaderName::from_static("ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("ratelimit-reset");
pub(crate) const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");
/// A bound of structured fields: 15 digits.
const MAX_STRUCTURED_INTEGER: u64 = 999_999_999_999_999;

/// A header to write.
pub type Header = (HeaderName, HeaderValue);

/// Seconds to wait, rounded up, never 0: a client told 0 asks again at once. Source: docs/decisions.md 26.
pub fn retry_after_s(reset_ms: u64) -> u64 {
    reset_ms.div_ceil(1_000).max(1)
}

/// The quota that a request of the model gateway was held against.
///
/// Source: docs/model-gateway.md 8.2, 8.3; draft-ietf-httpapi-ratelimit-headers; docs/decisions.md 9.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Quota {
    /// What the window said.
    pub verdict: Verdict,
    /// The length of the window.
    pub window_ms: u64,
}

impl Quota {
    /// On every answer to a request that a quota was checked for; on others none of them.
    ///
    /// Cost: two short strings.
    pub fn headers(&self) -> [Header; 5] {
        let Verdict {
            limit, remaining, ..
        } = self.verdict;
        let reset_s = retry_after_s(self.verdict.reset_ms);
        let window_s = retry_after_s(self.window_ms);
        let policy = format!(
            "\"requests\";q={};w={}",
            limit.min(MAX_STRUCTURED_INTEGER),
            window_s.min(MAX_STRUCTURED_INTEGER)
        );
        let state = format!(
            "\"requests\";r={};t={}",
            remaining.min(MAX_STRUCTURED_INTEGER),
            reset_s.min(MAX_STRUCTURED_INTEGER)
        );
        [
            (POLICY, ascii(policy)),
            (STATE, ascii(state)),
            (LIMIT, HeaderValue::from(limit)),
            (REMAINING, HeaderValue::from(remaining)),
            (RESET, HeaderValue::from(reset_s)),
        ]
    }

    /// On a refusal beside [`headers`](Self::headers). `now_s` is unix time: the legacy reset is a moment, where
    /// `RateLimit-Reset` is a span.
    pub fn refusal(&self, now_s: u64) -> [Header; 5] {
        let reset_s = retry_after_s(self.verdict.reset_ms);
        [
            (RETRY_AFTER, HeaderValue::from(reset_s)),
            (
                RETRY_AFTER_MS,
                HeaderValue::from(self.verdict.reset_ms.max(1)),
            ),
            (X_RATELIMIT_LIMIT, HeaderValue::from(self.verdict.limit)),
            (
                X_RATELIMIT_REMAINING,
                HeaderValue::from(self.verdict.remaining),
            ),
            (
                X_RATELIMIT_RESET,
                HeaderValue::from(now_s.saturating_add(reset_s)),
            ),
        ]
    }
}

/// The texts above hold digits and punctuation only.
fn ascii(text: String) -> HeaderValue {
    HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static(""))
}

#[cfg(test)]
#[path = "headers_tests.rs"]
mod tests;
