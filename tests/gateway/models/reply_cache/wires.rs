//! One stored reply serves streams and whole responses, whatever the wire of its provider.

use super::*;
use crate::support::scripted;
use crate::support::sse;

const PROVIDERS: [&str; 4] = ["chatty", "items", "blocks", "parts"];

/// A gateway in front of a provider that speaks every wire.
fn gateway(upstream: &Upstream) -> Gateway {
    let url = upstream.url();
    let key = "keys = [{ env = \"KEY\" }]";
    let toml = format!(
        "[providers.chatty]\nkind = \"openai-compatible\"\nbase_url = \"{url}/v1\"\nkeys = []\n\
         [providers.items]\nkind = \"openai\"\nbase_url = \"{url}/v1\"\n{key}\n\
         [providers.blocks]\nkind = \"anthropic\"\nbase_url = \"{url}\"\n{key}\n\
         [providers.parts]\nkind = \"google\"\nbase_url = \"{url}\"\n{key}\n"
    );
    let models: Vec<String> = PROVIDERS
        .iter()
        .map(|name| {
            let wire = if *name == "items" { "wire = \"responses\"\n" } else { "" };
            format!(
                "[[models]]\nid = \"{name}\"\n[[models.providers]]\nprovider = \"{name}\"\nname = \"up\"\n{wire}\
                 input_price = \"1\"\noutput_price = \"2\"\n"
            )
        })
        .collect();
    let gateway = Gateway::start_with_env(&toml, &models.join(""), &[("KEY", "sk-platform-1")]);
    gateway.cache_for(3600);
    gateway
}

fn body(model: &str, is_stream: bool, has_tools: bool, content: &str) -> String {
    let mut body = json!({"model": model, "stream": is_stream, "messages": [{"role": "user", "content": content}]});
    if has_tools {
        body["tools"] = json!([{"type": "function", "function": {"name": "get_weather",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}]);
    }
    body.to_string()
}

/// What an answer says, however it came.
fn said(answer: &Answer, is_stream: bool) -> Value {
    if !is_stream {
        let body = answer.json();
        let choice = &body["choices"][0];
        let calls = choice["message"]["tool_calls"].as_array();
        let calls: Vec<Value> = calls
            .into_iter()
            .flatten()
            .map(|call| call["function"].clone())
            .collect();
        let content = choice["message"]["content"].as_str().unwrap_or_default();
        return json!([content, calls, choice["finish_reason"], tokens(&body)]);
    }
    let events = sse::parse(&answer.body);
    assert!(events.is_done());
    let chunks = events.json();
    let mut calls: Vec<Value> = Vec::new();
    let mut finish = Value::Null;
    for choice in chunks.iter().map(|chunk| &chunk["choices"][0]) {
        for call in choice["delta"]["tool_calls"]
            .as_array()
            .into_iter()
            .flatten()
        {
            if call["id"].is_string() {
                calls.push(json!({"name": call["function"]["name"], "arguments": ""}));
            }
            let last = calls.last_mut().unwrap();
            let arguments = last["arguments"].as_str().unwrap().to_owned();
            let more = call["function"]["arguments"].as_str().unwrap_or_default();
            last["arguments"] = (arguments + more).into();
        }
        if choice["finish_reason"].is_string() {
            finish = choice["finish_reason"].clone();
        }
    }
    json!([
        events.content(),
        calls,
        finish,
        tokens(chunks.last().unwrap())
    ])
}

fn tokens(body: &Value) -> Value {
    without(body["usage"].clone(), &["/cost", "/cost_details"])
}

#[test]
fn streams_and_whole_responses_are_replayed_from_each_other_on_every_wire() {
    let upstream = scripted::provider();
    let gateway = gateway(&upstream);
    for model in PROVIDERS {
        for has_tools in [false, true] {
            for was_stream in [false, true] {
                let before = upstream.requests().len();
                let content = format!("{model} {was_stream}");
                let ask = |is_stream| gateway.chat(body(model, is_stream, has_tools, &content));
                let answer = ask(was_stream);
                assert!(!is_hit(&answer), "{model}");
                let expected = said(&answer, was_stream);
                assert_ne!((&expected[0], &expected[1]), (&json!(""), &json!([])));
                for is_stream in [false, true, was_stream] {
                    let replay = ask(is_stream);
                    assert!(is_hit(&replay), "{model} {was_stream} {is_stream}");
                    assert_eq!(
                        said(&replay, is_stream),
                        expected,
                        "{model} {was_stream} {is_stream}"
                    );
                    let kind = if is_stream {
                        "text/event-stream; charset=utf-8"
                    } else {
                        "application/json"
                    };
                    assert_eq!(replay.header("content-type"), Some(kind));
                }
                assert_eq!(upstream.requests().len(), before + 1);
            }
        }
    }
}

#[test]
fn a_replayed_stream_keeps_its_pieces_and_ends_as_a_stream_does() {
    let first = Upstream::always(crate::models::fronts::chat_completions::stream());
    let gateway = caching(&first);
    let (answer, replay) = (gateway.chat(STREAM), gateway.chat(STREAM));
    assert!(!is_hit(&answer) && is_hit(&replay));
    let chunks = |answer: &Answer| -> Vec<Value> {
        let events = answer.events();
        assert!(events.is_done());
        let chunks = events.json().into_iter();
        chunks.map(|chunk| without(chunk, &OWN)).collect()
    };
    assert_eq!(chunks(&answer), chunks(&replay));
    let last = replay.events().json().pop().unwrap();
    assert_eq!(last["metadata"]["cached"], true);
    assert_eq!(last["usage"]["cost"], 0);
    let ids: Vec<_> = replay
        .events()
        .json()
        .into_iter()
        .map(|chunk| chunk["id"].clone())
        .collect();
    assert!(ids.iter().all(|id| *id == ids[0]));
    // A client that asks for a usage chunk gets one without choices.
    let asks = STREAM.replace(
        "\"stream\":true",
        r#""stream":true,"stream_options":{"include_usage":true}"#,
    );
    let replay = gateway.chat(asks);
    assert!(is_hit(&replay));
    assert_eq!(replay.events().json().pop().unwrap()["choices"], json!([]));
}

#[test]
fn embeddings_are_replayed() {
    let first = Upstream::always(crate::models::fronts::embeddings::vectors());
    let models = "[[models]]\nid = \"vectors\"\ntype = \"embedding\"\n[[models.providers]]\nprovider = \"first\"\nname = \"v\"\ninput_price = \"2\"\n";
    let toml = format!(
        "[providers.first]\nkind = \"openai-compatible\"\nbase_url = \"{}/v1\"\nkeys = []\n",
        first.url()
    );
    let gateway = Gateway::start(&toml, models);
    gateway.cache_for(3600);
    let request = |user: &str| {
        let body = json!({"model": "vectors", "input": ["one", "two"], "user": user});
        Ask::post("/v1/embeddings", body.to_string()).key(&gateway.key)
    };
    let answer = ask(gateway.address(), &request("a"));
    let replay = ask(gateway.address(), &request("b"));
    assert!(!is_hit(&answer) && is_hit(&replay));
    assert_eq!(answer.json(), replay.json());
    assert_eq!(first.requests().len(), 1);
}
