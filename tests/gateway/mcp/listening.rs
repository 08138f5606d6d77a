//! The stream of `GET /mcp`: what changes for a session.

use std::time::{Duration, Instant};

use filters::audit::PROGRAM;
use serde_json::{Value, json};
use weirgate::app::StopMode;

use super::sessions::{SESSION, begin, initialize};
use super::{code, result, rpc};
use crate::models::endpoints::prompt::greeting;
use crate::support::ask::Ask;
use crate::support::boot::{Gateway, MODELS, create_key};
use crate::support::client::{Client, End, ask};
use crate::support::process::Process;
use crate::support::sse;

fn listen(key: &str, session: &str) -> Ask {
    listen_in("2025-11-25", key, session)
}

fn listen_in(revision: &str, key: &str, session: &str) -> Ask {
    Ask::get("/mcp")
        .key(key)
        .header("Accept", "text/event-stream")
        .header("MCP-Protocol-Version", revision)
        .header(SESSION, session)
}

/// Opens a stream, and returns it with what it begins with.
fn open(gateway: &Gateway, request: &Ask) -> (Client, String) {
    let mut client = Client::connect(gateway.address());
    client.send(request);
    let head = client.head();
    assert_eq!(head.status, 200);
    for (name, value) in [
        ("content-type", "text/event-stream; charset=utf-8"),
        ("cache-control", "no-store"),
        ("x-accel-buffering", "no"),
    ] {
        assert_eq!((head.header(name), head.count(name)), (Some(value), 1));
    }
    let first = client.chunk().unwrap().bytes;
    (client, String::from_utf8(first).unwrap())
}

/// The id of the last event of a text.
fn last_id(text: &str) -> &str {
    let mut lines = text.lines().rev();
    lines
        .find_map(|line| line.strip_prefix("id: "))
        .expect("an id")
}

const CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}"#;

fn next(client: &mut Client) -> String {
    String::from_utf8(client.chunk().expect("an event").bytes).unwrap()
}

#[test]
fn a_session_is_told_that_its_prompts_have_changed_once() {
    let gateway = Gateway::start("", MODELS);
    gateway.put("one", &[], &greeting());
    let begun = ask(
        gateway.address(),
        &initialize("2025-11-25").key(&gateway.key),
    );
    let capabilities = &begun.json()["result"]["capabilities"];
    let announced = |name: &str| capabilities[name]["listChanged"].clone();
    let expected = [json!(true), json!(false), json!(false)];
    assert_eq!(["prompts", "tools", "resources"].map(announced), expected);
    let session = begun.header(SESSION).unwrap();
    let request = listen(&gateway.key, session);
    let (mut client, first) = open(&gateway, &request);
    let id = last_id(&first).to_owned();
    assert_eq!(first, format!("retry: 3000\nid: {id}\ndata:\n\n"));
    // The same list has the same id, and nothing to tell.
    let resumed = request.clone().header("Last-Event-ID", &id);
    assert_eq!(open(&gateway, &resumed).1, first);
    gateway.put("two", &[], &greeting());
    let told = next(&mut client);
    assert_eq!(sse::parse(&told).data(), [CHANGED]);
    assert_ne!(last_id(&told), id);
    // Who was away is told once.
    let missed = open(&gateway, &resumed).1;
    assert_eq!(sse::parse(&missed).data(), ["", CHANGED]);
    let again = request.header("Last-Event-ID", last_id(&missed));
    assert_eq!(sse::parse(open(&gateway, &again).1).data(), [""]);
    let listed = result(&gateway, &rpc(&gateway, "prompts/list", json!({})));
    assert_eq!(listed["prompts"].as_array().map(Vec::len), Some(2));
}

#[test]
fn older_clients_get_no_event_without_a_message() {
    let gateway = Gateway::start("", MODELS);
    gateway.put("one", &[], &greeting());
    let begun = ask(
        gateway.address(),
        &initialize("2025-06-18").key(&gateway.key),
    );
    let request = listen_in("2025-06-18", &gateway.key, begun.header(SESSION).unwrap());
    let (mut client, first) = open(&gateway, &request);
    assert_eq!(first, ": keepalive\n\n");
    gateway.put("two", &[], &greeting());
    assert_eq!(sse::parse(next(&mut client)).data(), [CHANGED]);
    // Who was away is told, in a message.
    let missed = request.header("Last-Event-ID", "another");
    assert_eq!(sse::parse(open(&gateway, &missed).1).data(), [CHANGED]);
}

