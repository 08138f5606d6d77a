#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use proptest::prelude::*;
use serde_json::Value;

use super::super::window::RefundToken;
use super::*;

fn verdict(is_allowed: bool, remaining: u64, reset_ms: u64) -> Verdict {
    Verdict {
        is_allowed,
        limit: 600,
        remaining,
        reset_ms,
        ticket: RefundToken(0),
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
fn every_graph_answer_names_limit_and_window() {
    assert_eq!(
        texts(graph(1_500, 10)),
        ["x-ratelimit-limit: 1500", "x-ratelimit-window: 10"]
    );
}

#[test]
fn a_graph_refusal_says_when_to_come_back() {
    assert_eq!(
        texts(graph_refusal(&verdict(false, 0, 3_001))),
        [
            "content-type: application/json",
            "retry-after: 4",
            "retry-after-ms: 3001",
        ]
    );
}

#[test]
fn waiting_is_rounded_up_and_never_zero() {
    let waits = [0, 1, 999, 1_000, 1_001, 10_000].map(retry_after_s);
    assert_eq!(waits, [1, 1, 1, 1, 2, 10]);
}

#[test]
fn a_graph_refusal_has_the_documented_fields_and_no_others() {
    let body: Value = serde_json::from_slice(&graph_refusal_body(1_500, 10, "t1")).unwrap();
    let message = "Rate limit exceeded. Limit: 1500 requests per 10 seconds.";
    assert_eq!(
        body,
        serde_json::json!({
            "code": "RATE_LIMIT_EXCEEDED",
            "status": 429,
            "message": message,
            "details": { "limit": 1500, "window": 10, "tenantId": "t1" },
        })
    );
}

#[test]
fn an_upstreams_own_limits_are_replaced_and_its_retry_after_is_kept() {
    for (name, replaced) in [
        ("X-RateLimit-Limit", true),
        ("x-ratelimit-window", true),
        ("X-RateLimit-Limit-Requests", true),
        ("RateLimit", true),
        ("RateLimit-Policy", true),
        ("Retry-After", false),
        ("X-Rate", false),
    ] {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        assert_eq!(is_replaced(&name), replaced, "{name}");
    }
}

#[test]
fn headers_that_change_the_method_are_known() {
    for (name, overrides) in [
        ("X-HTTP-Method-Override", true),
        ("X-HTTP-Method", true),
        ("x-method-override", true),
        ("x-http-version", false),
    ] {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        assert_eq!(overrides_method(&name), overrides, "{name}");
    }
}

#[test]
fn a_quota_is_told_in_both_notations() {
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

/// The grammar of structured fields, as far as one member with integer parameters needs it; RFC 9651 3.1.2, 3.3.
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
        prop_assert_eq!(&policy[0], &("q".to_owned(), limit.min(MOST)));
        prop_assert!(policy[1].0 == "w" && policy[1].1 > 0);
        let (name, state) = member(headers[1].strip_prefix("ratelimit: ").unwrap()).unwrap();
        prop_assert_eq!(name, "requests");
        prop_assert_eq!(&state[0], &("r".to_owned(), remaining.min(MOST)));
        prop_assert_eq!(&state[1].0, "t");
    }

    #[test]
    fn nobody_is_sent_back_before_the_reset(reset_ms in 0..100_000_u64) {
        prop_assert!(retry_after_s(reset_ms) * 1_000 >= reset_ms);
        prop_assert!(retry_after_s(reset_ms) * 1_000 < reset_ms + 1_000 || reset_ms == 0);
    }

    #[test]
    fn any_tenant_id_makes_a_body_that_reads_back(tenant: String) {
        let body: Value = serde_json::from_slice(&graph_refusal_body(10, 10, &tenant)).unwrap();
        prop_assert_eq!(body["details"]["tenantId"].as_str(), Some(tenant.as_str()));
    }
}
