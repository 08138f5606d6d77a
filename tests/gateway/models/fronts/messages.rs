//! `POST /v1/messages` and what its clients ask beside it, over every wire.

use serde_json::{Value, json};

use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::{Answer, Client, ask};
use crate::support::script::{Gate, Reply};
use crate::support::upstream::{Received, Upstream};

/// A model for each wire.
const MODELS: &str = r#"
[[models]]
id = "chat"
aliases = ["claude-haiku-4-5"]
[[models.providers]]
provider = "compatible"
name = "deep-x"
input_price = "1"
output_price = "2"
context_size = 64000
max_output = 8192
capabilities = ["streaming", "tools", "parallel_tools", "forced_tools", "vision", "documents", "json_schema", "reasoning"]
[[models]]
id = "items"
[[models.providers]]
provider = "openai"
name = "gpt-x"
wire = "responses"
capabilities = ["streaming", "tools", "parallel_tools", "forced_tools", "vision", "documents", "json_schema", "reasoning"]
[[models]]
id = "blocks"
[[models.providers]]
provider = "anthropic"
name = "claude-x"
max_output = 64000
capabilities = ["streaming", "tools", "parallel_tools", "forced_tools", "vision", "documents", "json_schema", "reasoning", "cache_control"]
[[models]]
id = "contents"
[[models.providers]]
provider = "google"
name = "gemini-x"
capabilities = ["streaming", "tools", "parallel_tools", "forced_tools", "vision", "documents", "json_schema", "reasoning"]
"#;

pub(super) const WIRES: [&str; 4] = ["chat", "items", "blocks", "contents"];

pub(super) fn gateway_with(upstream: &Upstream, more: &str) -> Gateway {
    let url = upstream.url();
    let toml = format!(
        "[providers.compatible]\nkind = \"openai-compatible\"\nbase_url = \"{url}/v1\"\nkeys = []\nreasoning_replay = \"reasoning_content\"\n\
         [providers.openai]\nkind = \"openai\"\nbase_url = \"{url}/v1\"\nkeys = [{{ env = \"A_KEY\" }}]\n\
         [providers.anthropic]\nkind = \"anthropic\"\nbase_url = \"{url}\"\nkeys = [{{ env = \"A_KEY\" }}]\n\
         [providers.google]\nkind = \"google\"\nbase_url = \"{url}\"\nkeys = [{{ env = \"A_KEY\" }}]\n{more}\n"
    );
    Gateway::start_with_env(&toml, MODELS, &[("A_KEY", "sk-a")])
}

/// The wire of a request.
fn wire(request: &Received) -> &'static str {
    match &*request.path {
        path if path.ends_with("/chat/completions") => "chat",
        path if path.ends_with("/responses") => "items",
        path if path.ends_with("/messages") => "blocks",
        _ => "contents",
    }
}

/// A turn of reasoning with state, a text and a call, in the words of each wire.
pub(super) fn called(request: &Received) -> Reply {
    let body = match wire(request) {
        "chat" => {
            json!({"id": "c", "created": 5, "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
            "role": "assistant", "content": "Let me look.", "reasoning_content": "hm",
            "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "read", "arguments": "{\"path\":\"a\"}"}}]}}],
            "usage": {"prompt_tokens": 20, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 4}}})
        }
        "items" => {
            json!({"id": "resp_1", "object": "response", "created_at": 5, "status": "completed", "output": [
            {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "STATE+/=="},
            {"type": "message", "content": [{"type": "output_text", "text": "Let me look.", "annotations": []}]},
            {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "read", "arguments": "{\"path\":\"a\"}"}],
            "usage": {"input_tokens": 20, "input_tokens_details": {"cached_tokens": 4}, "output_tokens": 7}})
        }
        "blocks" => {
            json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x", "stop_reason": "tool_use", "content": [
            {"type": "thinking", "thinking": "hm", "signature": "STATE+/=="}, {"type": "text", "text": "Let me look."},
            {"type": "tool_use", "id": "call_1", "name": "read", "input": {"path": "a"}}],
            "usage": {"input_tokens": 16, "cache_read_input_tokens": 4, "output_tokens": 7}})
        }
        _ => json!({"candidates": [{"finishReason": "STOP", "content": {"role": "model", "parts": [
            {"text": "hm", "thought": true}, {"text": "Let me look."},
            {"functionCall": {"name": "read", "args": {"path": "a"}}, "thoughtSignature": "STATE+/=="}]}}],
            "usageMetadata": {"promptTokenCount": 20, "cachedContentTokenCount": 4, "candidatesTokenCount": 7}}),
    };
    Reply::json(200, body.to_string())
}

