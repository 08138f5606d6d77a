#![allow(clippy::unwrap_used, reason = "tests")]

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::limits::{Algorithm, RowId, Subject, WindowKey, Windows};

/// Returns the verdict of a full window that resets after `reset_ms`.
fn refusal(reset_ms: u64) -> Verdict {
    let key = WindowKey {
        subject: Subject::Named("t".into()),
        row: RowId::from_name("GET /"),
    };
    Windows::new(Algorithm::Fixed, reset_ms).admit(&key, 0, 0)
}

fn texts(headers: impl IntoIterator<Item = Header>) -> Vec<String> {
    let text = |(name, value): Header| format!("{name}: {}", value.to_str().unwrap());
    headers.into_iter().map(text).collect()
}

#[test]
fn every_graph_answer_names_limit_and_window() {
    assert_eq!(
        texts(limit_headers(1_500, 10)),
        ["x-ratelimit-limit: 1500", "x-ratelimit-window: 10"]
    );
}

/// Contract: graph-limits 7 3
#[test]
fn a_graph_refusal_says_when_to_come_back() {
    assert_eq!(
        texts(refusal_headers(&refusal(3_001))),
        [
            "content-type: application/json",
            "retry-after: 4",
            "retry-after-ms: 3001",
        ]
    );
}

/// Contract: graph-limits 7 2
#[test]
fn a_graph_refusal_has_the_documented_fields_and_no_others() {
    let body: Value = serde_json::from_slice(&refusal_body(1_500, 10, "t1")).unwrap();
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
        assert_eq!(is_limit_header(&name), replaced, "{name}");
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

proptest! {
    #[test]
    fn any_tenant_id_makes_a_body_that_reads_back(tenant: String) {
        let body: Value = serde_json::from_slice(&refusal_body(10, 10, &tenant)).unwrap();
        prop_assert_eq!(body["details"]["tenantId"].as_str(), Some(tenant.as_str()));
    }
}
