//! Calls that run: clients take them back, and are told how far they are.

use std::time::Duration;

use serde_json::{Value, json};

use super::sessions::{SESSION, begin};
use super::{code, rpc, tool};
use crate::ledger::used;
use crate::support::ask::Ask;
use crate::support::boot::{Gateway, MODELS, create_key};
use crate::support::client::{Answer, Client, End, ask};
use crate::support::script::{Cut, Gate, Reply};
use crate::support::sse;
use crate::support::upstream::Upstream;

const HELLO: &str = r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1000,"completion_tokens":100}}"#;

pub fn hi() -> Value {
    json!({"model": "chat", "messages": [{"role": "user", "content": "Hi"}]})
}

/// The call of a chat of a session.
fn chat(gateway: &Gateway, session: &str) -> Ask {
    tool(gateway, "chat", hi()).header(SESSION, session)
}

/// Tells that the request with this id is taken back.
pub fn cancelled(gateway: &Gateway, id: Value) -> Ask {
    let body = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id, "reason": "enough"}});
    rpc(gateway, "", json!({})).body(body.to_string())
}

pub fn take_back(gateway: &Gateway, notice: &Ask) {
    let told = ask(gateway.address(), notice);
    assert_eq!((told.status(), told.text()), (202, ""));
}

/// What a call has cost, and how it ended.
fn logged(gateway: &Gateway, request_id: &str) -> Value {
    let line = gateway.log_line(request_id);
    json!([
        line["outcome"],
        line["cost"],
        line["used_model"],
        line["tool"]
    ])
}

#[test]
fn a_call_that_is_taken_back_ends_as_if_its_client_had_left() {
    let silent = Upstream::always(Reply::hang());
    let gateway = Gateway::between(&silent.url(), &silent.url());
    let session = begin(&gateway, &gateway.key);
    let send = |id: &str| {
        let mut client = Client::connect(gateway.address());
        client.send(&chat(&gateway, &session).header("x-request-id", id));
        client
    };
    let left = send("left");
    silent.wait_requests(1);
    drop(left);
    silent.wait_closed(0);
    let mut cancelling = send("cancelled");
    silent.wait_requests(2);
    take_back(
        &gateway,
        &cancelled(&gateway, json!(7)).header(SESSION, &session),
    );
    silent.wait_closed(1);
    // What was taken back needs no answer.
    let answer = cancelling.answer();
    assert_eq!((answer.status(), answer.text()), (202, ""));
    let ends = ["left", "cancelled"].map(|id| logged(&gateway, id));
    assert_eq!(ends[0], ends[1]);
    assert_eq!(ends[1][0], "client_gone");
    // Its id is free again.
    let next = send("next");
    silent.wait_requests(3);
    drop(next);
}

#[test]
fn a_provider_that_bills_anyway_is_read_on_when_a_call_is_taken_back() {
    let gate = Gate::default();
    let slow = Upstream::always(in_two(&gate));
    let toml = format!(
        "[providers.first]\nkind = \"openai-compatible\"\nbase_url = \"{}/v1\"\nkeys = []\n\
         [providers.second]\nkind = \"openai-compatible\"\nbase_url = \"{}/v1\"\nkeys = []\n",
        slow.url(),
        slow.url()
    );
    let gateway = Gateway::start(&toml, &MODELS.replace(", \"cancellation\"", ""));
    for (number, call) in [tool(&gateway, "chat", hi()), watched(&gateway)]
        .iter()
        .enumerate()
    {
        let mut client = Client::connect(gateway.address());
        client.send(call);
        slow.wait_requests(number + 1);
        take_back(&gateway, &cancelled(&gateway, json!(7)));
        // The client is told at once; what the provider bills is known later.
        let answer = client.answer();
        assert!(!answer.text().contains("result") && !slow.is_closed(number));
    }
    gate.open();
    used(&gateway, "0.007");
}

