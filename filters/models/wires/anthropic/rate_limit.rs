//! The limits that the heads of replies tell. Source: docs/facts/wire-formats.md 1.4.

use crate::models::wires::rate_limit::LimitHeaders;

/// Resets are times in RFC 3339.
pub(super) static LIMITS: [LimitHeaders; 4] = [
    LimitHeaders::new(
        "anthropic-ratelimit-requests-limit",
        "anthropic-ratelimit-requests-remaining",
        "anthropic-ratelimit-requests-reset",
    ),
    LimitHeaders::new(
        "anthropic-ratelimit-tokens-limit",
        "anthropic-ratelimit-tokens-remaining",
        "anthropic-ratelimit-tokens-reset",
    ),
    LimitHeaders::new(
        "anthropic-ratelimit-input-tokens-limit",
        "anthropic-ratelimit-input-tokens-remaining",
        "anthropic-ratelimit-input-tokens-reset",
    ),
    LimitHeaders::new(
        "anthropic-ratelimit-output-tokens-limit",
        "anthropic-ratelimit-output-tokens-remaining",
        "anthropic-ratelimit-output-tokens-reset",
    ),
];