/// The Messages API as its SDK asks it.
pub(super) fn post(gateway: &Gateway, path: &str, body: &Value) -> Answer {
    let asked = Ask::post(path, body.to_string())
        .header("x-api-key", &gateway.key)
        .header("anthropic-version", "2023-06-01");
    ask(gateway.address(), &asked)
}

pub(super) fn send(gateway: &Gateway, body: &Value) -> Answer {
    post(gateway, "/v1/messages?beta=true", body)
}

fn tools() -> Value {
    json!([{"name": "read", "description": "Reads a file.", "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}}])
}

pub(super) fn first_turn(model: &str) -> Value {
    json!({"model": model, "max_tokens": 32000, "tools": tools(), "system": "Be kind.",
        "messages": [{"role": "user", "content": "Read a"}]})
}

/// The message of an event stream, whose grammar is checked in `filters/models/fronts/messages/tests.rs`.
fn events(answer: &Answer) -> Vec<Value> {
    let lines = answer.text().lines();
    let data = lines.filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).unwrap())
        .collect()
}

#[test]
fn any_model_answers_whole_and_as_events() {
    let upstream = Upstream::answering(called);
    let gateway = gateway_with(&upstream, "");
    for model in WIRES {
        let mut asked = first_turn(model);
        let answer = send(&gateway, &asked);
        assert_eq!(answer.status(), 200, "{model}: {}", answer.text());
        let message = answer.json();
        assert_eq!(
            (&message["type"], &message["model"]),
            (&json!("message"), &json!(model))
        );
        assert_eq!(message["stop_reason"], "tool_use");
        let content = message["content"].as_array().unwrap();
        let said: Vec<&Value> = content
            .iter()
            .filter(|block| block["type"] != "redacted_thinking")
            .collect();
        let kinds: Vec<&Value> = said.iter().map(|block| &block["type"]).collect();
        assert_eq!(
            kinds,
            ["thinking", "text", "tool_use"],
            "{model}: {message}"
        );
        assert_eq!(said[0]["thinking"], "hm");
        assert_eq!(said[1]["text"], "Let me look.");
        assert_eq!(
            (&said[2]["name"], &said[2]["input"]),
            (&json!("read"), &json!({"path": "a"}))
        );
        assert!(!message.to_string().contains("STATE"), "{model}: {message}");
        let usage = &message["usage"];
        assert_eq!(usage["input_tokens"], 16, "{model}");
        assert_eq!(
            (&usage["cache_read_input_tokens"], &usage["output_tokens"]),
            (&json!(4), &json!(7))
        );
        let metadata = &message["weirgate"]["metadata"];
        assert_eq!(metadata["requested_model"], model);
        assert_eq!(metadata["routing"].as_array().unwrap().len(), 1);

        asked["stream"] = true.into();
        let events = events(&send(&gateway, &asked));
        let names: Vec<&str> = events
            .iter()
            .map(|event| event["type"].as_str().unwrap())
            .collect();
        assert_eq!(
            (names[0], names[names.len() - 1]),
            ("message_start", "message_stop")
        );
        assert!(events[0]["message"]["usage"]["input_tokens"].as_u64() > Some(0));
        let starts = events
            .iter()
            .filter(|event| event["type"] == "content_block_start");
        assert_eq!(starts.count(), content.len(), "{model}");
        let end = &events[events.len() - 2];
        assert_eq!(end["delta"]["stop_reason"], "tool_use");
        for key in ["input_tokens", "cache_read_input_tokens", "output_tokens"] {
            assert_eq!(end["usage"][key], usage[key], "{model}: {key}");
        }
    }
}

#[test]
fn state_goes_back_to_its_maker_and_to_nobody_else() {
    let upstream = Upstream::answering(called);
    let gateway = gateway_with(&upstream, "");
    for model in WIRES {
        let mut asked = first_turn(model);
        let content = send(&gateway, &asked).json()["content"].clone();
        let id = content
            .as_array()
            .unwrap()
            .iter()
            .find(|block| block["type"] == "tool_use")
            .unwrap()["id"]
            .clone();
        let result = json!({"type": "tool_result", "tool_use_id": id, "content": "text of a", "is_error": true});
        let messages = asked["messages"].as_array_mut().unwrap();
        messages.push(json!({"role": "assistant", "content": content}));
        messages
            .push(json!({"role": "user", "content": [result, {"type": "text", "text": "Go on"}]}));
        messages.push(json!({"role": "system", "content": "Be quick."}));
        for other in WIRES {
            asked["model"] = other.into();
            let answer = send(&gateway, &asked);
            assert_eq!(
                answer.status(),
                200,
                "{model} to {other}: {}",
                answer.text()
            );
            let requests = upstream.requests();
            let sent = requests.last().unwrap();
            assert_eq!(wire(sent), other);
            let sent = String::from_utf8_lossy(&sent.body).into_owned();
            let has_state = sent.contains("STATE+/==");
            assert_eq!(
                has_state,
                model == other && model != "chat",
                "{model} to {other}: {sent}"
            );
            // The reasoning of a chat's host is a text, which its signature gives back to it alone.
            let has_reasoning = sent.contains("\"reasoning_content\":\"hm\"");
            assert_eq!(
                has_reasoning,
                model == other && model == "chat",
                "{model} to {other}: {sent}"
            );
            for text in [
                "Be kind.",
                "Let me look.",
                "text of a",
                "Go on",
                "Be quick.",
            ] {
                assert!(
                    sent.contains(text),
                    "{model} to {other} lost {text}: {sent}"
                );
            }
            assert!(!sent.contains("WGS1"), "{model} to {other}: {sent}");
        }
    }
}

#[test]
fn instructions_between_messages_reach_every_wire_as_it_takes_them() {
    let upstream = Upstream::answering(called);
    let gateway = gateway_with(&upstream, "");
    let url = upstream.url();
    let toml = format!(
        "[providers.compatible]\nkind = \"openai-compatible\"\nbase_url = \"{url}/v1\"\nkeys = []\nlate_instructions = true\n"
    );
    let taking = Gateway::start(&toml, MODELS);
    let marked = "<system-reminder>\nBe quick.\n</system-reminder>";
    for (gateway, model, place, role, text) in [
        (&gateway, "chat", "messages", "user", marked),
        (&taking, "chat", "messages", "system", "Be quick."),
        (&gateway, "items", "input", "developer", "Be quick."),
        (&gateway, "blocks", "messages", "system", "Be quick."),
        (&gateway, "contents", "contents", "user", marked),
    ] {
        let mut asked = first_turn(model);
        asked["messages"] = json!([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."},
            {"role": "system", "content": "Be quick."}, {"role": "user", "content": "Go on."}]);
        assert_eq!(send(gateway, &asked).status(), 200, "{model}");
        let sent = upstream.requests().pop().unwrap().json();
        let turns = sent[place].as_array().unwrap();
        let quoted = Value::from(text).to_string();
        let mut holding = turns
            .iter()
            .filter(|turn| turn.to_string().contains(&quoted));
        assert_eq!(holding.next().unwrap()["role"], role, "{model}: {sent}");
        assert!(holding.next().is_none(), "{model}: {sent}");
    }
}

/// Chats hold no images in results of tools, so there they stand in the next message.
#[test]
fn an_image_that_a_tool_has_read_reaches_every_wire() {
    const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABh6FO1AAAAABJRU5ErkJggg==";
    let upstream = Upstream::answering(called);
    let gateway = gateway_with(&upstream, "");
    for model in WIRES {
        let mut asked = first_turn(model);
        let call =
            json!({"type": "tool_use", "id": "call_1", "name": "read", "input": {"path": "a.png"}});
        let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}});
        let result = json!({"type": "tool_result", "tool_use_id": "call_1", "content": [{"type": "text", "text": "a.png:"}, image]});
        let turns = asked["messages"].as_array_mut().unwrap();
        turns.push(json!({"role": "assistant", "content": [call]}));
        turns.push(json!({"role": "user", "content": [result]}));
        let answer = send(&gateway, &asked);
        assert_eq!(answer.status(), 200, "{model}: {}", answer.text());
        let sent = upstream.requests().pop().unwrap();
        let sent = String::from_utf8(sent.body).unwrap();
        assert!(
            sent.contains(PIXEL) && sent.contains("a.png:"),
            "{model}: {sent}"
        );
    }
}

