//! How each wire asks and answers.

use serde_json::{Value, json};

use super::{Asked, Turn, text};
use crate::support::script::Reply;
use crate::support::upstream::Received;

/// A wire: what a request asks, and the reply that says a turn.
#[derive(Clone, Copy)]
pub struct Wire {
    /// The members that hold the history, and the tools.
    pub(super) history: &'static str,
    pub(super) read: fn(&mut Asked),
    pub(super) reply: fn(&Asked, &Turn) -> Reply,
}

/// Chat completions.
pub const CHAT: Wire = Wire {
    history: "messages",
    read: read_chat,
    reply: chat,
};
/// Responses.
pub const ITEMS: Wire = Wire {
    history: "input",
    read: read_items,
    reply: items,
};
/// Messages.
pub const BLOCKS: Wire = Wire {
    history: "messages",
    read: read_blocks,
    reply: blocks,
};
/// Gemini's contents.
pub const PARTS: Wire = Wire {
    history: "contents",
    read: read_parts,
    reply: parts,
};

/// Returns the wire of a path.
pub(super) fn of(path: &str) -> Option<Wire> {
    match path.split('?').next().unwrap_or_default() {
        "/v1/chat/completions" => Some(CHAT),
        "/v1/responses" => Some(ITEMS),
        "/v1/messages" => Some(BLOCKS),
        path if path.starts_with("/v1beta/models/") => Some(PARTS),
        _ => None,
    }
}

impl Wire {
    pub fn read(&self, request: &Received) -> Asked {
        let body = request.json();
        let history = body[self.history].as_array();
        let last = history.and_then(|items| items.last()).cloned();
        // Where the path says so, the body does not.
        let streams = [":stream", "/converse-stream"];
        let mut asked = Asked {
            is_stream: body["stream"] == true || streams.iter().any(|it| request.path.contains(it)),
            tools: Vec::new(),
            results: Vec::new(),
            last: last.unwrap_or_default(),
            has_result: false,
            reasons: false,
            body,
        };
        (self.read)(&mut asked);
        asked
    }

    pub fn reply(&self, asked: &Asked, turn: &Turn) -> Reply {
        (self.reply)(asked, turn)
    }
}

pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

pub(super) fn names<'a>(tools: impl Iterator<Item = &'a Value>) -> Vec<String> {
    let names = tools.filter_map(|name| name.as_str());
    names.map(ToOwned::to_owned).collect()
}

pub(super) fn prompt_tokens(turn: &Turn) -> u64 {
    if turn.prompt_tokens == 0 {
        9
    } else {
        turn.prompt_tokens
    }
}

/// Returns ids that no earlier call has, because each call was answered before.
pub(super) fn call_ids<'t>(
    asked: &Asked,
    turn: &'t Turn,
) -> impl Iterator<Item = (String, &'t str, &'t Value)> {
    let first = asked.results.len() + 1;
    let calls = turn.calls.iter().enumerate();
    calls.map(move |(at, (name, input))| (format!("call_{}", first + at), &**name, input))
}

/// Cuts a text in two, as models say it.
pub(super) fn halves(text: &str) -> [&str; 2] {
    let mut at = text.len() / 2;
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    [&text[..at], &text[at..]]
}

fn read_chat(asked: &mut Asked) {
    asked.tools = names(
        list(&asked.body["tools"])
            .iter()
            .map(|it| &it["function"]["name"]),
    );
    let results = list(&asked.body["messages"]).iter();
    let results = results.filter(|message| message["role"] == "tool");
    asked.results = results
        .map(|it| text(&it["content"]).unwrap_or_default())
        .collect();
    asked.has_result = asked.last["role"] == "tool";
    asked.reasons = asked.body["reasoning_effort"].is_string();
}

