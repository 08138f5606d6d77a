//! A chat in the words of chat completions.

use filters::models::dialects::Dialect;
use serde_json::{Value, json};

use super::{body, function, sealed};
use crate::round_trips::talk::{Form, Part, Talk, Thought, Turn, schema};

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

pub fn chat(talk: &Talk) -> Value {
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
                let is_signature =
                    |it: &&Thought| it.made == Some(Dialect::Contents) && !calls.is_empty();
                let signature = thought.as_ref().filter(is_signature);
                if let Some(thought) = thought.as_ref().filter(|it| !is_signature(it)) {
                    let state = sealed(thought, &thought.state);
                    message["reasoning"] = thought.text.as_str().into();
                    message["reasoning_details"] = json!([match thought.made {
                        Some(Dialect::Responses) =>
                            json!({"type": "reasoning.encrypted", "format": "openai-responses-v1", "index": 0, "id": "rs_1", "summary": [], "data": state}),
                        Some(Dialect::Contents) =>
                            json!({"type": "reasoning.encrypted", "format": "google-gemini-v1", "data": state}),
                        _ =>
                            json!({"type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0, "text": thought.text, "signature": state}),
                    }]);
                }
                if !calls.is_empty() {
                    let calls: Vec<Value> = calls.iter().map(|call| json!({"id": call.id, "type": "function",
                        "function": {"name": talk.tools[call.tool].name, "arguments": call.input.to_string()}})).collect();
                    message["tool_calls"] = calls.into();
                    if let Some(thought) = signature {
                        let state = sealed(thought, &thought.state);
                        message["tool_calls"][0]["extra_content"] =
                            json!({"google": {"thought_signature": state}});
                    }
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
