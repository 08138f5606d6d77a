//! Mappings on the Responses wire, alone and beside mappings on the chat wire.

use serde_json::{Value, json};

use crate::models::exchange::streams::drain;
use crate::models::fronts::chat_completions::{PLAIN, STREAM, reply, stream};
use crate::support::boot::Gateway;
use crate::support::client::{Answer, Client};
use crate::support::script::{Gate, Reply};
use crate::support::upstream::{Received, Upstream};

/// `chat` on the Responses wire at `first` and on the chat wire at `second`, and `pair` the other way round.
const MODELS: &str = r#"
[[models]]
id = "chat"
[[models.providers]]
provider = "first"
name = "items-at-first"
wire = "responses"
input_price = "2.5"
cached_input_price = "1.25"
output_price = "10"
capabilities = ["streaming", "tools", "parallel_tools", "forced_tools", "reasoning", "n", "cancellation"]
[[models.providers]]
provider = "second"
name = "chat-at-second"
wire = "chat"
input_price = "5"
output_price = "20"
capabilities = ["streaming", "tools", "reasoning", "n", "cancellation"]
[[models]]
id = "pair"
[[models.providers]]
provider = "first"
name = "chat-at-first"
input_price = "1"
output_price = "1"
[[models.providers]]
provider = "first"
name = "items-at-first"
wire = "responses"
input_price = "2"
output_price = "2"
"#;

fn gateway(first: &Upstream, second: &Upstream) -> Gateway {
    let toml = format!(
        "[providers.first]\nkind = \"openai\"\nbase_url = \"{}/v1\"\nkeys = [{{ env = \"FIRST_KEY\" }}]\n\
         [providers.second]\nkind = \"openai-compatible\"\nbase_url = \"{}/v1\"\nkeys = []\n",
        first.url(),
        second.url()
    );
    Gateway::start_with_env(&toml, MODELS, &[("FIRST_KEY", "sk-first")])
}

fn message(text: &str) -> Value {
    json!({"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": text, "annotations": []}]})
}

fn reasoning() -> Value {
    json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "gAAA+/=="})
}

fn call() -> Value {
    json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": "{\"a\":1}"})
}

fn response(output: Value) -> Value {
    json!({"id": "resp_1", "object": "response", "created_at": 5, "status": "completed", "error": null, "output": output,
           "usage": {"input_tokens": 1000, "input_tokens_details": {"cached_tokens": 400}, "output_tokens": 100,
                     "output_tokens_details": {"reasoning_tokens": 60}, "total_tokens": 1100}})
}

fn delta(text: &str) -> Value {
    json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": text})
}

/// The events of one text, but the terminal one.
fn begun() -> Reply {
    let added = json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "content": []}});
    [
        json!({"type": "response.created", "response": {}}),
        added,
        delta("hel"),
    ]
    .iter()
    .fold(Reply::stream(), send)
}

fn send(reply: Reply, event: &Value) -> Reply {
    let kind = event["type"].as_str().unwrap();
    reply.named_event(kind, &event.to_string())
}

fn completed(reply: Reply) -> Reply {
    let done =
        json!({"type": "response.output_item.done", "output_index": 0, "item": message("hello")});
    let last =
        json!({"type": "response.completed", "response": response(json!([message("hello")]))});
    [delta("lo"), done, last].iter().fold(reply, send).end()
}

/// A provider that answers on the wire of the path it is asked at.
fn both(request: &Received) -> Reply {
    let is_stream = request.json()["stream"] == true;
    match (request.path.as_str(), is_stream) {
        ("/v1/responses", true) => completed(begun()),
        ("/v1/responses", false) => {
            Reply::json(200, response(json!([message("hello")])).to_string())
        }
        ("/v1/chat/completions", true) => stream(),
        ("/v1/chat/completions", false) => reply(),
        _ => Reply::json(404, "{}"),
    }
}

fn said(answer: &Answer) -> String {
    assert_eq!(answer.status(), 200, "{}", answer.text());
    match answer.header("content-type") {
        Some(kind) if kind.starts_with("text/event-stream") => {
            let events = answer.events();
            assert!(events.is_done(), "{}", answer.text());
            events.content()
        }
        _ => {
            let body = answer.json();
            let content = &body["choices"][0]["message"]["content"];
            content.as_str().unwrap().to_owned()
        }
    }
}

