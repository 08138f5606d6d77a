//! `POST /ofrep/v1/evaluate/flags`.

use serde_json::json;

use crate::support::client::ask;
use crate::support::flags::{call, gateway};

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
        (400, json!({"errorCode": "INVALID_CONTEXT"}))
    );
}
