//! Replies of the families: composed ones, each with what is odd of its provider, and those that a folder holds.

use std::path::Path;

use filters::models::wires::{Quirks, WireKind};
use serde_json::{Value, json};

/// A reply: its events, its whole form, or both.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) wire: WireKind,
    pub(crate) quirks: Quirks,
    /// Members of the request beside the usual ones.
    pub(crate) members: Value,
    /// The JSON of each event.
    pub(crate) events: Vec<String>,
    pub(crate) whole: Option<String>,
}

/// Providers whose replies a folder may hold, and their wires.
const PROVIDERS: [(&str, WireKind); 12] = [
    ("alibaba", WireKind::Compatible),
    ("anthropic", WireKind::Messages),
    ("azure", WireKind::Responses),
    ("deepseek", WireKind::Compatible),
    ("google", WireKind::Contents),
    ("groq", WireKind::Compatible),
    ("mistral", WireKind::Compatible),
    ("moonshotai", WireKind::Compatible),
    ("openai-chat", WireKind::Compatible),
    ("openai-responses", WireKind::Responses),
    ("perplexity", WireKind::Compatible),
    ("xai", WireKind::Compatible),
];

/// Reads the replies of a folder. Errors in replies, and what is no chat, are left out.
pub(crate) fn captured(folder: &Path) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for (provider, wire) in PROVIDERS {
        let Ok(files) = std::fs::read_dir(folder.join(provider)) else {
            continue;
        };
        let mut paths: Vec<_> = files.map(|file| file.unwrap().path()).collect();
        paths.sort();
        for path in paths {
            let file = path.file_name().unwrap().to_string_lossy().into_owned();
            let text = std::fs::read_to_string(&path).unwrap();
            let (name, is_stream) = match file.strip_suffix(".chunks.txt") {
                Some(name) => (name, true),
                None => (file.trim_end_matches(".json"), false),
            };
            let name = format!("{provider}/{name}");
            if name.contains("error") || name.contains("transcription") {
                continue;
            }
            if cases.last().is_none_or(|last| last.name != name) {
                let quirks = Quirks {
                    reasoning_excluded_from_completion: provider == "xai",
                    ..Quirks::default()
                };
                cases.push(Case {
                    name,
                    wire,
                    quirks,
                    members: Value::Null,
                    events: Vec::new(),
                    whole: None,
                });
            }
            let case = cases.last_mut().unwrap();
            match is_stream {
                true => {
                    case.events = text
                        .lines()
                        .filter(|line| !line.is_empty())
                        .map(str::to_owned)
                        .collect()
                }
                false => case.whole = Some(text),
            }
        }
    }
    cases
}

/// The same answer of each family: it reasons "hm", says "Hello", and calls `f` with `{"a":1}`, as far as the family does so.
pub(crate) fn composed() -> Vec<Case> {
    let mut cases = compatible();
    cases.extend(odd_calls());
    cases.extend([messages(), contents(), items()]);
    cases
}

fn case(name: &str, wire: WireKind, events: &[Value], whole: &Value) -> Case {
    Case {
        name: name.into(),
        wire,
        quirks: Quirks::default(),
        members: Value::Null,
        events: events.iter().map(Value::to_string).collect(),
        whole: Some(whole.to_string()),
    }
}

/// A chunk of the chat convention with these members of its choice, and with these members of its own.
fn chunk(choice: &Value, own: &Value) -> Value {
    let mut chunk = json!({"id": "c1", "object": "chat.completion.chunk", "created": 5, "model": "up", "choices": []});
    if !choice.is_null() {
        let mut piece = json!({"index": 0, "finish_reason": null});
        merge(&mut piece, choice);
        chunk["choices"] = json!([piece]);
    }
    merge(&mut chunk, own);
    chunk
}

pub(crate) fn merge(into: &mut Value, more: &Value) {
    for (key, value) in more.as_object().into_iter().flatten() {
        into[key] = value.clone();
    }
}

fn delta(delta: Value) -> Value {
    chunk(&json!({"delta": delta}), &json!({}))
}

fn finish(reason: &str, own: &Value) -> Value {
    chunk(&json!({"delta": {}, "finish_reason": reason}), own)
}

fn chat(message: Value, reason: &str, usage: &Value) -> Value {
    json!({"id": "c1", "object": "chat.completion", "created": 5, "model": "up", "usage": usage,
        "choices": [{"index": 0, "finish_reason": reason, "message": message}]})
}

fn called() -> Value {
    json!({"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{\"a\":1}"}})
}

