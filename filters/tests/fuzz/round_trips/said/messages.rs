//! A chat in the words of Messages.

use filters::models::dialects::Dialect;
use serde_json::{Value, json};

use super::{body, function, item, sealed};
use crate::round_trips::talk::{Form, Part, Talk, Thought, Turn, schema};

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

pub fn messages(talk: &Talk) -> Value {
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
                let is_signature = |it: &&Thought| it.made == Some(Dialect::Contents);
                let signature = thought.as_ref().filter(is_signature).map(|thought| {
                    json!({"type": "redacted_thinking", "data": sealed(thought, &thought.state)})
                });
                if let Some(thought) = thought.as_ref().filter(|it| !is_signature(it)) {
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
                blocks.extend(signature);
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
