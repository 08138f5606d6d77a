//! `GET /ofrep/v1/event-stream`, and what answers with all flags say of it.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::{Answer, Client, ask};
use crate::support::flags::gateway;
use crate::support::script::Reply;
use crate::support::sdk::{Script, run};
use crate::support::until;
use crate::support::upstream::Upstream;

/// A datafile with one flag, which is on for everyone or has no rule.
pub(super) fn datafile(is_on: bool) -> String {
    let rollout = json!({"id": "1", "experiments": [{
        "id": "2", "key": "everyone", "status": "Running", "layerId": "1", "audienceIds": [], "forcedVariations": {},
        "variations": [{"id": "3", "key": "on", "featureEnabled": true, "variables": []}],
        "trafficAllocation": [{"entityId": "3", "endOfRange": 10000}],
    }]});
    let flag = json!({"id": "9", "key": "banner", "rolloutId": if is_on { "1" } else { "" }, "experimentIds": [], "variables": []});
    let rollouts: &[Value] = &[rollout];
    json!({"version": "4", "revision": "1", "rollouts": rollouts, "featureFlags": [flag]})
        .to_string()
}

/// A gateway with the project `own`, whose datafile is in the file.
fn with_file(folder: &Path, more: &str) -> (Gateway, PathBuf) {
    let path = folder.join("flags.json");
    std::fs::write(&path, datafile(false)).unwrap();
    let project = format!("[[decisions.projects]]\nsdk_key = \"own\"\ndatafile = {path:?}\n");
    (gateway(&format!("{more}\n{project}")), path)
}

fn evaluation(query: &str, country: &str) -> Ask {
    let body = json!({"context": {"targetingKey": "ada", "country": country}});
    let ask = Ask::post(
        &format!("/ofrep/v1/evaluate/flags{query}"),
        body.to_string(),
    );
    ask.header("X-Platform-SDK-Key", "own")
}

fn evaluate(gateway: &Gateway) -> Answer {
    ask(gateway.address(), &evaluation("", "FR"))
}

/// The path and the query of the stream that an answer offers.
fn stream_uri(answer: &Answer) -> String {
    let stream = &answer.json()["eventStreams"][0];
    assert_eq!(stream["type"], "sse");
    let uri = stream["endpoint"]["requestUri"].as_str();
    uri.expect("an answer offers a stream").to_owned()
}

/// Opens a stream without credentials, as a browser does.
fn listen(gateway: &Gateway, uri: &str, last_event_id: Option<&str>) -> Client {
    let mut client = Client::connect(gateway.address());
    let mut request = Ask::get(uri);
    if let Some(id) = last_event_id {
        request = request.header("Last-Event-ID", id);
    }
    client.send(&request);
    let head = client.head();
    assert_eq!(head.status, 200);
    let media_type = head.header("content-type").unwrap_or_default();
    assert!(media_type.starts_with("text/event-stream"), "{media_type}");
    client
}

/// Reads the next event, and returns its tag.
fn next_etag(client: &mut Client) -> String {
    let event = String::from_utf8(client.chunk().expect("an event").bytes).unwrap();
    let (envelope, data) = event.split_once("\ndata: ").unwrap();
    let data: Value = serde_json::from_str(data).unwrap();
    assert_eq!(data["type"], "refetchEvaluation");
    let etag = data["etag"].as_str().unwrap().to_owned();
    assert_eq!(envelope, format!("id: {etag}\nevent: message"));
    etag
}

#[test]
fn a_client_hears_of_each_datafile_and_evaluates_its_flags_again() {
    let folder = tempfile::tempdir().unwrap();
    let (gateway, path) = with_file(folder.path(), "");
    let before = evaluate(&gateway);
    assert_eq!(before.json()["flags"][0]["value"], false);
    let uri = stream_uri(&before);
    assert_eq!(
        stream_uri(&evaluate(&gateway)),
        uri,
        "a client keeps its stream"
    );
    assert!(!uri.contains("own"), "the SDK key is not in a log: {uri}");
    let mut stream = listen(&gateway, &uri, None);
    // The client may have evaluated its flags before this datafile, which is that young.
    let first = next_etag(&mut stream);
    std::fs::write(&path, datafile(true)).unwrap();
    let second = next_etag(&mut stream);
    assert_ne!(first, second);
    let tag = before.header("etag").unwrap();
    let query = format!("?flagConfigEtag={second}");
    let again = evaluation(&query, "FR").header("If-None-Match", tag);
    let after = ask(gateway.address(), &again);
    assert_eq!(after.json()["flags"][0]["value"], true);
    assert_eq!(stream_uri(&after), uri);
    // After a break the id of the last event tells whether something was missed.
    assert_eq!(next_etag(&mut listen(&gateway, &uri, Some(&first))), second);
    let mut up_to_date = listen(&gateway, &uri, Some(&second));
    std::fs::write(&path, datafile(false)).unwrap();
    assert_eq!(next_etag(&mut up_to_date), first);
}

