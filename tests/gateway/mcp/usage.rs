//! Tools about what calls took.

use serde_json::json;

use super::{failure, given, tool};
use crate::models::fronts::chat_completions::reply;
use crate::support::boot::Gateway;
use crate::support::upstream::Upstream;

#[test]
fn usage_is_that_of_the_http_api() {
    let first = Upstream::always(reply());
    let (gateway, _) = Gateway::with_calls(&first, "");
    let by_day = given(&gateway, "get-usage", json!({}));
    assert_eq!(by_day, gateway.usage(&gateway.key, "/v1/usage").json());
    assert_eq!(by_day["total"]["cost"], "0.0071");
    let by_hour = given(&gateway, "get-usage", json!({"granularity": "hour"}));
    assert_eq!(by_hour["total"], by_day["total"]);
    let keys = json!({"group_by": "api_key", "sort_by": "requests", "limit": 1});
    let keys = given(&gateway, "get-usage-breakdown", keys);
    assert_eq!(
        (&keys["data"][0]["label"], &keys["has_more"]),
        (&json!("test"), &json!(true))
    );
    let past = json!({"from": "2020-01-01", "to": "2020-01-31"});
    let past = given(&gateway, "get-usage-breakdown", past);
    assert_eq!(past["data"], json!([]));
}

#[test]
fn wrong_arguments_are_told_by_the_schema_or_the_route() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    for (name, arguments, param) in [
        ("get-usage", json!({"granularity": "week"}), "granularity"),
        ("get-usage", json!({"from": "yesterday"}), "from"),
        (
            "get-usage",
            json!({"from": "2026-01-01", "to": "2026-03-01", "granularity": "hour"}),
            "from",
        ),
        (
            "get-usage-breakdown",
            json!({"group_by": "app"}),
            "group_by",
        ),
        ("get-usage-breakdown", json!({"limit": 101}), "limit"),
        ("get-usage-breakdown", json!({"offset": -1}), "offset"),
        ("get-usage-breakdown", json!({"to": "2026-13-01"}), "to"),
    ] {
        let (message, error) = failure(&gateway, &tool(&gateway, name, arguments));
        assert_eq!(
            (&error["status"], &error["param"]),
            (&json!(400), &json!(param)),
            "{message}"
        );
    }
}

#[test]
fn a_key_over_its_limit_may_still_ask() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    let key = gateway.key_with(r#"{"limit":"0"}"#);
    let of_key = |name: &str, arguments| {
        tool(&gateway, name, arguments)
            .without("Authorization")
            .key(&key)
    };
    let chat = json!({"model": "chat", "messages": [{"role": "user", "content": "Hi"}]});
    let (_, error) = failure(&gateway, &of_key("chat", chat));
    assert_eq!(error["status"], 402);
    for name in ["get-usage", "get-usage-breakdown", "key-status"] {
        let told = super::result(&gateway, &of_key(name, json!({})));
        assert_eq!(told["isError"], false, "{told}");
    }
}
