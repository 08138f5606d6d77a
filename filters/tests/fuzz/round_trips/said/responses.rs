//! A chat in the words of Responses.

use filters::models::dialects::Dialect;
use serde_json::{Map, Value, json};

use super::{body, function, item, sealed};
use crate::round_trips::talk::{
    Call, Form, Outcome, Part, Talk, Thought, Tool, ToolKind, Turn, schema,
};

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

pub fn responses(talk: &Talk) -> Value {
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
                let is_signature = |it: &&Thought| it.made == Some(Dialect::Contents);
                let signature = thought.as_ref().filter(is_signature).map(|thought| {
                    let state = sealed(thought, &thought.state);
                    json!({"type": "reasoning", "id": "rs_wg_a_1", "summary": [], "encrypted_content": state})
                });
                if let Some(thought) = thought.as_ref().filter(|it| !is_signature(it)) {
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
                input.extend(signature);
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
