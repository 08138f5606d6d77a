//! A request in the words of this wire.
//! Source: docs/facts/wire-formats.md 3.1–3.3, docs/facts/model-gateway.md 10.4, 10.5.

use std::borrow::Cow;
use std::collections::BTreeMap;

use http::{HeaderName, HeaderValue};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::blocks::{ContentBlock, Turn};
use super::breakpoints::Prompt;
use super::messages::MessagesConversation;
use super::tools::{self, WireTool};
use crate::fault::Fault;
use crate::models::chat::facts::ChatFacts;
use crate::models::chat::tree::{ChatRequest, FormatType, ToolChoice, VendorSafeguards};
use crate::models::parameter::Parameter;
use crate::models::request::{Effort, ModelRequest};
use crate::models::routing::parameters::Parameters;
use crate::models::routing::providers::ProviderDefaults;
use crate::models::routing::search::SearchDialect;
use crate::models::routing::thinking::{ThinkingControl, ThinkingDefaults};
use crate::models::routing::{Outside, WrittenBounds, WrittenParameters};
use crate::models::wires::closed_schema;
use crate::models::wires::codec::BodySlice;
use crate::models::wires::wire::{Target, write_body};

const BETA: HeaderName = HeaderName::from_static("anthropic-beta");

/// The beta of `output_config.effort`, without which the first model that takes it refuses it. Source:
/// docs/facts/wire-formats.md 3.2.
const EFFORT_BETA: &str = "effort-2025-11-24";

/// Functions of one request that may be strict.
const STRICT_TOOLS: f64 = 20.0;

/// Returns what this wire does with parameters and how it tells a model to think.
///
/// Source: docs/facts/wire-formats.md 3.1, 3.2.
pub(super) fn defaults() -> ProviderDefaults {
    let dropped = [
        Parameter::FrequencyPenalty,
        Parameter::PresencePenalty,
        Parameter::Seed,
        Parameter::SearchContextSize,
    ];
    let more = WrittenParameters {
        // Thinking excludes other temperatures than the default, and forced calls.
        refuse_with_reasoning: vec![
            Parameter::Temperature,
            Parameter::TopP,
            Parameter::ToolChoice,
        ],
        pass: vec![
            Parameter::Effort,
            Parameter::ToolSearch,
            Parameter::AllowedCallers,
            Parameter::VendorSafeguards,
        ],
        exclusive: vec![
            vec![Parameter::Temperature, Parameter::TopP],
            vec![Parameter::AllowedDomains, Parameter::BlockedDomains],
        ],
        bounds: bounds(),
        ..WrittenParameters::default()
    };
    ProviderDefaults {
        parameters: Parameters::of_another_convention()
            .without(&dropped, &[])
            .with(&more),
        thinking: ThinkingDefaults {
            control: ThinkingControl::Budget,
            budgets: [0, 1024, 1024, 2000, 4000, 16_000, 32_000],
            bounds: (Some(1024), Some(128_000)),
            can_switch_off: true,
            says_none: false,
        },
        search: SearchDialect::None,
        others: Vec::new(),
    }
}

/// Temperatures end at 1, and more strict functions are refused.
fn bounds() -> BTreeMap<Parameter, WrittenBounds> {
    let temperature = WrittenBounds {
        min: Some(0.0),
        max: Some(1.0),
        outside: None,
    };
    let strict = WrittenBounds {
        min: None,
        max: Some(STRICT_TOOLS),
        outside: Some(Outside::Refuse),
    };
    BTreeMap::from([
        (Parameter::Temperature, temperature),
        (Parameter::StrictTools, strict),
    ])
}

#[derive(Debug, Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: Option<Value>,
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
    temperature: Option<Cow<'a, RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<Cow<'a, RawValue>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stop_sequences: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Value>,
    /// The region that shall compute the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    inference_geo: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    safeguards: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stream: bool,
}

pub(super) fn encode(
    request: &ModelRequest,
    chat: &ChatFacts,
    target: &Target<'_>,
) -> Result<Vec<BodySlice>, Fault> {
    let call = (chat.read_tree)(&request.source.body)?;
    let functions = &call.tools.functions;
    let marked = functions.iter().filter(|tool| tool.cache_control.is_some());
    let markers = marked.count() as u32;
    let origin = target.replayed_origin();
    let mut conversation =
        MessagesConversation::read(&call.messages, origin.as_deref(), markers, target.inlined)?;
    let format = call.response_format.as_ref();
    if format.is_some_and(|format| format.format_type == FormatType::JsonObject) {
        let text = "Answer with one JSON object and nothing else.".into();
        conversation.system.push(ContentBlock::Text {
            text,
            cache_control: None,
        });
    }
    let mut tools = tools::list(request, &call, target)?;
    if let Some(min_tokens) = target.auto_cache.filter(|_| !request.needs.cache_control) {
        let prompt = Prompt {
            tools: &mut tools,
            system: &mut conversation.system,
            turns: &mut conversation.turns,
        };
        prompt.mark(min_tokens);
    }
    let lacks_thinking = conversation.lacks_thinking();
    let may_think = |thinking: &Value| {
        !(lacks_thinking && thinking.get("type").is_some_and(|kind| kind == "enabled"))
    };
    let body = Body {
        model: target.model,
        max_tokens: target.said_limit(max_tokens(request, target), request),
        messages: conversation.turns,
        system: conversation.system,
        tool_choice: tool_choice(request, &call, target),
        tools,
        output_config: output_config(&call, effort(request, &call, target))?,
        temperature: call
            .temperature
            .and_then(|raw| target.treated(raw, Parameter::Temperature, request)),
        top_p: call
            .top_p
            .and_then(|raw| target.treated(raw, Parameter::TopP, request)),
        thinking: thinking(request, target).filter(may_think),
        inference_geo: target.region,
        stop_sequences: stop(&call),
        metadata: call
            .user
            .as_deref()
            .filter(|user| !user.is_empty() && target.parameters.supports(Parameter::User))
            .map(|user| json!({ "user_id": user })),
        safeguards: call.vendor_safeguards.as_ref().map(|own| own.safeguards),
        stream: request.is_stream,
    };
    write_body(&body, request.source.body.len())
}

