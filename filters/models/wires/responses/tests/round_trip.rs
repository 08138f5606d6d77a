//! What a reply said goes back as it came, to its provider alone.

use super::*;
use crate::models::dialects::Dialect;
use crate::models::wires::tests::replay;

/// The message that the client gets of these items, and would send back.
fn said(output: &Value) -> Value {
    let quirks = Quirks::default();
    let body = response("completed", output.clone());
    let answer = replay::whole(&RESPONSES, &target(&quirks), &body).unwrap();
    answer["choices"][0]["message"].clone()
}

/// The input that follows, without the user's words and the results.
fn sent_back(message: &Value) -> Vec<Value> {
    let mut messages = vec![json!({"role": "user", "content": "Hi"}), message.clone()];
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        messages.push(json!({"role": "tool", "tool_call_id": call["id"], "content": "r"}));
    }
    messages.push(json!({"role": "user", "content": "Go on"}));
    let input = input(messages.into()).unwrap();
    let is_turn = |item: &&Value| item["role"] != "user" && item["type"] != "function_call_output";
    input
        .as_array()
        .unwrap()
        .iter()
        .filter(is_turn)
        .cloned()
        .collect()
}

/// The items as they have to stand in the next request: without what only a reply has.
fn expected(output: &Value) -> Vec<Value> {
    let item = |item: &Value| {
        let mut item = item.clone();
        let members = item.as_object_mut().unwrap();
        members.remove("status");
        if members["type"] != "reasoning" {
            members.remove("id");
        }
        if members["type"] == "message" {
            let parts = members["content"].as_array().unwrap();
            let text: String = parts
                .iter()
                .map(|part| part["text"].as_str().unwrap())
                .collect();
            members["content"] = json!([{"type": "output_text", "text": text}]);
        }
        if members["type"] == "function_call" && members["arguments"] == "" {
            members["arguments"] = "{}".into();
        }
        item
    };
    output.as_array().unwrap().iter().map(item).collect()
}

/// Contract: model-gateway 2.2 phase
/// Contract: model-gateway 2.2 content_before_tool_calls
/// Contract: model-gateway 2.2 message_items
#[test]
fn a_turn_goes_back_item_by_item_and_byte_by_byte() {
    let all = output();
    let reasoning = &all[0];
    let text = |text: &str| json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]});
    let phased = |said: &str, phase: &str| {
        let mut message = text(said);
        message["phase"] = phase.into();
        message
    };
    let (a, b, again) = (&all[2], &all[4], &all[3]);
    for output in [
        all.clone(),
        json!([text("Hi")]),
        json!([reasoning, text("Hi")]),
        json!([reasoning, a, again, b]),
        json!([reasoning, again, a, b]),
        json!([reasoning, text("before"), a]),
        json!([a, reasoning, text("after")]),
        json!([reasoning, phased("only", "final_answer")]),
        json!([
            reasoning,
            phased("one", "commentary"),
            a,
            phased("two", "commentary"),
            again,
            b,
            phased("three", "final_answer")
        ]),
    ] {
        assert_eq!(sent_back(&said(&output)), expected(&output), "{output}");
    }
}

#[test]
fn reasoning_of_others_stays_behind() {
    let ours = said(&output());
    for (member, other) in [
        (
            "data",
            replay::seal(Dialect::Responses, "elsewhere/gpt-x", "gAAA"),
        ),
        ("data", "gAAA".to_owned()),
        ("format", "anthropic-claude-v1".to_owned()),
    ] {
        let mut foreign = ours.clone();
        for details in foreign["reasoning_details"].as_array_mut().unwrap() {
            details[member] = other.clone().into();
        }
        let items = sent_back(&foreign);
        assert!(
            items.iter().all(|item| item["type"] != "reasoning"),
            "{member}"
        );
        assert_eq!(items.len(), sent_back(&ours).len() - 2);
    }
}

#[test]
fn reasoning_whose_follower_is_lost_stays_behind() {
    let mut message = said(&output());
    message.as_object_mut().unwrap().remove("message_items");
    message["content"] = Value::Null;
    message.as_object_mut().unwrap().remove("tool_calls");
    assert_eq!(sent_back(&message), Vec::<Value>::new());
}

#[test]
fn a_history_of_another_provider_is_text_before_calls() {
    let message = json!({"role": "assistant", "content": "I look.", "tool_calls": [call("x")], "reasoning": "hm",
        "reasoning_details": [{"type": "reasoning.text", "text": "hm"}, {"type": "reasoning.encrypted", "data": "g", "format": "openai-responses-v1"}]});
    let kinds: Vec<Value> = sent_back(&message)
        .iter()
        .map(|item| item["type"].clone())
        .collect();
    assert_eq!(kinds, ["message", "function_call"]);
}