fn counts(prompt: u64, completion: u64) -> Value {
    json!({"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion})
}

/// Providers of the chat convention, each with what is odd of its streams.
fn compatible() -> Vec<Case> {
    let said = |reasoning: &str| json!({"role": "assistant", "content": "Hello", reasoning: "hm", "tool_calls": [called()]});
    let first = |arguments: &str| json!({"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": {"name": "f", "arguments": arguments}}]});
    let more = |arguments: &str| json!({"tool_calls": [{"index": 0, "function": {"arguments": arguments}}]});
    let whole_call = json!({"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{\"a\":1}"}}]});
    let usage = counts(9, 8);
    let case = |name: &str, events: &[Value], whole: &Value| {
        case(name, WireKind::Compatible, events, whole)
    };
    let mut own_usage = counts(9, 3);
    own_usage["total_tokens"] = 17.into();
    own_usage["completion_tokens_details"] = json!({"reasoning_tokens": 5});
    let mut apart = case(
        "reasoning beside the completion",
        &[
            delta(json!({"role": "assistant", "content": "", "reasoning_content": "hm"})),
            delta(json!({"content": "Hello"})),
            delta(whole_call.clone()),
            finish("tool_calls", &json!({})),
            chunk(&Value::Null, &json!({"usage": own_usage})),
        ],
        &chat(said("reasoning_content"), "tool_calls", &own_usage),
    );
    apart.quirks.reasoning_excluded_from_completion = true;
    vec![
        case(
            "usage in a chunk of its own",
            &[
                delta(json!({"role": "assistant", "content": "", "refusal": null})),
                delta(json!({"reasoning": "hm"})),
                delta(json!({"content": "Hel"})),
                delta(json!({"content": "lo"})),
                delta(first("")),
                delta(more("{\"a\"")),
                delta(more(":1}")),
                finish("tool_calls", &json!({"obfuscation": "xx"})),
                chunk(&Value::Null, &json!({"usage": usage})),
            ],
            &chat(said("reasoning"), "tool_calls", &usage),
        ),
        apart,
        case(
            "usage on the chunk of the finish, twice",
            &[
                delta(json!({"role": "assistant", "content": null, "reasoning": "hm"})),
                delta(json!({"content": "Hello"})),
                delta(whole_call.clone()),
                finish(
                    "tool_calls",
                    &json!({"usage": usage, "x_own": {"id": "req", "usage": usage}}),
                ),
            ],
            &chat(said("reasoning"), "tool_calls", &usage),
        ),
        case(
            "usage so far on every chunk, the role on every delta",
            &[
                chunk(
                    &json!({"delta": {"role": "assistant", "content": "Hel"}}),
                    &json!({"usage": counts(9, 1)}),
                ),
                chunk(
                    &json!({"delta": {"role": "assistant", "content": "lo"}}),
                    &json!({"usage": counts(9, 2)}),
                ),
                chunk(
                    &json!({"delta": {"role": "assistant", "content": ""}, "finish_reason": "stop"}),
                    &json!({"usage": counts(9, 3)}),
                ),
            ],
            &chat(
                json!({"role": "assistant", "content": "Hello"}),
                "stop",
                &counts(9, 3),
            ),
        ),
        case(
            "content as parts",
            &[
                delta(
                    json!({"role": "assistant", "content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]}),
                ),
                delta(json!({"content": [{"type": "text", "text": "Hello"}]})),
                chunk(
                    &json!({"delta": {"content": "", "tool_calls": [called()]}, "finish_reason": "tool_calls"}),
                    &json!({"usage": usage}),
                ),
            ],
            &chat(
                json!({"role": "assistant", "tool_calls": [called()], "content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "Hello"}]}),
                "tool_calls",
                &usage,
            ),
        ),
    ]
}

/// Calls as few providers of the chat convention say them.
fn odd_calls() -> Vec<Case> {
    let usage = counts(9, 8);
    let case = |name: &str, events: &[Value], whole: &Value| {
        case(name, WireKind::Compatible, events, whole)
    };
    vec![
        case(
            "the only call in its old form",
            &[
                delta(
                    json!({"role": "assistant", "content": null, "function_call": {"name": "f", "arguments": ""}}),
                ),
                delta(json!({"function_call": {"arguments": "{\"a\""}})),
                delta(json!({"function_call": {"arguments": ":1}"}})),
                finish("function_call", &json!({"usage": usage})),
            ],
            &chat(
                json!({"role": "assistant", "content": null, "tool_calls": [], "function_call": {"name": "f", "arguments": "{\"a\":1}"}}),
                "function_call",
                &usage,
            ),
        ),
        case(
            "calls without indexes from 0, forced ones that end with stop",
            &[
                delta(json!({"role": "assistant"})),
                delta(
                    json!({"tool_calls": [{"index": 1, "id": "call_1", "type": "function", "function": {"name": "f"}}]}),
                ),
                delta(
                    json!({"tool_calls": [{"index": 1, "function": {"arguments": "{\"a\":1}"}}]}),
                ),
                delta(
                    json!({"tool_calls": [{"index": 1, "id": "call_2", "type": "function", "function": {"name": "g", "arguments": ""}}]}),
                ),
                finish("stop", &json!({"usage": null})),
                chunk(&Value::Null, &json!({"usage": usage})),
            ],
            &chat(
                json!({"role": "assistant", "content": null, "tool_calls": [called(), {"id": "call_2", "type": "function", "function": {"name": "g", "arguments": ""}}]}),
                "stop",
                &usage,
            ),
        ),
    ]
}

fn messages() -> Case {
    let call =
        |input: Value| json!({"type": "tool_use", "id": "toolu_1", "name": "f", "input": input});
    let block = |index: u64, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let delta = |index: u64, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let stop = |index: u64| json!({"type": "content_block_stop", "index": index});
    let message = |content: Value, reason: Value, output: u64| {
        json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "up", "content": content, "stop_reason": reason,
        "usage": {"input_tokens": 4, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 2, "output_tokens": output}})
    };
    case(
        "blocks of Messages",
        WireKind::Messages,
        &[
            json!({"type": "message_start", "message": message(json!([]), Value::Null, 1)}),
            block(
                0,
                json!({"type": "thinking", "thinking": "", "signature": ""}),
            ),
            json!({"type": "ping"}),
            delta(0, json!({"type": "thinking_delta", "thinking": "hm"})),
            delta(0, json!({"type": "signature_delta", "signature": "sig"})),
            stop(0),
            block(1, json!({"type": "text", "text": ""})),
            delta(1, json!({"type": "text_delta", "text": "Hello"})),
            stop(1),
            block(2, call(json!({}))),
            delta(2, json!({"type": "input_json_delta", "partial_json": ""})),
            delta(
                2,
                json!({"type": "input_json_delta", "partial_json": "{\"a\""}),
            ),
            delta(
                2,
                json!({"type": "input_json_delta", "partial_json": ":1}"}),
            ),
            stop(2),
            json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 8}}),
            json!({"type": "message_stop"}),
        ],
        &message(
            json!([{"type": "thinking", "thinking": "hm", "signature": "sig"}, {"type": "text", "text": "Hello"}, call(json!({"a": 1}))]),
            "tool_use".into(),
            8,
        ),
    )
}

