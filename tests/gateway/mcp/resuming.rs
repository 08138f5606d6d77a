//! Calls whose clients lose their connections: they go on, and a client that comes back gets the answer. Source: docs/mcp.md.

use std::io::Write;
use std::time::Duration;

use serde_json::{Value, json};

use super::running::{cancelled, hi, in_two, messages_of, rest, said, take_back, watched};
use super::sessions::{SESSION, begin, initialize};
use super::{code, rpc};
use crate::ledger::used;
use crate::proxy::http2::{
    DATA, END_HEADERS, END_STREAM, HEADERS, Http2, POST, RST_STREAM, frame, head,
};
use crate::support::ask::Ask;
use crate::support::boot::{Gateway, create_key};
use crate::support::client::{Client, ask};
use crate::support::script::{Cut, Gate, Reply};
use crate::support::sse;
use crate::support::stays;
use crate::support::upstream::Upstream;

/// Sends a call, and returns its connection with the id of its first event.
fn begun(gateway: &Gateway, call: &Ask) -> (Client, String) {
    let mut client = Client::connect(gateway.address());
    client.send(call);
    assert_eq!(client.head().status, 200);
    let first = String::from_utf8(client.chunk().unwrap().bytes).unwrap();
    let id = ids(&first)[0].to_owned();
    (client, id)
}

fn ids(text: &str) -> Vec<&str> {
    let lines = text.lines();
    lines.filter_map(|line| line.strip_prefix("id: ")).collect()
}

/// A client that comes back.
fn back(gateway: &Gateway, id: &str) -> Ask {
    Ask::get("/mcp")
        .key(&gateway.key)
        .header("Accept", "text/event-stream")
        .header("MCP-Protocol-Version", "2025-11-25")
        .header("Last-Event-ID", id)
}

fn resumed(gateway: &Gateway, id: &str) -> Client {
    let mut client = Client::connect(gateway.address());
    client.send(&back(gateway, id));
    let head = client.head();
    assert_eq!(head.status, 200);
    assert_eq!(head.header("cache-control"), Some("no-store"));
    client
}

/// Source: model-gateway 1
#[test]
fn a_lost_connection_is_no_cancel_and_its_client_gets_the_answer() {
    let gate = Gate::default();
    let slow = Upstream::always(in_two(&gate));
    let gateway = Gateway::between(&slow.url(), &slow.url());
    let session = begin(&gateway, &gateway.key);
    let call = watched(&gateway)
        .header(SESSION, &session)
        .header("x-request-id", "lost");
    let (client, first) = begun(&gateway, &call);
    slow.wait_requests(1);
    drop(client);
    let mut client = resumed(&gateway, &first);
    // What has come meanwhile is told at once.
    let told = String::from_utf8(client.chunk().unwrap().bytes).unwrap();
    assert!(told.contains("notifications/progress"), "{told}");
    assert!(!slow.is_closed(0));
    // It may be lost again, also by several who listen.
    let seen = ids(&told)[0].to_owned();
    let mut other = resumed(&gateway, &first);
    drop(client);
    let mut client = resumed(&gateway, &seen);
    gate.open();
    for answer in [rest(&mut client), rest(&mut other)] {
        let result = answer.last().unwrap();
        assert_eq!((said(result), &result["id"]), ("hello", &json!(7)));
    }
    assert_eq!(gateway.log_line("lost")["outcome"], "ok");
    assert_eq!(slow.requests().len(), 1);
    used(&gateway, "0.0035");
    // It is kept for a while, and nothing comes behind it.
    let again = ask(
        gateway.address(),
        &back(&gateway, &first).header(SESSION, &session),
    );
    let text = again.text().to_owned();
    assert_eq!(said(messages_of(again.events()).last().unwrap()), "hello");
    let last = ids(&text).last().copied().unwrap().to_owned();
    assert_eq!(ask(gateway.address(), &back(&gateway, &last)).text(), "");
}