/// Returns the header of the betas that the request's safeguards and its effort need: without it the provider refuses them.
pub(super) fn own_headers(request: &ModelRequest) -> Vec<(HeaderName, HeaderValue)> {
    let member = request.source.member("vendor_safeguards");
    let read = |member| serde_json::from_slice(request.source.value(member)).ok();
    let safeguards: Option<VendorSafeguards<'_>> = member.and_then(read);
    let betas = safeguards.into_iter().flat_map(|own| own.betas);
    let mut betas: Vec<String> = betas.map(|beta| beta.to_string()).collect();
    let effort = request.source.member("effort");
    if effort.is_some_and(|effort| !request.source.is_null(effort)) {
        betas.push(EFFORT_BETA.to_owned());
    }
    let value = HeaderValue::from_str(&betas.join(",")).ok();
    let value = value.filter(|value| !value.is_empty());
    value.map(|value| (BETA, value)).into_iter().collect()
}

/// Returns `thinking`, as the mapping is told it.
fn thinking(request: &ModelRequest, target: &Target<'_>) -> Option<Value> {
    let (needs, thinking) = (&request.needs, target.thinking);
    let is_said = needs.effort.is_some() || needs.reasoning_tokens.is_some();
    if !is_said || thinking.reasons == Some(false) {
        return None;
    }
    if let Some(budget) = thinking.asked_budget(needs) {
        return Some(json!({ "type": "enabled", "budget_tokens": budget }));
    }
    match thinking.control {
        _ if !thinking.is_on(needs) => Some(json!({ "type": "disabled" })),
        ThinkingControl::Adaptive | ThinkingControl::Levels => {
            Some(json!({ "type": "adaptive", "display": "summarized" }))
        }
        ThinkingControl::Switch => Some(json!({ "type": "enabled" })),
        ThinkingControl::Budget | ThinkingControl::Fixed => None,
    }
}

/// Returns the effort of the answer: that of the reasoning, where the mapping takes words, or the request's own.
fn effort<'a>(
    request: &ModelRequest,
    call: &'a ChatRequest<'a>,
    target: &Target<'_>,
) -> Option<&'a str> {
    let (needs, thinking) = (&request.needs, target.thinking);
    let takes_words = matches!(
        thinking.control,
        ThinkingControl::Adaptive | ThinkingControl::Levels
    );
    let is_on = needs.reasoning_tokens.is_none() && thinking.is_on(needs);
    let of_reasoning = thinking.asked_word(needs).filter(|_| takes_words && is_on);
    let own = call.effort.as_deref();
    let own = own.filter(|_| target.parameters.supports(Parameter::Effort));
    of_reasoning.map(Effort::as_str).or(own)
}

/// The wire wants a limit, and one above the budget of thinking.
pub(super) fn max_tokens(request: &ModelRequest, target: &Target<'_>) -> u64 {
    let budget = target.thinking.asked_budget(&request.needs);
    let budget = budget.unwrap_or_default();
    let asked = request.needs.max_tokens;
    let asked = asked
        .and_then(|_| target.max_tokens(request))
        .or(target.max_output)
        .unwrap_or_else(|| 4096.max(budget + 1000));
    if asked <= budget {
        budget + 1000
    } else {
        asked
    }
}

fn tool_choice(
    request: &ModelRequest,
    call: &ChatRequest<'_>,
    target: &Target<'_>,
) -> Option<Value> {
    let has_functions = !call.tools.functions.is_empty();
    if !has_functions && request.needs.web_search.is_none() {
        return None;
    }
    let may_force = !target.lower_tool_choice;
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
        Some(ToolChoice::WebSearch) => json!({ "type": "tool", "name": tools::WEB_SEARCH }),
        _ => json!({ "type": "auto" }),
    };
    let is_serial = has_functions && call.parallel_tool_calls == Some(false);
    if is_serial && let Some(choice) = choice.as_object_mut() {
        choice.insert("disable_parallel_tool_use".to_owned(), true.into());
    }
    (is_serial || call.tool_choice.is_some()).then_some(choice)
}

fn output_config(call: &ChatRequest<'_>, effort: Option<&str>) -> Result<Option<Value>, Fault> {
    let mut config = serde_json::Map::new();
    if let Some(effort) = effort {
        config.insert("effort".to_owned(), effort.into());
    }
    let format = call
        .response_format
        .as_ref()
        .and_then(|format| format.json_schema.as_ref());
    if let Some(format) = format {
        let schema = closed_schema::read(format.schema.get().as_bytes());
        let mut schema = schema.ok_or_else(|| {
            Fault::invalid(
                "response_format.json_schema.schema",
                "`response_format.json_schema.schema` cannot be read, or has more than 32768 values",
            )
        })?;
        closed_schema::close(&mut schema, &[]);
        config.insert(
            "format".to_owned(),
            json!({ "type": "json_schema", "schema": schema }),
        );
    }
    Ok((!config.is_empty()).then(|| Value::Object(config)))
}

fn stop<'a>(call: &'a ChatRequest<'a>) -> Vec<&'a str> {
    call.stop
        .iter()
        .flat_map(|stop| &stop.0)
        .map(|text| &**text)
        .collect()
}
