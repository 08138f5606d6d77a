//! The limits that providers tell in the heads of their replies: when a key should rest, before it is refused.
//!
//! A provider's own names are in the table of its wire. Source: docs/facts/wire-formats.md 1.4.

use http::{HeaderMap, HeaderName, header};
use jiff::Timestamp;
use jiff::fmt::rfc2822;

/// The longest rest, whatever the provider says, so that a key that is good again is found out.
const MAX_REST_MS: u64 = 300_000;
/// The longest rest of a key that still has a little left.
const MAX_EARLY_REST_MS: u64 = 60_000;
/// A key rests if at most this part of its limit is left, because the calls that run take some, too.
const LEFT_PART: u64 = 100;
/// Larger numbers are unix seconds, and no periods.
const MIN_UNIX_S: f64 = 1e9;

/// The headers of one limit.
#[derive(Debug)]
pub struct LimitHeaders {
    pub limit: HeaderName,
    /// How much of it is left.
    pub remaining: HeaderName,
    /// When all of it is there again.
    pub reset: HeaderName,
}

impl LimitHeaders {
    /// Makes the headers of a limit.
    pub const fn new(limit: &'static str, remaining: &'static str, reset: &'static str) -> Self {
        Self {
            limit: HeaderName::from_static(limit),
            remaining: HeaderName::from_static(remaining),
            reset: HeaderName::from_static(reset),
        }
    }
}

/// The limits of OpenAI and the providers of its conventions.
pub(super) static CONVENTION: [LimitHeaders; 2] = [
    LimitHeaders::new(
        "x-ratelimit-limit-requests",
        "x-ratelimit-remaining-requests",
        "x-ratelimit-reset-requests",
    ),
    LimitHeaders::new(
        "x-ratelimit-limit-tokens",
        "x-ratelimit-remaining-tokens",
        "x-ratelimit-reset-tokens",
    ),
];

static RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");

/// Returns how long a refused key has to rest, by `retry-after-ms`, `retry-after`, or else the reset of a limit that is
/// used up; `None`: the reply does not tell. Units: milliseconds; `now_ms` is unix time.
pub fn refused_rest_ms(headers: &HeaderMap, limits: &[LimitHeaders], now_ms: u64) -> Option<u64> {
    let milliseconds = || text(headers, &RETRY_AFTER_MS)?.parse::<f64>().ok();
    let milliseconds = milliseconds().filter(|ms| *ms >= 0.0);
    let after = || period_ms(text(headers, &header::RETRY_AFTER)?, now_ms);
    let told = milliseconds.or_else(after).map(|ms| ms.ceil() as u64);
    let told = told.or_else(|| used_up(headers, limits, now_ms));
    // Who refuses and wants to be asked at once has not told.
    told.filter(|ms| *ms > 0).map(|ms| ms.min(MAX_REST_MS))
}

/// Returns how long a refused key has to rest, by a period in the body; `None`: it is not one. Units: as [`refused_rest_ms`].
pub(super) fn told_rest_ms(period: &str) -> Option<u64> {
    let ms = duration_ms(period)?.ceil() as u64;
    (ms > 0).then_some(ms.min(MAX_REST_MS))
}

/// Returns how long a key should rest that was answered, because the reply says that nothing is left; `None`: something
/// is, or the reply does not tell. Units: as [`refused_rest_ms`].
pub fn early_rest_ms(headers: &HeaderMap, limits: &[LimitHeaders], now_ms: u64) -> Option<u64> {
    used_up(headers, limits, now_ms).map(|ms| ms.min(MAX_EARLY_REST_MS))
}

/// Returns the time until the last reset of the limits that are used up.
fn used_up(headers: &HeaderMap, limits: &[LimitHeaders], now_ms: u64) -> Option<u64> {
    let number = |name: &HeaderName| text(headers, name)?.parse::<u64>().ok();
    let rest_ms = |names: &LimitHeaders| {
        let left = number(&names.remaining)?;
        let limit = || number(&names.limit).unwrap_or_default();
        if left > 0 && left > limit() / LEFT_PART {
            return None;
        }
        let ms = period_ms(text(headers, &names.reset)?, now_ms)?;
        Some(ms.ceil() as u64)
    };
    limits.iter().filter_map(rest_ms).max()
}

fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

/// Reads a period or a time: `1.5` (seconds), `1m30s`, unix seconds, `2026-01-01T00:00:00Z`, or the date of HTTP.
fn period_ms(text: &str, now_ms: u64) -> Option<f64> {
    let until = |at_ms: f64| f64::max(at_ms - now_ms as f64, 0.0);
    if let Ok(number) = text.parse::<f64>() {
        let is_period = (0.0..MIN_UNIX_S).contains(&number);
        let ms = 1000.0 * number;
        return number
            .is_finite()
            .then(|| if is_period { ms } else { until(ms) });
    }
    if let Some(ms) = duration_ms(text) {
        return Some(ms);
    }
    let parsed = text.parse::<Timestamp>().ok();
    let parsed = parsed.or_else(|| rfc2822::DateTimeParser::new().parse_timestamp(text).ok());
    parsed.map(|at| until(at.as_millisecond() as f64))
}