fn contents() -> Case {
    let part = |part: Value| json!({"role": "model", "parts": [part]});
    let event = |content: Value, more: Value| {
        let mut candidate = json!({"index": 0, "content": content});
        merge(&mut candidate, &more);
        json!({"responseId": "r1", "candidates": [candidate],
            "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 3, "thoughtsTokenCount": 5, "totalTokenCount": 17}})
    };
    let call = json!({"functionCall": {"id": "call_1", "name": "f", "args": {"a": 1}}, "thoughtSignature": "sig"});
    case(
        "parts of contents",
        WireKind::Contents,
        &[
            event(part(json!({"text": "hm", "thought": true})), json!({})),
            event(part(json!({"text": "Hel"})), json!({})),
            event(part(json!({"text": "lo"})), json!({})),
            event(part(call.clone()), json!({})),
            event(part(json!({"text": ""})), json!({"finishReason": "STOP"})),
        ],
        &event(
            json!({"role": "model", "parts": [{"text": "hm", "thought": true}, {"text": "Hello"}, call]}),
            json!({"finishReason": "STOP"}),
        ),
    )
}

fn items() -> Case {
    let reasoning = json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "gAAA"});
    let message = json!({"type": "message", "id": "msg_1", "content": [{"type": "output_text", "text": "Hello", "annotations": []}]});
    let call = |arguments: &str| json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": arguments});
    let added = |at: u64, item: Value| json!({"type": "response.output_item.added", "output_index": at, "item": item});
    let done = |at: u64, item: &Value| json!({"type": "response.output_item.done", "output_index": at, "item": item});
    let response = json!({"id": "resp_1", "object": "response", "created_at": 5, "status": "completed", "model": "up", "output": [reasoning, message, call("{\"a\":1}")],
        "usage": {"input_tokens": 9, "output_tokens": 8, "input_tokens_details": {"cached_tokens": 2}, "output_tokens_details": {"reasoning_tokens": 5}, "total_tokens": 17}});
    case(
        "items of Responses",
        WireKind::Responses,
        &[
            json!({"type": "response.created", "response": {"id": "resp_1", "created_at": 5}}),
            added(0, json!({"type": "reasoning", "id": "rs_1", "summary": []})),
            json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 0, "delta": "hm"}),
            done(0, &reasoning),
            added(1, json!({"type": "message", "id": "msg_1", "content": []})),
            json!({"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": "Hello"}),
            done(1, &message),
            added(2, call("")),
            json!({"type": "response.function_call_arguments.delta", "output_index": 2, "delta": "{\"a\""}),
            json!({"type": "response.function_call_arguments.delta", "output_index": 2, "delta": ":1}"}),
            done(2, &call("{\"a\":1}")),
            json!({"type": "response.completed", "response": response}),
        ],
        &response,
    )
}
