//! `POST /v1/send-odp-event`, and segments of users in decisions.

use serde_json::{Value, json};

use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::{Answer, ask};
use crate::support::flags::{gateway, refused};
use crate::support::script::Reply;
use crate::support::upstream::Upstream;

/// One flag for users in the segment `vip`.
pub fn datafile(host: &str) -> Value {
    json!({
        "version": "4", "accountId": "1", "projectId": "2", "revision": "3",
        "integrations": [{"key": "odp", "host": host, "publicKey": "odp-key"}],
        "typedAudiences": [{"id": "a1", "name": "vips", "conditions":
            ["and", {"type": "third_party_dimension", "name": "odp.audiences", "match": "qualified", "value": "vip"}]}],
        "rollouts": [{"id": "r1", "experiments": [{"id": "e1", "key": "lounge", "status": "Running", "layerId": "l1",
            "audienceIds": ["a1"], "forcedVariations": {},
            "variations": [{"id": "v1", "key": "on", "featureEnabled": true, "variables": []}],
            "trafficAllocation": [{"entityId": "v1", "endOfRange": 10000}]}]}],
        "featureFlags": [{"id": "f1", "key": "lounge", "rolloutId": "r1", "experimentIds": [], "variables": []}],
        "experiments": [], "groups": [], "attributes": [], "audiences": [], "events": []
    })
}

/// A gateway with a project that names this platform.
fn with_platform(more: &str, host: &str) -> (Gateway, tempfile::NamedTempFile) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), datafile(host).to_string()).unwrap();
    let project = format!(
        "{more}\n[[decisions.projects]]\nsdk_key = \"shop\"\ndatafile = {:?}\n",
        file.path()
    );
    (gateway(&project), file)
}

/// The datafile may name this platform.
fn listed(platform: &Upstream) -> String {
    format!("odp = {{ hosts = [\"{}\"] }}", platform.url())
}

fn post(gateway: &Gateway, path: &str, body: &Value) -> Answer {
    let call = Ask::post(path, body.to_string()).header("X-Platform-SDK-Key", "shop");
    ask(gateway.address(), &call)
}

pub fn told(segments: &[&str]) -> Reply {
    let edges: Vec<Value> = segments
        .iter()
        .map(|name| json!({"node": {"name": name, "state": "qualified"}}))
        .collect();
    let body = json!({"data": {"customer": {"audiences": {"edges": edges}}}});
    Reply::json(200, body.to_string())
}

fn is_in(gateway: &Gateway, more: Value) -> bool {
    let mut body = json!({"userId": "ada", "fetchSegments": true});
    for (key, value) in more.as_object().unwrap() {
        body[key] = value.clone();
    }
    let answer = post(gateway, "/v1/decide?keys=lounge", &body);
    assert_eq!(answer.status(), 200, "{}", answer.text());
    answer.json()["enabled"].as_bool().unwrap()
}

#[test]
fn segments_are_asked_for_once_and_again_when_the_caller_says_so() {
    let platform = Upstream::sequence([told(&["vip"]), told(&[]), told(&["vip"]), told(&[])]);
    let (gateway, _file) = with_platform(&listed(&platform), &platform.url());
    assert!(!is_in(&gateway, json!({"fetchSegments": false})));
    assert!(is_in(&gateway, json!({})));
    assert!(is_in(&gateway, json!({})));
    let asked = platform.requests();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].header("x-api-key"), Some("odp-key"));
    let variables = &asked[0].json()["variables"];
    assert_eq!(variables, &json!({"userId": "ada", "audiences": ["vip"]}));
    // Neither read nor cached; then dropped, and fetched again.
    assert!(!is_in(
        &gateway,
        json!({"fetchSegmentsOptions": ["IGNORE_CACHE"]})
    ));
    assert!(is_in(
        &gateway,
        json!({"fetchSegmentsOptions": ["RESET_CACHE"]})
    ));
    assert!(is_in(&gateway, json!({})));
    assert_eq!(platform.requests().len(), 3);
}

