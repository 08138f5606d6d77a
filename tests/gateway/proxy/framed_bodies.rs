//! Where a request's body ends, and what follows it on its connection: each request has its own bytes and its own answer.

use std::io::Write;

use crate::models::fronts::chat_completions::{chunk, reply_body};
use crate::proxy::http2::{DATA, END_HEADERS, END_STREAM, HEADERS, Http2, POST, frame, head};
use crate::support::boot::Gateway;
use crate::support::client::Client;
use crate::support::script::{Gate, Reply};
use crate::support::upstream::{Received, Upstream};

/// A gateway in front of a provider and of a graph service, which both put the body that they got into their reply.
struct Framed {
    provider: Upstream,
    service: Upstream,
    gateway: Gateway,
}

impl Framed {
    /// `graph`: more keys of `[graph]`.
    fn new(graph: &str) -> Framed {
        let provider = Upstream::answering(|received| {
            let said = received.json()["messages"][0]["content"].to_string();
            Reply::json(200, reply_body().replace("\"hello\"", &said))
        });
        let service = Upstream::answering(|received: &Received| {
            let (method, body) = (&received.method, String::from_utf8_lossy(&received.body));
            let echo = serde_json::json!({"data": {"method": method, "body": body}});
            Reply::json(200, echo.to_string())
        });
        let more = format!(
            "[graph]\nupstream = \"{}\"\n{graph}\n\
             [[graph.tenants]]\nid = \"t1\"\nsingle_keys = [\"k1\"]\n",
            service.url()
        );
        let gateway = Gateway::with(&provider.url(), &provider.url(), &more);
        Framed {
            provider,
            service,
            gateway,
        }
    }
}

/// Sends a body in pieces, each a frame of its own, and returns the answer's body.
fn post(http2: &mut Http2, id: u32, block: &[u8], pieces: &[&str]) -> String {
    let mut frames = frame(HEADERS, END_HEADERS, id, block);
    let last = pieces.len() - 1;
    for (at, piece) in pieces.iter().enumerate() {
        let flags = if at == last { END_STREAM } else { 0 };
        frames.extend(frame(DATA, flags, id, piece.as_bytes()));
    }
    http2.stream.write_all(&frames).unwrap();
    let mut answer = Vec::new();
    loop {
        let next = http2.next().expect("an answer");
        if next.stream != id || !matches!(next.kind, HEADERS | DATA) {
            continue;
        }
        if next.kind == DATA {
            answer.extend(&next.payload);
        }
        if next.flags & END_STREAM != 0 {
            return String::from_utf8_lossy(&answer).into_owned();
        }
    }
}

/// The service's connection would have the answer to a request that nobody sent.
#[test]
fn an_empty_last_piece_ends_a_body_once() {
    let unbuffered = ("", "/content/v2?auth=k1");
    let replayed = ("cache = { ttl_s = 3600 }", "/content/v2?auth=k1");
    let uncounted = ("", "/other");
    for (graph, path) in [unbuffered, replayed, uncounted] {
        let framed = Framed::new(graph);
        let mut http2 = Http2::connect(&framed.gateway);
        let block = head(POST, path, &[("content-type", "application/json")]);
        let bodies: [&[&str]; 5] = [
            &["{\"query\":\"{ a }\"}", ""],
            &[""],
            &["{\"query\":", "", "\"{ b }\"}", "", ""],
            &["", "{\"query\":\"{ c }\"}"],
            &["{\"query\":\"{ d }\"}"],
        ];
        for (at, pieces) in bodies.iter().enumerate() {
            let id = 2 * u32::try_from(at).unwrap() + 1;
            let answer = post(&mut http2, id, &block, pieces);
            let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
            let expected = serde_json::json!({"method": "POST", "body": pieces.concat()});
            assert_eq!(answer["data"], expected, "{path} {graph} {pieces:?}");
        }
        let received = framed.service.requests();
        assert_eq!(received.len(), bodies.len(), "{path} {graph}");
        // A stream that comes before the connection is back has another one, but no connection broke off.
        let connections = received.iter().map(|it| it.connection);
        let last = connections.max().unwrap();
        assert!(last + 1 < bodies.len(), "{last} {path} {graph}");
    }
}

