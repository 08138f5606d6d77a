#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use proptest::prelude::*;

use super::super::window::RefundToken;
use super::*;

fn verdict(is_allowed: bool, remaining: u64, reset_ms: u64) -> Verdict {
    Verdict {
        is_allowed,
        limit: 600,
        remaining,
        reset_ms,
        refund_token: RefundToken(0),
    }
}

fn texts(headers: impl IntoIterator<Item = Header>) -> Vec<String> {
    let text = |(name, value): Header| format!("{name}: {}", value.to_str().unwrap());
    headers.into_iter().map(text).collect()
}

fn quota(is_allowed: bool, remaining: u64, reset_ms: u64) -> Quota {
    Quota {
        verdict: verdict(is_allowed, remaining, reset_ms),
        window_ms: 60_000,
    }
}

#[test]
fn waiting_is_rounded_up_and_never_zero() {
    let waits = [0, 1, 999, 1_000, 1_001, 10_000].map(retry_after_s);
    assert_eq!(waits, [1, 1, 1, 1, 2, 10]);
}

/// Contract: model-gateway 8 2
#[test]
fn a_quota_is_stated_in_both_notations() {
    assert_eq!(
        texts(quota(true, 599, 59_001).headers()),
        [
            "ratelimit-policy: \"requests\";q=600;w=60",
            "ratelimit: \"requests\";r=599;t=60",
            "ratelimit-limit: 600",
            "ratelimit-remaining: 599",
            "ratelimit-reset: 60",
        ]
    );
}

/// Contract: model-gateway 8 3
#[test]
fn a_refusal_adds_the_legacy_headers_with_a_moment_as_reset() {
    assert_eq!(
        texts(quota(false, 0, 1_500).refusal(1_800_000_000)),
        [
            "retry-after: 2",
            "retry-after-ms: 1500",
            "x-ratelimit-limit: 600",
            "x-ratelimit-remaining: 0",
            "x-ratelimit-reset: 1800000002",
        ]
    );
}

/// Parses one member with integer parameters, by the grammar of structured fields; RFC 9651 3.1.2, 3.3.
fn member(text: &str) -> Option<(String, Vec<(String, u64)>)> {
    let (name, rest) = text.strip_prefix('"')?.split_once('"')?;
    let mut parameters = Vec::new();
    for parameter in rest.strip_prefix(';')?.split(';') {
        let (key, value) = parameter.split_once('=')?;
        let is_key = key.bytes().all(|byte| byte.is_ascii_lowercase());
        let is_integer =
            (1..=15).contains(&value.len()) && value.bytes().all(|b| b.is_ascii_digit());
        if !is_key || !is_integer {
            return None;
        }
        parameters.push((key.to_owned(), value.parse().ok()?));
    }
    Some((name.to_owned(), parameters))
}

proptest! {
    #[test]
    fn the_structured_fields_are_well_formed_whatever_the_figures(
        limit: u64, remaining: u64, reset_ms: u64, window_ms: u64,
    ) {
        let verdict = Verdict { limit, remaining, ..verdict(true, 0, reset_ms) };
        let headers = texts(Quota { verdict, window_ms }.headers());
        let (name, policy) = member(headers[0].strip_prefix("ratelimit-policy: ").unwrap()).unwrap();
        prop_assert_eq!(name, "requests");
        prop_assert_eq!(&policy[0], &("q".to_owned(), limit.min(MAX_STRUCTURED_INTEGER)));
        prop_assert!(policy[1].0 == "w" && policy[1].1 > 0);
        let (name, state) = member(headers[1].strip_prefix("ratelimit: ").unwrap()).unwrap();
        prop_assert_eq!(name, "requests");
        prop_assert_eq!(&state[0], &("r".to_owned(), remaining.min(MAX_STRUCTURED_INTEGER)));
        prop_assert_eq!(&state[1].0, "t");
    }

    #[test]
    fn no_client_is_sent_back_before_the_reset(reset_ms in 0..100_000_u64) {
        prop_assert!(retry_after_s(reset_ms) * 1_000 >= reset_ms);
        prop_assert!(retry_after_s(reset_ms) * 1_000 < reset_ms + 1_000 || reset_ms == 0);
    }
}