fn chat(asked: &Asked, turn: &Turn) -> Reply {
    let finish = if turn.calls.is_empty() {
        "stop"
    } else {
        "tool_calls"
    };
    let prompt = prompt_tokens(turn);
    let usage =
        json!({"prompt_tokens": prompt, "completion_tokens": 5, "total_tokens": prompt + 5});
    let calls: Vec<Value> = call_ids(asked, turn)
        .map(|(id, name, input)| {
            json!({"id": id, "type": "function", "function": {"name": name, "arguments": input.to_string()}})
        })
        .collect();
    let head =
        |object: &str| json!({"id": "chatcmpl-1", "object": object, "created": 5, "model": "up"});
    if !asked.is_stream {
        let mut message = json!({"role": "assistant", "content": turn.text});
        if let Some(reasoning) = &turn.reasoning {
            message["reasoning_content"] = reasoning.as_str().into();
        }
        if !calls.is_empty() {
            message["tool_calls"] = calls.into();
        }
        let mut reply = head("chat.completion");
        reply["choices"] = json!([{"index": 0, "message": message, "finish_reason": finish}]);
        reply["usage"] = usage;
        return Reply::json(200, reply.to_string());
    }
    let mut deltas = vec![json!({"role": "assistant", "content": ""})];
    deltas.extend(
        turn.reasoning
            .iter()
            .map(|it| json!({"reasoning_content": it})),
    );
    let said = turn.text.iter().flat_map(|text| halves(text));
    deltas.extend(said.map(|half| json!({"content": half})));
    for (index, call) in calls.iter().enumerate() {
        let arguments = call["function"]["arguments"].as_str().unwrap();
        let mut begun = call.clone();
        begun["index"] = index.into();
        begun["function"]["arguments"] = "".into();
        deltas.push(json!({"tool_calls": [begun]}));
        deltas.extend(halves(arguments).map(
            |half| json!({"tool_calls": [{"index": index, "function": {"arguments": half}}]}),
        ));
    }
    let chunk = |choices: Value, usage: Option<&Value>| {
        let mut chunk = head("chat.completion.chunk");
        chunk["choices"] = choices;
        if let Some(usage) = usage {
            chunk["usage"] = usage.clone();
        }
        chunk.to_string()
    };
    let mut reply = Reply::stream();
    for delta in deltas {
        let choice = json!([{"index": 0, "delta": delta, "finish_reason": null}]);
        reply = reply.event(&chunk(choice, None));
    }
    let end = json!([{"index": 0, "delta": {}, "finish_reason": finish}]);
    let reply = reply.event(&chunk(end, None));
    reply
        .event(&chunk(json!([]), Some(&usage)))
        .event("[DONE]")
        .end()
}

/// The tools of a body of items by the names that they have on wires without namespaces.
fn item_tools(body: &Value) -> impl Iterator<Item = (String, Option<&Value>, &Value)> {
    list(&body["tools"]).iter().flat_map(|tool| {
        let name = |tool: &Value| tool["name"].as_str().unwrap_or_default().to_owned();
        let space = name(tool);
        match tool["type"] == "namespace" {
            false => vec![(space, None, tool)],
            true => list(&tool["tools"])
                .iter()
                .map(|inner| {
                    (
                        format!("{space}__{}", name(inner)),
                        Some(&tool["name"]),
                        inner,
                    )
                })
                .collect(),
        }
    })
}

fn is_result(item: &Value) -> bool {
    item["type"] == "function_call_output" || item["type"] == "custom_tool_call_output"
}

fn read_items(asked: &mut Asked) {
    asked.tools = item_tools(&asked.body)
        .map(|(name, ..)| name)
        .filter(|name| !name.is_empty())
        .collect();
    let results = list(&asked.body["input"]).iter();
    let results = results.filter(|item| is_result(item));
    asked.results = results
        .map(|it| text(&it["output"]).unwrap_or_default())
        .collect();
    asked.has_result = is_result(&asked.last);
    asked.reasons = asked.body["reasoning"]["effort"].is_string();
}

