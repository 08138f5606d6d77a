//! Where marks stand, by the conversation.

use serde_json::{Value, json};

use super::*;
use crate::models::dialects::Dialect;
use crate::models::front::Front;
use crate::models::fronts::chat_completions::ChatCompletions;
use crate::models::wires::tests::replay;
use crate::models::wires::{Quirks, Target};

/// The body of a request, where what has 10 tokens is cached; `None`: the gateway marks nothing.
fn sent(request: &Value, auto_cache: Option<u64>) -> Value {
    let parameters = ANTHROPIC.defaults().parameters;
    let quirks = Quirks::default();
    let target = Target {
        parameters: &parameters,
        auto_cache,
        ..Target::plain("anthropic", "claude-x", &quirks)
    };
    let request = ChatCompletions.parse(request.to_string().into()).unwrap();
    let body = ANTHROPIC.encode(&request, &target).unwrap().concat();
    serde_json::from_slice(&body).unwrap()
}

/// The places of the marks: `tools/0`, `system/0`, `1/0` is the first block of the second turn.
fn marks(body: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut note = |place: String, value: &Value| {
        if let Some(mark) = value.get("cache_control") {
            assert_eq!(*mark, json!({"type": "ephemeral"}));
            found.push(place);
        }
    };
    for list in ["tools", "system"] {
        for (at, value) in body[list].as_array().into_iter().flatten().enumerate() {
            note(format!("{list}/{at}"), value);
        }
    }
    for (turn, value) in body["messages"].as_array().unwrap().iter().enumerate() {
        for (at, block) in value["content"].as_array().unwrap().iter().enumerate() {
            note(format!("{turn}/{at}"), block);
        }
    }
    assert_eq!(
        body.to_string().matches("cache_control").count(),
        found.len(),
        "{body}"
    );
    found
}

const LONG: &str = "Forty characters and more of instructions.";

fn said(role: &str, text: &str) -> Value {
    json!({"role": role, "content": text})
}

fn tool(description: &str) -> Value {
    json!({"type": "function", "function": {"name": "f", "description": description}})
}

fn call() -> Value {
    json!({"role": "assistant", "content": null, "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]})
}

fn result() -> Value {
    json!({"role": "tool", "tool_call_id": "call_1", "content": LONG})
}

#[test]
fn what_is_likely_to_be_read_again_is_marked() {
    let (system, short) = (said("system", LONG), said("system", "Be brief."));
    let (user, assistant) = (said("user", "Hi"), said("assistant", LONG));
    let image = json!({"role": "user", "content": [{"type": "text", "text": "See"}, {"type": "image_url", "image_url": {"url": "https://a.example/a.png"}}]});
    let thought = json!({"role": "assistant", "content": LONG, "reasoning_details": [{"type": "reasoning.text", "format": "anthropic-claude-v1", "text": "Hm.", "signature": replay::seal(Dialect::Messages, "anthropic/claude-x", "S"), "text_offset": 99}]});
    let none: Vec<Value> = Vec::new();
    let cases: Vec<(Vec<Value>, Vec<Value>, &[&str])> = vec![
        (vec![user.clone()], none.clone(), &[]),
        (vec![short.clone(), user.clone()], none.clone(), &[]),
        (
            vec![system.clone(), user.clone()],
            none.clone(),
            &["system/0"],
        ),
        (
            vec![system.clone(), short.clone(), user.clone()],
            none.clone(),
            &["system/1"],
        ),
        // Tools and instructions are one prefix.
        (
            vec![short.clone(), user.clone()],
            vec![tool(LONG)],
            &["tools/0", "system/0"],
        ),
        (vec![user.clone()], vec![tool(""), tool(LONG)], &["tools/1"]),
        (vec![user.clone(), assistant.clone()], none.clone(), &[]),
        (
            vec![user.clone(), assistant.clone(), user.clone()],
            none.clone(),
            &["1/0", "2/0"],
        ),
        // Too short to be cached.
        (
            vec![user.clone(), said("assistant", "Hi"), user.clone()],
            none.clone(),
            &[],
        ),
        (
            vec![
                system.clone(),
                user.clone(),
                assistant.clone(),
                user.clone(),
            ],
            vec![tool(LONG)],
            &["tools/0", "system/0", "1/0", "2/0"],
        ),
        // An answer that is begun is followed by a longer one.
        (
            vec![
                user.clone(),
                assistant.clone(),
                user.clone(),
                said("assistant", "It is"),
            ],
            none.clone(),
            &["1/0", "2/0"],
        ),
        (
            vec![user.clone(), call(), result()],
            vec![tool("")],
            &["system", "1/0", "2/0"],
        ),
        (
            vec![user.clone(), assistant.clone(), image],
            none.clone(),
            &["1/0", "2/1"],
        ),
        // The text, never what the model has signed.
        (
            vec![user.clone(), thought, user.clone()],
            none,
            &["1/0", "2/0"],
        ),
    ];
    for (messages, tools, expected) in cases {
        let request = json!({"model": "m", "messages": messages, "tools": tools});
        let expected: Vec<&str> = expected
            .iter()
            .copied()
            .filter(|it| *it != "system")
            .collect();
        assert_eq!(marks(&sent(&request, Some(10))), expected, "{request}");
        assert!(marks(&sent(&request, None)).is_empty(), "{request}");
    }
}

#[test]
fn a_function_that_is_found_later_is_not_marked() {
    let mut later = tool(LONG);
    later["defer_loading"] = true.into();
    let search = json!({"type": "tool_search", "tool_search_type": "tool_search_tool_regex"});
    let request = json!({"model": "m", "messages": [said("user", "Hi")], "tools": [search, tool(LONG), later]});
    assert_eq!(marks(&sent(&request, Some(10))), ["tools/1"]);
}

/// Contract: model-gateway 2.1 prompt_cache_options
#[test]
fn nothing_is_marked_beside_the_callers_own() {
    let own = json!({"type": "ephemeral", "ttl": "1h"});
    let part = |key: &str, mark: &Value| json!({"role": "user", "content": [{"type": "text", "text": "Hi", key: mark}]});
    let messages = |last: Value| {
        json!([
            said("system", LONG),
            said("user", "Hi"),
            said("assistant", LONG),
            last
        ])
    };
    let mut marked_tool = tool(LONG);
    marked_tool["cache_control"] = own.clone();
    let requests = [
        json!({"messages": messages(part("cache_control", &own))}),
        json!({"messages": messages(part("prompt_cache_breakpoint", &json!({"mode": "explicit"})))}),
        json!({"messages": messages(said("user", "Hi")), "tools": [marked_tool]}),
        json!({"messages": messages(said("user", "Hi")), "prompt_cache_options": {"mode": "explicit"}}),
        json!({"messages": messages(said("user", "Hi")), "cache_control": own}),
        json!({"messages": [said("system", LONG), said("user", "Hi"), call(),
            {"role": "tool", "tool_call_id": "call_1", "content": "a", "tool_result_cache_control": own}], "tools": [tool("")]}),
    ];
    for mut request in requests {
        request["model"] = "m".into();
        assert_eq!(sent(&request, Some(10)), sent(&request, None), "{request}");
    }
    let implicit = json!({"model": "m", "messages": messages(said("user", "Hi")), "prompt_cache_options": {"mode": "implicit"}});
    assert_eq!(
        marks(&sent(&implicit, Some(10))),
        ["system/0", "1/0", "2/0"]
    );
}
