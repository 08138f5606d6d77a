//! `POST /v1/activate`.

use serde_json::{Value, json};

use crate::support::flags::{gateway, post, refused};

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
