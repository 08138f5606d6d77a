//! What clients of Messages read of each failure of a provider, on every wire.

use serde_json::json;

use super::messages::{WIRES, first_turn, gateway_with, send};
use crate::support::script::Reply;
use crate::support::upstream::Upstream;

/// The types that go with a status.
const TYPES: [(u16, &str); 9] = [
    (400, "invalid_request_error"),
    (401, "authentication_error"),
    (403, "permission_error"),
    (404, "not_found_error"),
    (413, "request_too_large"),
    (429, "rate_limit_error"),
    (502, "api_error"),
    (504, "timeout_error"),
    (529, "overloaded_error"),
];

/// Source: docs/facts/messages.md 3
#[test]
fn each_failure_of_a_provider_is_one_that_clients_know() {
    for status in [400, 401, 403, 404, 408, 413, 422, 429, 500, 502, 503, 529] {
        let error = json!({"type": "error", "error": {"message": "no, sk-a", "type": "some_error", "code": status, "status": "ABORTED"}});
        let headers = [
            ("content-type", "application/json"),
            ("retry-after", "77"),
            ("x-should-retry", "true"),
        ];
        let upstream = Upstream::always(Reply::whole(status, &headers, error.to_string()));
        let gateway = gateway_with(&upstream, "");
        for model in WIRES {
            for is_stream in [false, true] {
                let mut asked = first_turn(model);
                asked["stream"] = is_stream.into();
                let answer = send(&gateway, &asked);
                let shown =
                    || format!("{status} of {model}: {} {}", answer.status(), answer.text());
                let body = answer.json();
                assert_eq!(body["type"], "error", "{}", shown());
                assert_eq!(
                    body["request_id"].as_str(),
                    answer.header("request-id"),
                    "{}",
                    shown()
                );
                assert_eq!(answer.header("request-id"), answer.header("x-request-id"));
                let kind = body["error"]["type"].as_str().unwrap();
                let of_status = TYPES.iter().find(|(known, _)| *known == answer.status());
                assert_eq!(of_status.map(|(_, kind)| *kind), Some(kind), "{}", shown());
                assert!(!answer.text().contains("sk-a"), "{}", shown());
                // Clients wait as long as they are told, so a provider's time never passes.
                if let Some(seconds) = answer.header("retry-after") {
                    let seconds: u64 = seconds.parse().unwrap();
                    assert!((1..=60).contains(&seconds), "{}", shown());
                }
                // A provider that is crowded is asked again; a request that is wrong is not.
                let repeats = answer.header("x-should-retry");
                let is_wrong = matches!(answer.status(), 400..=404 | 413);
                assert_eq!(
                    repeats == Some("false"),
                    is_wrong,
                    "{} {repeats:?}",
                    shown()
                );
            }
        }
    }
}
