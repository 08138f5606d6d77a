//! A request in the words of this wire.
//! Source: docs/facts/wire-formats.md 3.1–3.3, docs/facts/model-gateway.md 10.4, 10.5.

use std::borrow::Cow;
use std::collections::BTreeMap;

use http::{HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::betas;
use super::blocks::{ContentBlock, Turn};
use super::breakpoints::Prompt;
use super::called_form::{FormCall, is_called};
use super::deviations::hashed;
use super::messages::MessagesConversation;
use super::native;
use super::splice;
use super::tools::{self, WireTool};
use crate::fault::Fault;
use crate::models::chat::conversation::{AnswerForm, Conversation};
use crate::models::chat::facts::ChatFacts;
use crate::models::chat::text::Text;
use crate::models::chat::tools::ToolChoice;
use crate::models::dialects::Dialect;
use crate::models::parameter::Parameter;
use crate::models::request::ModelRequest;
use crate::models::routing::parameters::Parameters;
use crate::models::routing::providers::ProviderDefaults;
use crate::models::routing::search::SearchDialect;
use crate::models::routing::thinking::{ThinkingControl, ThinkingDefaults};
use crate::models::routing::{Outside, WrittenBounds, WrittenParameters};
use crate::models::wires::codec::BodySlice;
use crate::models::wires::history::fold_instructions;
use crate::models::wires::wire::{Target, write_body};
use crate::models::wires::{closed_schema, opaque};

pub(super) const BETA: HeaderName = HeaderName::from_static("anthropic-beta");
pub(super) const VERSION: HeaderName = HeaderName::from_static("anthropic-version");

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
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    /// Stands in place of the model where the path names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    anthropic_version: Option<&'static str>,
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

/// Checks that the provider runs over the answer.
#[derive(Debug, Deserialize)]
struct Safeguards<'a> {
    /// A JSON array.
    #[serde(borrow)]
    safeguards: &'a RawValue,
    /// The betas that switch them on.
    #[serde(borrow)]
    betas: Vec<Text<'a>>,
}

impl<'a> Safeguards<'a> {
    fn read(member: &'a RawValue) -> Option<Self> {
        serde_json::from_str(member.get()).ok()
    }
}

pub(super) fn encode(
    request: &ModelRequest,
    facts: &ChatFacts,
    target: &Target<'_>,
) -> Result<Vec<BodySlice>, Fault> {
    if request.front.row().dialect == Some(Dialect::Messages) {
        return splice::encode(request, facts, target);
    }
    let mut chat = request.front.conversation(request)?;
    fold_instructions(&mut chat);
    opaque::keep_own(&mut chat, Dialect::Messages, target, native::is_known);
    native::leave_out_open(&mut chat);
    let marked = chat.functions().filter(|tool| tool.cache.is_some());
    let markers = marked.count() as u32;
    let mut conversation = MessagesConversation::read(&chat, markers, target.inlined)?;
    if matches!(chat.form, AnswerForm::Json) {
        let text = "Answer with one JSON object and nothing else.";
        conversation.system.push(ContentBlock::text(text));
    }
    let mut tools = tools::list(request, &chat, target)?;
    let called = FormCall::find(request, &chat, target)?;
    tools.extend(called.as_ref().map(FormCall::tool));
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
    let safeguards = chat.option(Parameter::VendorSafeguards);
    let safeguards = safeguards.and_then(Safeguards::read);
    let option = |parameter| target.treated(chat.option(parameter)?, parameter, request);
    let version = target.body.version_for_model;
    let body = Body {
        model: version.is_none().then_some(target.model),
        anthropic_version: version,
        max_tokens: target.said_limit(max_tokens(request, target), request),
        messages: conversation.turns,
        system: conversation.system,
        tool_choice: tool_choice(request, &chat, target, called.as_ref()),
        tools,
        output_config: output_config(request, &chat, target)?,
        temperature: option(Parameter::Temperature),
        top_p: option(Parameter::TopP),
        thinking: thinking(request, target).filter(may_think),
        inference_geo: target.region,
        stop_sequences: stop_sequences(&chat),
        metadata: metadata(&chat, target),
        safeguards: safeguards.map(|own| own.safeguards),
        stream: request.is_stream,
    };
    write_body(&body, request.source.body.len())
}

/// Returns what tells users apart.
fn metadata(chat: &Conversation<'_>, target: &Target<'_>) -> Option<Value> {
    let user = chat.option_text(Parameter::User);
    let takes_users = target.parameters.supports(Parameter::User);
    let user = user.filter(|user| !user.is_empty() && takes_users)?;
    Some(match target.body.hashes_users {
        true => json!({ "user_id": hashed(&user) }),
        false => json!({ "user_id": user }),
    })
}

