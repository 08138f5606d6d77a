//! The headers by which clients of Messages warn that a limit is near, and say when there is more.

use http::{HeaderName, HeaderValue};

const STATUS: HeaderName = HeaderName::from_static("anthropic-ratelimit-unified-status");
const RESET: HeaderName = HeaderName::from_static("anthropic-ratelimit-unified-reset");
const CLAIM: HeaderName =
    HeaderName::from_static("anthropic-ratelimit-unified-representative-claim");
const WINDOW_STATUS: HeaderName = HeaderName::from_static("anthropic-ratelimit-unified-5h-status");
const WINDOW_RESET: HeaderName = HeaderName::from_static("anthropic-ratelimit-unified-5h-reset");
const WINDOW_USED: HeaderName =
    HeaderName::from_static("anthropic-ratelimit-unified-5h-utilization");
/// From this used share on, clients are warned. They warn again at 95 percent, by the share that they are told.
const WARNED_SHARE: f64 = 0.75;

/// Returns the headers of a limit of which so much is used, which begins anew at this time in unix seconds; none while it is far.
/// `is_refused`: the call is refused for it.
pub fn unified_headers(
    share: f64,
    reset_s: u64,
    is_refused: bool,
) -> Vec<(HeaderName, HeaderValue)> {
    if share < WARNED_SHARE && !is_refused {
        return Vec::new();
    }
    let status = match is_refused {
        true => HeaderValue::from_static("rejected"),
        false => HeaderValue::from_static("allowed_warning"),
    };
    let used = HeaderValue::try_from(format!("{:.4}", share.clamp(0.0, 1.0)));
    let headers = [
        (STATUS, Some(status.clone())),
        (RESET, Some(HeaderValue::from(reset_s))),
        (CLAIM, Some(HeaderValue::from_static("five_hour"))),
        (WINDOW_STATUS, Some(status)),
        (WINDOW_RESET, Some(HeaderValue::from(reset_s))),
        (WINDOW_USED, used.ok()),
    ];
    let headers = headers.into_iter();
    headers
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
}
