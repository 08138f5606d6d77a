//! `GET /v1/config`.

use serde_json::{Value, json};

use crate::support::ask::Ask;
use crate::support::client::ask;
use crate::support::flags::gateway;

/// Contract: decision-agent 4 GET /v1/config
#[test]
fn the_configuration_is_shown_to_the_holder_of_a_key() {
    let gateway = gateway("");
    let request = Ask::get("/v1/config").header("X-Optimizely-SDK-Key", "sandbox");
    let answer = ask(gateway.address(), &request);
    let body = answer.json();
    assert_eq!((answer.status(), &body["revision"]), (200, &"1".into()));
    assert_eq!(
        body["featuresMap"]["checkout"]["experimentRules"][0]["audiences"],
        "\"Germany\""
    );
    assert_eq!(
        ask(gateway.address(), &Ask::get("/v1/config")).status(),
        401
    );
}

/// Contract: decision-agent 2.1 environmentKey
/// Contract: decision-agent 2.1 experimentsMap
/// Contract: decision-agent 2.1 featuresMap
/// Contract: decision-agent 2.1 attributes
/// Contract: decision-agent 2.1 Experiment
/// Contract: decision-agent 2.1 Feature
/// Contract: decision-agent 2.1 Variation
/// Contract: decision-agent 2.1 Variable
/// Contract: decision-agent 2.1 Attribute
/// Contract: decision-agent 2.1 Audience
/// Contract: decision-agent 2.1 Event
#[test]
fn the_configuration_has_every_member_of_the_contract() {
    let gateway = gateway("");
    let request = Ask::get("/v1/config").header("X-Platform-SDK-Key", "sandbox");
    let body = ask(gateway.address(), &request).json();
    let variables = |steps: &str| {
        json!({"steps": {"id": "701", "key": "steps", "type": "integer", "value": steps},
               "banner": {"id": "702", "key": "banner", "type": "string", "value": "Welcome"}})
    };
    let variation = |id: &str, key: &str, is_enabled: bool, variables: Value| json!({"id": id, "key": key, "featureEnabled": is_enabled, "variablesMap": variables});
    let rule = |id: &str, key: &str, audiences: &str, variations: Value| json!({"id": id, "key": key, "audiences": audiences, "variationsMap": variations});
    let both = json!({"classic": variation("601", "classic", true, variables("3")),
                      "one_page": variation("602", "one_page", true, variables("1"))});
    let test = rule("401", "checkout_test", "\"Germany\"", both);
    let off = json!({"off": variation("603", "off", false, variables("3"))});
    let on = json!({"on": variation("604", "on", true, json!({}))});
    let dark_off = json!({"off": variation("605", "off", false, json!({}))});
    let checkout = json!({"id": "801", "key": "checkout", "experimentRules": [test],
        "deliveryRules": [rule("911", "default-901", "", off)],
        "variablesMap": variables("3"), "experimentsMap": {"checkout_test": test}});
    // `audiences` names those of `audienceConditions`: of `audienceIds` alone it is empty. Source: docs/facts/decision-engine.md A.
    let dark_mode = json!({"id": "802", "key": "dark_mode", "experimentRules": [],
        "deliveryRules": [rule("921", "new_versions", "", on),
                          rule("922", "default-902", "", dark_off)],
        "variablesMap": {}, "experimentsMap": {}});
    let mut shown = body.clone();
    for audience in shown["audiences"].as_array_mut().unwrap() {
        // Conditions are JSON in a text.
        let mut conditions: Value =
            serde_json::from_str(audience["conditions"].as_str().unwrap()).unwrap();
        audience["conditions"] = conditions[1]["value"].take();
    }
    let expected = json!({
        "environmentKey": "sandbox", "sdkKey": "sandbox", "revision": "1",
        "experimentsMap": {"checkout_test": test},
        "featuresMap": {"checkout": checkout, "dark_mode": dark_mode},
        "attributes": [{"id": "101", "key": "country"}, {"id": "102", "key": "version"}],
        "audiences": [{"id": "301", "name": "Germany", "conditions": "DE"},
                      {"id": "302", "name": "Version 2 and later", "conditions": "2.0"}],
        "events": [{"id": "201", "key": "purchase", "experimentIds": ["401"]}],
    });
    assert_eq!(shown, expected);
}
