//! The headers in which a response of the model gateway states its quota.

use http::header::{HeaderName, HeaderValue, RETRY_AFTER};

use super::window::{RefundToken, Verdict};
use crate::fault::ExceededLimit;

pub(crate) const X_RATELIMIT_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const X_RATELIMIT_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const X_RATELIMIT_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const STATE: HeaderName = HeaderName::from_static("ratelimit");
const LIMIT: HeaderName = HeaderName::from_static("ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("ratelimit-reset");
/// The header with the wait before another try, in milliseconds.
pub const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");
/// The largest integer of a structured field has 15 digits.
const MAX_STRUCTURED_INTEGER: u64 = 999_999_999_999_999;

/// A header of a response.
pub type Header = (HeaderName, HeaderValue);

/// Returns the seconds to wait, rounded up and at least 1: a client that reads 0 retries at once. Source:
/// docs/decisions.md 26.
pub fn retry_after_s(reset_ms: u64) -> u64 {
    reset_ms.div_ceil(1_000).max(1)
}

/// The quota against which a request of the model gateway was checked.
///
/// Source: docs/model-gateway.md 8.2, 8.3; draft-ietf-httpapi-ratelimit-headers; docs/decisions.md 9.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Quota {
    pub verdict: Verdict,
    pub window_ms: u64,
}

impl Quota {
    /// Returns the headers for each response to a request that was checked against a quota. Other responses have none
    /// of these headers.
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

    /// Returns the quota of a request that is over a limit.
    pub fn from_exceeded(exceeded: ExceededLimit) -> Self {
        Self {
            verdict: Verdict {
                is_allowed: false,
                limit: exceeded.limit,
                remaining: 0,
                reset_ms: exceeded.reset_ms,
                refund_token: RefundToken::NONE,
            },
            window_ms: exceeded.window_ms,
        }
    }

    /// Returns the headers that a refusal has in addition to [`headers`](Self::headers). `now_s` is unix time:
    /// `X-RateLimit-Reset` is a time, but `RateLimit-Reset` is a duration.
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

/// Makes a header value of a text that contains only digits and punctuation.
fn ascii(text: String) -> HeaderValue {
    HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static(""))
}

#[cfg(test)]
#[path = "headers_tests.rs"]
mod tests;