#[test]
fn only_the_client_of_a_call_takes_it_back() {
    let gate = Gate::default();
    let waiting = Reply::chunked(200, &[("content-type", "application/json")]);
    let slow = Upstream::always(waiting.wait(&gate).chunk(HELLO).end());
    let gateway = Gateway::between(&slow.url(), &slow.url());
    let (own, other) = (begin(&gateway, &gateway.key), begin(&gateway, &gateway.key));
    let mut client = Client::connect(gateway.address());
    client.send(&chat(&gateway, &own));
    slow.wait_requests(1);
    let foreign_key = gateway.change(create_key);
    let of_other_key = cancelled(&gateway, json!(7))
        .without("Authorization")
        .key(&foreign_key);
    for notice in [
        cancelled(&gateway, json!(7)).header(SESSION, &other),
        cancelled(&gateway, json!("7")).header(SESSION, &own),
        cancelled(&gateway, json!(8)).header(SESSION, &own),
        cancelled(&gateway, Value::Null).header(SESSION, &own),
        cancelled(&gateway, json!(7)),
        of_other_key,
    ] {
        take_back(&gateway, &notice);
    }
    // An id is of one running request of a session; others may have the same.
    let answer = ask(gateway.address(), &chat(&gateway, &own));
    assert_eq!(code(&answer), (400, json!(-32600)), "{}", answer.text());
    assert!(answer.text().contains("id"), "{}", answer.text());
    let mut others = [
        chat(&gateway, &other),
        tool(&gateway, "chat", hi()),
        tool(&gateway, "chat", hi()),
    ]
    .map(|call| {
        let mut client = Client::connect(gateway.address());
        client.send(&call);
        client
    });
    slow.wait_requests(4);
    // Two clients of the key use the id beside each other: neither is taken back for the other.
    take_back(&gateway, &cancelled(&gateway, json!(7)));
    gate.open();
    assert_eq!(said(&client.answer().json()), "hello");
    for other in &mut others {
        assert_eq!(said(&other.answer().json()), "hello");
    }
}

#[test]
fn a_client_without_a_session_takes_its_call_back_too() {
    let silent = Upstream::always(Reply::hang());
    let gateway = Gateway::between(&silent.url(), &silent.url());
    let mut client = Client::connect(gateway.address());
    client.send(&tool(&gateway, "chat", hi()));
    silent.wait_requests(1);
    take_back(&gateway, &cancelled(&gateway, json!(7)));
    silent.wait_closed(0);
    assert_eq!(client.answer().status(), 202);
}

/// The messages of a stream; an event without one has an id alone.
pub fn messages_of(stream: sse::Stream) -> Vec<Value> {
    let data = stream.data().into_iter().filter(|data| !data.is_empty());
    data.map(|data| serde_json::from_str(data).unwrap())
        .collect()
}

/// Waits for the next message of a stream.
fn next_message(client: &mut Client) -> Value {
    loop {
        let chunk = client.chunk().expect("a message");
        let message = messages_of(sse::parse(chunk.bytes)).into_iter().next();
        if let Some(message) = message {
            return message;
        }
    }
}

/// The messages that are left of a stream.
pub fn rest(client: &mut Client) -> Vec<Value> {
    let mut rest = Vec::new();
    while let Some(chunk) = client.chunk() {
        rest.extend(chunk.bytes);
    }
    assert_eq!(client.end(), End::Complete);
    messages_of(sse::parse(rest))
}

/// What a result says.
pub fn said(message: &Value) -> &str {
    message["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or("nothing")
}

/// A chat that asks for progress.
pub fn watched(gateway: &Gateway) -> Ask {
    let params = json!({"name": "chat", "arguments": hi(), "_meta": {"progressToken": "p"}});
    rpc(gateway, "tools/call", params)
}

/// The messages of a stream, each an event of one line.
fn messages(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.status(), 200);
    assert_eq!(
        answer.header("content-type"),
        Some("text/event-stream; charset=utf-8")
    );
    assert_eq!(answer.header("x-accel-buffering"), Some("no"));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    messages_of(answer.events())
}

pub fn in_two(gate: &Gate) -> Reply {
    let (head, rest) = HELLO.split_at(40);
    let begun = Reply::chunked(200, &[("content-type", "application/json")]).chunk(head);
    begun.wait(gate).chunk(rest).end()
}

