//! `POST /v1/track`.

use serde_json::json;

use crate::support::flags::{gateway, post, refused};
use crate::support::script::Reply;
use crate::support::upstream::Upstream;

/// Contract: decision-agent 2.2 track
/// Contract: decision-agent 4 POST /v1/track
/// Contract: decision-agent 4 4
/// Contract: decision-agent 6 3
#[test]
fn a_conversion_is_sent_to_the_backend() {
    let backend = Upstream::always(Reply::whole(204, &[], ""));
    let gateway = gateway(&format!(
        "event_url = \"{}/e\"\nevent_batch = 1",
        backend.url()
    ));
    let body = json!({"userId": "u", "userAttributes": {"country": "DE"},
                      "eventTags": {"revenue": 250, "shop": "x"}});
    let answer = post(&gateway, "/v1/track?eventKey=purchase", &body);
    assert_eq!((answer.status(), answer.json()), (200, json!({})));
    let visitor = backend.wait_requests(1)[0].json()["visitors"][0].clone();
    let event = &visitor["snapshots"][0]["events"][0];
    assert_eq!(
        (&event["key"], &event["revenue"], &event["entity_id"]),
        (&"purchase".into(), &250.into(), &"201".into())
    );
    assert_eq!(event["tags"], body["eventTags"]);
    let attribute = &visitor["attributes"][0];
    assert_eq!(
        (&visitor["visitor_id"], &attribute["value"]),
        (&json!("u"), &json!("DE"))
    );
    assert_eq!(attribute["entity_id"], "101");
    let unknown = post(&gateway, "/v1/track?eventKey=no", &body);
    assert_eq!(
        refused(&unknown),
        (200, "event with key \"no\" not found".to_owned())
    );
}

/// Source: docs/decision-agent.md 2.2: the track context has `userId (string)`, which is not required; 6.3: `Track sends a user event`.
/// Contract: decision-agent 2.2 track
#[test]
fn a_conversion_of_nobody_is_sent_too() {
    let backend = Upstream::always(Reply::whole(204, &[], ""));
    let gateway = gateway(&format!(
        "event_url = \"{}/e\"\nevent_batch = 1",
        backend.url()
    ));
    let answer = post(&gateway, "/v1/track?eventKey=purchase", &json!({}));
    assert_eq!((answer.status(), answer.json()), (200, json!({})));
    let visitor = backend.wait_requests(1)[0].json()["visitors"][0].clone();
    assert_eq!(visitor["visitor_id"], "");
    assert_eq!(visitor["snapshots"][0]["events"][0]["key"], "purchase");
}

/// Contract: decision-agent 2.2 track
/// Contract: decision-agent 4 POST /v1/track
/// Contract: decision-agent 7 400
#[test]
fn what_is_missing_is_named() {
    let gateway = gateway("");
    for (path, body, said) in [
        ("/v1/track", json!({"userId": "u"}), "eventKey"),
        (
            "/v1/track?eventKey=purchase",
            json!({"userId": 1}),
            "userId",
        ),
        (
            "/v1/track?eventKey=purchase",
            json!({"userId": "u", "eventTags": 1}),
            "eventTags",
        ),
    ] {
        let (status, error) = refused(&post(&gateway, path, &body));
        assert!(status == 400 && error.contains(said), "{status} {error}");
    }
}