fn providers(answer: &Answer) -> Vec<(String, bool)> {
    let body = match answer.header("content-type") {
        Some(kind) if kind.starts_with("text/event-stream") => {
            answer.events().json().last().unwrap().clone()
        }
        _ => answer.json(),
    };
    let attempts = body["metadata"]["routing"].as_array().unwrap().clone();
    let one = |attempt: &Value| {
        let model = attempt["model"].as_str().unwrap().to_owned();
        (model, attempt["succeeded"] == true)
    };
    attempts.iter().map(one).collect()
}

#[test]
fn a_text_is_asked_for_in_items_and_billed() {
    let (first, second) = (Upstream::answering(both), Upstream::answering(both));
    let gateway = gateway(&first, &second);
    let answer = gateway.chat(PLAIN);
    assert_eq!(said(&answer), "hello");
    let request = &first.requests()[0];
    assert_eq!(request.path, "/v1/responses");
    assert_eq!(request.header("authorization"), Some("Bearer sk-first"));
    let sent = request.json();
    assert_eq!(
        (&sent["model"], &sent["store"]),
        (&"items-at-first".into(), &false.into())
    );
    assert_eq!(sent["input"][0]["content"][0]["text"], "Hi");
    let body = answer.json();
    assert_eq!(body["metadata"]["underlying_used_model"], "items-at-first");
    let usage = &body["usage"];
    assert_eq!(usage["prompt_tokens_details"]["cached_tokens"], 400);
    assert_eq!(usage["reasoning_tokens"], 60);
    // 600 at 2.5, 400 at 1.25 and 100 at 10 USD per million.
    assert_eq!(usage["cost"].to_string(), "0.003");
    assert!(second.requests().is_empty());
}

#[test]
fn a_stream_is_one_of_the_convention() {
    let (first, second) = (Upstream::answering(both), Upstream::answering(both));
    let answer = gateway(&first, &second).chat(STREAM);
    assert_eq!(said(&answer), "hello");
    let events = answer.events().json();
    let finishes = events
        .iter()
        .filter(|event| event["choices"][0]["finish_reason"] == "stop");
    assert_eq!(finishes.count(), 1, "{}", answer.text());
    let last = events.last().unwrap();
    assert_eq!(last["usage"]["completion_tokens"], 100);
    assert_eq!(last["usage"]["cost"].to_string(), "0.003");
}

