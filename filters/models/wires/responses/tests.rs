#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod encoding;
mod replies;
mod round_trip;

use bytes::Bytes;
use serde_json::{Value, json};

use super::*;
use crate::fault::Fault;
use crate::models::front::Front;
use crate::models::fronts::chat_completions::ChatCompletions;
use crate::models::wires::{Failure, Quirks, Target};

fn target(quirks: &Quirks) -> Target<'_> {
    Target {
        key_id: Some("key_1"),
        ..Target::plain("here", "gpt-x", quirks)
    }
}

/// What goes up for a request with these members beside its model.
fn sent_by(members: Value, quirks: &Quirks) -> Result<Value, Fault> {
    let mut request = json!({"model": "m"});
    let members = members.as_object().unwrap().clone();
    request.as_object_mut().unwrap().extend(members);
    let request = ChatCompletions.parse(request.to_string().into())?;
    let body: Vec<Bytes> = RESPONSES.encode(&request, &target(quirks))?;
    Ok(serde_json::from_slice(&body.concat()).unwrap())
}

fn sent(members: Value) -> Result<Value, Fault> {
    sent_by(members, &Quirks::default())
}

/// What goes up for a conversation.
fn input(messages: Value) -> Result<Value, Fault> {
    sent(json!({"messages": messages})).map(|body| body["input"].clone())
}

fn call(id: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{\"a\": 1}"}})
}

/// The output of an answer that does everything: it reasons, says what it is about to do, calls, reasons and calls again.
fn output() -> Value {
    json!([
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "First \"é\""}, {"type": "summary_text", "text": "second"}], "encrypted_content": "gAAA+/=="},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "phase": "commentary",
         "content": [{"type": "output_text", "text": "I look\n", "annotations": [], "logprobs": []}, {"type": "output_text", "text": "it up 😀.", "annotations": []}]},
        {"type": "function_call", "id": "fc_1", "call_id": "call_a", "name": "f", "arguments": "{\"a\": \"\\u00e9\"}", "status": "completed"},
        {"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "gBBB"},
        {"type": "function_call", "id": "fc_2", "call_id": "call_b", "name": "g", "arguments": "", "status": "completed"},
        {"type": "message", "id": "msg_2", "role": "assistant", "status": "completed", "phase": "final_answer",
         "content": [{"type": "output_text", "text": "Done", "annotations": []}]},
    ])
}

fn usage() -> Value {
    json!({"input_tokens": 30, "input_tokens_details": {"cached_tokens": 12, "cache_write_tokens": 5},
           "output_tokens": 20, "output_tokens_details": {"reasoning_tokens": 8}, "total_tokens": 50})
}

/// A response of this status and output.
fn response(status: &str, output: Value) -> Value {
    json!({"id": "resp_1", "object": "response", "created_at": 5, "status": status, "error": null, "incomplete_details": null,
           "model": "gpt-x-2026", "output": output, "service_tier": "flex", "usage": usage(), "metadata": {}})
}

/// The events of a stream that ends with this response, each text in two pieces.
fn events_of(response: &Value) -> Vec<Value> {
    let mut begun = response.clone();
    begun["status"] = "in_progress".into();
    begun["output"] = json!([]);
    begun["service_tier"] = "auto".into();
    begun["usage"] = Value::Null;
    let mut events = vec![
        json!({"type": "response.created", "response": begun}),
        json!({"type": "response.in_progress", "response": begun}),
    ];
    for (number, item) in response["output"].as_array().unwrap().iter().enumerate() {
        events.extend(item_events(number, item));
    }
    let status = response["status"].as_str().unwrap();
    events.push(json!({"type": format!("response.{status}"), "response": response}));
    for (number, event) in events.iter_mut().enumerate() {
        event["sequence_number"] = number.into();
    }
    events
}

fn item_events(number: usize, item: &Value) -> Vec<Value> {
    let event = |kind: &str, mut members: Value| {
        members["type"] = format!("response.{kind}").into();
        members["output_index"] = number.into();
        members["item_id"] = format!("rotated_{number}_{}", kind.len()).into();
        members
    };
    let mut begun = item.clone();
    for (key, empty) in [
        ("content", json!([])),
        ("summary", json!([])),
        ("arguments", "".into()),
        ("encrypted_content", Value::Null),
    ] {
        if begun.get(key).is_some() {
            begun[key] = empty;
        }
    }
    let mut events = vec![event("output_item.added", json!({ "item": begun }))];
    let mut text = |kind: &str, place: &str, part: usize, text: &str| {
        let half = text
            .char_indices()
            .nth(text.chars().count() / 2)
            .map_or(0, |(at, _)| at);
        for piece in [&text[..half], &text[half..]] {
            events.push(event(
                &format!("{kind}.delta"),
                json!({place: part, "delta": piece, "obfuscation": "xY"}),
            ));
        }
        events.push(event(
            &format!("{kind}.done"),
            json!({place: part, "text": text, "arguments": text}),
        ));
    };
    match item["type"].as_str().unwrap() {
        "message" => {
            for (part, content) in item["content"].as_array().unwrap().iter().enumerate() {
                let kind = if content["type"] == "refusal" {
                    "refusal"
                } else {
                    "output_text"
                };
                let said = content["text"].as_str().or(content["refusal"].as_str());
                text(kind, "content_index", part, said.unwrap());
            }
        }
        "reasoning" => {
            for (part, summary) in item["summary"].as_array().unwrap().iter().enumerate() {
                text(
                    "reasoning_summary_text",
                    "summary_index",
                    part,
                    summary["text"].as_str().unwrap(),
                );
            }
        }
        "function_call" => text(
            "function_call_arguments",
            "content_index",
            0,
            item["arguments"].as_str().unwrap(),
        ),
        "web_search_call" => events.push(event("web_search_call.searching", json!({}))),
        _ => {}
    }
    events.push(event("output_item.done", json!({ "item": item })));
    events
}

fn sse_of(events: &[Value]) -> String {
    let line = |event: &Value| {
        let kind = event["type"].as_str().unwrap_or_default();
        format!("event: {kind}\ndata: {event}\n\n")
    };
    events.iter().map(line).collect()
}
