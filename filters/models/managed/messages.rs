//! What prompts and variations say, which is written in the words of chat completions, in those of Messages.
//!
//! Instructions go before the caller's `system`, other messages before the caller's. What these words cannot say is a 400 that
//! names it.

use serde_json::{Map, Value, json};

use super::ManagedRequest;
use super::expand::{Filling, Said};
use super::translated::{Filled, Message, Translated, as_json, at, members, unread, unsaid};
use crate::fault::{Fault, quoted};
use crate::models::chat::data_url;
use crate::models::request::Effort;

/// The API whose words these are.
const API: &str = "Messages";

/// Returns what is said. `rendered` are the messages of the prompt with commas between them.
///
/// Errors: 400 naming what these words cannot say.
pub(super) fn say(
    request: &ManagedRequest,
    rendered: &[u8],
    filling: Filling<'_>,
) -> Result<Said, Fault> {
    let list = [b"[", rendered, b"]"].concat();
    let messages: Vec<Message<'_>> =
        serde_json::from_slice(&list).map_err(|error| unread("prompt", &error))?;
    let (mut system, mut turns) = (Vec::new(), Vec::new());
    for (at, message) in messages.into_iter().enumerate() {
        let unsaid =
            |what: &str| unsaid(filling, API, &format!("{what} in its message {}", at + 1));
        let blocks = blocks(message.content).map_err(|what| unsaid(&what))?;
        let extra = message.more.keys().find(|key| *key != "name");
        if let Some(key) = extra {
            return Err(unsaid(&format!("`{}`", quoted(key))));
        }
        match &*message.role {
            "system" | "developer" => system.extend(blocks),
            role @ ("user" | "assistant") => turns.push(json!({"role": role, "content": blocks})),
            role => return Err(unsaid(&format!("the role `{}`", quoted(role)))),
        }
    }
    let count = turns.len();
    let turns: Vec<String> = turns.iter().map(Value::to_string).collect();
    Ok(Said {
        system: instructions(request, system)?,
        messages: turns.join(",").into_bytes(),
        count,
        members: filled_members(request, filling)?,
    })
}

/// Returns the instructions of the prompt and behind them the caller's; `None`: the prompt has none.
fn instructions(request: &ManagedRequest, mut blocks: Vec<Value>) -> Result<Option<String>, Fault> {
    if blocks.is_empty() {
        return Ok(None);
    }
    let own = request.source.member("system");
    let own = own.map(|member| serde_json::from_slice(request.source.value(member)));
    match own.transpose() {
        Ok(Some(Value::String(text))) => blocks.push(json!({"type": "text", "text": text})),
        Ok(Some(Value::Array(more))) => blocks.extend(more),
        Ok(_) => {}
        Err(error) => return Err(unread("request", &error)),
    }
    Ok(Some(Value::from(blocks).to_string()))
}

/// Returns content as blocks. Errors: what they cannot say.
fn blocks(content: Value) -> Result<Vec<Value>, String> {
    match content {
        Value::String(text) => Ok(vec![json!({"type": "text", "text": text})]),
        Value::Array(parts) => parts.into_iter().map(block).collect(),
        _ => Err("no text".to_owned()),
    }
}

fn block(part: Value) -> Result<Value, String> {
    match at(&part, "/type").as_str() {
        // It is a block of the same members.
        Some("text") => Ok(part),
        Some("image_url") => {
            let url = at(&part, "/image_url/url").as_str().unwrap_or_default();
            let source = match data_url::parse(url) {
                Some(parsed) => {
                    json!({"type": "base64", "media_type": parsed.media_type, "data": parsed.data})
                }
                None => json!({"type": "url", "url": url}),
            };
            Ok(json!({"type": "image", "source": source}))
        }
        other => Err(format!(
            "a part of type `{}`",
            quoted(other.unwrap_or_default())
        )),
    }
}

/// Returns the members that prompt and variation fill.
fn filled_members(request: &ManagedRequest, filling: Filling<'_>) -> Result<Filled, Fault> {
    let (mut filled, passed) = members(request, filling, API, translate)?;
    for (key, value, _) in &mut filled {
        if *key == "tool_choice" && value.get("type").is_none() {
            value
                .as_object_mut()
                .map(|it| it.insert("type".to_owned(), "auto".into()));
        }
    }
    Ok(as_json(filled, passed))
}

