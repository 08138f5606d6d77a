//! A chat in the words of this wire. Source: docs/facts/wire-formats.md 5.6.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::documents::Document;
use super::messages::{CohereConversation, Message};
use crate::fault::Fault;
use crate::models::chat::conversation::{AnswerForm, Conversation};
use crate::models::chat::tools::{Function, ToolChoice};
use crate::models::dialects::Dialect;
use crate::models::parameter::Parameter;
use crate::models::request::ModelRequest;
use crate::models::routing::parameters::{Parameters, Treatment};
use crate::models::routing::providers::ProviderDefaults;
use crate::models::routing::search::SearchDialect;
use crate::models::routing::thinking::{ThinkingControl, ThinkingDefaults};
use crate::models::routing::{Outside, WrittenBounds, WrittenParameters};
use crate::models::wires::codec::BodySlice;
use crate::models::wires::opaque;
use crate::models::wires::wire::{Target, write_body};

/// Returns what this wire does with parameters and how it tells a model to think.
///
/// Source: docs/facts/wire-formats.md 5.6.
pub(super) fn defaults() -> ProviderDefaults {
    let dropped = [Parameter::User, Parameter::ParallelToolCalls];
    let bounds = |min: f64, max: f64| WrittenBounds {
        min: Some(min),
        max: Some(max),
        outside: None,
    };
    let stops = WrittenBounds {
        min: None,
        max: Some(5.0),
        outside: Some(Outside::Refuse),
    };
    let more = WrittenParameters {
        pass: vec![Parameter::ImageDetail],
        // The form of an answer cannot be asked for beside functions.
        exclusive: vec![vec![Parameter::Tools, Parameter::ResponseFormat]],
        bounds: BTreeMap::from([
            (Parameter::Temperature, bounds(0.0, 1.0)),
            (Parameter::TopP, bounds(0.01, 0.99)),
            (Parameter::FrequencyPenalty, bounds(0.0, 1.0)),
            (Parameter::PresencePenalty, bounds(0.0, 1.0)),
            (Parameter::Stop, stops),
        ]),
        ..WrittenParameters::default()
    };
    ProviderDefaults {
        parameters: Parameters::of_another_convention()
            .without(&dropped, &[Parameter::ToolResultMedia])
            .with(&more),
        thinking: ThinkingDefaults {
            control: ThinkingControl::Budget,
            bounds: (Some(1), None),
            says_none: false,
            ..ThinkingDefaults::LEVELS
        },
        search: SearchDialect::None,
        others: Vec::new(),
    }
}

#[derive(Debug, Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    documents: Vec<Document<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<WireTool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    strict_tools: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<ResponseFormat<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<Cow<'a, RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p: Option<Cow<'a, RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<Cow<'a, RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    frequency_penalty: Option<Cow<'a, RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    presence_penalty: Option<Cow<'a, RawValue>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stop_sequences: Vec<&'a str>,
    stream: bool,
}

#[derive(Debug, Serialize)]
struct WireTool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: WireFunction<'a>,
}

#[derive(Debug, Serialize)]
struct WireFunction<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    parameters: Box<RawValue>,
}

/// The form of the answer.
#[derive(Debug, Serialize)]
struct ResponseFormat<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    json_schema: Option<&'a RawValue>,
}

pub(super) fn encode(request: &ModelRequest, target: &Target<'_>) -> Result<Vec<BodySlice>, Fault> {
    let mut chat = request.front.conversation(request)?;
    opaque::keep_own(&mut chat, Dialect::ChatV2, target, |_| false);
    let conversation = CohereConversation::read(&chat, target)?;
    let option = |parameter| target.treated(chat.option(parameter)?, parameter, request);
    let tools = Tools::read(&chat, target);
    let most = target.max_tokens(request);
    let takes_stop = target.treat(Parameter::Stop, request) != Treatment::Drop;
    let stop = chat.stop.iter().filter(|_| takes_stop);
    let body = Body {
        model: target.model,
        messages: conversation.messages,
        documents: conversation.documents,
        tools: tools.list,
        tool_choice: tools.choice,
        strict_tools: tools.is_strict,
        response_format: response_format(&chat),
        thinking: thinking(request, target),
        max_tokens: most.and_then(|most| target.said_limit(most, request)),
        temperature: option(Parameter::Temperature),
        p: option(Parameter::TopP),
        seed: option(Parameter::Seed),
        frequency_penalty: option(Parameter::FrequencyPenalty),
        presence_penalty: option(Parameter::PresencePenalty),
        stop_sequences: stop.map(|text| &**text).collect(),
        stream: request.is_stream,
    };
    write_body(&body, request.source.body.len())
}

/// The functions, and whether one must be called.
struct Tools<'a> {
    list: Vec<WireTool<'a>>,
    choice: Option<&'static str>,
    is_strict: bool,
}

impl<'a> Tools<'a> {
    /// Reads the functions. There is no word for a call of one of them: that one alone is listed then.
    fn read(chat: &'a Conversation<'a>, target: &Target<'_>) -> Self {
        let may_force = !target.lower_tool_choice;
        let (choice, only) = match &chat.choice {
            Some(ToolChoice::None) => (Some("NONE"), None),
            Some(ToolChoice::Required) if may_force => (Some("REQUIRED"), None),
            Some(ToolChoice::Function(name)) if may_force => (Some("REQUIRED"), Some(&**name)),
            _ => (None, None),
        };
        let is_listed = |function: &&Function<'_>| only.is_none_or(|only| only == &*function.name);
        let listed: Vec<&Function<'a>> = chat.functions().filter(is_listed).collect();
        // It holds for all functions at once.
        let is_strict = |function: &&Function<'_>| function.strict == Some(true);
        let takes_strict = target.parameters.supports(Parameter::StrictTools);
        Self {
            choice: choice.filter(|_| !listed.is_empty()),
            is_strict: takes_strict && !listed.is_empty() && listed.iter().all(is_strict),
            list: listed.into_iter().map(tool).collect(),
        }
    }
}

fn tool<'a>(function: &'a Function<'a>) -> WireTool<'a> {
    let schema = function.parameters.as_deref();
    let schema = schema.filter(|schema| schema.contains("\"type\""));
    let schema = schema.unwrap_or(r#"{"type":"object","properties":{}}"#);
    WireTool {
        kind: "function",
        function: WireFunction {
            name: &function.name,
            description: function.description.as_deref(),
            parameters: RawValue::from_string(schema.to_owned()).unwrap_or_default(),
        },
    }
}

fn response_format<'a>(chat: &'a Conversation<'_>) -> Option<ResponseFormat<'a>> {
    let json_schema = match &chat.form {
        AnswerForm::Text => return None,
        AnswerForm::Json => None,
        AnswerForm::Schema(form) => Some(&*form.schema),
    };
    Some(ResponseFormat {
        kind: "json_object",
        json_schema,
    })
}

/// Returns `thinking`, as the mapping is told it.
fn thinking(request: &ModelRequest, target: &Target<'_>) -> Option<Value> {
    let (needs, thinking) = (&request.needs, target.thinking);
    if !thinking.is_asked(needs) {
        return None;
    }
    if let Some(budget) = thinking.asked_budget(needs) {
        return Some(json!({ "type": "enabled", "token_budget": budget }));
    }
    let word = if thinking.is_on(needs) {
        "enabled"
    } else {
        "disabled"
    };
    Some(json!({ "type": word }))
}