#[test]
fn progress_is_told_while_an_answer_comes() {
    let gate = Gate::default();
    let slow = Upstream::always(in_two(&gate));
    let gateway = Gateway::between(&slow.url(), &slow.url());
    let mut client = Client::connect(gateway.address());
    client.send(&watched(&gateway));
    let head = client.head();
    assert_eq!(
        head.header("content-type"),
        Some("text/event-stream; charset=utf-8")
    );
    // The first event has an id, and no message.
    let opening = String::from_utf8(client.chunk().unwrap().bytes).unwrap();
    let id = opening
        .strip_prefix("id: ")
        .and_then(|rest| rest.split_once('\n'));
    assert_eq!(id.map(|(_, rest)| rest), Some("retry: 3000\ndata:\n\n"));
    let told = next_message(&mut client);
    assert_eq!(told["method"], "notifications/progress");
    let params = json!({"progressToken": "p", "progress": 40, "message": "40 bytes of the model's answer have come"});
    assert_eq!(told["params"], params);
    gate.open();
    let rest = rest(&mut client);
    let result = rest.last().unwrap();
    assert_eq!((said(result), &result["id"]), ("hello", &json!(7)));
    // Who takes no events, or asks for no progress, gets one text; so does a call that is answered at once.
    let plain = watched(&gateway)
        .without("Accept")
        .header("Accept", "application/json");
    for request in [plain, tool(&gateway, "chat", hi())] {
        let answer = ask(gateway.address(), &request);
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert_eq!(said(&answer.json()), "hello");
    }
    let whole = messages(&ask(gateway.address(), &watched(&gateway)));
    assert_eq!(said(whole.last().unwrap()), "hello");
    let params = json!({"name": "chat", "arguments": hi(), "_meta": {"progressToken": {}}});
    let answer = ask(gateway.address(), &rpc(&gateway, "tools/call", params));
    assert_eq!(code(&answer), (200, json!(-32602)));
}

#[test]
fn a_provider_that_breaks_off_is_followed_by_the_next_and_progress_rises() {
    let gate = Gate::default();
    let breaking = in_two(&gate).cut(200, Cut::Close);
    let (first, second) = (Upstream::always(breaking), Upstream::always(in_two(&gate)));
    let gateway = Gateway::between(&first.url(), &second.url());
    let mut client = Client::connect(gateway.address());
    client.send(&watched(&gateway));
    client.head();
    let mut messages = vec![next_message(&mut client)];
    gate.open();
    messages.extend(rest(&mut client));
    let (result, told) = messages.split_last().unwrap();
    assert_eq!(said(result), "hello");
    let progress: Vec<u64> = told
        .iter()
        .map(|it| it["params"]["progress"].as_u64().unwrap())
        .collect();
    assert!(
        !progress.is_empty() && progress.is_sorted_by(|one, next| one < next),
        "{progress:?}"
    );
}

#[test]
fn a_stream_is_kept_alive_and_ends_with_a_result_that_says_why() {
    let silent = Upstream::always(Reply::hang());
    let more = "[routing]\nkeepalive_s = 1\ntotal_timeout_s = 3\ndeadline_s = 3";
    let gateway = Gateway::with(&silent.url(), &silent.url(), more);
    let answer = ask(
        gateway.address(),
        &watched(&gateway).header("x-request-id", "r-1"),
    );
    let messages = messages(&answer);
    assert!(!answer.events().comments().is_empty(), "{}", answer.text());
    assert_eq!(
        (messages.len(), &messages[0]["result"]["isError"]),
        (1, &json!(true))
    );
    assert_eq!(gateway.log_line("r-1")["outcome"], "failed");
    // A stream that is taken back ends without a result.
    let mut client = Client::connect(gateway.address());
    client.send(&watched(&gateway));
    client.head();
    take_back(&gateway, &cancelled(&gateway, json!(7)));
    let started = std::time::Instant::now();
    assert!(rest(&mut client).is_empty());
    let waited = started.elapsed();
    assert!(
        waited < Duration::from_secs(1),
        "it ends at once: {waited:?}"
    );
}
