//! Headers of the graph service: the limits it states, and the upstream's headers that must not pass.

use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};

use crate::limits::Verdict;
use crate::limits::headers::{Header, RETRY_AFTER_MS, X_RATELIMIT_LIMIT, retry_after_s};

const X_RATELIMIT_WINDOW: HeaderName = HeaderName::from_static("x-ratelimit-window");

/// Returns the headers of each response of the graph service, also of refusals and cached responses. Source:
/// docs/graph-limits.md 8.1.4.
pub fn limit_headers(limit: u64, window_s: u64) -> [Header; 2] {
    [
        (X_RATELIMIT_LIMIT, HeaderValue::from(limit)),
        (X_RATELIMIT_WINDOW, HeaderValue::from(window_s)),
    ]
}

/// Returns the headers that only a refusal has, in addition to [`limit_headers`]. Source: docs/graph-limits.md 7.3;
/// docs/interface.md, Headers.
pub fn refusal_headers(verdict: &Verdict) -> [Header; 3] {
    [
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (
            RETRY_AFTER,
            HeaderValue::from(retry_after_s(verdict.reset_ms)),
        ),
        (RETRY_AFTER_MS, HeaderValue::from(verdict.reset_ms.max(1))),
    ]
}

/// Returns the body of a refusal.
///
/// Shape: `{code, status, message, details: {limit, window, tenantId}}`. Source: docs/graph-limits.md 7.2.
pub fn refusal_body(limit: u64, window_s: u64, tenant: &str) -> Vec<u8> {
    // Serializing a string cannot fail.
    let tenant = serde_json::to_string(tenant).unwrap_or_else(|_| "\"\"".to_owned());
    format!(
        "{{\"code\":\"RATE_LIMIT_EXCEEDED\",\"status\":429,\"message\":\"Rate limit exceeded. \
         Limit: {limit} requests per {window_s} seconds.\",\"details\":{{\"limit\":{limit},\
         \"window\":{window_s},\"tenantId\":{tenant}}}}}"
    )
    .into_bytes()
}

/// Returns whether an upstream's header states its own limit, which the gateway replaces. `Retry-After` does not
/// count, because a 503 of the graph service passes unchanged.
pub fn is_limit_header(name: &HeaderName) -> bool {
    let name = name.as_str();
    name.starts_with("x-ratelimit-") || name == "ratelimit" || name.starts_with("ratelimit-")
}

/// Returns whether a request header makes the service use another method than the counted one. Such headers are
/// removed before the request is forwarded. Source: docs/hostile-input.md 47.
pub fn overrides_method(name: &HeaderName) -> bool {
    const NAMES: [&str; 3] = [
        "x-http-method-override",
        "x-http-method",
        "x-method-override",
    ];
    NAMES.contains(&name.as_str())
}

#[cfg(test)]
#[path = "headers_tests.rs"]
mod tests;