#[test]
fn a_stream_of_http2_that_is_reset_is_a_lost_connection_too() {
    let gate = Gate::default();
    let slow = Upstream::always(in_two(&gate));
    let gateway = Gateway::between(&slow.url(), &slow.url());
    let (mut client, key) = (Http2::connect(&gateway), format!("Bearer {}", gateway.key));
    let fields = [
        ("authorization", &*key),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2025-11-25"),
    ];
    let params = json!({"name": "chat", "arguments": hi(), "_meta": {"progressToken": "p"}});
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
    let sent = [
        frame(HEADERS, END_HEADERS, 1, &head(POST, "/mcp", &fields)),
        frame(DATA, END_STREAM, 1, body.to_string().as_bytes()),
    ];
    client.stream.write_all(&sent.concat()).unwrap();
    let first = loop {
        let next = client.next().expect("an event");
        if next.kind == DATA && !next.payload.is_empty() {
            break String::from_utf8(next.payload).unwrap();
        }
    };
    slow.wait_requests(1);
    let cancel = 8_u32.to_be_bytes();
    client
        .stream
        .write_all(&frame(RST_STREAM, 0, 1, &cancel))
        .unwrap();
    let mut client = resumed(&gateway, ids(&first)[0]);
    assert!(!slow.is_closed(0));
    gate.open();
    assert_eq!(said(rest(&mut client).last().unwrap()), "hello");
}

#[test]
fn only_the_key_of_a_call_resumes_it() {
    let gate = Gate::default();
    let slow = Upstream::always(in_two(&gate));
    let gateway = Gateway::between(&slow.url(), &slow.url());
    let (mut client, id) = begun(&gateway, &watched(&gateway));
    let other = gateway.change(create_key);
    let (stream, number) = id.rsplit_once('-').unwrap();
    let foreign = back(&gateway, &id).without("Authorization");
    for (request, expected) in [
        (foreign.clone(), (401, json!(-32001))),
        (foreign.key(&other), (400, json!(-32600))),
        (
            back(&gateway, &format!("0{stream}-{number}")),
            (400, json!(-32600)),
        ),
        (
            back(&gateway, &id).header(SESSION, "x"),
            (404, json!(-32000)),
        ),
    ] {
        let answer = ask(gateway.address(), &request);
        assert_eq!(code(&answer), expected, "{}", answer.text());
    }
    gate.open();
    assert_eq!(said(rest(&mut client).last().unwrap()), "hello");
    // A stream that is no answer to a call is that of the session.
    let answer = ask(gateway.address(), &back(&gateway, "0123456789abcdef"));
    assert_eq!(code(&answer), (400, json!(-32600)));
    assert!(
        answer.text().contains("Mcp-Session-Id"),
        "{}",
        answer.text()
    );
}

#[test]
fn a_call_that_nobody_resumes_ends_as_if_its_client_had_left() {
    let silent = Upstream::always(Reply::hang());
    let more = "[mcp]\nresume_seconds = 1\n";
    let gateway = Gateway::with(&silent.url(), &silent.url(), more);
    let call = watched(&gateway).header("x-request-id", "given-up");
    let (client, id) = begun(&gateway, &call);
    silent.wait_requests(1);
    drop(client);
    // While somebody listens it goes on, however long.
    let mut listener = resumed(&gateway, &id);
    assert!(!silent.is_closed(0));
    stays("it goes on", Duration::from_millis(1500), || {
        let told = ask(gateway.address(), &rpc(&gateway, "ping", json!({})));
        told.status() == 200 && !silent.is_closed(0)
    });
    drop(listener);
    silent.wait_closed(0);
    listener = Client::connect(gateway.address());
    let line = gateway.log_line("given-up");
    // One that leaves a call that cannot be resumed.
    let plain = rpc(
        &gateway,
        "tools/call",
        json!({"name": "chat", "arguments": hi()}),
    );
    listener.send(&plain.header("x-request-id", "left"));
    silent.wait_requests(2);
    drop(listener);
    silent.wait_closed(1);
    let left = gateway.log_line("left");
    for member in ["outcome", "cost", "used_model", "tool"] {
        assert_eq!(line[member], left[member], "{member}");
    }
    assert_eq!(line["outcome"], "client_gone");
    let answer = ask(gateway.address(), &back(&gateway, &id));
    assert_eq!(code(&answer), (400, json!(-32600)), "{}", answer.text());
}