/// Reads a period of units, such as `6m0s`, `1h2m3.5s` or `20ms`.
fn duration_ms(text: &str) -> Option<f64> {
    const UNITS: [(&str, f64); 5] = [
        ("ms", 1.0),
        ("s", 1e3),
        ("m", 60e3),
        ("h", 3600e3),
        ("d", 86_400e3),
    ];
    let (mut rest, mut sum) = (text, 0.0);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at_checked(digits)?;
        let letters = tail.find(|c: char| !c.is_ascii_alphabetic());
        let (unit, tail) = tail.split_at_checked(letters.unwrap_or(tail.len()))?;
        let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit)?;
        sum += number.parse::<f64>().ok()? * factor;
        rest = tail;
    }
    (!text.is_empty()).then_some(sum)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;
    use crate::models::wires::WireKind;

    /// 2026-01-01T00:00:00Z.
    const NOW_MS: u64 = 1_767_225_600_000;

    fn head(lines: &[(&'static str, &str)]) -> HeaderMap {
        let line = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), value.parse().unwrap())
        };
        lines.iter().map(line).collect()
    }

    #[test]
    fn a_refusal_says_how_long_to_rest_in_many_ways() {
        for (lines, rest_ms) in [
            (&[("retry-after", "20")][..], Some(20_000)),
            (&[("retry-after", "0.25")], Some(250)),
            (&[("retry-after", "86400")], Some(300_000)),
            (
                &[("retry-after", "Thu, 01 Jan 2026 00:00:30 GMT")],
                Some(30_000),
            ),
            (&[("retry-after", "Wed, 31 Dec 2025 00:00:30 GMT")], None),
            (
                &[("retry-after", "20"), ("retry-after-ms", "1500")],
                Some(1500),
            ),
            (&[("retry-after", "soon"), ("retry-after-ms", "-1")], None),
            (&[("retry-after", "NaN")], None),
            (&[("retry-after", "-5")], None),
            (&[("retry-after", "0")], None),
            (
                &[
                    ("x-ratelimit-remaining-tokens", "0"),
                    ("x-ratelimit-reset-tokens", "1m30s"),
                ],
                Some(90_000),
            ),
            (&[], None),
        ] {
            let read = refused_rest_ms(&head(lines), &CONVENTION, NOW_MS);
            assert_eq!(read, rest_ms, "{lines:?}");
        }
    }

    #[test]
    fn a_body_says_how_long_to_rest() {
        for (period, rest_ms) in [
            ("37s", Some(37_000)),
            ("0.5s", Some(500)),
            ("0.000000001s", Some(1)),
            ("86400s", Some(300_000)),
            ("0s", None),
            ("-5s", None),
            ("soon", None),
            ("", None),
        ] {
            assert_eq!(told_rest_ms(period), rest_ms, "{period}");
        }
    }

    #[test]
    fn an_answer_says_that_nothing_is_left() {
        let requests = |limit, remaining, reset| {
            let lines = [
                ("x-ratelimit-limit-requests", limit),
                ("x-ratelimit-remaining-requests", remaining),
                ("x-ratelimit-reset-requests", reset),
            ];
            early_rest_ms(&head(&lines), &CONVENTION, NOW_MS)
        };
        for (limit, remaining, reset, rest_ms) in [
            ("60", "0", "1s", Some(1000)),
            ("60", "1", "1s", None),
            ("10000", "100", "6ms", Some(6)),
            ("10000", "101", "6ms", None),
            ("", "0", "6m0s", Some(60_000)),
            ("60", "0", "2.5", Some(2500)),
            ("60", "0", "1767225610", Some(10_000)),
            ("60", "0", "1h1m1.5s", Some(60_000)),
            ("60", "0", "in a while", None),
            ("60", "0", "", None),
            ("60", "-1", "1s", None),
        ] {
            assert_eq!(
                requests(limit, remaining, reset),
                rest_ms,
                "{remaining} {reset}"
            );
        }
    }

    #[test]
    fn each_wire_knows_the_names_of_its_providers() {
        let anthropic = head(&[
            ("anthropic-ratelimit-requests-limit", "50"),
            ("anthropic-ratelimit-requests-remaining", "12"),
            ("anthropic-ratelimit-requests-reset", "2026-01-01T00:00:05Z"),
            ("anthropic-ratelimit-output-tokens-limit", "8000"),
            ("anthropic-ratelimit-output-tokens-remaining", "0"),
            (
                "anthropic-ratelimit-output-tokens-reset",
                "2026-01-01T00:00:20Z",
            ),
        ]);
        let convention = head(&[
            ("x-ratelimit-remaining-requests", "0"),
            ("x-ratelimit-reset-requests", "120ms"),
        ]);
        let rests =
            |kind: WireKind, headers| early_rest_ms(headers, kind.wire().rate_limits, NOW_MS);
        for (kind, of_anthropic, of_convention) in [
            (WireKind::Messages, Some(20_000), None),
            (WireKind::Compatible, None, Some(120)),
            (WireKind::Responses, None, Some(120)),
            (WireKind::Contents, None, None),
        ] {
            assert_eq!(rests(kind, &anthropic), of_anthropic, "{kind:?}");
            assert_eq!(rests(kind, &convention), of_convention, "{kind:?}");
        }
    }

    proptest! {
        #[test]
        fn whatever_a_provider_says_a_rest_is_bounded(text in "[0-9a-zA-Z:.,+ -]{0,40}", left in "[0-9]{0,25}") {
            let mut headers = HeaderMap::new();
            for name in ["retry-after", "retry-after-ms", "x-ratelimit-reset-tokens"] {
                headers.insert(name, HeaderValue::from_str(&text).unwrap());
            }
            headers.insert("x-ratelimit-remaining-tokens", HeaderValue::from_str(&left).unwrap());
            prop_assert!(refused_rest_ms(&headers, &CONVENTION, NOW_MS).is_none_or(|ms| ms <= MAX_REST_MS));
            prop_assert!(early_rest_ms(&headers, &CONVENTION, NOW_MS).is_none_or(|ms| ms <= MAX_EARLY_REST_MS));
        }
    }
}