#[test]
fn an_empty_last_piece_ends_a_call_of_a_model_once() {
    let framed = Framed::new("");
    let mut http2 = Http2::connect(&framed.gateway);
    let key = format!("Bearer {}", framed.gateway.key);
    let fields = [
        ("authorization", key.as_str()),
        ("content-type", "application/json"),
    ];
    let block = head(POST, "/v1/chat/completions", &fields);
    for (id, said) in [(1, "one"), (3, "two"), (5, "three")] {
        let body =
            format!(r#"{{"model":"chat","messages":[{{"role":"user","content":"{said}"}}]}}"#);
        let answer = post(&mut http2, id, &block, &["", &body, "", ""]);
        let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(answer["choices"][0]["message"]["content"], said);
    }
    assert_eq!(framed.provider.requests().len(), 3);
}

/// Returns a chat call that says these words, as raw bytes.
fn call(gateway: &Gateway, id: &str, said: &str) -> String {
    let body = serde_json::json!({
        "model": "chat", "messages": [{"role": "user", "content": said}],
    });
    let body = body.to_string();
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nX-Request-Id: {id}\r\nContent-Length: {}\r\n\r\n{body}",
        gateway.key,
        body.len()
    )
}

/// Returns what the model says in the next answer.
fn said(client: &mut Client) -> String {
    let answer = client.answer();
    assert_eq!(answer.status(), 200, "{}", answer.text());
    let said = answer.json()["choices"][0]["message"]["content"].clone();
    said.as_str().unwrap().to_owned()
}

#[test]
fn calls_that_come_in_one_piece_are_answered_in_order_and_charged_once() {
    let framed = Framed::new("");
    let long = "long ".repeat(4_000);
    let words = ["one", long.as_str(), "three", long.as_str(), "five"];
    let calls = words.iter().enumerate();
    let calls: String = calls
        .map(|(at, said)| call(&framed.gateway, &format!("call-{at}"), said))
        .collect();
    let mut client = Client::connect(framed.gateway.address());
    client.send_bytes(calls);
    for (at, word) in words.iter().enumerate() {
        assert_eq!(said(&mut client), *word);
        let line = framed.gateway.log_line(&format!("call-{at}"));
        assert_eq!(line["outcome"], "ok", "{line}");
    }
    assert_eq!(framed.provider.requests().len(), words.len());
}

#[test]
fn a_call_that_comes_while_another_runs_waits_for_its_end() {
    let gate = Gate::default();
    let opened = gate.clone();
    let provider = Upstream::answering(move |received| match received.json()["stream"] == true {
        true => Reply::stream()
            .event(&chunk(serde_json::json!({"content": "first"}), None))
            .wait(&opened)
            .event(&chunk(
                serde_json::json!({"content": " and last"}),
                Some("stop"),
            ))
            .event("[DONE]")
            .end(),
        false => Reply::json(200, reply_body()),
    });
    let gateway = Gateway::between(&provider.url(), &provider.url());
    let second = call(&gateway, "second", "Hi");
    let stream = call(&gateway, "first", "Hi").replace("\"model\"", "\"stream\":true,\"model\"");
    let (head, body) = stream.split_once("\r\n\r\n").unwrap();
    let (before, _) = head.rsplit_once("Content-Length").unwrap();
    let mut client = Client::connect(gateway.address());
    client.send_bytes(format!(
        "{before}Content-Length: {}\r\n\r\n{body}",
        body.len()
    ));
    let head = client.head();
    assert_eq!(head.status, 200);
    let mut text = String::from_utf8(client.chunk().unwrap().bytes).unwrap();
    // The first has content and is not over: in pieces, so that several reads find something early.
    for piece in second.as_bytes().chunks(100) {
        client.send_bytes(piece);
    }
    gate.open();
    while let Some(chunk) = client.chunk() {
        text.push_str(&String::from_utf8(chunk.bytes).unwrap());
    }
    assert!(text.contains("first") && text.contains(" and last") && text.contains("[DONE]"));
    assert_eq!(said(&mut client), "hello");
    for id in ["first", "second"] {
        assert_eq!(gateway.log_line(id)["outcome"], "ok");
    }
    assert_eq!(provider.requests().len(), 2);
}