fn items(asked: &Asked, turn: &Turn) -> Reply {
    let mut output = Vec::new();
    if let Some(reasoning) = &turn.reasoning {
        output.push(json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": reasoning}], "encrypted_content": "gAAA"}));
    }
    if let Some(text) = &turn.text {
        output.push(json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": text, "annotations": []}]}));
    }
    output.extend(call_ids(asked, turn).map(|(id, name, input)| {
        let offered = item_tools(&asked.body).find(|(flat, ..)| flat == name);
        let (_, space, tool) = offered.unwrap_or((String::new(), None, &Value::Null));
        let mut call = json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": name, "arguments": input.to_string(), "status": "completed"});
        if let Some(space) = space {
            (call["namespace"], call["name"]) = (space.clone(), tool["name"].clone());
        }
        if tool["type"] == "custom" {
            call["type"] = "custom_tool_call".into();
            call["input"] = input["input"].clone();
            call.as_object_mut().unwrap().remove("arguments");
        }
        call
    }));
    let prompt = prompt_tokens(turn);
    let response = json!({"id": "resp_1", "object": "response", "created_at": 5, "status": "completed", "model": "up", "output": output,
        "usage": {"input_tokens": prompt, "output_tokens": 5, "total_tokens": prompt + 5}});
    if !asked.is_stream {
        return Reply::json(200, response.to_string());
    }
    let mut begun = response.clone();
    begun["status"] = "in_progress".into();
    begun["output"] = json!([]);
    begun["usage"] = Value::Null;
    let beginning = ["response.created", "response.in_progress"];
    let mut events: Vec<Value> = beginning
        .iter()
        .map(|kind| json!({"type": kind, "response": begun}))
        .collect();
    for (at, item) in output.iter().enumerate() {
        events.extend(item_events(at, item));
    }
    events.push(json!({"type": "response.completed", "response": response}));
    for (number, event) in events.iter_mut().enumerate() {
        event["sequence_number"] = number.into();
    }
    named(&events)
}

/// The events of an item.
fn item_events(at: usize, item: &Value) -> Vec<Value> {
    let mut begun = item.clone();
    begun["status"] = "in_progress".into();
    let inner = |kind: &str, more: Value| {
        let mut event =
            json!({"type": format!("response.{kind}"), "item_id": item["id"], "output_index": at});
        event
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        event
    };
    let said = |text: &Value| halves(text.as_str().unwrap()).map(str::to_owned);
    let mut between = Vec::new();
    match item["type"].as_str() {
        Some("message") => {
            begun["content"] = json!([]);
            let part = &item["content"][0];
            between.push(inner("content_part.added", json!({"content_index": 0, "part": {"type": "output_text", "text": "", "annotations": []}})));
            between.extend(said(&part["text"]).map(|half| {
                inner(
                    "output_text.delta",
                    json!({"content_index": 0, "delta": half}),
                )
            }));
            between.push(inner(
                "output_text.done",
                json!({"content_index": 0, "text": part["text"]}),
            ));
            between.push(inner(
                "content_part.done",
                json!({"content_index": 0, "part": part}),
            ));
        }
        Some("reasoning") => {
            begun["summary"] = json!([]);
            let part = &item["summary"][0];
            between.push(inner(
                "reasoning_summary_part.added",
                json!({"summary_index": 0, "part": {"type": "summary_text", "text": ""}}),
            ));
            between.push(inner(
                "reasoning_summary_text.delta",
                json!({"summary_index": 0, "delta": part["text"]}),
            ));
            between.push(inner(
                "reasoning_summary_text.done",
                json!({"summary_index": 0, "text": part["text"]}),
            ));
            between.push(inner(
                "reasoning_summary_part.done",
                json!({"summary_index": 0, "part": part}),
            ));
        }
        Some("custom_tool_call") => {
            begun["input"] = "".into();
            between.extend(
                said(&item["input"])
                    .map(|half| inner("custom_tool_call_input.delta", json!({"delta": half}))),
            );
            between.push(inner(
                "custom_tool_call_input.done",
                json!({"input": item["input"]}),
            ));
        }
        Some("function_call") => {
            begun["arguments"] = "".into();
            between.extend(
                said(&item["arguments"])
                    .map(|half| inner("function_call_arguments.delta", json!({"delta": half}))),
            );
            between.push(inner(
                "function_call_arguments.done",
                json!({"arguments": item["arguments"]}),
            ));
        }
        _ => {}
    }
    let around = |kind: &str, item: &Value| json!({"type": format!("response.output_item.{kind}"), "output_index": at, "item": item});
    let mut events = vec![around("added", &begun)];
    events.extend(between);
    events.push(around("done", item));
    events
}

fn read_blocks(asked: &mut Asked) {
    asked.tools = names(list(&asked.body["tools"]).iter().map(|it| &it["name"]));
    let blocks = list(&asked.body["messages"]).iter();
    let blocks = blocks.flat_map(|message| list(&message["content"]));
    let results = blocks.filter(|block| block["type"] == "tool_result");
    asked.results = results
        .map(|it| text(&it["content"]).unwrap_or_default())
        .collect();
    let last = list(&asked.last["content"]).iter();
    asked.has_result = last.clone().any(|block| block["type"] == "tool_result");
    let thinking = &asked.body["thinking"];
    asked.reasons = thinking.is_object() && thinking["type"] != "disabled";
}

fn blocks(asked: &Asked, turn: &Turn) -> Reply {
    let mut content = Vec::new();
    if let Some(reasoning) = &turn.reasoning {
        content.push(json!({"type": "thinking", "thinking": reasoning, "signature": "sig"}));
    }
    content.extend(
        turn.text
            .iter()
            .map(|text| json!({"type": "text", "text": text})),
    );
    content.extend(call_ids(asked, turn).map(|(id, name, input)| {
        json!({"type": "tool_use", "id": format!("toolu_{id}"), "name": name, "input": input})
    }));
    let stop = if turn.calls.is_empty() {
        "end_turn"
    } else {
        "tool_use"
    };
    let prompt = prompt_tokens(turn);
    let message = |content: Value, stop: Value| {
        json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "up", "content": content,
        "stop_reason": stop, "stop_sequence": null, "usage": {"input_tokens": prompt, "output_tokens": 5}})
    };
    if !asked.is_stream {
        return Reply::json(200, message(content.into(), stop.into()).to_string());
    }
    let mut events =
        vec![json!({"type": "message_start", "message": message(json!([]), Value::Null)})];
    for (at, block) in content.iter().enumerate() {
        let said = |key: &str| block[key].as_str().unwrap();
        let (begun, deltas) = match block["type"].as_str() {
            Some("thinking") => (
                json!({"type": "thinking", "thinking": "", "signature": ""}),
                vec![
                    json!({"type": "thinking_delta", "thinking": said("thinking")}),
                    json!({"type": "signature_delta", "signature": said("signature")}),
                ],
            ),
            Some("text") => {
                let halves = halves(said("text"))
                    .into_iter()
                    .filter(|half| !half.is_empty());
                let deltas = halves.map(|half| json!({"type": "text_delta", "text": half}));
                (json!({"type": "text", "text": ""}), deltas.collect())
            }
            _ => {
                let input = block["input"].to_string();
                let deltas = halves(&input)
                    .map(|half| json!({"type": "input_json_delta", "partial_json": half}));
                let mut begun = block.clone();
                begun["input"] = json!({});
                (begun, deltas.to_vec())
            }
        };
        events.push(json!({"type": "content_block_start", "index": at, "content_block": begun}));
        let deltas = deltas.into_iter();
        events.extend(
            deltas.map(|delta| json!({"type": "content_block_delta", "index": at, "delta": delta})),
        );
        events.push(json!({"type": "content_block_stop", "index": at}));
    }
    events.push(json!({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": null}, "usage": {"output_tokens": 5}}));
    events.push(json!({"type": "message_stop"}));
    named(&events)
}

fn read_parts(asked: &mut Asked) {
    let declared = list(&asked.body["tools"]).iter();
    let declared = declared.flat_map(|tool| list(&tool["functionDeclarations"]));
    asked.tools = names(declared.map(|it| &it["name"]));
    let parts = list(&asked.body["contents"]).iter();
    let parts = parts.flat_map(|content| list(&content["parts"]));
    let results = parts.filter(|part| part["functionResponse"].is_object());
    let said = results.map(|part| {
        let response = &part["functionResponse"]["response"];
        // A result that is an object stands here as it is.
        text(response).unwrap_or_else(|| response.to_string())
    });
    asked.results = said.collect();
    let last = list(&asked.last["parts"]).iter();
    asked.has_result = last
        .clone()
        .any(|part| part["functionResponse"].is_object());
    asked.reasons = asked.body["generationConfig"]["thinkingConfig"]["includeThoughts"] == true;
}

fn parts(asked: &Asked, turn: &Turn) -> Reply {
    let mut parts = Vec::new();
    parts.extend(
        turn.reasoning
            .iter()
            .map(|it| json!({"text": it, "thought": true})),
    );
    match (&turn.text, asked.is_stream) {
        (Some(text), true) => parts.extend(halves(text).map(|half| json!({"text": half}))),
        (Some(text), false) => parts.push(json!({"text": text})),
        (None, _) => {}
    }
    for (at, (_, name, input)) in call_ids(asked, turn).enumerate() {
        let mut part = json!({"functionCall": {"name": name, "args": input}});
        if at == 0 {
            part["thoughtSignature"] = "c2ln".into();
        }
        parts.push(part);
    }
    let prompt = prompt_tokens(turn);
    let usage = json!({"promptTokenCount": prompt, "candidatesTokenCount": 5, "totalTokenCount": prompt + 5});
    let reply = |parts: &[Value], finish: Option<&str>| {
        let mut reply = json!({"responseId": "r1", "candidates": [{"index": 0, "content": {"role": "model", "parts": parts}}], "usageMetadata": usage});
        if let Some(finish) = finish {
            reply["candidates"][0]["finishReason"] = finish.into();
        }
        reply.to_string()
    };
    if !asked.is_stream {
        return Reply::json(200, reply(&parts, Some("STOP")));
    }
    let events = parts.chunks(1).map(|part| reply(part, None));
    let sent = events.fold(Reply::stream(), |sent, event| sent.event(&event));
    sent.event(&reply(&[], Some("STOP"))).end()
}

pub(super) fn named(events: &[Value]) -> Reply {
    let send = |reply: Reply, event: &Value| {
        reply.named_event(event["type"].as_str().unwrap(), &event.to_string())
    };
    events.iter().fold(Reply::stream(), send).end()
}
