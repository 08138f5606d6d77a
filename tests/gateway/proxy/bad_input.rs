//! Bad input: the right status, a message that names the field, `param`, no retry, and no upstream call.

use serde_json::json;

use crate::models::fronts::chat_completions::{PLAIN, reply};
use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::{Client, ask};
use crate::support::script::Reply;
use crate::support::upstream::Upstream;

fn with(member: &str) -> String {
    format!(r#"{{"model":"chat","messages":[{{"role":"user","content":"Hi"}}],{member}}}"#)
}

/// Contract: model-gateway 7 400
#[test]
fn wrong_fields_are_named_and_reach_no_provider() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    let cases: Vec<(String, u16, Option<&str>, &str)> = vec![
        (with(r#""temperature":"hot""#), 400, Some("temperature"), "hot"),
        (with(r#""n":0"#), 400, Some("n"), "128"),
        (with(r#""n":129"#), 400, Some("n"), "128"),
        (with(r#""n":1.5"#), 400, Some("n"), "integer"),
        (with(r#""model":"chat""#), 400, Some("model"), "twice"),
        (with(r#""mod\u0065l":"other""#), 400, Some("model"), "twice"),
        (with(r#""stream":"yes""#), 400, Some("stream"), "boolean"),
        (with(r#""tool_choice":"required""#), 400, Some("tool_choice"), "tools"),
        (with(r#""prompt":{"id":"x"}"#), 404, Some("prompt.id"), "no prompt"),
        (with(&format!(r#""x":{deep}"#)), 400, None, "128"),
        (with(r#""x":"\ud800""#), 400, None, "surrogate"),
        (r#"{"model":"chat","messages":[{"role":"wizard","content":"Hi"}]}"#.into(), 400, Some("messages[0].role"), "wizard"),
        (r#"{"model":"chat","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":5}}]}]}"#.into(), 400, Some("messages[0].content[0].image_url.url"), "string"),
        (r#"{"model":"chat","messages":[]}"#.into(), 400, Some("messages"), "empty"),
        (r#"{"model":"chat"}"#.into(), 400, Some("messages"), "a managed prompt"),
        (r#"{"model":"chat","messages":null}"#.into(), 400, Some("messages"), "missing"),
        ("{}".into(), 400, Some("messages"), "missing"),
        (r#"{"model":"nope","messages":[{"role":"user","content":"Hi"}]}"#.into(), 404, Some("model"), "nope"),
        (r#"{"model":"chat","messages":[{"role":"user","content":"Hi"#.into(), 400, None, "JSON"),
        ("".into(), 400, None, "JSON"),
        ("[]".into(), 400, Some("body"), "object"),
        ("null".into(), 400, Some("body"), "object"),
        ("hello".into(), 400, None, "JSON"),
    ];
    for (body, status, param, word) in cases {
        let answer = gateway.chat(&body);
        let error = answer.json()["error"].clone();
        let shown: String = body.chars().take(200).collect();
        assert_eq!(answer.status(), status, "{shown}: {error}");
        assert_eq!(error["param"].as_str(), param, "{shown}: {error}");
        assert!(
            error["message"].as_str().unwrap().contains(word),
            "{shown}: {error}"
        );
        assert_eq!(answer.header("x-should-retry"), Some("false"), "{shown}");
    }
    assert!(first.requests().is_empty());
}

/// Contract: model-gateway 7 413
#[test]
fn a_body_over_the_cap_is_413_by_its_length_and_by_its_chunks() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    let mut client = Client::connect(gateway.address());
    client.send_bytes(format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nContent-Length: 26214400\r\n\r\n",
        gateway.key
    ));
    let answer = client.answer();
    assert_eq!(
        (answer.status(), answer.json()["error"]["code"].clone()),
        (413, "request_too_large".into())
    );
    let small = Gateway::with(
        &first.url(),
        &first.url(),
        "[limits]\nbody_bytes = { chat = 1024 }",
    );
    let body = with(&format!(r#""user":"{}""#, "x".repeat(2000)));
    assert_eq!(
        ask(small.address(), &small.chat_ask(&body).chunked(100)).status(),
        413
    );
    assert!(first.requests().is_empty());
}

/// Contract: model-gateway 7 415
#[test]
fn another_media_type_or_an_encoding_is_415() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    for (name, value) in [("Content-Type", "text/plain"), ("Content-Encoding", "gzip")] {
        let request = gateway.chat_ask(PLAIN).without(name).header(name, value);
        assert_eq!(ask(gateway.address(), &request).status(), 415, "{name}");
    }
    assert_eq!(
        ask(
            gateway.address(),
            &gateway.chat_ask(PLAIN).without("Content-Type")
        )
        .status(),
        415
    );
    let charset = gateway
        .chat_ask(PLAIN)
        .without("Content-Type")
        .header("Content-Type", "application/json; charset=utf-8");
    assert_eq!(ask(gateway.address(), &charset).status(), 200);
}

/// Source: model-gateway 7
#[test]
fn unknown_paths_and_methods_have_different_errors() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    for (method, path, status, allow) in [
        ("GET", "/v1/chat/completions", 405, Some("POST")),
        ("PUT", "/v1/videos", 405, Some("POST, GET, HEAD")),
        ("POST", "/v1/models/a", 405, Some("GET, HEAD")),
        ("POST", "/v1/chat", 404, None),
        ("GET", "/metrics", 404, None),
        ("GET", "/v1/unknown", 404, None),
        ("GET", "/v1%2fmodels", 400, None),
        ("POST", "/", 405, Some("GET, HEAD")),
    ] {
        let answer = ask(gateway.address(), &Ask::new(method, path).key(&gateway.key));
        assert_eq!(answer.status(), status, "{method} {path}");
        assert_eq!(answer.header("allow"), allow, "{method} {path}");
        assert!(answer.json()["error"]["message"].is_string());
    }
    let posted = ask(gateway.admin(), &Ask::post("/metrics", "{}"));
    let told = (posted.status(), posted.header("allow"));
    assert_eq!(told, (405, Some("GET, HEAD")));
}

#[test]
fn expect_is_answered_before_the_body_is_sent() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    let answer = ask(
        gateway.address(),
        &gateway.chat_ask(PLAIN).header("Expect", "100-continue"),
    );
    assert_eq!((answer.status(), answer.informational.len()), (200, 1));
}

#[test]
fn a_refusal_asks_for_no_body() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    let mut client = Client::connect(gateway.address());
    client.send_bytes(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer wg_none\r\n\
         Content-Type: application/json\r\nContent-Length: 1000000\r\nExpect: 100-continue\r\n\r\n",
    );
    let answer = client.answer();
    assert_eq!((answer.status(), answer.informational.len()), (401, 0));
    assert!(first.requests().is_empty());
}

/// Source: docs/hostile-input.md 95.
#[test]
fn what_a_refused_body_holds_is_not_in_the_log() {
    const SECRET: &str = "sesame-7d1f";
    let text = "text".to_owned();
    let refusing = Upstream::always(Reply::json(
        400,
        format!(
            r#"{{"error": {{"message": "{SECRET} is not nice", "type": "invalid_request_error"}}}}"#
        ),
    ));
    let gateway = Gateway::between(&refusing.url(), &refusing.url());
    for (at, body) in [
        json!({"model": SECRET, "messages": [{"role": "user", "content": text}]}),
        json!({"model": "chat", "messages": [{"role": SECRET, "content": text}]}),
        json!({"model": "chat", "messages": [{"role": "user", "content": [{"type": SECRET}]}]}),
        json!({"model": "chat", "messages": [], "reasoning_effort": SECRET}),
        json!({"model": "chat", "messages": [{"role": "user", "content": text}], "service_tier": SECRET}),
        json!({"model": "chat", "messages": [{"role": "user", "content": text}], "routing": SECRET}),
        json!({"model": "chat", "messages": [{"role": "user", "content": SECRET}]}),
        json!({"model": "chat", "messages": [{"role": "user", "content": [
            {"type": "image_url", "image_url": {"url": format!("data:{SECRET};base64,AAAA")}}]}]}),
    ]
    .iter()
    .enumerate()
    {
        let id = format!("refused-{at}");
        let request = gateway.chat_ask(body.to_string());
        let answer = ask(gateway.address(), &request.header("X-Request-Id", &id));
        assert!((400..500).contains(&answer.status()), "{body}: {}", answer.text());
        let line = gateway.log_line(&id);
        assert!(line["error"]["message"].is_string(), "{line}");
        assert!(!line["error"].to_string().contains(SECRET), "{line}");
    }
}