#[test]
fn a_host_of_the_dialect_gets_what_its_client_said() {
    let upstream = Upstream::answering(called);
    let gateway = gateway_with(&upstream, "");
    let mut asked = first_turn("blocks");
    asked["context_management"] = json!({"edits": []});
    asked["thinking"] = json!({"type": "adaptive", "display": "omitted"});
    asked["routing"] = "price".into();
    asked["max_tokens"] = 128_000.into();
    let body = Ask::post("/v1/messages?beta=true", asked.to_string())
        .key(&gateway.key)
        .header("anthropic-version", "2023-06-01")
        .header(
            "anthropic-beta",
            "context-management-2025-06-27,new-2027-01-01",
        )
        .header("x-claude-code-session-id", "s1");
    assert_eq!(ask(gateway.address(), &body).status(), 200);
    let requests = upstream.requests();
    let sent = &requests[0];
    assert_eq!(
        sent.header("anthropic-beta"),
        Some("context-management-2025-06-27,new-2027-01-01")
    );
    assert_eq!(sent.header("anthropic-version"), Some("2023-06-01"));
    let mut expected = asked;
    expected.as_object_mut().unwrap().remove("routing");
    expected["model"] = "claude-x".into();
    // The model says no more.
    expected["max_tokens"] = 64_000.into();
    assert_eq!(sent.json(), expected);
}

