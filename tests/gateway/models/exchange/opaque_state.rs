//! State of earlier turns that its provider refuses: the conversation goes on without it.

use serde_json::{Value, json};

use crate::support::boot::Gateway;
use crate::support::script::Reply;
use crate::support::upstream::{Received, Upstream};

const MODELS: &str = r#"
[[models]]
id = "items"
[[models.providers]]
provider = "openai"
name = "gpt-x"
wire = "responses"
[[models]]
id = "blocks"
[[models.providers]]
provider = "anthropic"
name = "claude-x"
max_output = 4096
"#;

fn gateway(upstream: &Upstream) -> Gateway {
    let url = upstream.url();
    let toml = format!(
        "[providers.openai]\nkind = \"openai\"\nbase_url = \"{url}/v1\"\nkeys = [{{ env = \"FIRST_KEY\" }}, {{ env = \"OTHER_KEY\" }}]\n\
         [providers.anthropic]\nkind = \"anthropic\"\nbase_url = \"{url}\"\nkeys = [{{ env = \"FIRST_KEY\" }}, {{ env = \"OTHER_KEY\" }}]\n"
    );
    Gateway::start_with_env(
        &toml,
        MODELS,
        &[("FIRST_KEY", "sk-first"), ("OTHER_KEY", "sk-other")],
    )
}

fn has_state(request: &Received) -> bool {
    String::from_utf8_lossy(&request.body).contains("STATE")
}

/// What the provider of a path says.
fn said(request: &Received) -> Reply {
    let body = match request.path.ends_with("/responses") {
        true => {
            json!({"id": "resp_1", "object": "response", "created_at": 5, "status": "completed", "model": "gpt-x",
            "output": [{"type": "message", "content": [{"type": "output_text", "text": "hello", "annotations": []}]}],
            "usage": {"input_tokens": 1, "output_tokens": 1}})
        }
        false => {
            json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x", "stop_reason": "end_turn",
            "content": [{"type": "text", "text": "hello"}], "usage": {"input_tokens": 1, "output_tokens": 1}})
        }
    };
    Reply::json(200, body.to_string())
}

/// How the provider of a path refuses state that is not its own.
fn refused(request: &Received) -> Reply {
    let body = match request.path.ends_with("/responses") {
        true => {
            json!({"error": {"message": "The encrypted content STATE could not be verified.", "type": "invalid_request_error",
            "param": null, "code": "invalid_encrypted_content"}})
        }
        false => {
            json!({"type": "error", "error": {"type": "invalid_request_error",
            "message": "messages.1.content.0: Invalid `signature` in `thinking` block"}})
        }
    };
    Reply::json(400, body.to_string())
}

/// A conversation whose second turn carries the state of its model.
fn ask(model: &str) -> Value {
    let details = json!([
        {"type": "reasoning.encrypted", "format": "openai-responses-v1", "model": "openai/gpt-x", "index": 0, "data": "STATE"},
        {"type": "reasoning.text", "format": "anthropic-claude-v1", "model": "anthropic/claude-x", "index": 0, "text": "hm", "signature": "STATE"}]);
    json!({"model": model, "messages": [{"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello", "reasoning_details": details}, {"role": "user", "content": "Go on"}]})
}

#[test]
fn refused_state_is_left_out_in_a_second_try() {
    for model in ["items", "blocks"] {
        let upstream = Upstream::answering(|request| match has_state(request) {
            true => refused(request),
            false => said(request),
        });
        let gateway = gateway(&upstream);
        let answer = gateway.chat(ask(model).to_string()).json();
        assert_eq!(
            answer["choices"][0]["message"]["content"], "hello",
            "{answer}"
        );
        let requests = upstream.requests();
        let sent: Vec<bool> = requests.iter().map(has_state).collect();
        assert_eq!(sent, [true, false], "{model}");
        let history = String::from_utf8_lossy(&requests[1].body).into_owned();
        assert!(history.contains("Hello"), "the text stays: {history}");
        let routing = answer["metadata"]["routing"].as_array().unwrap();
        let codes: Vec<_> = routing.iter().map(|entry| &entry["status_code"]).collect();
        assert_eq!(codes, [400, 200]);
        assert_eq!(routing[0]["apiKeyHash"], routing[1]["apiKeyHash"]);
    }
}

#[test]
fn a_second_refusal_ends_the_call_and_a_request_without_state_is_not_repeated() {
    for model in ["items", "blocks"] {
        let upstream = Upstream::answering(refused);
        let gateway = gateway(&upstream);
        assert_eq!(gateway.chat(ask(model).to_string()).status(), 400);
        assert_eq!(upstream.requests().len(), 2, "{model}");
        let plain = json!({"model": model, "messages": [{"role": "user", "content": "Hi"}]});
        assert_eq!(gateway.chat(plain.to_string()).status(), 400);
        assert_eq!(upstream.requests().len(), 3, "{model}");
    }
}

#[test]
fn a_running_turn_whose_thinking_is_lost_goes_on_without_thinking() {
    let upstream = Upstream::answering(|request| match has_state(request) {
        true => refused(request),
        false => said(request),
    });
    let gateway = gateway(&upstream);
    let mut asked = ask("blocks");
    let messages = asked["messages"].as_array_mut().unwrap();
    messages.pop();
    messages[1]["tool_calls"] =
        json!([{"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]);
    messages.push(json!({"role": "tool", "tool_call_id": "call_1", "content": "42"}));
    asked["reasoning"] = json!({"max_tokens": 2000});
    let answer = gateway.chat(asked.to_string());
    assert_eq!(answer.status(), 200, "{}", answer.text());
    let thinking: Vec<Value> = upstream
        .requests()
        .iter()
        .map(|request| request.json()["thinking"]["type"].clone())
        .collect();
    assert_eq!(thinking, [json!("enabled"), Value::Null]);
}
