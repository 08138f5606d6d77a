//! How the wires ask and answer that clouds alone have.

use serde_json::{Value, json};

use super::wires::{Wire, call_ids, halves, list, named, names, prompt_tokens};
use super::{Asked, Turn, text};
use crate::support::frames;
use crate::support::script::Reply;

/// Bedrock's Converse, whose streams are frames.
pub const CONVERSE: Wire = Wire {
    history: "messages",
    read: read_converse,
    reply: converse,
};
/// Cohere's chats.
pub const V2: Wire = Wire {
    history: "messages",
    read: read_v2,
    reply: v2,
};

fn read_converse(asked: &mut Asked) {
    let tools = list(&asked.body["toolConfig"]["tools"]).iter();
    asked.tools = names(tools.map(|tool| &tool["toolSpec"]["name"]));
    let blocks = list(&asked.body["messages"]).iter();
    let blocks = blocks.flat_map(|message| list(&message["content"]));
    let results = blocks.filter(|block| block["toolResult"].is_object());
    asked.results = results
        .map(|it| text(&it["toolResult"]["content"]).unwrap_or_default())
        .collect();
    let mut last = list(&asked.last["content"]).iter();
    asked.has_result = last.any(|block| block["toolResult"].is_object());
    asked.reasons = asked.body["additionalModelRequestFields"]["thinking"].is_object();
}

fn converse(asked: &Asked, turn: &Turn) -> Reply {
    let stop = match turn.calls.is_empty() {
        true => "end_turn",
        false => "tool_use",
    };
    let prompt = prompt_tokens(turn);
    let usage = json!({"inputTokens": prompt, "outputTokens": 5, "totalTokens": prompt + 5});
    if !asked.is_stream {
        let mut content = Vec::new();
        content.extend(turn.reasoning.iter().map(
            |it| json!({"reasoningContent": {"reasoningText": {"text": it, "signature": "sig"}}}),
        ));
        content.extend(turn.text.iter().map(|text| json!({"text": text})));
        content.extend(call_ids(asked, turn).map(
            |(id, name, input)| json!({"toolUse": {"toolUseId": id, "name": name, "input": input}}),
        ));
        let message = json!({"role": "assistant", "content": content});
        let reply = json!({"output": {"message": message}, "stopReason": stop, "usage": usage, "metrics": {"latencyMs": 5}});
        return Reply::json(200, reply.to_string());
    }
    let mut events = vec![("messageStart", json!({"role": "assistant"}))];
    let mut index = 0;
    let mut block = |start: Option<Value>, deltas: Vec<Value>| {
        events.extend(start.map(|start| {
            let begun = json!({"contentBlockIndex": index, "start": start});
            ("contentBlockStart", begun)
        }));
        events.extend(deltas.into_iter().map(|delta| {
            let said = json!({"contentBlockIndex": index, "delta": delta});
            ("contentBlockDelta", said)
        }));
        events.push(("contentBlockStop", json!({"contentBlockIndex": index})));
        index += 1;
    };
    if let Some(reasoning) = &turn.reasoning {
        let deltas = [json!({"text": reasoning}), json!({"signature": "sig"})];
        let deltas = deltas.map(|it| json!({"reasoningContent": it}));
        block(None, deltas.to_vec());
    }
    if let Some(text) = &turn.text {
        let deltas = halves(text).map(|half| json!({"text": half}));
        block(None, deltas.to_vec());
    }
    for (id, name, input) in call_ids(asked, turn) {
        let start = json!({"toolUse": {"toolUseId": id, "name": name}});
        let deltas = halves(&input.to_string()).map(|half| json!({"toolUse": {"input": half}}));
        block(Some(start), deltas.to_vec());
    }
    events.push(("messageStop", json!({"stopReason": stop})));
    let metadata = json!({"usage": usage, "metrics": {"latencyMs": 5}});
    events.push(("metadata", metadata));
    let head = [("content-type", "application/vnd.amazon.eventstream")];
    let send = |reply: Reply, (name, mut event): (&str, Value)| {
        // Padding, as the service sends it.
        event["p"] = "abcdefgh".into();
        reply.chunk(frames::event(name, event.to_string().as_bytes()))
    };
    let reply = Reply::chunked(200, &head);
    events.into_iter().fold(reply, send).end()
}

fn read_v2(asked: &mut Asked) {
    let tools = list(&asked.body["tools"]).iter();
    asked.tools = names(tools.map(|tool| &tool["function"]["name"]));
    let messages = list(&asked.body["messages"]).iter();
    let results = messages.filter(|message| message["role"] == "tool");
    asked.results = results
        .map(|it| text(&it["content"]).unwrap_or_default())
        .collect();
    asked.has_result = asked.last["role"] == "tool";
    asked.reasons = asked.body["thinking"]["type"] == "enabled";
}

fn v2(asked: &Asked, turn: &Turn) -> Reply {
    let finish = match turn.calls.is_empty() {
        true => "COMPLETE",
        false => "TOOL_CALL",
    };
    let counts = json!({"input_tokens": prompt_tokens(turn), "output_tokens": 5});
    let usage = json!({"billed_units": counts, "tokens": counts});
    let calls = call_ids(asked, turn).map(|(id, name, input)| {
        json!({"id": id, "type": "function", "function": {"name": name, "arguments": input.to_string()}})
    });
    let calls: Vec<Value> = calls.collect();
    let thought = turn.reasoning.iter().map(|it| ("thinking", it));
    let parts: Vec<_> = thought
        .chain(turn.text.iter().map(|it| ("text", it)))
        .collect();
    if !asked.is_stream {
        let content = parts
            .iter()
            .map(|(kind, said)| json!({"type": kind, *kind: said}));
        let content: Vec<Value> = content.collect();
        let mut message = json!({"role": "assistant", "content": content});
        if !calls.is_empty() {
            message["tool_calls"] = calls.into();
        }
        let reply = json!({"id": "1", "finish_reason": finish, "message": message, "usage": usage});
        return Reply::json(200, reply.to_string());
    }
    let begun = json!({"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []});
    let mut events = vec![json!({"type": "message-start", "id": "1", "delta": {"message": begun}})];
    let event = |kind: &str, at: usize, message: Value| json!({"type": kind, "index": at, "delta": {"message": message}});
    for (at, (kind, said)) in parts.iter().enumerate() {
        let piece = |text: &str| json!({"content": {"type": kind, *kind: text}});
        events.push(event("content-start", at, piece("")));
        events.extend(halves(said).map(|half| event("content-delta", at, piece(half))));
        events.push(json!({"type": "content-end", "index": at}));
    }
    for (at, call) in calls.iter().enumerate() {
        let arguments = call["function"]["arguments"].as_str().unwrap();
        let mut begun = call.clone();
        begun["function"]["arguments"] = "".into();
        events.push(event("tool-call-start", at, json!({"tool_calls": begun})));
        events.extend(halves(arguments).map(|half| {
            let more = json!({"tool_calls": {"function": {"arguments": half}}});
            event("tool-call-delta", at, more)
        }));
        events.push(json!({"type": "tool-call-end", "index": at}));
    }
    events.push(json!({"type": "message-end", "id": "1", "delta": {"finish_reason": finish, "usage": usage}}));
    named(&events)
}
