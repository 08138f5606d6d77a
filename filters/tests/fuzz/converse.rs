//! Replies of Bedrock's Converse: events in frames, and whole ones.

use filters::models::wires::{EventFraming, ReplyHead, WireKind};
use serde_json::{Value, json};

use crate::choices::Choices;
use crate::wires::{EVENTS, events, whole};
use crate::{damage, frames, grammar};

pub const FRAMES: ReplyHead = ReplyHead {
    events: Some(EventFraming::Frames),
    ..EVENTS
};

fn usage() -> Value {
    json!({"inputTokens": {"$one": [10, null, "$int"]}, "outputTokens": "$int", "cacheReadInputTokens?": "$int", "cacheWriteInputTokens?": "$int",
        "cacheDetails?": {"$one": [[{"ttl": "1h", "inputTokens": "$int"}], "$any"]}})
}

fn stop_reason() -> Value {
    json!({"$one": ["end_turn", "tool_use", "max_tokens", "stop_sequence", "content_filtered", "$text"]})
}

pub fn event() -> Value {
    let delta = json!({"$one": [{"text": "$text"}, {"text": "word"}, {"reasoningContent": {"text": "$text"}}, {"reasoningContent": {"signature": "s"}},
        {"reasoningContent": {"redactedContent": "eA=="}}, {"toolUse": {"input": {"$one": ["{\"a\"", ":1}", "", "$text"]}}},
        {"citation": {"title": "t", "location": {"web": {"url": "$text"}}}}, "$any"]});
    let index = json!({"$one": [0, 0, 1, 2, "$int"]});
    let call = json!({"toolUse": {"toolUseId": "t1", "name": {"$one": ["f", "$text"]}}});
    let event = |name: &str, data: Value| json!({"name": name, "data": data});
    let stop = json!({"stopReason": stop_reason(), "additionalModelResponseFields?": {"$one": [{"delta": {"stop_sequence": "$text"}}, "$any"]}});
    json!({"$one": [
        event("contentBlockDelta", json!({"contentBlockIndex": index, "delta": delta, "p?": "abc"})),
        event("contentBlockDelta", json!({"contentBlockIndex": 0, "delta": {"text": "word"}})),
        event("messageStart", json!({"role": "assistant"})),
        event("contentBlockStart", json!({"contentBlockIndex": index, "start": {"$one": [call, {}, "$any"]}})),
        event("contentBlockStop", json!({"contentBlockIndex": index})),
        event("messageStop", stop),
        event("metadata", json!({"usage": usage(), "metrics?": "$any", "serviceTier?": {"type": "flex"}})),
        event("$text", json!("$any")),
        {"name": "throttlingException", "data": {"message": "$text"}, "fails": true},
    ]})
}

pub fn reply() -> Value {
    let reasoning = json!({"$one": [{"reasoningText": {"text": "hm", "signature?": "s"}}, {"redactedContent": "eA=="}, "$any"]});
    let block = json!({"$one": [{"text": "$text"}, {"toolUse": {"toolUseId": "t1", "name": "f", "input": {"$one": [{"a": 1}, "$any"]}}},
        {"reasoningContent": reasoning},
        {"citationsContent": {"content": [{"text": "$text"}], "citations": {"$many": {"title?": "t", "location": {"web": {"url": "$text"}}}}}}, "$any"]});
    json!({"$one": [
        {"output": {"message": {"role": "assistant", "content": {"$many": block}}}, "stopReason": stop_reason(), "usage?": usage(),
            "additionalModelResponseFields?": "$any", "serviceTier?": {"type": "$text"}},
        {"Output": {"__type": "com.amazon.coral.service#UnknownOperationException"}, "Version": "1.0"},
    ]})
}

/// Frames that the provider sends, or nearly so.
pub fn stream(choices: &mut Choices<'_>, grammar: &Value) -> Vec<u8> {
    let mut stream = Vec::new();
    for _ in 0..choices.below(10) {
        let mut event = grammar::compose(choices, grammar);
        if choices.once_in(8) {
            event["data"] = damage::tree(choices, event["data"].take());
        }
        let payload = event["data"].to_string();
        let name = event["name"].as_str().unwrap_or("x");
        let frame = match event["fails"].as_bool() {
            Some(true) => frames::exception(name, payload.as_bytes()),
            _ => frames::event(name, payload.as_bytes()),
        };
        stream.extend_from_slice(&frame);
    }
    if !choices.once_in(4) {
        let stop = br#"{"stopReason":"end_turn"}"#;
        stream.extend_from_slice(&frames::event("messageStop", stop));
        let usage = br#"{"usage":{"inputTokens":1,"outputTokens":1}}"#;
        stream.extend_from_slice(&frames::event("metadata", usage));
    }
    stream
}

#[test]
fn events_of_converse_are_the_same_however_they_are_cut() {
    events("wires: converse, events", WireKind::Converse);
}

#[test]
fn replies_of_converse_are_the_same_however_they_are_cut() {
    whole("wires: converse, whole replies", WireKind::Converse);
}
