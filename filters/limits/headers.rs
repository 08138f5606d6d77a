//! What an answer says about its limit: to clients of the graph service, and to clients of the model gateway.

use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};

use super::window::Verdict;

const X_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const X_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const X_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
const X_WINDOW: HeaderName = HeaderName::from_static("x-ratelimit-window");
const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const STATE: HeaderName = HeaderName::from_static("ratelimit");
const LIMIT: HeaderName = HeaderName::from_static("ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("ratelimit-reset");
const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");
/// A bound of structured fields: 15 digits.
const MOST: u64 = 999_999_999_999_999;

/// A header to write.
pub type Header = (HeaderName, HeaderValue);

/// Seconds to wait, rounded up, never 0: a client told 0 asks again at once. Source: docs/decisions.md 26.
pub fn retry_after_s(reset_ms: u64) -> u64 {
    reset_ms.div_ceil(1_000).max(1)
}

/// On every answer of the graph service, refusals and replays among them. Source: docs/graph-limits.md 8.1.4.
pub fn graph(limit: u64, window_s: u64) -> [Header; 2] {
    [
        (X_LIMIT, HeaderValue::from(limit)),
        (X_WINDOW, HeaderValue::from(window_s)),
    ]
}

/// On a refusal of the graph service beside [`graph`], and on nothing else.
/// Source: docs/graph-limits.md 7.3; docs/interface.md, Headers.
pub fn graph_refusal(verdict: &Verdict) -> [Header; 3] {
    [
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (
            RETRY_AFTER,
            HeaderValue::from(retry_after_s(verdict.reset_ms)),
        ),
        (RETRY_AFTER_MS, HeaderValue::from(verdict.reset_ms.max(1))),
    ]
}

/// The body of a refusal of the graph service.
///
/// Shape: `{code, status, message, details: {limit, window, tenantId}}`. Source: docs/graph-limits.md 7.2.
pub fn graph_refusal_body(limit: u64, window_s: u64, tenant: &str) -> Vec<u8> {
    // A string is always written.
    let tenant = serde_json::to_string(tenant).unwrap_or_else(|_| "\"\"".to_owned());
    format!(
        "{{\"code\":\"RATE_LIMIT_EXCEEDED\",\"status\":429,\"message\":\"Rate limit exceeded. \
         Limit: {limit} requests per {window_s} seconds.\",\"details\":{{\"limit\":{limit},\
         \"window\":{window_s},\"tenantId\":{tenant}}}}}"
    )
    .into_bytes()
}

/// Whether a header of an upstream's answer states its own limit: ours take its place. `Retry-After` is not among
/// them, since a 503 of the graph service passes as it came.
pub fn is_replaced(name: &HeaderName) -> bool {
    let name = name.as_str();
    name.starts_with("x-ratelimit-") || name == "ratelimit" || name.starts_with("ratelimit-")
}

/// Whether a request header would have the service take another method than the one that was counted: dropped before
/// the request is forwarded. Source: docs/threats.md 47.
pub fn overrides_method(name: &HeaderName) -> bool {
    const NAMES: [&str; 3] = [
        "x-http-method-override",
        "x-http-method",
        "x-method-override",
    ];
    NAMES.contains(&name.as_str())
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
            limit.min(MOST),
            window_s.min(MOST)
        );
        let state = format!(
            "\"requests\";r={};t={}",
            remaining.min(MOST),
            reset_s.min(MOST)
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
            (X_LIMIT, HeaderValue::from(self.verdict.limit)),
            (X_REMAINING, HeaderValue::from(self.verdict.remaining)),
            (X_RESET, HeaderValue::from(now_s.saturating_add(reset_s))),
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
