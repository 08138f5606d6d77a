//! A chat in the words of each front.

use filters::models::dialects::Dialect;
use filters::models::dialects::state::{Maker, States};
use filters::models::front::Front;
use filters::models::fronts::chat_completions::ChatCompletions;
use filters::models::fronts::completions::Completions;
use filters::models::fronts::messages::Messages;
use filters::models::fronts::responses::Responses;
use filters::models::wires::WireKind;
use serde_json::{Map, Value, json};

use super::talk::{Call, Form, Outcome, Part, Talk, Thought, Tool, ToolKind, Turn, Words, schema};

/// A front, what it has words for, and how it says a chat.
pub struct Saying {
    pub name: &'static str,
    pub dialect: Dialect,
    pub front: &'static dyn Front,
    pub words: Words,
    pub say: fn(&Talk) -> Value,
}

/// All fronts of chats. One that is added here is tried on every wire.
pub static FRONTS: [Saying; 4] = [
    Saying {
        name: "chat_completions",
        dialect: Dialect::Chat,
        front: &ChatCompletions,
        words: Words {
            developer: true,
            sound: true,
            refusal: true,
            stop: true,
            any_object: true,
            details: true,
            errors: false,
            media_in_results: false,
            freeform: false,
            text_alone: false,
        },
        say: chat,
    },
    Saying {
        name: "messages",
        dialect: Dialect::Messages,
        front: &Messages,
        words: Words {
            errors: true,
            media_in_results: true,
            stop: true,
            developer: false,
            sound: false,
            refusal: false,
            any_object: false,
            details: false,
            freeform: false,
            text_alone: false,
        },
        say: messages,
    },
    Saying {
        name: "responses",
        dialect: Dialect::Responses,
        front: &Responses,
        words: Words {
            developer: true,
            sound: true,
            refusal: true,
            media_in_results: true,
            any_object: true,
            details: true,
            freeform: true,
            errors: false,
            stop: false,
            text_alone: false,
        },
        say: responses,
    },
    Saying {
        name: "completions",
        dialect: Dialect::Completions,
        front: &Completions,
        words: Words {
            stop: true,
            text_alone: true,
            developer: false,
            sound: false,
            refusal: false,
            errors: false,
            media_in_results: false,
            any_object: false,
            details: false,
            freeform: false,
        },
        say: completions,
    },
];

/// The wires of chats, each with the dialect of its bodies.
pub const WIRES: [(WireKind, Dialect); 5] = [
    (WireKind::Compatible, Dialect::Chat),
    (WireKind::Messages, Dialect::Messages),
    (WireKind::Responses, Dialect::Responses),
    (WireKind::Contents, Dialect::Contents),
    (WireKind::Completions, Dialect::Completions),
];

/// The sealed state of a thought.
fn sealed(thought: &Thought, state: &str) -> String {
    let name = match thought.made {
        Some(_) => "here/upstream-model",
        None => "there/another",
    };
    Maker::from_name(States::NONE, name).seal(thought.made.unwrap_or(Dialect::Messages), state)
}

/// The item of a host of Responses that has thought so.
fn item(thought: &Thought) -> String {
    json!({"id": "rs_1", "summary": [{"type": "summary_text", "text": thought.text}], "encrypted_content": thought.state}).to_string()
}

fn body(talk: &Talk) -> Value {
    let mut body = json!({"model": "m"});
    if let Some(temperature) = talk.temperature {
        body["temperature"] = temperature.into();
    }
    body
}

fn chat_part(part: &Part) -> Value {
    match part {
        Part::Text(text) => json!({"type": "text", "text": text}),
        Part::Image { url, detail: None } => {
            json!({"type": "image_url", "image_url": {"url": url}})
        }
        Part::Image { url, detail } => {
            json!({"type": "image_url", "image_url": {"url": url, "detail": detail}})
        }
        Part::File { name, url } => {
            json!({"type": "file", "file": {"filename": name, "file_data": url}})
        }
        Part::Sound { data, format } => {
            json!({"type": "input_audio", "input_audio": {"data": data, "format": format}})
        }
    }
}

