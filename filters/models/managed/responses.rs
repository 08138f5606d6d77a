//! What prompts and variations say, which is written in the words of chat completions, in those of Responses.
//!
//! Messages become items before the caller's. What these words cannot say is a 400 that names it.

use serde_json::{Map, Value, json};

use super::ManagedRequest;
use super::expand::{Filling, Said};
use super::translated::{Message, Translated, as_json, at, members, unread, unsaid};
use crate::fault::{Fault, quoted};

/// The API whose words these are.
const API: &str = "Responses";

/// Members that are the same in both.
const SAME: [&str; 17] = [
    "temperature",
    "top_p",
    "parallel_tool_calls",
    "service_tier",
    "prompt_cache_key",
    "prompt_cache_retention",
    "prompt_cache_options",
    "safety_identifier",
    "user",
    "metadata",
    "store",
    "routing",
    "free_models_only",
    "no_reasoning",
    "top_logprobs",
    "include",
    "truncation",
];

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
    let mut items: Vec<String> = Vec::with_capacity(messages.len());
    for (at, message) in messages.into_iter().enumerate() {
        let unsaid =
            |what: &str| unsaid(filling, API, &format!("{what} in its message {}", at + 1));
        let extra = message.more.keys().find(|key| *key != "name");
        if let Some(key) = extra {
            return Err(unsaid(&format!("`{}`", quoted(key))));
        }
        let role = &*message.role;
        if !matches!(role, "system" | "developer" | "user" | "assistant") {
            return Err(unsaid(&format!("the role `{}`", quoted(role))));
        }
        let content = parts(role, message.content).map_err(|what| unsaid(&what))?;
        items.push(json!({"type": "message", "role": role, "content": content}).to_string());
    }
    let (filled, passed) = members(request, filling, API, translate)?;
    Ok(Said {
        system: None,
        count: items.len(),
        messages: items.join(",").into_bytes(),
        members: as_json(filled, passed),
    })
}

/// Returns content as parts. Errors: what they cannot say.
fn parts(role: &str, content: Value) -> Result<Vec<Value>, String> {
    let kind = if role == "assistant" {
        "output_text"
    } else {
        "input_text"
    };
    let text = |text: &Value| json!({"type": kind, "text": text});
    match content {
        Value::String(said) => Ok(vec![text(&said.into())]),
        Value::Array(parts) => {
            let parts = parts.iter().map(|part| match at(part, "/type").as_str() {
                Some("text") => Ok(text(at(part, "/text"))),
                Some("image_url") => {
                    let image = at(part, "/image_url");
                    let detail = image.get("detail").cloned().unwrap_or_else(|| "auto".into());
                    Ok(json!({"type": "input_image", "image_url": at(image, "/url"), "detail": detail}))
                }
                other => Err(format!(
                    "a part of type `{}`",
                    quoted(other.unwrap_or_default())
                )),
            });
            parts.collect()
        }
        _ => Err("no text".to_owned()),
    }
}

fn translate(key: &str, value: Value) -> Translated {
    let one = |key: &'static str, value: Value| Translated::Members(vec![(key, value)]);
    if value.is_null() {
        return Translated::Members(Vec::new());
    }
    if let Some(same) = SAME.iter().find(|same| **same == key) {
        return one(same, value);
    }
    match (key, value) {
        ("max_tokens" | "max_completion_tokens", value) => one("max_output_tokens", value),
        ("reasoning_effort", effort) => one("reasoning", json!({ "effort": effort })),
        ("reasoning", Value::Object(said)) => {
            let known = ["effort", "context", "mode", "summary"];
            match said.keys().all(|key| known.contains(&key.as_str())) {
                true => one("reasoning", said.into()),
                false => Translated::Unknown,
            }
        }
        ("verbosity", verbosity) => one("text", json!({ "verbosity": verbosity })),
        ("response_format", format) => response_format(&format),
        ("tools", Value::Array(tools)) => {
            match tools.iter().map(tool).collect::<Option<Vec<_>>>() {
                Some(tools) => one("tools", tools.into()),
                None => Translated::Unknown,
            }
        }
        ("tool_choice", Value::String(word)) => one("tool_choice", word.into()),
        ("tool_choice", choice) => match at(&choice, "/function/name") {
            Value::String(name) => one("tool_choice", json!({"type": "function", "name": name})),
            _ => Translated::Unknown,
        },
        _ => Translated::Unknown,
    }
}

fn response_format(format: &Value) -> Translated {
    let said = match at(format, "/type").as_str() {
        Some("json_schema") => {
            let mut said = Map::from_iter([("type".to_owned(), "json_schema".into())]);
            let schema = at(format, "/json_schema").as_object();
            said.extend(schema.cloned().unwrap_or_default());
            Value::from(said)
        }
        Some("text" | "json_object") => format.clone(),
        _ => return Translated::Unknown,
    };
    Translated::Members(vec![("text", json!({ "format": said }))])
}

/// Functions have no object of their own here.
fn tool(said: &Value) -> Option<Value> {
    let function = said.get("function")?.as_object()?;
    let mut tool = Map::from_iter([("type".to_owned(), "function".into())]);
    for key in ["name", "description", "parameters", "strict"] {
        let value = function.get(key).filter(|value| !value.is_null());
        tool.extend(value.map(|value| (key.to_owned(), value.clone())));
    }
    Some(tool.into())
}
