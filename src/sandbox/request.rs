//! The fields of a chat request that shape the reply. Other fields are ignored, and a value of the wrong type counts as
//! absent.
#![expect(
    clippy::indexing_slicing,
    reason = "a JSON value read by name or number gives null, and every value written to is our object"
)]

use serde_json::Value;

use super::budget;

/// The maximum bytes of the user's text that are searched for names of tools. Each tool's name is searched for.
const MAX_SEARCHED_BYTES: usize = 16 << 10;
/// The maximum number of calls in a reply.
const MAX_CALLS: usize = 128;

/// The fields of a chat request that shape the reply.
#[derive(Debug)]
pub(super) struct SandboxRequest {
    /// The upstream model name, which selects the behaviour.
    pub(super) model: String,
    pub(super) is_stream: bool,
    pub(super) include_usage: bool,
    pub(super) choices: usize,
    /// The text of the last user message; parts are joined by newlines.
    pub(super) user_text: String,
    /// The text of the last message if it is a tool's result.
    pub(super) tool_result: Option<String>,
    /// The tools to call, in order of their declaration.
    pub(super) calls: Vec<Tool>,
    pub(super) format: ResponseFormat,
    pub(super) reasons: bool,
    /// Whether the reply contains an image.
    pub(super) draws: bool,
    pub(super) max_tokens: Option<usize>,
    /// Tokens of all messages, see [`super::response::count_tokens`].
    pub(super) prompt_tokens: usize,
}

/// A declared tool.
#[derive(Clone, Debug)]
pub(super) struct Tool {
    pub(super) name: String,
    /// The JSON Schema of its arguments; null if the request has none.
    pub(super) parameters: Value,
}

/// The required format of the reply's text.
#[derive(Debug)]
pub(super) enum ResponseFormat {
    Text,
    /// Any JSON object.
    Object,
    /// A value for this JSON Schema.
    Schema(Value),
}

impl SandboxRequest {
    /// Parses a request body. Returns `None` if it is not JSON.
    pub(super) fn parse(body: &[u8]) -> Option<SandboxRequest> {
        let body = budget::parse(body)?;
        let no_messages = Vec::new();
        let messages = body["messages"].as_array().unwrap_or(&no_messages);
        let role = |message: &&Value, role: &str| message["role"] == role;
        let user_text = messages
            .iter()
            .rfind(|message| role(message, "user"))
            .map(message_text)
            .unwrap_or_default();
        let tool_result = messages
            .last()
            .filter(|message| role(message, "tool"))
            .map(message_text);
        let calls = if tool_result.is_some() {
            Vec::new()
        } else {
            choose_calls(&body, &user_text)
        };
        let limit = body["max_completion_tokens"]
            .as_u64()
            .or(body["max_tokens"].as_u64());
        // Three tokens per message for its role and delimiters.
        let prompt_tokens = messages
            .iter()
            .map(|message| 3 + super::response::count_tokens(&message_text(message)))
            .sum();
        Some(SandboxRequest {
            model: body["model"].as_str().unwrap_or_default().to_owned(),
            is_stream: body["stream"] == true,
            include_usage: body["stream_options"]["include_usage"] == true,
            choices: body["n"].as_u64().map_or(1, |n| n.clamp(1, 8) as usize),
            user_text,
            tool_result,
            calls,
            format: parse_format(&body["response_format"]),
            reasons: body["reasoning_effort"]
                .as_str()
                .is_some_and(|effort| effort != "none"),
            draws: body["model"] == "sandbox-image",
            max_tokens: limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX)),
            prompt_tokens,
        })
    }
}

/// Returns a message's text: its string, or the text of its parts.
fn message_text(message: &Value) -> String {
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

/// Chooses the tools to call: the one that `tool_choice` forces; else those whose names the user's text contains; else
/// the first one, if the choice is `required` or the text has the word "tool". Only one is called if
/// `parallel_tool_calls` is false.
fn choose_calls(body: &Value, user_text: &str) -> Vec<Tool> {
    let choice = &body["tool_choice"];
    if choice == "none" {
        return Vec::new();
    }
    let declared = declared_tools(body);
    if let Some(forced) = choice["function"]["name"].as_str() {
        let forced = declared.into_iter().filter(|tool| tool.name == forced);
        return forced.take(1).collect();
    }
    let searched = user_text.floor_char_boundary(MAX_SEARCHED_BYTES);
    let user_text = user_text.get(..searched).unwrap_or_default().to_lowercase();
    let is_named = |tool: &&Tool| user_text.contains(&tool.name.to_lowercase());
    let named = declared.iter().filter(is_named);
    let mut calls: Vec<Tool> = named.take(MAX_CALLS).cloned().collect();
    if calls.is_empty() && (choice == "required" || user_text.contains("tool")) {
        calls = declared.into_iter().take(1).collect();
    }
    if body["parallel_tool_calls"] == false {
        calls.truncate(1);
    }
    calls
}

fn declared_tools(body: &Value) -> Vec<Tool> {
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

fn parse_format(response_format: &Value) -> ResponseFormat {
    match response_format["type"].as_str() {
        Some("json_object") => ResponseFormat::Object,
        Some("json_schema") => {
            ResponseFormat::Schema(response_format["json_schema"]["schema"].clone())
        }
        _ => ResponseFormat::Text,
    }
}