#[test]
fn a_turn_with_a_tool_goes_back_with_its_reasoning_to_its_provider_alone() {
    let answers = |request: &Received| match request.json()["input"].as_array().map(Vec::len) {
        Some(1) => Reply::json(200, response(json!([reasoning(), call()])).to_string()),
        _ => both(request),
    };
    let (first, second) = (Upstream::answering(answers), Upstream::answering(both));
    let gateway = gateway(&first, &second);
    let tools = json!([{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]);
    let mut asked = json!({"model": "chat", "tools": tools, "reasoning_effort": "high", "messages": [{"role": "user", "content": "Hi"}]});
    let turn = gateway.chat(asked.to_string()).json();
    let choice = &turn["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls", "{turn}");
    assert_eq!(choice["message"]["reasoning"], "hm");
    let messages = asked["messages"].as_array_mut().unwrap();
    messages.push(choice["message"].clone());
    messages.push(json!({"role": "tool", "tool_call_id": "call_1", "content": "42"}));
    assert_eq!(said(&gateway.chat(asked.to_string())), "hello");
    let input = first.requests()[1].json()["input"].clone();
    assert_eq!(input[1], reasoning());
    assert_eq!(
        input[2],
        json!({"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{\"a\":1}"})
    );
    assert_eq!(
        input[3],
        json!({"type": "function_call_output", "call_id": "call_1", "output": "42"})
    );
    asked["model"] = "second/chat".into();
    assert_eq!(said(&gateway.chat(asked.to_string())), "hello");
    let sent = String::from_utf8(second.requests()[0].body.clone()).unwrap();
    assert!(
        !sent.contains("gAAA") && !sent.contains("reasoning_details"),
        "{sent}"
    );
}

#[test]
fn a_stream_that_breaks_after_its_first_content_ends_with_an_error_event() {
    let failed = json!({"type": "response.failed", "response": {"status": "failed", "error": {"code": "server_error", "message": "boom"}}});
    let breaks: [fn(Reply, &Value) -> Reply; 3] = [
        |reply, _| reply.end(),
        |reply, _| reply.and_reset(),
        |reply, failed| send(reply, failed).end(),
    ];
    for breaking in breaks {
        let gate = Gate::default();
        let first = Upstream::always(breaking(begun().wait(&gate), &failed));
        let second = Upstream::answering(both);
        let gateway = gateway(&first, &second);
        let mut client = Client::connect(gateway.address());
        client.send(&gateway.chat_ask(STREAM));
        assert_eq!(client.head().status, 200);
        let head = client.chunk().unwrap();
        gate.open();
        let text = String::from_utf8_lossy(&head.bytes).into_owned() + &drain(&mut client);
        assert!(
            text.contains("event: error\n") && !text.contains("[DONE]"),
            "{text}"
        );
        assert!(!text.contains("\"finish_reason\":\""), "{text}");
        assert!(
            second.requests().is_empty(),
            "no other provider once content has gone out"
        );
    }
}

#[test]
fn what_breaks_before_its_first_content_falls_back_to_the_other_wire() {
    let error = json!({"type": "error", "code": "server_error", "message": "boom"});
    let failed = json!({"id": "resp_1", "status": "failed", "error": {"code": "server_error", "message": "boom"}, "output": []});
    for (whole, events) in [
        (Reply::json(500, "{}"), Reply::json(500, "{}")),
        (
            Reply::json(200, failed.to_string()),
            send(Reply::stream(), &error).end(),
        ),
        (
            Reply::json(200, "{\"status\":\"comp"),
            Reply::stream().end(),
        ),
    ] {
        for (body, first) in [(PLAIN, whole), (STREAM, events)] {
            let (first, second) = (Upstream::always(first), Upstream::answering(both));
            let answer = gateway(&first, &second).chat(body);
            assert_eq!(said(&answer), "hello");
            let tried = [
                ("items-at-first".to_owned(), false),
                ("chat-at-second".to_owned(), true),
            ];
            assert_eq!(providers(&answer), tried);
            assert_eq!(first.requests()[0].path, "/v1/responses");
            let sent = second.requests()[0].json();
            assert_eq!(sent["messages"][0]["content"], "Hi");
        }
    }
}

#[test]
fn one_provider_serves_a_model_on_both_wires_and_falls_back_between_them() {
    for body in [PLAIN, STREAM] {
        let broken = |request: &Received| match request.path.as_str() {
            "/v1/chat/completions" => Reply::json(503, "{}"),
            _ => both(request),
        };
        let (first, second) = (Upstream::answering(broken), Upstream::answering(both));
        let body = body.replace("\"chat\"", "\"pair\"");
        let answer = gateway(&first, &second).chat(body);
        assert_eq!(said(&answer), "hello");
        let tried = [
            ("chat-at-first".to_owned(), false),
            ("items-at-first".to_owned(), true),
        ];
        assert_eq!(providers(&answer), tried);
    }
}

#[test]
fn what_the_wire_cannot_say_goes_to_a_mapping_that_can() {
    let (first, second) = (Upstream::answering(both), Upstream::answering(both));
    let gateway = gateway(&first, &second);
    for (member, value) in [
        ("stop", json!(["END"])),
        ("logit_bias", json!({"5": 1})),
        ("n", json!(2)),
    ] {
        let mut asked: Value = serde_json::from_str(PLAIN).unwrap();
        asked[member] = value.clone();
        assert_eq!(said(&gateway.chat(asked.to_string())), "hello");
        assert_eq!(second.requests().last().unwrap().json()[member], value);
        asked["model"] = "first/chat".into();
        let answer = gateway.chat(asked.to_string());
        let error = &answer.json()["error"];
        assert_eq!(
            (answer.status(), &error["param"]),
            (400, &member.into()),
            "{error}"
        );
    }
    assert!(first.requests().is_empty());
    let neutral = r#"{"model":"chat","stop":[],"frequency_penalty":0.0,"messages":[{"role":"user","content":"Hi"}]}"#;
    assert_eq!(said(&gateway.chat(neutral)), "hello");
    assert_eq!(first.requests().len(), 1);
}

#[test]
fn a_refusal_of_the_request_is_the_clients_to_read() {
    let refused = json!({"error": {"message": "Unsupported value: 'x'", "type": "invalid_request_error", "param": "reasoning.effort", "code": "unsupported_value"}});
    let (first, second) = (
        Upstream::always(Reply::json(400, refused.to_string())),
        Upstream::answering(both),
    );
    let answer = gateway(&first, &second).chat(PLAIN);
    let error = &answer.json()["error"];
    assert_eq!(
        (answer.status(), &error["code"]),
        (400, &"unsupported_value".into()),
        "{error}"
    );
    assert!(second.requests().is_empty());
}