#[test]
fn errors_are_in_the_words_of_the_api() {
    let long = r#"{"error":{"message":"This model's maximum context length is 64000 tokens. However, your messages resulted in 70000 tokens.","code":"context_length_exceeded"}}"#;
    let upstream = Upstream::always(Reply::json(400, long));
    let gateway = gateway_with(&upstream, "");
    let unknown = send(&gateway, &first_turn("nobody"));
    assert_eq!(unknown.status(), 404);
    let body = unknown.json();
    assert_eq!(
        (&body["type"], &body["error"]["type"]),
        (&json!("error"), &json!("not_found_error"))
    );
    assert_eq!(body["request_id"].as_str(), unknown.header("request-id"));
    let wrong = send(
        &gateway,
        &json!({"model": "chat", "max_tokens": 9, "messages": [{"role": "user", "content": [{"type": "text"}]}]}),
    );
    assert_eq!(wrong.status(), 400);
    let message = wrong.json()["error"]["message"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        message.starts_with("`messages.0.content.0.text`"),
        "{message}"
    );
    let too_long = send(&gateway, &first_turn("chat"));
    assert_eq!(too_long.status(), 400);
    assert_eq!(
        too_long.json()["error"]["message"],
        "prompt is too long: 70000 tokens > 64000 maximum"
    );
    let keyless = ask(gateway.address(), &Ask::post("/v1/messages", "{}"));
    assert_eq!(keyless.json()["error"]["type"], "authentication_error");
    let orphan = json!({"model": "chat", "max_tokens": 9, "messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x", "content": "y"}]}]});
    let orphan = send(&gateway, &orphan).json();
    assert!(
        orphan["error"]["message"]
            .as_str()
            .unwrap()
            .contains("messages.0.content.0.tool_use_id"),
        "{orphan}"
    );
}

#[test]
fn what_no_model_but_the_vendors_can_do_is_refused_by_name() {
    let upstream = Upstream::answering(called);
    let gateway = gateway_with(&upstream, "");
    let mut asked = first_turn("chat");
    asked["tools"] = json!([{"type": "computer_20250124", "name": "computer", "display_width_px": 9, "display_height_px": 9}]);
    let refused = send(&gateway, &asked);
    assert_eq!(refused.status(), 400);
    assert!(
        refused.text().contains("computer_20250124"),
        "{}",
        refused.text()
    );
    asked["model"] = "blocks".into();
    assert_eq!(send(&gateway, &asked).status(), 200);
    // A history that the vendor holds is nowhere else: clients recognize the code, and send all of it.
    for model in ["chat", "blocks"] {
        let mut asked = first_turn(model);
        asked["thread"] = json!({"type": "create"});
        let refused = send(&gateway, &asked);
        let error = &refused.json()["error"];
        assert_eq!(
            (refused.status(), &error["details"]["error_code"]),
            (400, &json!("thread_unsupported_request")),
            "{error}"
        );
    }
    // What the client runs becomes a function.
    let mut asked = first_turn("chat");
    asked["tools"] = json!([{"type": "bash_20250124", "name": "bash"}]);
    assert_eq!(send(&gateway, &asked).status(), 200);
    let sent = upstream.requests().last().unwrap().json();
    assert_eq!(sent["tools"][0]["function"]["name"], "bash");
    assert!(sent["tools"][0]["function"]["parameters"]["properties"]["command"].is_object());
}