fn chat(talk: &Talk) -> Value {
    let mut messages = Vec::new();
    for turn in &talk.turns {
        match turn {
            Turn::Given { role, parts } => {
                let parts: Vec<Value> = parts.iter().map(chat_part).collect();
                messages.push(json!({"role": role, "content": parts}));
            }
            Turn::Said {
                thought,
                text,
                refusal,
                calls,
            } => {
                let mut message = json!({"role": "assistant", "content": text});
                if let Some(refusal) = refusal {
                    message["refusal"] = refusal.as_str().into();
                }
                if let Some(thought) = thought {
                    let state = sealed(thought, &thought.state);
                    message["reasoning"] = thought.text.as_str().into();
                    message["reasoning_details"] = json!([match thought.made {
                        Some(Dialect::Responses) =>
                            json!({"type": "reasoning.encrypted", "format": "openai-responses-v1", "index": 0, "id": "rs_1", "summary": [], "data": state}),
                        _ =>
                            json!({"type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0, "text": thought.text, "signature": state}),
                    }]);
                }
                if !calls.is_empty() {
                    let calls: Vec<Value> = calls.iter().map(|call| json!({"id": call.id, "type": "function",
                        "function": {"name": talk.tools[call.tool].name, "arguments": call.input.to_string()}})).collect();
                    message["tool_calls"] = calls.into();
                }
                messages.push(message);
            }
            Turn::Results(results) => {
                for result in results {
                    let parts: Vec<Value> = result.parts.iter().map(chat_part).collect();
                    messages
                        .push(json!({"role": "tool", "tool_call_id": result.id, "content": parts}));
                }
            }
        }
    }
    let mut body = body(talk);
    body["messages"] = messages.into();
    body["max_tokens"] = 64.into();
    if !talk.stop.is_empty() {
        body["stop"] = talk.stop.clone().into();
    }
    body["response_format"] = match talk.form {
        Form::Text => json!({"type": "text"}),
        Form::Object => json!({"type": "json_object"}),
        Form::Schema => {
            json!({"type": "json_schema", "json_schema": {"name": "fit", "schema": schema(), "strict": true}})
        }
    };
    if !talk.tools.is_empty() {
        let tools = talk
            .tools
            .iter()
            .map(|tool| json!({"type": "function", "function": function(tool, "parameters")}));
        body["tools"] = tools.collect();
    }
    if let Some(choice) = talk.choice {
        body["tool_choice"] = match choice {
            "look" => json!({"type": "function", "function": {"name": "look"}}),
            word => word.into(),
        };
    }
    if let Some(parallel) = talk.parallel {
        body["parallel_tool_calls"] = parallel.into();
    }
    body
}

/// The members of a function.
fn function(tool: &Tool, schema_key: &str) -> Value {
    let mut function =
        json!({"name": tool.name, "description": tool.description, schema_key: schema()});
    if tool.strict {
        function["strict"] = true.into();
    }
    function
}

fn block(part: &Part) -> Value {
    let source = |url: &str| {
        let (kind, data) = url
            .strip_prefix("data:")
            .unwrap()
            .split_once(";base64,")
            .unwrap();
        json!({"type": "base64", "media_type": kind, "data": data})
    };
    match part {
        Part::Text(text) => json!({"type": "text", "text": text}),
        Part::Image { url, .. } => json!({"type": "image", "source": source(url)}),
        Part::File { name, url } => {
            json!({"type": "document", "source": source(url), "title": name})
        }
        Part::Sound { .. } => panic!("no words for sounds"),
    }
}

fn messages(talk: &Talk) -> Value {
    let mut messages: Vec<Value> = Vec::new();
    let mut system: Vec<Value> = Vec::new();
    let mut push = |role: &str, mut blocks: Vec<Value>| match messages.last_mut() {
        Some(last) if last["role"] == role && role != "system" => {
            last["content"].as_array_mut().unwrap().append(&mut blocks);
        }
        _ => messages.push(json!({"role": role, "content": blocks})),
    };
    let mut has_begun = false;
    for turn in &talk.turns {
        match turn {
            Turn::Given {
                role: "system",
                parts,
            } if !has_begun => system.extend(parts.iter().map(block)),
            Turn::Given { role, parts } => {
                has_begun = true;
                push(role, parts.iter().map(block).collect());
            }
            Turn::Said {
                thought,
                text,
                calls,
                ..
            } => {
                let mut blocks = Vec::new();
                if let Some(thought) = thought {
                    let state = match thought.made {
                        Some(Dialect::Responses) => sealed(thought, &item(thought)),
                        _ => sealed(thought, &thought.state),
                    };
                    blocks.push(
                        json!({"type": "thinking", "thinking": thought.text, "signature": state}),
                    );
                }
                blocks.extend(
                    text.as_ref()
                        .map(|text| json!({"type": "text", "text": text})),
                );
                blocks.extend(calls.iter().map(|call| json!({"type": "tool_use", "id": call.id.replace(':', "_"), "name": talk.tools[call.tool].name, "input": call.input})));
                push("assistant", blocks);
            }
            Turn::Results(results) => {
                let blocks = results.iter().map(|result| {
                    let content: Vec<Value> = result.parts.iter().map(block).collect();
                    let mut said = json!({"type": "tool_result", "tool_use_id": result.id.replace(':', "_"), "content": content});
                    if result.is_error {
                        said["is_error"] = true.into();
                    }
                    said
                });
                push("user", blocks.collect());
            }
        }
    }
    let mut body = body(talk);
    body["messages"] = messages.into();
    body["max_tokens"] = 64.into();
    if !system.is_empty() {
        body["system"] = system.into();
    }
    if !talk.stop.is_empty() {
        body["stop_sequences"] = talk.stop.clone().into();
    }
    if talk.form == Form::Schema {
        body["output_config"] = json!({"format": {"type": "json_schema", "schema": schema()}});
    }
    if !talk.tools.is_empty() {
        body["tools"] = talk
            .tools
            .iter()
            .map(|tool| function(tool, "input_schema"))
            .collect();
    }
    if talk.choice.is_some() || talk.parallel == Some(false) {
        let mut choice = match talk.choice {
            Some("look") => json!({"type": "tool", "name": "look"}),
            Some("required") => json!({"type": "any"}),
            word => json!({"type": word.unwrap_or("auto")}),
        };
        if talk.parallel == Some(false) && talk.choice != Some("none") {
            choice["disable_parallel_tool_use"] = true.into();
        }
        body["tool_choice"] = choice;
    }
    body
}

fn item_part(part: &Part) -> Value {
    match part {
        Part::Text(text) => json!({"type": "input_text", "text": text}),
        Part::Image { url, detail } => {
            json!({"type": "input_image", "image_url": url, "detail": detail.as_deref().unwrap_or("auto")})
        }
        Part::File { name, url } => {
            json!({"type": "input_file", "filename": name, "file_data": url})
        }
        Part::Sound { data, format } => {
            json!({"type": "input_audio", "input_audio": {"data": data, "format": format}})
        }
    }
}

fn item_call(talk: &Talk, call: &Call) -> Value {
    let tool = &talk.tools[call.tool];
    let arguments = call.input.to_string();
    match tool.kind {
        ToolKind::Freeform => {
            json!({"type": "custom_tool_call", "call_id": call.id, "name": tool.name, "input": call.input})
        }
        ToolKind::Search => {
            json!({"type": "tool_search_call", "call_id": call.id, "execution": "client", "arguments": call.input})
        }
        ToolKind::Namespaced => {
            json!({"type": "function_call", "call_id": call.id, "name": tool.name, "namespace": "files", "arguments": arguments})
        }
        _ => {
            json!({"type": "function_call", "call_id": call.id, "name": tool.name, "arguments": arguments})
        }
    }
}

fn item_result(talk: &Talk, result: &Outcome) -> Value {
    let output: Value = match &*result.parts {
        [Part::Text(text)] => text.as_str().into(),
        parts => parts.iter().map(item_part).collect(),
    };
    match talk.tools[result.tool].kind {
        ToolKind::Freeform => {
            json!({"type": "custom_tool_call_output", "call_id": result.id, "output": output})
        }
        ToolKind::Search => {
            let hidden = talk
                .tools
                .iter()
                .filter(|tool| tool.kind == ToolKind::Deferred);
            let found: Vec<Value> = hidden.map(item_tool).collect();
            json!({"type": "tool_search_output", "call_id": result.id, "execution": "client", "tools": found})
        }
        _ => json!({"type": "function_call_output", "call_id": result.id, "output": output}),
    }
}

fn item_tool(tool: &Tool) -> Value {
    let with = |more: Value| {
        let mut said = function(tool, "parameters");
        for (key, value) in more.as_object().cloned().unwrap_or_else(Map::new) {
            said[&key] = value;
        }
        said
    };
    match tool.kind {
        ToolKind::Function => with(json!({"type": "function"})),
        ToolKind::Freeform => {
            json!({"type": "custom", "name": tool.name, "description": tool.description})
        }
        ToolKind::Namespaced => {
            json!({"type": "namespace", "name": "files", "description": "Files.", "tools": [with(json!({"type": "function"}))]})
        }
        ToolKind::Search => {
            json!({"type": "tool_search", "execution": "client", "description": tool.description, "parameters": schema()})
        }
        ToolKind::Deferred => with(json!({"type": "function", "defer_loading": true})),
    }
}

fn responses(talk: &Talk) -> Value {
    let mut input = Vec::new();
    for turn in &talk.turns {
        match turn {
            Turn::Given { role, parts } => {
                let parts: Vec<Value> = parts.iter().map(item_part).collect();
                input.push(json!({"type": "message", "role": role, "content": parts}));
            }
            Turn::Said {
                thought,
                text,
                refusal,
                calls,
            } => {
                if let Some(thought) = thought {
                    let state = match thought.made {
                        Some(Dialect::Responses) => sealed(thought, &item(thought)),
                        _ => sealed(thought, &thought.state),
                    };
                    input.push(json!({"type": "reasoning", "id": "rs_wg_a_0", "summary": [{"type": "summary_text", "text": thought.text}], "encrypted_content": state}));
                }
                let text = text
                    .as_ref()
                    .map(|text| json!({"type": "output_text", "text": text, "annotations": []}));
                let refusal = refusal
                    .as_ref()
                    .map(|text| json!({"type": "refusal", "refusal": text}));
                let said: Vec<Value> = text.into_iter().chain(refusal).collect();
                if !said.is_empty() {
                    input.push(json!({"type": "message", "role": "assistant", "content": said}));
                }
                input.extend(calls.iter().map(|call| item_call(talk, call)));
            }
            Turn::Results(results) => {
                input.extend(results.iter().map(|result| item_result(talk, result)))
            }
        }
    }
    let mut body = body(talk);
    body["input"] = input.into();
    body["max_output_tokens"] = 64.into();
    match talk.form {
        Form::Text => {}
        Form::Object => body["text"] = json!({"format": {"type": "json_object"}}),
        Form::Schema => {
            body["text"] = json!({"format": {"type": "json_schema", "name": "fit", "schema": schema(), "strict": true}})
        }
    }
    if !talk.tools.is_empty() {
        body["tools"] = talk.tools.iter().map(item_tool).collect();
    }
    if let Some(choice) = talk.choice {
        body["tool_choice"] = match choice {
            "look" => json!({"type": "function", "name": "look"}),
            word => word.into(),
        };
    }
    if let Some(parallel) = talk.parallel {
        body["parallel_tool_calls"] = parallel.into();
    }
    body
}

fn completions(talk: &Talk) -> Value {
    let mut body = body(talk);
    if let [Turn::Given { parts, .. }] = &*talk.turns
        && let [Part::Text(text)] = &**parts
    {
        body["prompt"] = text.as_str().into();
    }
    body["max_tokens"] = 64.into();
    if !talk.stop.is_empty() {
        body["stop"] = talk.stop.clone().into();
    }
    body
}