#[test]
fn a_decision_whose_segments_cannot_be_learned_is_refused() {
    let platform = Upstream::always(Reply::json(200, r#"{"errors":[{"message":"no"}]}"#));
    let (gateway, _file) = with_platform(&listed(&platform), &platform.url());
    let body = json!({"userId": "ada", "fetchSegments": true});
    let failed = |status| (status, "failed to fetch qualified segments".to_owned());
    assert_eq!(
        refused(&post(&gateway, "/v1/decide?keys=lounge", &body)),
        failed(502)
    );
    // A project without a platform has no segments to fetch.
    let body = Ask::post("/v1/decide", body.to_string()).header("X-Platform-SDK-Key", "sandbox");
    assert_eq!(refused(&ask(gateway.address(), &body)), failed(403));
}

#[test]
fn an_event_reaches_the_platform_at_the_configured_host() {
    let platform = Upstream::always(Reply::json(200, "{}"));
    let more = format!("odp = {{ host = \"{}\" }}", platform.url());
    let (gateway, _file) = with_platform(&more, "http://127.0.0.1:1");
    let event = json!({"type": "t", "action": "bought", "identifiers": {"fs-user-id": "ada"}, "data": {"price": 3}});
    let answer = post(&gateway, "/v1/send-odp-event", &event);
    assert_eq!(
        (answer.status(), answer.text()),
        (200, "{\"success\":true}")
    );
    let sent = &platform.wait_requests(1)[0];
    assert_eq!(sent.header("x-api-key"), Some("odp-key"));
    let told = &sent.json()[0];
    assert_eq!(told["identifiers"], json!({"fs_user_id": "ada"}));
    assert_eq!(
        (&told["action"], &told["data"]["price"]),
        (&"bought".into(), &3.into())
    );
}

#[test]
fn what_is_no_event_is_refused() {
    let (gateway, _file) = with_platform(
        "odp = { hosts = [\"http://127.0.0.1:1\"] }",
        "http://127.0.0.1:1",
    );
    for (body, status, error) in [
        (
            json!({"identifiers": {"vuid": "x"}}),
            400,
            "missing \"action\" in request payload",
        ),
        (
            json!({"action": "a"}),
            400,
            "missing or empty \"identifiers\" in request payload",
        ),
        (
            json!({"action": "a", "identifiers": {"vuid": "x"}, "data": {"x": []}}),
            400,
            "ODP data is not valid",
        ),
    ] {
        let answer = post(&gateway, "/v1/send-odp-event", &body);
        assert_eq!(refused(&answer), (status, error.to_owned()), "{body}");
    }
    let event = json!({"action": "a", "identifiers": {"vuid": "x"}}).to_string();
    let elsewhere = Ask::post("/v1/send-odp-event", event).header("X-Platform-SDK-Key", "sandbox");
    let refusal = refused(&ask(gateway.address(), &elsewhere));
    assert_eq!(refusal, (403, "ODP is not integrated".to_owned()));
}

/// Whoever writes a datafile does not choose where this process connects to.
#[test]
fn a_host_that_only_the_datafile_names_is_not_asked() {
    let platform = Upstream::always(told(&["vip"]));
    for more in ["", "odp = { hosts = [\"http://127.0.0.1:1\"] }"] {
        let (gateway, _file) = with_platform(more, &platform.url());
        let decide = json!({"userId": "ada", "fetchSegments": true});
        assert_eq!(
            post(&gateway, "/v1/decide?keys=lounge", &decide).status(),
            403
        );
        let event = json!({"action": "seen", "identifiers": {"email": "a@b"}, "type": "shop"});
        let answer = post(&gateway, "/v1/send-odp-event", &event);
        assert_eq!(answer.status(), 403, "{}", answer.text());
    }
    assert_eq!(platform.connections(), 0);
}