#[test]
fn the_log_line_names_the_session_and_the_agents_of_a_call() {
    let upstream = Upstream::answering(called);
    let gateway = gateway_with(&upstream, "");
    let line = |headers: &[(&str, &str)]| {
        let asked = Ask::post("/v1/messages", first_turn("chat").to_string()).key(&gateway.key);
        let named = |asked: Ask, (name, value): &(&str, &str)| asked.header(name, value);
        let answer = ask(gateway.address(), &headers.iter().fold(asked, named));
        gateway.log_line(answer.header("x-request-id").unwrap())
    };
    let own = line(&[
        ("x-claude-code-session-id", "s-1"),
        ("x-claude-code-agent-id", "a-2"),
        ("x-claude-code-parent-agent-id", "a-1"),
    ]);
    assert_eq!(
        (
            &own["session_id"],
            &own["agent_id"],
            &own["parent_agent_id"]
        ),
        (&json!("s-1"), &json!("a-2"), &json!("a-1"))
    );
    let long = "x".repeat(200);
    let odd = line(&[
        ("x-claude-code-session-id", &long),
        ("x-claude-code-agent-id", "a-1"),
    ]);
    let hashed = odd["session_id"].as_str().unwrap();
    assert!(hashed.starts_with("sha256:") && hashed.len() == 39, "{odd}");
    assert_eq!(odd["agent_id"], "a-1");
    let plain = line(&[]);
    assert!(plain.get("session_id").is_none() && plain.get("agent_id").is_none());
}

#[test]
fn models_are_listed_in_the_words_of_the_client() {
    let upstream = Upstream::answering(called);
    let gateway = gateway_with(&upstream, "");
    let asked = Ask::get("/v1/models?limit=1000")
        .header("x-api-key", &gateway.key)
        .header("anthropic-version", "2023-06-01");
    let listed = ask(gateway.address(), &asked).json();
    let data = listed["data"].as_array().unwrap();
    let alias = data
        .iter()
        .find(|entry| entry["id"] == "claude-haiku-4-5")
        .unwrap();
    assert_eq!(
        (&alias["type"], &alias["max_input_tokens"]),
        (&json!("model"), &json!(64000))
    );
    assert_eq!(listed["has_more"], false);
    let plain = Ask::get("/v1/models").key(&gateway.key);
    assert_eq!(ask(gateway.address(), &plain).json()["object"], "list");
    let hello = ask(gateway.address(), &Ask::new("HEAD", "/api/hello"));
    assert_eq!(hello.status(), 200);
    assert_eq!(
        send(&gateway, &first_turn("claude-haiku-4-5")).status(),
        200
    );
}

#[test]
fn a_silent_stream_is_kept_alive_by_pings_between_events() {
    let gate = Gate::default();
    let waits = gate.clone();
    let upstream = Upstream::answering(move |_| {
        let delta = |text: &str| {
            json!({"id": "c", "choices": [{"index": 0, "delta": {"content": text}}]}).to_string()
        };
        Reply::stream()
            .event(&delta("one"))
            .wait(&waits)
            .event(&delta("two"))
            .event("[DONE]")
            .end()
    });
    let gateway = gateway_with(&upstream, "[routing]\nkeepalive_s = 1");
    let mut asked = first_turn("chat");
    asked["stream"] = true.into();
    let mut client = Client::connect(gateway.address());
    let body = Ask::post("/v1/messages", asked.to_string()).key(&gateway.key);
    client.send(&body);
    client.head();
    let mut text = String::new();
    while !text.contains("event: ping\ndata: {\"type\": \"ping\"}\n\n") {
        text += &String::from_utf8_lossy(&client.chunk().unwrap().bytes);
    }
    assert!(text.contains("\"one\""), "{text}");
    gate.open();
    let rest = crate::models::exchange::streams::drain(&mut client);
    assert!(
        rest.contains("\"two\"") && rest.contains("message_stop"),
        "{rest}"
    );
}