#[test]
fn an_equal_etag_is_never_for_another_context() {
    let folder = tempfile::tempdir().unwrap();
    let (gateway, _) = with_file(folder.path(), "");
    let ask_for = |request: &Ask| ask(gateway.address(), request);
    let french = evaluate(&gateway);
    let tag = french.header("etag").unwrap();
    let other = ask_for(&evaluation("", "DE").header("If-None-Match", tag));
    assert_eq!(
        (other.status(), &other.json()["flags"]),
        (200, &french.json()["flags"])
    );
    assert_ne!(other.header("etag"), Some(tag));
    let body = json!({"context": {"targetingKey": "ada", "country": "FR"}});
    let request = Ask::post("/ofrep/v1/evaluate/flags", body.to_string());
    let sandbox = ask_for(
        &request
            .header("X-Platform-SDK-Key", "sandbox")
            .header("If-None-Match", tag),
    );
    assert_eq!(sandbox.status(), 200);
    let weak = format!("\"other\", W/{tag}");
    let known = ask_for(&evaluation("", "FR").header("If-None-Match", &weak));
    assert_eq!((known.status(), known.text()), (304, ""));
    assert_eq!(known.header("etag"), Some(tag));
}

#[test]
fn a_client_that_knows_of_another_datafile_makes_the_gateway_ask_its_source_once() {
    let source =
        Upstream::sequence([datafile(false), datafile(true)].map(|body| Reply::json(200, body)));
    let gateway = gateway(&format!("datafile_url = \"{}/%s.json\"", source.url()));
    let before = evaluate(&gateway);
    assert_eq!(before.json()["flags"][0]["value"], false);
    let mut stream = listen(&gateway, &stream_uri(&before), None);
    let old = next_etag(&mut stream);
    let query = "?flagConfigEtag=announced-by-another-process";
    let after = ask(gateway.address(), &evaluation(query, "FR"));
    assert_eq!(after.json()["flags"][0]["value"], true);
    assert_ne!(next_etag(&mut stream), old);
    // What is not in force is never confirmed, and no client makes it fetch again and again.
    let tag = after.header("etag").unwrap();
    for _ in 0..3 {
        let again = evaluation(query, "FR").header("If-None-Match", tag);
        assert_eq!(ask(gateway.address(), &again).status(), 200);
    }
    assert_eq!(source.requests().len(), 2);
}

#[test]
fn clients_beyond_the_limit_poll() {
    let folder = tempfile::tempdir().unwrap();
    let (gateway, _) = with_file(folder.path(), "event_streams = 1");
    let uri = stream_uri(&evaluate(&gateway));
    let open = listen(&gateway, &uri, None);
    assert_eq!(evaluate(&gateway).json().get("eventStreams"), None);
    let refused = ask(gateway.address(), &Ask::get(&uri));
    assert_eq!(
        (refused.status(), refused.header("retry-after")),
        (503, Some("30"))
    );
    assert!(
        refused.text().contains("`decisions.event_streams`"),
        "{}",
        refused.text()
    );
    drop(open);
    until("there is room again", || {
        evaluate(&gateway).json().get("eventStreams").is_some()
    });
}

#[test]
fn a_stream_wants_a_ticket_or_credentials_and_can_be_off() {
    let folder = tempfile::tempdir().unwrap();
    let (gateway, _) = with_file(folder.path(), "");
    let path = "/ofrep/v1/event-stream";
    let refused = ask(
        gateway.address(),
        &Ask::get("/ofrep/v1/event-stream?ticket=made-up"),
    );
    assert_eq!(refused.status(), 401);
    assert!(
        refused.text().contains("`ticket` is damaged"),
        "{}",
        refused.text()
    );
    assert_eq!(ask(gateway.address(), &Ask::get(path)).status(), 401);
    let mut client = Client::connect(gateway.address());
    client.send(&Ask::get(path).header("X-Platform-SDK-Key", "own"));
    assert_eq!(client.head().status, 200);
    let (off, _) = with_file(folder.path(), "event_streams = 0");
    assert_eq!(evaluate(&off).json().get("eventStreams"), None);
    let refused = ask(
        off.address(),
        &Ask::get(path).header("X-Platform-SDK-Key", "own"),
    );
    assert_eq!(refused.status(), 403);
}

#[test]
fn the_web_provider_of_openfeature_follows_the_stream() {
    let folder = tempfile::tempdir().unwrap();
    let (gateway, path) = with_file(folder.path(), "");
    let url = format!("http://{}", gateway.address());
    let (on, off) = (datafile(true), datafile(false));
    let variables = [
        ("OFREP_URL", url.as_str()),
        ("SDK_KEY", "own"),
        ("DATAFILE", path.to_str().unwrap()),
        ("DATAFILE_ON", &on),
        ("DATAFILE_OFF", &off),
    ];
    run(Script::OfrepWebNode, &variables, &[]);
}
