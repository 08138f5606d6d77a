//! `POST /v1/activate`.

use serde_json::{Value, json};

use crate::support::flags::{agent, gateway, post, refused};
use crate::support::script::Reply;
use crate::support::upstream::Upstream;

/// Contract: decision-agent 2.3 Decision (an item of activate)
/// Contract: decision-agent 4 POST /v1/activate
#[test]
fn items_come_in_the_order_of_the_query() {
    let gateway = gateway("");
    let body = json!({"userId": "tester"});
    let answer = post(
        &gateway,
        "/v1/activate?experimentKey=checkout_test&featureKey=checkout&experimentKey=no",
        &body,
    );
    assert_eq!(
        answer.json(),
        json!([
            {"userId": "tester", "experimentKey": "checkout_test", "featureKey": "checkout", "variationKey": "one_page",
             "type": "feature", "variables": {"banner": "Welcome", "steps": 1}, "enabled": true},
            {"userId": "tester", "experimentKey": "checkout_test", "featureKey": "", "variationKey": "one_page",
             "type": "experiment", "variables": {}, "enabled": true},
            {"userId": "tester", "experimentKey": "no", "featureKey": "", "variationKey": "", "type": "",
             "variables": {}, "enabled": false, "error": "experimentKey not found"},
        ])
    );
}

/// Contract: decision-agent 4 POST /v1/activate
/// Contract: decision-agent 4 2
#[test]
fn types_and_enabled_limit_the_result() {
    let gateway = gateway("");
    let body = json!({"userId": "u"});
    let kinds = |query: &str| -> Vec<Value> {
        let answer = post(&gateway, &format!("/v1/activate{query}"), &body).json();
        answer
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["type"].clone())
            .collect()
    };
    assert_eq!(kinds(""), Vec::<Value>::new());
    assert_eq!(kinds("?type=feature"), ["feature", "feature"]);
    assert_eq!(kinds("?type=experiment"), ["experiment"]);
    assert_eq!(
        kinds("?type=feature&experimentKey=checkout_test&featureKey=checkout"),
        ["feature"]
    );
    assert_eq!(kinds("?type=feature&enabled=true"), Vec::<Value>::new());
    assert_eq!(
        refused(&post(&gateway, "/v1/activate?type=x", &body)),
        (400, "type \"x\" not supported".to_owned())
    );
}

/// Source: docs/decision-agent.md 4: `disableTracking (boolean)`, `enabled (boolean)`; 7: 400 for `invalid parameters`.
/// Contract: decision-agent 4 POST /v1/activate
/// Contract: decision-agent 7 400
#[test]
fn a_switch_that_is_neither_on_nor_off_is_refused() {
    let (document, old) = (gateway(""), agent(""));
    let body = json!({"userId": "u"});
    for name in ["disableTracking", "enabled"] {
        for word in ["maybe", "1", "True", ""] {
            let path = format!("/v1/activate?type=feature&{name}={word}");
            let (status, error) = refused(&post(&document, &path, &body));
            assert_eq!(status, 400, "{path}");
            let expected = format!("`{name}` is {word:?}; true and false are accepted");
            assert_eq!(error, expected);
            // The original agent ignores it.
            assert_eq!(post(&old, &path, &body).status(), 200, "{path}");
        }
        for word in ["true", "false"] {
            let path = format!("/v1/activate?type=feature&{name}={word}");
            assert_eq!(post(&document, &path, &body).status(), 200, "{path}");
        }
    }
}

/// Source: docs/decision-agent.md 2.2: the activate context has `userId (string)`, which is not required.
/// Contract: decision-agent 2.2 activate
#[test]
fn a_call_may_name_no_user_and_has_no_profile_then() {
    let gateway = gateway("user_profiles = \"memory\"");
    for body in [json!({}), json!({"userId": ""}), json!({"userId": null})] {
        let answer = post(&gateway, "/v1/activate?experimentKey=checkout_test", &body);
        assert_eq!(answer.status(), 200, "{}", answer.text());
        let item = &answer.json()[0];
        assert_eq!(
            (&item["userId"], &item["type"]),
            (&json!(""), &json!("experiment"))
        );
    }
    let named = refused(&post(&gateway, "/v1/activate", &json!({"userId": 1})));
    assert!(named.0 == 400 && named.1.contains("userId"), "{named:?}");
    let (status, _) = refused(&post(&agent(""), "/v1/activate", &json!({})));
    assert_eq!(status, 400);
}

/// Contract: decision-agent 2.2 activate
/// Contract: decision-agent 4 2
/// Contract: decision-agent 6 1
#[test]
fn an_experiment_sends_an_impression_unless_tracking_is_disabled() {
    let backend = Upstream::always(Reply::whole(204, &[], ""));
    let gateway = gateway(&format!(
        "event_url = \"{}/e\"\nevent_batch = 2",
        backend.url()
    ));
    let activate = |user: &str, more: &str| {
        let body = json!({"userId": user, "userAttributes": {"country": "DE"}});
        let path = format!("/v1/activate?experimentKey=checkout_test&featureKey=checkout{more}");
        let items = post(&gateway, &path, &body).json();
        assert_eq!(items.as_array().unwrap().len(), 2, "{items}");
    };
    activate("silent", "&disableTracking=true");
    activate("ada", "");
    let batch = backend.wait_requests(1)[0].json();
    let visitors = batch["visitors"].as_array().unwrap();
    assert_eq!(visitors.len(), 2);
    for visitor in visitors {
        assert_eq!(visitor["visitor_id"], "ada");
        assert_eq!(visitor["attributes"][0]["value"], "DE");
        let decision = &visitor["snapshots"][0]["decisions"][0];
        assert_eq!(decision["experiment_id"], "401", "{visitor}");
    }
}
