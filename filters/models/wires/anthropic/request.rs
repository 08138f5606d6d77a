//! A request in the words of this wire.
//! Source: docs/facts/wire-formats.md 3.1–3.3, docs/facts/model-gateway.md 10.4, 10.5.

use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::blocks::{ContentBlock, Turn};
use super::messages::MessagesConversation;
use crate::fault::Fault;
use crate::models::chat::facts::ChatFacts;
use crate::models::chat::tree::{ChatRequest, FormatType, Tool, ToolChoice};
use crate::models::request::{Effort, ModelRequest};
use crate::models::wires::wire::{Target, WireHead, write_body};

const VERSION: HeaderName = HeaderName::from_static("anthropic-version");
pub(super) const KEY: HeaderName = HeaderName::from_static("x-api-key");

/// The least and the most budget of thinking.
const BUDGETS: (u64, u64) = (1024, 128_000);

#[derive(Debug, Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u64,
    messages: Vec<Turn<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<ContentBlock<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<WireTool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stop_sequences: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Value>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stream: bool,
}

#[derive(Debug, Serialize)]
struct WireTool<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    input_schema: Box<RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    strict: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<&'a RawValue>,
}

pub(super) fn encode(
    request: &ModelRequest,
    chat: &ChatFacts,
    target: &Target<'_>,
) -> Result<Vec<Bytes>, Fault> {
    let call = (chat.read_tree)(&request.source.body)?;
    let tools: Vec<WireTool<'_>> = call.tools.iter().flatten().map(tool).collect();
    let marked = tools.iter().filter(|tool| tool.cache_control.is_some());
    let markers = marked.count() as u32;
    let mut conversation = MessagesConversation::read(&call.messages, target.provider, markers)?;
    let thinking = Thinking::from_request(request, target);
    let format = call.response_format.as_ref();
    if format.is_some_and(|format| format.format_type == FormatType::JsonObject) {
        let text = "Answer with one JSON object and nothing else.".into();
        conversation.system.push(ContentBlock::Text {
            text,
            cache_control: None,
        });
    }
    let temperature = call
        .temperature
        .and_then(|raw| raw.get().parse::<f64>().ok());
    let body = Body {
        model: target.model,
        max_tokens: max_tokens(request, target),
        messages: conversation.turns,
        system: conversation.system,
        tool_choice: tool_choice(&call, target, &thinking),
        tools,
        output_config: output_config(&call, &thinking)?,
        // Thinking allows no other temperature than the default; newer models take one of the two at most.
        temperature: temperature
            .filter(|_| !thinking.is_on())
            .map(|t| t.clamp(0.0, 1.0)),
        top_p: call
            .top_p
            .filter(|_| !thinking.is_on() && temperature.is_none()),
        thinking: thinking.member(),
        stop_sequences: stop(&call),
        metadata: call
            .user
            .as_deref()
            .filter(|user| !user.is_empty())
            .map(|user| json!({ "user_id": user })),
        stream: request.is_stream,
    };
    write_body(&body, request.source.body.len())
}

/// Returns the head of all requests.
pub(super) fn head() -> WireHead {
    WireHead {
        path: "/v1/messages".to_owned(),
        headers: vec![(VERSION, HeaderValue::from_static("2023-06-01"))],
    }
}

