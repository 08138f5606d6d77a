//! The built-in service behind the gateway.

use super::*;

fn sandbox() -> Gateway {
    at("sandbox", "", "")
}

#[test]
fn it_echoes_queries_by_both_methods() {
    let gateway = sandbox();
    let posted = Ask::post("/content/v2?auth=k1", r#"{"query":"{ a { b } }"}"#);
    let echo = r#"{"data":{"a":{"b":"b"}}}"#;
    let answer = gateway.graph(&posted);
    assert_eq!((answer.text(), limit(&answer)), (echo, ("1500", "10")));
    let got = gateway.graph(&Ask::get("/content/v2?auth=k1&query=%7Ba%7Bb%7D%7D"));
    assert_eq!(got.text(), echo);
}

#[test]
fn it_refuses_what_is_no_query() {
    let gateway = sandbox();
    let answer = gateway.graph(&Ask::post("/content/v2?auth=k1", r#"{"query":"{"}"#));
    assert_eq!(answer.status(), 400);
    assert!(answer.json()["errors"][0]["message"].is_string());
    assert_eq!(gateway.graph(&Ask::get("/other")).status(), 404);
}
