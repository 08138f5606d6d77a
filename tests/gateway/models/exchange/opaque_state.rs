//! State of earlier turns that its provider refuses: the conversation goes on without it.

use serde_json::{Value, json};

use crate::support::ask::Ask;
use crate::support::boot::{Gateway, create_organization};
use crate::support::client::ask;
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

/// What the provider of a path says: state, and a text.
fn said(request: &Received) -> Reply {
    let body = match request.path.ends_with("/responses") {
        true => {
            json!({"id": "resp_1", "object": "response", "created_at": 5, "status": "completed", "model": "gpt-x",
            "output": [{"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "STATE"},
                {"type": "message", "content": [{"type": "output_text", "text": "hello", "annotations": []}]}],
            "usage": {"input_tokens": 1, "output_tokens": 1}})
        }
        false => {
            json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x", "stop_reason": "end_turn",
            "content": [{"type": "thinking", "thinking": "hm", "signature": "STATE"}, {"type": "text", "text": "hello"}],
            "usage": {"input_tokens": 1, "output_tokens": 1}})
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

/// A provider that refuses the state that comes back.
fn refusing() -> Upstream {
    Upstream::answering(|request| match has_state(request) {
        true => refused(request),
        false => said(request),
    })
}

/// A conversation whose second turn carries the state that its model has just said.
fn history(gateway: &Gateway, model: &str) -> Value {
    let hi = json!({"role": "user", "content": "Hi"});
    let answer = gateway
        .chat(json!({"model": model, "messages": [hi]}).to_string())
        .json();
    let message = &answer["choices"][0]["message"];
    assert!(!message.to_string().contains("STATE"), "{message}");
    json!({"model": model, "messages": [hi, message, {"role": "user", "content": "Go on"}]})
}

#[test]
fn refused_state_is_left_out_in_a_second_try() {
    for model in ["items", "blocks"] {
        let upstream = refusing();
        let gateway = gateway(&upstream);
        let answer = gateway.chat(history(&gateway, model).to_string()).json();
        assert_eq!(
            answer["choices"][0]["message"]["content"], "hello",
            "{answer}"
        );
        let requests = upstream.requests();
        let sent: Vec<bool> = requests.iter().map(has_state).collect();
        assert_eq!(sent, [false, true, false], "{model}");
        let last = String::from_utf8_lossy(&requests[2].body).into_owned();
        assert!(last.contains("hello"), "the text stays: {last}");
        let routing = answer["metadata"]["routing"].as_array().unwrap();
        let codes: Vec<_> = routing.iter().map(|entry| &entry["status_code"]).collect();
        assert_eq!(codes, [400, 200]);
        assert_eq!(routing[0]["apiKeyHash"], routing[1]["apiKeyHash"]);
        let line = gateway.log_line(answer["metadata"]["request_id"].as_str().unwrap());
        assert_eq!(line["left_out_state"], 1, "{line}");
    }
}

#[test]
fn a_second_refusal_ends_the_call_and_a_request_without_state_is_not_repeated() {
    for model in ["items", "blocks"] {
        let upstream = Upstream::answering(|request| {
            match String::from_utf8_lossy(&request.body).contains("Go on") {
                true => refused(request),
                false => said(request),
            }
        });
        let gateway = gateway(&upstream);
        let mut asked = history(&gateway, model);
        assert_eq!(gateway.chat(asked.to_string()).status(), 400);
        assert_eq!(upstream.requests().len(), 3, "{model}");
        asked["messages"][1] = json!({"role": "assistant", "content": "Hello"});
        assert_eq!(gateway.chat(asked.to_string()).status(), 400);
        assert_eq!(upstream.requests().len(), 4, "{model}");
    }
}

#[test]
fn a_running_turn_whose_thinking_is_lost_goes_on_without_thinking() {
    let upstream = refusing();
    let gateway = gateway(&upstream);
    let mut asked = history(&gateway, "blocks");
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
    assert_eq!(thinking, [Value::Null, json!("enabled"), Value::Null]);
}

#[test]
fn state_goes_back_for_its_organization_alone_and_whole() {
    for model in ["items", "blocks"] {
        let upstream = Upstream::answering(said);
        let gateway = gateway(&upstream);
        let asked = history(&gateway, model);
        let other =
            gateway.change(async |store| create_organization("other", &store.clone()).await);
        let goes_back = |key: &str, body: &str| {
            let answer = ask(
                gateway.address(),
                &Ask::post("/v1/chat/completions", body).key(key),
            );
            assert_eq!(answer.status(), 200, "{}", answer.text());
            let goes_back = upstream.requests().last().is_some_and(has_state);
            let line = gateway.log_line(answer.header("x-request-id").unwrap());
            let left_out = if goes_back { Value::Null } else { 1.into() };
            assert_eq!(line["left_out_state"], left_out, "{line}");
            goes_back
        };
        let sealed = asked.to_string();
        assert!(goes_back(&gateway.key, &sealed), "{model}");
        assert!(!goes_back(&other, &sealed), "{model}: another organization");
        let (seal, state) = ("WGS1", "U1RBVEU=");
        assert!(sealed.contains(seal) && sealed.contains(state), "{sealed}");
        for damaged in [
            sealed.replace(seal, "WGS2"),
            sealed.replace(state, "U1RBVEV="),
            // The bare state of a maker is no state of ours.
            sealed.replace(seal, ""),
        ] {
            assert!(!goes_back(&gateway.key, &damaged), "{model}: {damaged}");
        }
    }
}
