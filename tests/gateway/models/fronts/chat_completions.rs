//! `POST /v1/chat/completions`: the upstream request and the response.

use serde_json::{Value, json};

use crate::support::boot::Gateway;
use crate::support::client::Client;
use crate::support::script::Reply;
use crate::support::upstream::Upstream;

pub fn reply() -> Reply {
    Reply::json(200, reply_body())
}

pub fn reply_body() -> String {
    json!({
        "id": "chatcmpl-up", "object": "chat.completion", "created": 5, "model": "chat-at-first-2026",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100,
                  "prompt_tokens_details": {"cached_tokens": 400}},
    }).to_string()
}

pub fn chunk(delta: Value, finish: Option<&str>) -> String {
    json!({"id": "chatcmpl-up", "object": "chat.completion.chunk", "created": 5, "model": "m",
           "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
    .to_string()
}

pub fn usage() -> String {
    json!({"id": "chatcmpl-up", "object": "chat.completion.chunk", "created": 5, "model": "m", "choices": [],
           "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}}).to_string()
}

pub fn stream() -> Reply {
    let events = [
        chunk(json!({"role": "assistant", "content": ""}), None),
        chunk(json!({"content": "hel"}), None),
        chunk(json!({"content": "lo"}), None),
        chunk(json!({}), Some("stop")),
        usage(),
        "[DONE]".to_owned(),
    ];
    Reply::sse(events.iter().map(String::as_str))
}

pub const PLAIN: &str = r#"{"model":"chat","messages":[{"role":"user","content":"Hi"}]}"#;
pub const STREAM: &str =
    r#"{"model":"chat","stream":true,"messages":[{"role":"user","content":"Hi"}]}"#;

/// Contract: model-gateway 4 POST /v1/chat/completions
/// Contract: model-gateway 2.5 id
/// Contract: model-gateway 2.5 created
/// Contract: model-gateway 2.5 choices[]
/// Contract: model-gateway 2.5 choices[].message
/// Contract: model-gateway 2.5 usage
/// Contract: model-gateway 2.5 metadata
#[test]
fn a_whole_response_has_everything_the_contract_requires() {
    let (first, second) = (Upstream::always(reply()), Upstream::always(reply()));
    let gateway = Gateway::between(&first.url(), &second.url());
    let answer = gateway.chat(PLAIN);
    let body = answer.json();
    assert_eq!(answer.status(), 200, "{body}");
    assert_eq!(
        (&body["id"], &body["object"], &body["model"]),
        (
            &"chatcmpl-up".into(),
            &"chat.completion".into(),
            &"first/chat".into()
        )
    );
    assert_eq!(body["choices"][0]["message"]["content"], "hello");
    assert_eq!(body["choices"][0]["finish_reason"], "stop");
    assert_eq!(
        json!([
            body["created"],
            body["choices"][0]["index"],
            body["choices"][0]["message"]["role"]
        ]),
        json!([5, 0, "assistant"])
    );
    let counts = [
        ("prompt_tokens", 1000),
        ("completion_tokens", 100),
        ("total_tokens", 1100),
    ];
    for (key, count) in counts {
        assert_eq!(body["usage"][key], count, "{key}");
    }
    let metadata = &body["metadata"];
    for key in [
        "request_id",
        "requested_model",
        "used_model",
        "used_provider",
        "underlying_used_model",
    ] {
        assert!(metadata[key].is_string(), "{key}");
    }
    assert!(
        metadata
            .as_object()
            .unwrap()
            .contains_key("requested_provider")
    );
    assert_eq!(
        (
            &metadata["used_provider"],
            &metadata["underlying_used_model"]
        ),
        (&"first".into(), &"chat-at-first".into())
    );
    let routing = &metadata["routing"];
    assert_eq!(
        (
            &routing[0]["provider"],
            &routing[0]["succeeded"],
            &routing[0]["error_type"]
        ),
        (&"first".into(), &true.into(), &"none".into())
    );
    assert_eq!(
        answer.header("x-request-id"),
        metadata["request_id"].as_str()
    );
    assert_eq!(answer.header("request-id"), answer.header("x-request-id"));
    assert!(second.requests().is_empty());
}

/// Contract: model-gateway 2.5 usage
/// Contract: model-gateway 2.5 usage.cost_details
#[test]
fn the_cost_is_written_from_the_decimal() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    let answer = gateway.chat(PLAIN);
    // 600 uncached at 2.5, 400 cached at 1.25 and 100 of completion at 10 USD per million.
    for part in [
        r#""cost":0.003,"#,
        r#""input_cost":0.0015"#,
        r#""cached_input_cost":0.0005"#,
        r#""output_cost":0.001"#,
        r#""total_cost":0.003"#,
    ] {
        assert!(answer.text().contains(part), "{part} in {}", answer.text());
    }
    let details = answer.json()["usage"]["cost_details"].clone();
    for part in [
        "upstream_inference_cost",
        "upstream_inference_prompt_cost",
        "upstream_inference_completions_cost",
        "cache_write_input_cost",
        "request_cost",
        "web_search_cost",
        "image_input_cost",
        "image_output_cost",
        "audio_input_cost",
        "data_storage_cost",
    ] {
        assert!(details[part].is_number(), "{part}: {details}");
    }
    assert_eq!(details.as_object().unwrap().len(), 14);
}

/// Contract: model-gateway 2.1 messages
/// Contract: model-gateway 2.1 temperature
#[test]
fn the_body_goes_up_as_it_came_but_for_what_must_change() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    let body = r#"{ "model" : "chat", "messages":[{"role":"user","content":"H\u00e9 \ud83d\ude00","name":"n"}], "seed": 123456789012345678901234567890, "x_unknown": {"a":[1.0]}, "routing":"price", "temperature": 0.70, "free_models_only": false }"#;
    let answer = gateway.chat(body);
    assert_eq!(answer.status(), 200, "{}", answer.text());
    let sent = String::from_utf8(first.request(0).body.clone()).unwrap();
    for kept in [
        r#""messages":[{"role":"user","content":"H\u00e9 \ud83d\ude00","name":"n"}]"#,
        r#""seed": 123456789012345678901234567890"#,
        r#""x_unknown": {"a":[1.0]}"#,
        r#""temperature": 0.70"#,
    ] {
        assert!(sent.contains(kept), "{kept} in {sent}");
    }
    let sent: Value = serde_json::from_str(&sent).unwrap();
    assert_eq!(sent["model"], "chat-at-first");
    assert!(sent.get("routing").is_none() && sent.get("free_models_only").is_none());
}

#[test]
fn nothing_of_the_clients_head_reaches_the_provider() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    let ask = gateway
        .chat_ask(PLAIN)
        .header("Cookie", "a=b")
        .header("X-Forwarded-For", "1.2.3.4")
        .header("Accept-Encoding", "gzip")
        .header("Connection", "x-secret")
        .header("X-Secret", "s");
    assert_eq!(
        crate::support::client::ask(gateway.address(), &ask).status(),
        200
    );
    let sent = first.request(0);
    assert_eq!(
        (sent.method.as_str(), sent.path.as_str()),
        ("POST", "/v1/chat/completions")
    );
    for gone in [
        "cookie",
        "x-forwarded-for",
        "x-secret",
        "authorization",
        "x-api-key",
    ] {
        assert_eq!(sent.header(gone), None, "{gone}");
    }
    assert_eq!(
        sent.header("host"),
        Some(first.address().to_string().as_str())
    );
    assert_eq!(sent.header("accept-encoding"), Some("identity"));
}

/// Contract: model-gateway 8 4
#[test]
fn nothing_of_the_providers_head_reaches_the_client() {
    let body = r#"{"id":"x","created":1,"choices":[{"index":0,"message":{"content":"a"},"finish_reason":"stop"}]}"#;
    let reply = Reply::whole(
        200,
        &[
            ("content-type", "application/json"),
            ("x-ratelimit-remaining-requests", "5"),
            ("set-cookie", "a=b"),
            ("openai-organization", "org-1"),
            ("server", "cloudflare"),
            ("retry-after", "9"),
            ("x-request-id", "theirs"),
        ],
        body,
    );
    let first = Upstream::always(reply);
    let gateway = Gateway::between(&first.url(), &first.url());
    let answer = gateway.chat(PLAIN);
    for gone in [
        "x-ratelimit-remaining-requests",
        "set-cookie",
        "openai-organization",
        "server",
        "retry-after",
    ] {
        assert_eq!(answer.header(gone), None, "{gone}");
    }
    assert_ne!(answer.header("x-request-id"), Some("theirs"));
    assert_eq!(
        answer.header("content-length"),
        Some(answer.text().len().to_string().as_str())
    );
}

/// Contract: model-gateway 2.5 usage
#[test]
fn usage_is_estimated_and_marked_where_the_provider_reports_none() {
    let body = r#"{"id":"x","created":1,"choices":[{"index":0,"message":{"content":"12345678"},"finish_reason":"stop"}]}"#;
    let first = Upstream::always(Reply::json(200, body));
    let gateway = Gateway::between(&first.url(), &first.url());
    let usage = gateway.chat(PLAIN).json()["usage"].clone();
    assert_eq!(
        (&usage["info"], &usage["completion_tokens"]),
        (&"estimated".into(), &2.into())
    );
}

/// Contract: model-gateway 4 POST /v1/chat/completions
/// Contract: model-gateway 2.1 stream
/// Contract: model-gateway 2.5 created
/// Contract: model-gateway 6 1
/// Contract: model-gateway 6 2
#[test]
fn a_stream_ends_with_usage_and_metadata_and_done() {
    let first = Upstream::always(stream());
    let gateway = Gateway::between(&first.url(), &first.url());
    let answer = gateway.chat(STREAM);
    assert_eq!(answer.status(), 200);
    assert!(
        answer
            .header("content-type")
            .unwrap()
            .starts_with("text/event-stream")
    );
    let events = answer.events();
    assert!(events.is_done());
    assert_eq!(events.content(), "hello");
    let chunks = events.json();
    let last = chunks.last().unwrap();
    assert_eq!(last["usage"]["total_tokens"], 5);
    assert_eq!(last["metadata"]["used_provider"], "first");
    assert_eq!(
        last["choices"],
        json!([{"index": 0, "delta": {}, "finish_reason": null}])
    );
    for chunk in &chunks {
        assert_eq!(
            (&chunk["id"], &chunk["created"], &chunk["model"]),
            (&"chatcmpl-up".into(), &5.into(), &"first/chat".into())
        );
    }
    let sent = first.request(0).json();
    assert_eq!(sent["stream_options"]["include_usage"], true);
}

#[test]
fn the_usage_chunk_has_no_choices_where_the_client_asked_for_it() {
    let first = Upstream::always(stream());
    let gateway = Gateway::between(&first.url(), &first.url());
    let answer = gateway.chat(r#"{"model":"chat","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"Hi"}]}"#);
    assert_eq!(answer.events().json().last().unwrap()["choices"], json!([]));
}

#[test]
fn one_connection_serves_many_requests_of_both_kinds() {
    let first = Upstream::answering(|request| {
        if request.json()["stream"] == true {
            stream()
        } else {
            reply()
        }
    });
    let gateway = Gateway::between(&first.url(), &first.url());
    let mut client = Client::connect(gateway.address());
    for round in 0..4 {
        assert_eq!(
            client.ask(&gateway.chat_ask(PLAIN)).status(),
            200,
            "{round}"
        );
        assert!(
            client.ask(&gateway.chat_ask(STREAM)).events().is_done(),
            "{round}"
        );
    }
    assert_eq!(
        first.connections(),
        1,
        "the provider's connection is kept too"
    );
}

#[test]
fn a_body_of_twenty_megabytes_arrives_byte_by_byte() {
    let first = Upstream::always(reply());
    let gateway = Gateway::with(&first.url(), &first.url(), "");
    let text = "x\\n0123456789".repeat(1_500_000);
    let body = format!(r#"{{"messages":[{{"role":"user","content":"{text}"}}],"model":"chat"}}"#);
    let answer = gateway.chat(&body);
    assert_eq!(answer.status(), 200, "{}", answer.text());
    let sent = first.request(0).body.clone();
    assert_eq!(
        String::from_utf8(sent).unwrap(),
        body.replace("\"model\":\"chat\"", "\"model\":\"chat-at-first\"")
    );
}

#[test]
fn a_harmless_request_id_of_the_client_is_used() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    for (sent, is_kept) in [
        ("my-id_1.2", true),
        ("a b", false),
        (&"x".repeat(129), false),
    ] {
        let answer = crate::support::client::ask(
            gateway.address(),
            &gateway.chat_ask(PLAIN).header("x-request-id", sent),
        );
        assert_eq!(
            answer.header("x-request-id") == Some(sent),
            is_kept,
            "{sent}"
        );
    }
}