/// Returns the stop sequences that the provider takes. Chats with others go elsewhere, and other fronts cut the text themselves.
fn stop_sequences<'c>(chat: &'c Conversation<'_>) -> Vec<&'c str> {
    let stops = chat.stop.iter().map(|text| &**text);
    stops.filter(|text| !text.trim().is_empty()).collect()
}

/// Returns the header of the betas that the request's safeguards and its effort need: without it the provider refuses them.
pub(super) fn own_headers(
    request: &ModelRequest,
    target: &Target<'_>,
) -> Vec<(HeaderName, HeaderValue)> {
    if request.front.row().dialect == Some(Dialect::Messages) {
        return betas::passed(&request.own_headers, target.is_vendor);
    }
    let option = |parameter: Parameter| {
        let member = request.source.member(parameter.as_str())?;
        let value = serde_json::from_slice(request.source.value(member)).ok();
        value.filter(|_| !request.source.is_null(member))
    };
    let safeguards = option(Parameter::VendorSafeguards).and_then(Safeguards::read);
    let betas = safeguards.into_iter().flat_map(|own| own.betas);
    let mut betas: Vec<String> = betas.map(|beta| beta.to_string()).collect();
    if option(Parameter::Effort).is_some() {
        betas.push(EFFORT_BETA.to_owned());
    }
    let value = HeaderValue::from_str(&betas.join(",")).ok();
    let value = value.filter(|value| !value.is_empty());
    value.map(|value| (BETA, value)).into_iter().collect()
}

/// Returns `thinking`, as the mapping is told it.
fn thinking(request: &ModelRequest, target: &Target<'_>) -> Option<Value> {
    let (needs, thinking) = (&request.needs, target.thinking);
    if !thinking.is_asked(needs) {
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
    chat: &'a Conversation<'_>,
    target: &Target<'_>,
) -> Option<Cow<'a, str>> {
    let (needs, thinking) = (&request.needs, target.thinking);
    let takes_words = matches!(
        thinking.control,
        ThinkingControl::Adaptive | ThinkingControl::Levels
    );
    let is_on = needs.reasoning_tokens.is_none() && thinking.is_on(needs);
    let of_reasoning = thinking.asked_word(needs).filter(|_| takes_words && is_on);
    let own = chat.option_text(Parameter::Effort);
    let own = own.filter(|_| target.parameters.supports(Parameter::Effort));
    of_reasoning.map(|effort| effort.as_str().into()).or(own)
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
    chat: &Conversation<'_>,
    target: &Target<'_>,
    called: Option<&FormCall<'_>>,
) -> Option<Value> {
    if let Some(called) = called {
        return Some(called.choice());
    }
    let has_functions = chat.functions().next().is_some();
    if !has_functions && request.needs.web_search.is_none() {
        return None;
    }
    let may_force = !target.lower_tool_choice;
    let mut choice = match &chat.choice {
        Some(ToolChoice::None) => return Some(json!({ "type": "none" })),
        Some(ToolChoice::Required) if may_force => json!({ "type": "any" }),
        Some(ToolChoice::Function(name)) if may_force => {
            json!({ "type": "tool", "name": &**name })
        }
        Some(ToolChoice::WebSearch) => json!({ "type": "tool", "name": tools::WEB_SEARCH }),
        _ => json!({ "type": "auto" }),
    };
    let parallel = chat.option(Parameter::ParallelToolCalls);
    let is_serial = has_functions && parallel.is_some_and(|parallel| parallel.get() == "false");
    if is_serial && let Some(choice) = choice.as_object_mut() {
        choice.insert("disable_parallel_tool_use".to_owned(), true.into());
    }
    (is_serial || chat.choice.is_some()).then_some(choice)
}

/// Returns effort and form of the answer; a form that is called stands among the tools.
fn output_config(
    request: &ModelRequest,
    chat: &Conversation<'_>,
    target: &Target<'_>,
) -> Result<Option<Value>, Fault> {
    let effort = effort(request, chat, target);
    let mut config = serde_json::Map::new();
    if let Some(effort) = effort {
        config.insert("effort".to_owned(), (*effort).into());
    }
    if let AnswerForm::Schema(format) = &chat.form
        && !is_called(request, target)
    {
        let schema = closed_schema::schema_of_answer(chat, format)?;
        config.insert(
            "format".to_owned(),
            json!({ "type": "json_schema", "schema": schema }),
        );
    }
    Ok((!config.is_empty()).then(|| Value::Object(config)))
}
