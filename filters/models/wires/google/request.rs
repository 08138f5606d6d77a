//! A request in the words of this wire. Source: docs/facts/wire-formats.md 4.1, docs/facts/model-gateway.md 10.4, 10.5.

use bytes::Bytes;
use http::HeaderName;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::contents::{ContentsConversation, GoogleContent};
use super::schema;
use crate::fault::Fault;
use crate::models::chat::facts::ChatFacts;
use crate::models::chat::tree::{ChatRequest, FormatType, ToolChoice};
use crate::models::request::{Effort, ModelRequest};
use crate::models::wires::wire::{Target, write_body};

pub(super) const KEY: HeaderName = HeaderName::from_static("x-goog-api-key");
/// Stop sequences of one request.
const STOPS: usize = 5;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    contents: Vec<GoogleContent<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<GoogleContent<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<Value>,
    generation_config: Map<String, Value>,
    safety_settings: Value,
}

pub(super) fn encode(
    request: &ModelRequest,
    chat: &ChatFacts,
    target: &Target<'_>,
) -> Result<Vec<Bytes>, Fault> {
    let call = (chat.read_tree)(&request.source.body)?;
    let conversation =
        ContentsConversation::read(&call.messages, has_levels(target), target.provider)?;
    let system = conversation.system;
    let body = Body {
        contents: conversation.contents,
        system_instruction: (!system.is_empty()).then(|| GoogleContent::instruction(system)),
        tools: tools(&call),
        tool_config: tool_config(&call, target),
        generation_config: generation(request, &call, target)?,
        safety_settings: safety(),
    };
    write_body(&body, request.source.body.len())
}

/// A model id as a path segment.
pub(super) fn escaped(model: &str) -> String {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'~');
    model
        .bytes()
        .map(|b| {
            if is_plain(b) {
                char::from(b).to_string()
            } else {
                format!("%{b:02X}")
            }
        })
        .collect()
}

/// Our choice: a mapping whose `reasoning_efforts` the catalogue names thinks by levels, and refuses calls
/// without a signature; one without thinks by budgets.
fn has_levels(target: &Target<'_>) -> bool {
    !target.reasoning_efforts.is_empty()
}

fn tools(call: &ChatRequest<'_>) -> Option<Value> {
    let declarations: Vec<Value> = call
        .tools
        .iter()
        .flatten()
        .map(|tool| {
            let function = &tool.function;
            let mut declaration = json!({ "name": &*function.name });
            if let Some(fields) = declaration.as_object_mut() {
                if let Some(description) = function.description.as_deref() {
                    fields.insert("description".into(), description.into());
                }
                let parameters = function
                    .parameters
                    .and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok());
                let has_some =
                    |schema: &Value| schema.as_object().is_some_and(|schema| !schema.is_empty());
                if let Some(parameters) = parameters.filter(has_some) {
                    fields.insert("parameters".into(), schema::clean(&parameters));
                }
            }
            declaration
        })
        .collect();
    (!declarations.is_empty()).then(|| json!([{ "functionDeclarations": declarations }]))
}

fn tool_config(call: &ChatRequest<'_>, target: &Target<'_>) -> Option<Value> {
    if call.tools.as_ref().is_none_or(Vec::is_empty) {
        return None;
    }
    let config = match call.tool_choice.as_ref()? {
        ToolChoice::Mode(mode) if &**mode == "none" => json!({ "mode": "NONE" }),
        _ if target.lower_tool_choice => return None,
        ToolChoice::Mode(mode) if &**mode == "required" => json!({ "mode": "ANY" }),
        ToolChoice::Mode(_) => return None,
        ToolChoice::Named(function) => {
            json!({ "mode": "ANY", "allowedFunctionNames": [&*function.name] })
        }
    };
    Some(json!({ "functionCallingConfig": config }))
}

fn generation(
    request: &ModelRequest,
    call: &ChatRequest<'_>,
    target: &Target<'_>,
) -> Result<Map<String, Value>, Fault> {
    let mut config = Map::new();
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            config.insert(key.to_owned(), value);
        }
    };
    let number =
        |raw: Option<&RawValue>| raw.and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok());
    put("maxOutputTokens", request.needs.max_tokens.map(Value::from));
    put("temperature", number(call.temperature));
    put("topP", number(call.top_p));
    put("seed", number(call.seed));
    put("frequencyPenalty", number(call.frequency_penalty));
    put("presencePenalty", number(call.presence_penalty));
    put(
        "candidateCount",
        (request.needs.choices > 1).then(|| request.needs.choices.into()),
    );
    if let Some(stop) = &call.stop {
        if stop.0.len() > STOPS {
            let message = format!(
                "`stop` has {} sequences; the chosen provider takes {STOPS}",
                stop.0.len()
            );
            return Err(Fault::invalid("stop", message));
        }
        put(
            "stopSequences",
            Some(stop.0.iter().map(|text| &**text).collect::<Vec<_>>().into()),
        );
    }
    if let Some(format) = call
        .response_format
        .as_ref()
        .filter(|f| f.format_type != FormatType::Text)
    {
        put("responseMimeType", Some("application/json".into()));
        let schema = format
            .json_schema
            .as_ref()
            .and_then(|f| serde_json::from_str(f.schema.get()).ok());
        put(
            "responseSchema",
            schema.map(|schema: Value| schema::clean(&schema)),
        );
    }
    put("thinkingConfig", thinking(request, target));
    Ok(config)
}

/// Source: docs/facts/model-gateway.md 10.4, docs/facts/wire-formats.md 4.1. Levels and budgets exclude each other.
fn thinking(request: &ModelRequest, target: &Target<'_>) -> Option<Value> {
    let needs = &request.needs;
    if let Some(budget) = needs.reasoning_tokens {
        return Some(json!({ "thinkingBudget": budget, "includeThoughts": true }));
    }
    let effort = needs.effort?;
    if has_levels(target) {
        let level = match effort {
            Effort::None | Effort::Minimal => "MINIMAL",
            Effort::Low => "LOW",
            Effort::Medium => "MEDIUM",
            Effort::High | Effort::Xhigh | Effort::Max => "HIGH",
        };
        return Some(json!({ "thinkingLevel": level, "includeThoughts": effort != Effort::None }));
    }
    let budget = match effort {
        Effort::None => 0,
        Effort::Minimal => 512,
        Effort::Low => 2048,
        Effort::Medium => 8192,
        Effort::High => 24_576,
        Effort::Xhigh | Effort::Max => 65_536,
    };
    Some(json!({ "thinkingBudget": budget, "includeThoughts": budget > 0 }))
}

/// The caller's provider-independent expectation is the model's answer; the model's own filters stay.
fn safety() -> Value {
    const CATEGORIES: [&str; 4] = [
        "HARASSMENT",
        "HATE_SPEECH",
        "SEXUALLY_EXPLICIT",
        "DANGEROUS_CONTENT",
    ];
    let settings = CATEGORIES.iter().map(
        |category| json!({ "category": format!("HARM_CATEGORY_{category}"), "threshold": "OFF" }),
    );
    settings.collect::<Vec<_>>().into()
}