#[test]
fn a_stream_is_of_a_session_of_its_key() {
    let gateway = Gateway::start("[mcp]\nstreams_per_key = 2\n", MODELS);
    let session = begin(&gateway, &gateway.key);
    let request = listen(&gateway.key, &session);
    let other = gateway.change(create_key);
    let bare = request.clone().without("Authorization");
    assert_eq!(code(&ask(gateway.address(), &bare)), (401, json!(-32001)));
    for (request, expected) in [
        (request.clone().without(SESSION), (400, json!(-32600))),
        (
            request.clone().header(SESSION, &session),
            (400, json!(-32600)),
        ),
        (listen(&other, &session), (404, json!(-32000))),
        (listen(&gateway.key, "x"), (404, json!(-32000))),
    ] {
        assert_eq!(code(&ask(gateway.address(), &request)), expected);
    }
    let stateless = request.clone().without("MCP-Protocol-Version");
    let stateless = stateless.header("MCP-Protocol-Version", "2026-07-28");
    let answer = ask(gateway.address(), &stateless);
    assert_eq!(
        (answer.status(), answer.header("allow")),
        (405, Some("POST"))
    );
    let both = [(); 2].map(|()| open(&gateway, &request).0);
    let answer = ask(gateway.address(), &request);
    assert_eq!(code(&answer), (429, json!(-32000)));
    crate::support::client::check_limit_headers(&answer);
    assert!(
        answer.text().contains("mcp.streams_per_key"),
        "{}",
        answer.text()
    );
    // Another key has its own, and a place that is left is free.
    let others = begin(&gateway, &other);
    open(&gateway, &listen(&other, &others));
    drop(both);
    crate::support::until("a place is free", || {
        let mut client = Client::connect(gateway.address());
        client.send(&request);
        client.head().status == 200
    });
}

/// Waits for the end of a stream, and returns how long it took.
fn wait_for_end(mut client: Client) -> Duration {
    let started = Instant::now();
    while client.chunk().is_some() {}
    assert_eq!(client.end(), End::Complete);
    started.elapsed()
}

#[test]
fn a_stream_ends_with_its_session_its_key_and_its_process() {
    let gateway = Gateway::start("", MODELS);
    let session = begin(&gateway, &gateway.key);
    let stream = open(&gateway, &listen(&gateway.key, &session)).0;
    let end = Ask::new("DELETE", "/mcp").key(&gateway.key);
    let ended = ask(gateway.address(), &end.header(SESSION, &session));
    assert_eq!(ended.status(), 204);
    assert!(wait_for_end(stream) < Duration::from_secs(5));
    let key = gateway.change(create_key);
    let of_key = open(&gateway, &listen(&key, &begin(&gateway, &key))).0;
    let own = open(
        &gateway,
        &listen(&gateway.key, &begin(&gateway, &gateway.key)),
    )
    .0;
    gateway.change(async |store| {
        let keys = store.keys("acme").await.unwrap();
        store
            .by(&PROGRAM)
            .revoke_key(&keys.last().unwrap().id, 1)
            .await
            .unwrap();
    });
    assert!(wait_for_end(of_key) < Duration::from_secs(5));
    gateway.running.stop(StopMode::Gracefully);
    assert!(wait_for_end(own) < Duration::from_secs(5));
}

#[test]
fn without_prompts_nothing_changes() {
    let gateway = Gateway::start("[prompts]\nenabled = false\n", MODELS);
    let session = begin(&gateway, &gateway.key);
    let answer = ask(gateway.address(), &listen(&gateway.key, &session));
    assert_eq!(
        (answer.status(), answer.header("allow")),
        (405, Some("POST"))
    );
}

/// Opens so many streams, each of its own session, beside one that is never read; returns what they took of memory, each.
fn memory_of(count: u64) -> u64 {
    let more = format!("[mcp]\nstreams_per_key = {}", count + 1);
    let process = Process::start(&more);
    let key = process.key().to_owned();
    let session = || {
        let begun = ask(process.address, &initialize("2025-11-25").key(&key));
        begun.header(SESSION).expect("a session").to_owned()
    };
    let open = || {
        let mut client = Client::connect(process.address);
        client.send(&listen(&key, &session()));
        client
    };
    let _unread = open();
    let before = process.memory();
    let mut streams: Vec<Client> = (0..count).map(|_| open()).collect();
    for stream in &mut streams {
        assert_eq!(stream.head().status, 200);
        assert!(stream.chunk().is_some());
    }
    let taken = process.memory().saturating_sub(before);
    // Calls are answered beside them.
    let ping = rpc_of(&key, &session());
    assert_eq!(ask(process.address, &ping).status(), 200);
    taken / count
}

fn rpc_of(key: &str, session: &str) -> Ask {
    let body: Value = json!({"jsonrpc": "2.0", "id": 7, "method": "ping"});
    let request = Ask::post("/mcp", body.to_string()).key(key);
    request.header(SESSION, session)
}

#[test]
fn three_hundred_streams_take_less_than_a_hundred_kib_each() {
    let each = memory_of(300);
    assert!(each < 100 << 10, "{each} bytes");
}

#[test]
#[ignore = "a thousand connections in each of two processes"]
fn a_thousand_streams_take_less_than_a_hundred_mib() {
    let each = memory_of(1000);
    assert!(each * 1000 < 100 << 20, "{each} bytes each");
}
