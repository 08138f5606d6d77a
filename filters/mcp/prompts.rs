//! Managed prompts as prompts of the protocol. They are listed and rendered by the gateway's own routes.
//!
//! The protocol has two roles, and one content block per message. So a system message becomes one of the user, and
//! each part of a message becomes a message of its own.

use form_urlencoded::byte_serialize;
use serde_json::{Value, json};

use super::message::Members;
use crate::fault::quoted;

/// The route that lists prompts.
pub const LIST_ROUTE: &str = "prompts";
/// The route that renders a prompt.
pub const RENDER_ROUTE: &str = "render_prompt";

/// Returns the entries of `prompts/list` for a response of the route that lists prompts. Prompts without a default
/// version are left out, because their names alone identify no version. Returns `None` for a response of another
/// shape.
pub fn entries(body: &[u8]) -> Option<Value> {
    let answer: Value = serde_json::from_slice(body).ok()?;
    let listed = answer.get("data")?.as_array()?.iter();
    let usable = listed.filter(|prompt| prompt.get("version").is_some_and(Value::is_number));
    let entries: Option<Vec<Value>> = usable.map(entry).collect();
    entries.map(Value::from)
}

fn entry(prompt: &Value) -> Option<Value> {
    let variables = prompt.get("variables")?.as_array()?.iter();
    let arguments: Option<Vec<Value>> = variables.map(argument).collect();
    let version = prompt.get("version")?;
    Some(json!({
        "name": prompt.get("name")?,
        "description": format!("Version {version} of a managed prompt, which the label `production` names."),
        "arguments": arguments?,
    }))
}

fn argument(variable: &Value) -> Option<Value> {
    let mut said: Vec<String> = Vec::new();
    let text = |name: &str| variable.get(name).and_then(Value::as_str);
    said.extend(text("description").map(str::to_owned));
    said.extend(text("type").map(|kind| format!("A {kind}.")));
    let default = variable.get("default");
    said.extend(default.map(|default| format!("Default: {default}.")));
    let mut argument = Members::new();
    argument.insert("name".to_owned(), variable.get("name")?.clone());
    if !said.is_empty() {
        argument.insert("description".to_owned(), said.join(" ").into());
    }
    argument.insert("required".to_owned(), variable.get("required")?.clone());
    Some(argument.into())
}

/// Returns the path of the request that renders a prompt.
pub fn path(name: &str) -> String {
    let name: String = byte_serialize(name.as_bytes()).collect();
    // In a path, a plus does not mean a space.
    format!("/v1/prompts/{}", name.replace('+', "%20"))
}

/// Returns the body of that request.
///
/// Errors: says which argument is wrong, and why.
pub fn body(arguments: Option<Value>) -> Result<Vec<u8>, String> {
    let arguments = match arguments {
        None => Members::new(),
        Some(Value::Object(arguments)) => arguments,
        Some(_) => return Err("`arguments` is no object; accepted is one of texts".to_owned()),
    };
    if let Some((name, _)) = arguments.iter().find(|(_, value)| !value.is_string()) {
        let name = quoted(name);
        return Err(format!("`arguments.{name}` is no text; accepted is a text"));
    }
    Ok(json!({"variables": arguments}).to_string().into_bytes())
}

/// Returns a fault of that route as a message about the arguments.
pub fn explain(message: &str) -> String {
    message.replace("`variables.", "`arguments.")
}

/// Returns the members of a `prompts/get` result for a response of the route that renders prompts.
///
/// Errors: the prompt has content for which the protocol has no form.
pub fn rendered(body: &[u8]) -> Result<Members, String> {
    let answer: Value = serde_json::from_slice(body).unwrap_or_default();
    let mut messages = Vec::new();
    let written = answer.get("messages").and_then(Value::as_array);
    for message in written.into_iter().flatten() {
        add_message(message, &mut messages)?;
    }
    let mut about = Members::new();
    for name in ["version", "label", "model", "parameters"] {
        let value = answer.get(name).filter(|value| !value.is_null());
        about.extend(value.map(|value| (name.to_owned(), value.clone())));
    }
    let mut members = Members::new();
    members.insert("messages".to_owned(), messages.into());
    members.insert("_meta".to_owned(), json!({"weirgate/prompt": about}));
    Ok(members)
}

/// Adds a message of a chat as one message per part.
fn add_message(message: &Value, messages: &mut Vec<Value>) -> Result<(), String> {
    let role = message.get("role").and_then(Value::as_str);
    let role = match role.unwrap_or_default() {
        "assistant" => "assistant",
        "user" | "system" | "developer" => "user",
        other => {
            return Err(unsupported_content(&format!(
                "a message of the role `{}`",
                quoted(other)
            )));
        }
    };
    if message
        .get("tool_calls")
        .is_some_and(|calls| !calls.is_null())
    {
        return Err(unsupported_content("calls of tools"));
    }
    let content = message.get("content").unwrap_or(&Value::Null);
    let whole;
    let parts = match content {
        Value::Array(parts) => parts.as_slice(),
        Value::String(text) => {
            whole = [json!({"type": "text", "text": text})];
            &whole
        }
        _ => &[],
    };
    for part in parts {
        let content = block(part)?;
        messages.push(json!({"role": role, "content": content}));
    }
    Ok(())
}

/// Returns the content block for a part of a message.
fn block(part: &Value) -> Result<Value, String> {
    let text = |path: &str| part.pointer(path).and_then(Value::as_str);
    let kind = text("/type").unwrap_or_default();
    let block = match kind {
        "text" => text("/text").map(|text| json!({"type": "text", "text": text})),
        "image_url" => text("/image_url/url").or(text("/image_url")).map(image),
        "input_audio" => text("/input_audio/data").map(|data| {
            let format = text("/input_audio/format").unwrap_or("wav");
            json!({"type": "audio", "data": data, "mimeType": format!("audio/{format}")})
        }),
        _ => None,
    };
    block.ok_or_else(|| unsupported_content(&format!("a part of the type `{}`", quoted(kind))))
}

/// Returns the image of a data URL, or a link to any other URL.
fn image(url: &str) -> Value {
    let inside = url.strip_prefix("data:");
    match inside.and_then(|inside| inside.split_once(";base64,")) {
        Some((media_type, data)) => {
            json!({"type": "image", "data": data, "mimeType": media_type})
        }
        None => json!({"type": "resource_link", "uri": url, "name": "image"}),
    }
}

fn unsupported_content(what: &str) -> String {
    format!(
        "the prompt has {what}, which has no form here; a chat can name the prompt in `model`, as `@prompt/NAME`"
    )
}
