//! What of a chat request the sandbox acts on; everything else is ignored, wrong types count as absent.
#![expect(
    clippy::indexing_slicing,
    reason = "a JSON value read by name or number gives null, and every value written to is our object"
)]

use serde_json::Value;

/// A chat request, as far as it shapes the answer.
#[derive(Debug)]
pub(super) struct Ask {
    /// The upstream model name: chooses the behaviour.
    pub(super) model: String,
    pub(super) is_streaming: bool,
    pub(super) include_usage: bool,
    /// How many answers, 1 to 8.
    pub(super) choices: usize,
    /// The text of the last user message, parts joined by newlines.
    pub(super) said: String,
    /// The text of the last message, when it is a tool's result.
    pub(super) tool_result: Option<String>,
    /// The tools to call now, in order of their declaration.
    pub(super) calls: Vec<Tool>,
    pub(super) format: ResponseFormat,
    pub(super) reasons: bool,
    pub(super) max_tokens: Option<usize>,
    /// Tokens of all messages, see [`super::answer::tokens`].
    pub(super) prompt_tokens: usize,
}

/// A tool as declared.
#[derive(Clone, Debug)]
pub(super) struct Tool {
    pub(super) name: String,
    /// The JSON Schema of its arguments; null when none was given.
    pub(super) parameters: Value,
}

/// The form the answer's text must have.
#[derive(Debug)]
pub(super) enum ResponseFormat {
    Text,
    /// Any JSON object.
    Object,
    /// A value of this JSON Schema.
    Schema(Value),
}

impl Ask {
    /// Reads a request body; `None` when it is not JSON.
    pub(super) fn parse(body: &[u8]) -> Option<Ask> {
        let body: Value = serde_json::from_slice(body).ok()?;
        let none = Vec::new();
        let messages = body["messages"].as_array().unwrap_or(&none);
        let role = |message: &&Value, role: &str| message["role"] == role;
        let said = messages
            .iter()
            .rfind(|message| role(message, "user"))
            .map(text)
            .unwrap_or_default();
        let tool_result = messages
            .last()
            .filter(|message| role(message, "tool"))
            .map(text);
        let calls = if tool_result.is_some() {
            Vec::new()
        } else {
            calls(&body, &said)
        };
        let limit = body["max_completion_tokens"]
            .as_u64()
            .or(body["max_tokens"].as_u64());
        // Three tokens per message for its role and borders.
        let prompt_tokens = messages
            .iter()
            .map(|message| 3 + super::answer::tokens(&text(message)))
            .sum();
        Some(Ask {
            model: body["model"].as_str().unwrap_or_default().to_owned(),
            is_streaming: body["stream"] == true,
            include_usage: body["stream_options"]["include_usage"] == true,
            choices: body["n"].as_u64().map_or(1, |n| n.clamp(1, 8) as usize),
            said,
            tool_result,
            calls,
            format: format(&body["response_format"]),
            reasons: body["reasoning_effort"]
                .as_str()
                .is_some_and(|effort| effort != "none"),
            max_tokens: limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX)),
            prompt_tokens,
        })
    }
}

/// A message's text: its string, or the text of its parts.
fn text(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Vec<&str> = parts
                .iter()
                .filter_map(|part| part["text"].as_str())
                .collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}

/// The tools to call: the one `tool_choice` forces; else those whose names the user's text contains; else,
/// when the choice is `required` or the text has the word "tool", the first. One alone when
/// `parallel_tool_calls` is false.
fn calls(body: &Value, said: &str) -> Vec<Tool> {
    let choice = &body["tool_choice"];
    if choice == "none" {
        return Vec::new();
    }
    let declared = declared(body);
    if let Some(forced) = choice["function"]["name"].as_str() {
        return declared
            .into_iter()
            .filter(|tool| tool.name == forced)
            .collect();
    }
    let said = said.to_lowercase();
    let is_named = |tool: &&Tool| said.contains(&tool.name.to_lowercase());
    let mut calls: Vec<Tool> = declared.iter().filter(is_named).cloned().collect();
    if calls.is_empty() && (choice == "required" || said.contains("tool")) {
        calls = declared.into_iter().take(1).collect();
    }
    if body["parallel_tool_calls"] == false {
        calls.truncate(1);
    }
    calls
}

fn declared(body: &Value) -> Vec<Tool> {
    let tool = |tool: &Value| {
        let function = &tool["function"];
        let name = function["name"].as_str()?.to_owned();
        Some(Tool {
            name,
            parameters: function["parameters"].clone(),
        })
    };
    body["tools"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(tool)
        .collect()
}

fn format(wanted: &Value) -> ResponseFormat {
    match wanted["type"].as_str() {
        Some("json_object") => ResponseFormat::Object,
        Some("json_schema") => ResponseFormat::Schema(wanted["json_schema"]["schema"].clone()),
        _ => ResponseFormat::Text,
    }
}
