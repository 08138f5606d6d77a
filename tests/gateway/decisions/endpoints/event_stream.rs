//! `GET /v1/notifications/event-stream`.

use serde_json::{Value, json};

use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::{Client, ask};
use crate::support::flags::{gateway, post, refused};

fn listen(gateway: &Gateway, query: &str) -> Client {
    let mut client = Client::connect(gateway.address());
    let path = format!("/v1/notifications/event-stream{query}");
    client.send(&Ask::get(&path).header("X-Platform-SDK-Key", "sandbox"));
    let head = client.head();
    assert_eq!(head.status, 200);
    assert_eq!(
        head.header("content-type"),
        Some("text/event-stream; charset=utf-8")
    );
    client
}

fn next(client: &mut Client) -> String {
    let chunk = client.chunk().expect("a notice");
    String::from_utf8(chunk.bytes).unwrap()
}

fn json_of(event: &str) -> Value {
    let (_, json) = event.split_once("data: ").unwrap();
    serde_json::from_str(json).unwrap()
}

#[test]
fn a_listener_gets_decisions_and_conversions_in_order() {
    let gateway = gateway("notifications = true");
    let mut all = listen(&gateway, "");
    let mut conversions = listen(&gateway, "?filter=track,project_config_update&raw");
    let ada = json!({"userId": "ada", "userAttributes": {"country": "FR"}});
    post(&gateway, "/v1/decide?keys=dark_mode", &ada);
    post(&gateway, "/v1/activate?type=feature", &ada);
    let tags = json!({"userId": "ada", "eventTags": {"revenue": 1}});
    assert_eq!(
        post(&gateway, "/v1/track?eventKey=purchase", &tags).status(),
        200
    );
    let first = next(&mut all);
    assert!(first.starts_with("id: 1\ndata: "), "{first}");
    let told = json_of(&first);
    assert_eq!(
        (&told["Type"], &told["UserContext"]["ID"]),
        (&"flag".into(), &"ada".into())
    );
    assert_eq!(told["DecisionInfo"]["flagKey"], "dark_mode");
    let feature = json_of(&next(&mut all));
    assert_eq!(feature["Type"], "all-feature-variables");
    let raw: Value = serde_json::from_str(&next(&mut conversions)).unwrap();
    assert_eq!(
        (&raw["EventKey"], &raw["EventTags"]["revenue"]),
        (&"purchase".into(), &1.into())
    );
}

#[test]
fn no_client_listens_where_it_is_off_or_to_another_project() {
    let off = gateway("");
    let path = "/v1/notifications/event-stream";
    let call = Ask::get(path).header("X-Platform-SDK-Key", "sandbox");
    let refusal = refused(&ask(off.address(), &call));
    assert_eq!(refusal, (403, "Notification stream not enabled".to_owned()));
    let on = gateway("notifications = true");
    assert_eq!(ask(on.address(), &Ask::get(path)).status(), 401);
    let bad = Ask::get("/v1/notifications/event-stream?filter=everything");
    let bad = bad.header("X-Platform-SDK-Key", "sandbox");
    assert_eq!(ask(on.address(), &bad).status(), 400);
}

#[test]
fn a_stream_ends_when_the_gateway_stops() {
    let gateway = gateway("notifications = true");
    let mut client = listen(&gateway, "");
    gateway.running.stop(weirgate::app::StopMode::Gracefully);
    assert!(client.chunk().is_none());
}
