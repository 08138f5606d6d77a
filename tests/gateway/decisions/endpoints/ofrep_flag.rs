//! `POST /ofrep/v1/evaluate/flags/{key}`.

use serde_json::{Value, json};

use tempfile::NamedTempFile;

use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::{Answer, ask};
use crate::support::flags::{agent, call, gateway, post};

#[test]
fn a_flag_is_evaluated_as_the_protocol_says() {
    let gateway = gateway("");
    let evaluate = |key: &str, context: Value| {
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
        (
            404,
            json!({"key": "none", "errorCode": "FLAG_NOT_FOUND", "errorDetails": "the project of this SDK key has no flag of this key"})
        )
    );
    for (context, code, details) in [
        (
            json!({}),
            "TARGETING_KEY_MISSING",
            "`context.targetingKey` is missing or empty: it is the user's id",
        ),
        (json!(1), "INVALID_CONTEXT", "`context` is not an object"),
        (
            json!({"targetingKey": 1}),
            "INVALID_CONTEXT",
            "`context.targetingKey` is not a string",
        ),
        (
            json!({"targetingKey": "u", "variableKey": []}),
            "INVALID_CONTEXT",
            "`context.variableKey` is not a string",
        ),
    ] {
        assert_eq!(
            evaluate("dark_mode", context),
            (
                400,
                json!({"key": "dark_mode", "errorCode": code, "errorDetails": details})
            )
        );
    }
}

/// A gateway whose project `typed` has these flags, and its datafile.
fn serving(flags: &[Value]) -> (Gateway, NamedTempFile) {
    let datafile = json!({"version": "4", "revision": "1", "featureFlags": flags});
    let file = NamedTempFile::new().unwrap();
    std::fs::write(file.path(), datafile.to_string()).unwrap();
    let project = format!(
        "[[decisions.projects]]\nsdk_key = \"typed\"\ndatafile = {:?}",
        file.path()
    );
    (gateway(&project), file)
}

fn evaluate(gateway: &Gateway, key: &str, context: &Value) -> Answer {
    let body = json!({"context": context}).to_string();
    let call = Ask::post(&format!("/ofrep/v1/evaluate/flags/{key}"), body);
    ask(
        gateway.address(),
        &call.header("X-Platform-SDK-Key", "typed"),
    )
}

#[test]
fn a_key_may_hold_any_character() {
    let keys = [
        ("a/b", "a%2Fb"),
        (";", "%3B"),
        ("c;d", "c;d"),
        ("é", "%C3%A9"),
        ("e+f", "e+f"),
        ("..", "%2E%2E"),
        ("100%", "100%25"),
    ];
    let flags: Vec<Value> = keys
        .iter()
        .enumerate()
        .map(|(id, (key, _))| json!({"id": id.to_string(), "key": key, "experimentIds": [], "rolloutId": "", "variables": []}))
        .collect();
    let (gateway, _file) = serving(&flags);
    for (key, path) in keys {
        let answer = evaluate(&gateway, path, &json!({"targetingKey": "ada"}));
        assert_eq!(
            (answer.status(), &answer.json()["key"]),
            (200, &json!(key)),
            "{path}"
        );
    }
}

/// OpenFeature asks for a boolean, a string, a number or an object without saying which: the context names the variable.
#[test]
fn a_variable_answers_a_string_a_number_or_an_object() {
    let types = [
        ("text", "string", "abc", json!("abc")),
        ("count", "integer", "3", json!(3)),
        ("share", "double", "0.5", json!(0.5)),
        ("is_new", "boolean", "true", json!(true)),
        ("layout", "json", r#"{"a":[1]}"#, json!({"a": [1]})),
    ];
    let variables: Vec<Value> = types
        .iter()
        .map(|(key, kind, default, _)| json!({"id": key, "key": key, "type": kind, "defaultValue": default}))
        .collect();
    let (gateway, _file) = serving(&[
        json!({"id": "1", "key": "typed", "experimentIds": [], "rolloutId": "", "variables": variables}),
    ]);
    let value = |context: Value| {
        let answer = evaluate(&gateway, "typed", &context);
        assert_eq!(answer.status(), 200, "{}", answer.text());
        answer.json()["value"].clone()
    };
    assert_eq!(value(json!({"targetingKey": "u"})), json!(false));
    for (key, _, _, expected) in types {
        assert_eq!(
            value(json!({"targetingKey": "u", "variableKey": key})),
            expected
        );
    }
    let unknown = json!({"targetingKey": "u", "variableKey": "none"});
    assert_eq!(value(unknown), Value::Null);
}

/// Errors that all endpoints share are OpenFeature's here, in both modes and in a batch.
#[test]
fn every_error_has_details() {
    let paths = [
        "/ofrep/v1/evaluate/flags",
        "/ofrep/v1/evaluate/flags/dark_mode",
    ];
    for (gateway, has_batches) in [(gateway(""), true), (agent(""), false)] {
        for path in paths {
            let context = json!({"context": {"targetingKey": "ada"}});
            for (status, call) in [
                (
                    415,
                    call(path, &context)
                        .without("Content-Type")
                        .header("Content-Type", "text/plain"),
                ),
                (
                    if has_batches { 401 } else { 403 },
                    call(path, &context)
                        .without("X-Platform-SDK-Key")
                        .header("X-Platform-SDK-Key", "nobody"),
                ),
                (413, call(path, &json!({"context": "x".repeat(300_000)}))),
                (400, call(path, &json!("x"))),
            ] {
                let answer = ask(gateway.address(), &call);
                assert_eq!(answer.status(), status, "{path}: {}", answer.text());
                assert_eq!(answer.header("content-type"), Some("application/json"));
                let error = answer.json();
                let details = error["errorDetails"].as_str().unwrap();
                assert!(!details.is_empty());
                let code = match status {
                    400 => "PARSE_ERROR",
                    _ => "GENERAL",
                };
                assert_eq!(error["errorCode"], code);
            }
            // A batch of the original agent knows no such path.
            if !has_batches {
                continue;
            }
            let operation = json!({"method": "POST", "url": path, "operationID": "1", "body": {"context": {"targetingKey": "u"}},
                                   "headers": {"X-Platform-SDK-Key": "nobody", "Content-Type": "application/json"}});
            let batch = post(&gateway, "/v1/batch", &json!({"operations": [operation]}));
            let item = &batch.json()["response"][0]["body"];
            assert_eq!(item["errorCode"], "GENERAL", "{}", batch.text());
        }
    }
}
