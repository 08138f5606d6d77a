//! Replies of Cohere: chats, and lists of vectors.

use filters::models::wires::WireKind;
use serde_json::{Value, json};

use crate::wires::{events, whole};

/// The terminal event of a chat.
pub const LAST: &[u8] = b"event: message-end\ndata: {\"type\":\"message-end\",\"delta\":{\"finish_reason\":\"COMPLETE\"}}\n\n";

fn usage() -> Value {
    json!({"billed_units?": {"input_tokens": {"$one": [5, 5.0, null, "$int"]}, "output_tokens": "$int"},
        "tokens?": {"input_tokens": "$int", "output_tokens": "$int"}, "cached_tokens?": "$int"})
}

fn citation() -> Value {
    let source = json!({"$one": [{"type": "document", "id": "d", "document": {"url": "https://a.example/x", "title?": "$text"}},
        {"type": "tool", "id": "t", "tool_output": {"$one": [{"url": "$text"}, "$any"]}}]});
    json!({"start": {"$one": [0, 1, "$int"]}, "end": {"$one": [2, "$int"]}, "text": "$text", "content_index?": {"$one": [0, 1, "$int"]},
        "type?": {"$one": ["TEXT_CONTENT", "PLAN", "$text"]}, "sources?": {"$many": source}})
}

fn call() -> Value {
    json!({"id?": {"$one": ["f_1", "$text"]}, "type?": "function", "function?": {"name?": "f", "arguments?": {"$one": ["{\"a\"", ":1}", "null", "", "$text"]}}})
}

fn finish_reason() -> Value {
    json!({"$one": ["COMPLETE", "TOOL_CALL", "MAX_TOKENS", "STOP_SEQUENCE", "ERROR", "$text"]})
}

pub fn event() -> Value {
    let index = json!({"$one": [0, 0, 1, 2, "$int"]});
    let said = |kind: &str, message: Value| json!({"type": kind, "index": index, "delta": {"message": message}});
    let part = json!({"$one": [{"text": "$text"}, {"text": "word"}, {"thinking": "$text"}, {"type": "text", "text": ""}]});
    json!({"$one": [
        said("content-delta", json!({"content": part})),
        said("content-delta", json!({"content": {"text": "word"}})),
        said("content-start", json!({"content": part})),
        said("tool-plan-delta", json!({"tool_plan": "$text"})),
        said("tool-call-start", json!({"tool_calls": call()})),
        said("tool-call-delta", json!({"tool_calls": call()})),
        said("citation-start", json!({"citations": citation()})),
        {"type": {"$one": ["content-end", "tool-call-end", "citation-end", "$text"]}, "index": index},
        {"type": "message-start", "id": "c", "delta": {"message": {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []}}},
        {"type": "message-end", "delta": {"finish_reason": finish_reason(), "usage?": usage(), "error?": "$text"}},
        {"message": "$text"},
    ]})
}

pub fn reply() -> Value {
    let part = json!({"$one": [{"type": "text", "text": "$text"}, {"type": "thinking", "thinking": "$text"}]});
    let message = json!({"role": "assistant", "content?": {"$many": part}, "tool_plan?": {"$one": ["$text", null]},
        "tool_calls?": {"$many": call()}, "citations?": {"$many": citation()}});
    json!({"$one": [
        {"id": "c", "finish_reason": finish_reason(), "message": message, "usage?": usage()},
        {"id": "$text", "embeddings": {"float": {"$many": {"$one": [[0.5, 1, -2e-3], {"$many": "$number"}, "$text"]}}},
            "meta?": {"billed_units": {"input_tokens": "$int"}}},
        {"id": "$text", "message": "$text"},
    ]})
}

#[test]
fn events_of_coheres_chats_are_the_same_however_they_are_cut() {
    events("wires: cohere, events", WireKind::Cohere);
}

#[test]
fn whole_replies_of_coheres_wire_are_the_same_however_they_are_cut() {
    whole("wires: cohere, whole replies", WireKind::Cohere);
}
