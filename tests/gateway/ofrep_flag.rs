//! `POST /ofrep/v1/evaluate/flags/{key}`.

use serde_json::json;

use crate::support::flags::{gateway, post};

#[test]
fn a_flag_is_evaluated_as_the_protocol_says() {
    let gateway = gateway("");
    let evaluate = |key: &str, context: serde_json::Value| {
        let answer = post(
            &gateway,
            &format!("/ofrep/v1/evaluate/flags/{key}"),
            &json!({"context": context}),
        );
        (answer.status(), answer.json())
    };
    let ada = json!({"targetingKey": "ada", "version": "2.1"});
    assert_eq!(
        evaluate("dark_mode", ada.clone()),
        (
            200,
            json!({"key": "dark_mode", "value": true, "reason": "TARGETING_MATCH", "variant": "on", "metadata": {"ruleKey": "new_versions"}})
        )
    );
    let steps = json!({"targetingKey": "ada", "country": "DE", "variableKey": "banner"});
    let (_, value) = evaluate("checkout", steps);
    assert_eq!(
        (&value["value"], &value["reason"]),
        (&"Welcome".into(), &"SPLIT".into())
    );
    assert_eq!(
        evaluate("dark_mode", json!({"targetingKey": "u"})).1["reason"],
        "DISABLED"
    );
    assert_eq!(
        evaluate("none", ada),
        (404, json!({"key": "none", "errorCode": "FLAG_NOT_FOUND"}))
    );
    for (context, code) in [
        (json!({}), "TARGETING_KEY_MISSING"),
        (json!(1), "INVALID_CONTEXT"),
    ] {
        assert_eq!(
            evaluate("dark_mode", context).1,
            json!({"key": "dark_mode", "errorCode": code})
        );
    }
}