#[test]
fn a_call_is_taken_back_also_while_its_connection_is_lost() {
    let silent = Upstream::always(Reply::hang());
    let gateway = Gateway::between(&silent.url(), &silent.url());
    let (client, id) = begun(&gateway, &watched(&gateway));
    silent.wait_requests(1);
    drop(client);
    let mut listener = resumed(&gateway, &id);
    take_back(&gateway, &cancelled(&gateway, json!(7)));
    silent.wait_closed(0);
    assert_eq!(rest(&mut listener), Vec::<Value>::new());
}

#[test]
fn why_a_call_failed_is_kept_too() {
    let gate = Gate::default();
    let breaking = Upstream::always(in_two(&gate).cut(200, Cut::Close));
    let gateway = Gateway::between(&breaking.url(), &breaking.url());
    let (client, id) = begun(&gateway, &watched(&gateway));
    breaking.wait_requests(1);
    drop(client);
    let mut client = resumed(&gateway, &id);
    gate.open();
    let messages = rest(&mut client);
    assert_eq!(messages.last().unwrap()["result"]["isError"], true);
}

#[test]
fn what_cannot_be_resumed_ends_with_its_connection() {
    let silent = Upstream::always(Reply::hang());
    let keepalive = "[routing]\nkeepalive_s = 1\n";
    let off = format!("{keepalive}[mcp]\nresume_seconds = 0\n");
    // Where each request stands for itself, its stream is its call.
    let params = json!({"name": "chat", "arguments": hi(), "_meta": {"progressToken": "p",
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}}});
    let stateless = |gateway: &Gateway| {
        rpc(gateway, "tools/call", params.clone())
            .without("MCP-Protocol-Version")
            .header("MCP-Protocol-Version", "2026-07-28")
            .header("Mcp-Method", "tools/call")
            .header("Mcp-Name", "chat")
    };
    let cases = [(keepalive, true), (&*off, false)];
    for (number, (more, is_stateless)) in cases.into_iter().enumerate() {
        let gateway = Gateway::with(&silent.url(), &silent.url(), more);
        let call = if is_stateless {
            stateless(&gateway)
        } else {
            watched(&gateway)
        };
        let mut client = Client::connect(gateway.address());
        client.send(&call);
        client.head();
        let first = client.chunk().unwrap().bytes;
        assert_eq!(sse::parse(&first).comments(), ["keepalive"]);
        drop(client);
        silent.wait_closed(number);
    }
}

#[test]
fn older_clients_get_ids_and_no_event_without_a_message() {
    let gate = Gate::default();
    let slow = Upstream::always(in_two(&gate));
    let gateway = Gateway::between(&slow.url(), &slow.url());
    let begun = ask(
        gateway.address(),
        &initialize("2025-06-18").key(&gateway.key),
    );
    let session = begun.header(SESSION).unwrap();
    let call = watched(&gateway).without("MCP-Protocol-Version");
    let mut client = Client::connect(gateway.address());
    client.send(&call.header(SESSION, session));
    client.head();
    let first = String::from_utf8(client.chunk().unwrap().bytes).unwrap();
    assert!(first.contains("notifications/progress"), "{first}");
    let id = ids(&first)[0].to_owned();
    drop(client);
    let mut client = resumed(&gateway, &id);
    gate.open();
    assert_eq!(said(rest(&mut client).last().unwrap()), "hello");
}

/// Where the answer is there before the beginning was written, it comes behind it all the same.
#[test]
fn every_stream_of_2025_11_25_begins_with_an_event_to_resume_from() {
    let upstream = Upstream::always(crate::models::fronts::chat_completions::reply());
    let gateway = Gateway::between(&upstream.url(), &upstream.url());
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let (address, call) = (gateway.address(), watched(&gateway));
            std::thread::spawn(move || {
                for _ in 0..10 {
                    let answer = ask(address, &call);
                    let events = answer.events().items;
                    let text = answer.text();
                    assert!(ids(text)[0].ends_with("-0"), "{text}");
                    assert!(events.len() >= 2 && text.contains("hello"), "{text}");
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}