fn translate(key: &str, value: Value) -> Translated {
    let one = |key: &'static str, value: Value| Translated::Members(vec![(key, value)]);
    match (key, value) {
        (_, Value::Null) => Translated::Members(Vec::new()),
        ("temperature", value) => one("temperature", value),
        ("top_p", value) => one("top_p", value),
        ("top_k", value) => one("top_k", value),
        ("routing", value) => one("routing", value),
        ("free_models_only", value) => one("free_models_only", value),
        ("no_reasoning", value) => one("no_reasoning", value),
        ("max_tokens" | "max_completion_tokens", value) => one("max_tokens", value),
        ("stop", Value::String(stop)) => one("stop_sequences", json!([stop])),
        ("stop", stops) => one("stop_sequences", stops),
        ("reasoning_effort", Value::String(effort)) => Translated::Members(reasoning(&effort)),
        ("reasoning", Value::Object(reasoning)) => budget(&reasoning),
        ("tools", Value::Array(tools)) => {
            match tools.iter().map(tool).collect::<Option<Vec<_>>>() {
                Some(tools) => one("tools", tools.into()),
                None => Translated::Unknown,
            }
        }
        ("tool_choice", choice) => match self::choice(&choice) {
            Some(choice) => one("tool_choice", choice),
            None => Translated::Unknown,
        },
        ("parallel_tool_calls", Value::Bool(true)) => Translated::Members(Vec::new()),
        ("parallel_tool_calls", Value::Bool(false)) => {
            one("tool_choice", json!({ "disable_parallel_tool_use": true }))
        }
        ("response_format", format) => match at(&format, "/type").as_str() {
            Some("text") => Translated::Members(Vec::new()),
            Some("json_schema") => {
                let schema = at(&format, "/json_schema/schema");
                let format = json!({"type": "json_schema", "schema": schema});
                one("output_config", json!({ "format": format }))
            }
            _ => Translated::Unknown,
        },
        _ => Translated::Unknown,
    }
}

/// Returns what an effort is.
fn reasoning(effort: &str) -> Vec<(&'static str, Value)> {
    match Effort::from_word(effort) {
        Some(Effort::None) => vec![("thinking", json!({"type": "disabled"}))],
        _ => vec![
            ("thinking", json!({"type": "adaptive"})),
            ("output_config", json!({ "effort": effort })),
        ],
    }
}

/// Returns what `reasoning` is.
fn budget(said: &Map<String, Value>) -> Translated {
    let known = ["effort", "max_tokens"];
    if said.keys().any(|key| !known.contains(&key.as_str())) {
        return Translated::Unknown;
    }
    match (said.get("max_tokens"), said.get("effort")) {
        (Some(budget @ Value::Number(_)), _) => {
            let thinking = json!({"type": "enabled", "budget_tokens": budget});
            Translated::Members(vec![("thinking", thinking)])
        }
        (_, Some(Value::String(effort))) => Translated::Members(reasoning(effort)),
        _ => Translated::Members(Vec::new()),
    }
}

fn tool(said: &Value) -> Option<Value> {
    let function = said.get("function")?.as_object()?;
    let schema = function.get("parameters").filter(|it| it.is_object());
    let schema = schema.cloned().unwrap_or_else(|| json!({"type": "object"}));
    let mut tool = Map::from_iter([("input_schema".to_owned(), schema)]);
    for key in ["name", "description", "strict"] {
        let value = function.get(key).filter(|value| !value.is_null());
        tool.extend(value.map(|value| (key.to_owned(), value.clone())));
    }
    Some(tool.into())
}

fn choice(said: &Value) -> Option<Value> {
    let kind = match said.as_str() {
        Some("auto") => "auto",
        Some("required") => "any",
        Some("none") => "none",
        Some(_) => return None,
        None => {
            let name = at(said, "/function/name").as_str()?;
            return Some(json!({"type": "tool", "name": name}));
        }
    };
    Some(json!({ "type": kind }))
}
