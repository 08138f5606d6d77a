//! `POST /ofrep/v1/evaluate/flags`.

use serde_json::{Value, json};

use crate::support::ask::Ask;
use crate::support::client::ask;
use crate::support::flags::{call, gateway, refused};

#[test]
fn all_flags_come_in_order_and_are_not_sent_twice() {
    let gateway = gateway("");
    let body = json!({"context": {"targetingKey": "ada", "version": "2.1"}});
    let request = call("/ofrep/v1/evaluate/flags", &body);
    let answer = ask(gateway.address(), &request);
    let keys: Vec<_> = answer.json()["flags"]
        .as_array()
        .unwrap()
        .iter()
        .map(|flag| flag["key"].clone())
        .collect();
    assert_eq!(keys, ["checkout", "dark_mode"]);
    let tag = answer.header("etag").unwrap().to_owned();
    let again = ask(gateway.address(), &request.header("If-None-Match", &tag));
    assert_eq!((again.status(), again.text()), (304, ""));
    let bad = ask(
        gateway.address(),
        &call("/ofrep/v1/evaluate/flags", &json!({"context": []})),
    );
    assert_eq!(
        (bad.status(), bad.json()),
        (
            400,
            json!({"errorCode": "INVALID_CONTEXT", "errorDetails": "`context` is not an object"})
        )
    );
}

#[test]
fn no_answer_is_beyond_the_bound() {
    let flags: Vec<Value> = (0..18)
        .map(|at| {
            json!({"id": at.to_string(), "key": at.to_string(), "experimentIds": [], "rolloutId": "",
                   "variables": [{"id": "1", "key": "v", "type": "string", "defaultValue": "x".repeat(1_000_000)}]})
        })
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("flags.json");
    let datafile = json!({"version": "4", "revision": "1", "featureFlags": flags});
    std::fs::write(&path, datafile.to_string()).unwrap();
    let gateway = gateway(&format!(
        "[[decisions.projects]]\nsdk_key = \"big\"\ndatafile = {:?}",
        path.display().to_string()
    ));
    let body = json!({"context": {"targetingKey": "ada", "variableKey": "v"}});
    let request = Ask::post("/ofrep/v1/evaluate/flags", body.to_string());
    let answer = ask(
        gateway.address(),
        &request.header("X-Platform-SDK-Key", "big"),
    );
    let (status, error) = refused(&answer);
    assert_eq!(status, 413, "{error}");
    assert!(error.contains("at most 16777216 are answered"), "{error}");
}