fn tool<'a>(tool: &'a Tool<'a>) -> WireTool<'a> {
    let schema = tool.function.parameters.map(|raw| raw.get().to_owned());
    let schema = schema.filter(|schema| schema.contains("\"type\""));
    let schema = schema.unwrap_or_else(|| r#"{"type":"object","properties":{}}"#.to_owned());
    WireTool {
        name: &tool.function.name,
        description: tool.function.description.as_deref(),
        input_schema: RawValue::from_string(schema).unwrap_or_default(),
        strict: tool.function.strict.filter(|strict| *strict),
        cache_control: tool.cache_control,
    }
}

/// How the model shall think.
///
/// Our choice: a mapping whose `reasoning_efforts` the catalogue names thinks adaptively and takes the effort as
/// it is; one without takes a budget.
#[derive(Debug)]
enum Thinking {
    Off,
    Budget(u64),
    Adaptive(Option<&'static str>),
}

impl Thinking {
    fn from_request(request: &ModelRequest, target: &Target<'_>) -> Self {
        let needs = &request.needs;
        if let Some(budget) = needs.reasoning_tokens {
            return Self::Budget(budget.clamp(BUDGETS.0, BUDGETS.1));
        }
        let effort = match needs.effort {
            None | Some(Effort::None) => return Self::Off,
            Some(effort) => effort,
        };
        if !target.reasoning_efforts.is_empty() {
            return Self::Adaptive(Some(if effort == Effort::Minimal {
                "low"
            } else {
                effort.as_str()
            }));
        }
        Self::Budget(match effort {
            Effort::None | Effort::Minimal | Effort::Low => 1024,
            Effort::Medium => 2000,
            Effort::High => 4000,
            Effort::Xhigh => 16_000,
            Effort::Max => 32_000,
        })
    }

    fn is_on(&self) -> bool {
        !matches!(self, Self::Off)
    }

    fn budget(&self) -> u64 {
        if let Self::Budget(budget) = self {
            *budget
        } else {
            0
        }
    }

    fn member(&self) -> Option<Value> {
        match self {
            Self::Off => None,
            Self::Budget(budget) => Some(json!({ "type": "enabled", "budget_tokens": budget })),
            Self::Adaptive(_) => Some(json!({ "type": "adaptive", "display": "summarized" })),
        }
    }
}

/// The wire wants a limit, and one above the budget of thinking.
pub(super) fn max_tokens(request: &ModelRequest, target: &Target<'_>) -> u64 {
    let budget = Thinking::from_request(request, target).budget();
    let asked = request
        .needs
        .max_tokens
        .or(target.max_output)
        .unwrap_or_else(|| 4096.max(budget + 1000));
    if asked <= budget {
        budget + 1000
    } else {
        asked
    }
}

fn tool_choice(call: &ChatRequest<'_>, target: &Target<'_>, thinking: &Thinking) -> Option<Value> {
    if call.tools.as_ref().is_none_or(Vec::is_empty) {
        return None;
    }
    // A forced call and thinking exclude each other on this wire.
    let may_force = !thinking.is_on() && !target.lower_tool_choice;
    let mut choice = match &call.tool_choice {
        Some(ToolChoice::Mode(mode)) if &**mode == "none" => {
            return Some(json!({ "type": "none" }));
        }
        Some(ToolChoice::Mode(mode)) if &**mode == "required" && may_force => {
            json!({ "type": "any" })
        }
        Some(ToolChoice::Named(function)) if may_force => {
            json!({ "type": "tool", "name": &*function.name })
        }
        _ => json!({ "type": "auto" }),
    };
    let is_serial = call.parallel_tool_calls == Some(false);
    if is_serial && let Some(choice) = choice.as_object_mut() {
        choice.insert("disable_parallel_tool_use".to_owned(), true.into());
    }
    (is_serial || call.tool_choice.is_some()).then_some(choice)
}

fn output_config(call: &ChatRequest<'_>, thinking: &Thinking) -> Result<Option<Value>, Fault> {
    let mut config = serde_json::Map::new();
    if let Thinking::Adaptive(Some(effort)) = thinking {
        config.insert("effort".to_owned(), (*effort).into());
    }
    let format = call
        .response_format
        .as_ref()
        .and_then(|format| format.json_schema.as_ref());
    if let Some(format) = format {
        let mut schema: Value = serde_json::from_str(format.schema.get()).map_err(|error| {
            Fault::invalid(
                "response_format.json_schema.schema",
                "`response_format.json_schema.schema` cannot be read",
            )
            .with_detail(error.to_string())
        })?;
        close(&mut schema);
        config.insert(
            "format".to_owned(),
            json!({ "type": "json_schema", "schema": schema }),
        );
    }
    Ok((!config.is_empty()).then(|| Value::Object(config)))
}

/// Words of a schema that the decoder of this wire refuses. Source: docs/facts/wire-formats.md 3.1.
const REFUSED: [&str; 15] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "not",
    "$schema",
];

/// Closes every object, and takes out what the decoder refuses. Names of properties are no words of a schema.
fn close(schema: &mut Value) {
    let Value::Object(object) = schema else {
        return;
    };
    object.retain(|key, _| !REFUSED.contains(&key.as_str()));
    let is_object = object.get("type").is_some_and(|kind| kind == "object")
        || object.contains_key("properties");
    if is_object {
        object.insert("additionalProperties".to_owned(), false.into());
    }
    for (key, value) in object.iter_mut() {
        match (key.as_str(), value) {
            ("properties" | "$defs" | "definitions", Value::Object(named)) => {
                named.values_mut().for_each(close)
            }
            ("anyOf" | "allOf" | "oneOf" | "prefixItems", Value::Array(list)) => {
                list.iter_mut().for_each(close)
            }
            ("items", value) => close(value),
            _ => {}
        }
    }
}

fn stop<'a>(call: &'a ChatRequest<'a>) -> Vec<&'a str> {
    let all = call.stop.iter().flat_map(|stop| &stop.0);
    all.map(|text| &**text)
        .filter(|text| !text.trim().is_empty())
        .collect()
}
