#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use serde_json::{Value, json};

use super::{CheckedPrompt, check_prompt};
use crate::models::prompts::prompt::Mistake;
use crate::models::prompts::tree::Node;

fn check(file: &Value) -> Result<CheckedPrompt, Vec<Mistake>> {
    check_prompt(&Node::parse_json(&file.to_string()).unwrap())
}

fn messages() -> Value {
    json!([{"role": "user", "content": "Hi"}])
}

#[test]
fn a_good_file_keeps_the_order_of_its_members() {
    let file = json!({"parameters": {"response_format": {"type": "json_schema", "json_schema": {"name": "n",
        "schema": {"type": "object", "properties": {"z": {}, "a": {}}}}}, "tool_choice": "required", "top_k": 5},
        "messages": messages(), "variables": {"unused": "x"}, "model": "m"});
    let checked = check(&file).unwrap();
    assert_eq!(checked.json, file.to_string());
    let warned: Vec<_> = checked.warnings.iter().map(|it| &*it.path).collect();
    assert_eq!(warned, ["parameters.top_k", "variables.unused"]);
}

#[test]
fn every_mistake_of_messages_and_parameters_is_told_once() {
    let file = json!({
        "model": "@prompt/other",
        "messages": [
            {"role": "king", "content": [{"type": "text"}, {"type": "film"}, {"type": "text", "text": 5}], "name": 7},
            {"role": "user", "content": "fine"},
            {"content": "no role"},
            "text",
            {"role": "tool", "content": "x"},
            {"role": "assistant", "tool_calls": [{"id": "a", "type": "function"}], "phase": "middle"},
        ],
        "parameters": {"temperature": "hot", "stream": true, "messages": [], "user": "u", "n": 0, "reasoning": {"effort": "huge", "mode": 5},
            "reasoning_effort": "low"},
    });
    let found = check(&file).unwrap_err();
    let mut paths: Vec<_> = found.iter().map(|it| &*it.path).collect();
    paths.sort_unstable();
    let expected = [
        "messages[0].content[0].text",
        "messages[0].content[1].type",
        "messages[0].content[2].text",
        "messages[0].name",
        "messages[0].role",
        "messages[2].role",
        "messages[3]",
        "messages[5].phase",
        "messages[5].tool_calls[0].function",
        "model",
        "parameters.messages",
        "parameters.n",
        "parameters.reasoning.effort",
        "parameters.reasoning.mode",
        "parameters.stream",
        "parameters.temperature",
        "parameters.user",
    ];
    assert_eq!(paths, expected, "{found:#?}");
    let text = file.to_string();
    let role = found
        .iter()
        .find(|it| it.path == "messages[0].role")
        .unwrap();
    assert_eq!(&text[role.span.clone()], "\"king\"");
    assert!(
        role.said.contains("accepted is one of developer, system"),
        "{}",
        role.said
    );
}

#[test]
fn what_holds_between_members_holds_in_a_file() {
    let tools = json!([{"type": "function", "function": {"name": "f"}}]);
    let choice = json!({"type": "function", "function": {"name": "g"}});
    for (parameters, path) in [
        (
            json!({"reasoning_effort": "low", "reasoning": {"effort": "high"}}),
            "parameters.reasoning_effort",
        ),
        (
            json!({"tools": tools, "tool_choice": choice}),
            "parameters.tool_choice.function.name",
        ),
    ] {
        let found = check(&json!({"messages": messages(), "parameters": parameters})).unwrap_err();
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].path, path);
    }
    // The tools may be the caller's.
    check(&json!({"messages": messages(), "parameters": {"tool_choice": choice}})).unwrap();
    let found = check(&json!({"messages": []})).unwrap_err();
    assert_eq!(
        (&*found[0].path, &*found[0].said),
        ("messages", "is empty; accepted is at least one message")
    );
    for (model, said) in [
        ("{{m}}", "holds a variable"),
        ("", "is empty"),
        ("@flag/x", "names a prompt"),
    ] {
        let found = check(&json!({"messages": messages(), "model": model})).unwrap_err();
        assert!(found[0].said.contains(said), "{found:?}");
    }
}
