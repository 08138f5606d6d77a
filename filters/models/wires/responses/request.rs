//! A request in the words of this wire. Source: docs/facts/wire-formats.md 2.1, 2.2.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::drawing;
use super::history::History;
use super::input::InputItem;
use super::splice;
use super::tools::{self, WireTool};
use crate::fault::Fault;
use crate::models::chat::conversation::{AnswerForm, Conversation};
use crate::models::chat::tools::ToolChoice;
use crate::models::dialects::Dialect;
use crate::models::parameter::Parameter;
use crate::models::request::{Effort, ModelRequest};
use crate::models::routing::parameters::{Parameters, Treatment};
use crate::models::routing::providers::ProviderDefaults;
use crate::models::wires::codec::BodySlice;
use crate::models::wires::opaque;
use crate::models::wires::wire::{Target, write_body};

/// The least limit of tokens that is accepted.
const MIN_OUTPUT_TOKENS: u64 = 16;

/// What the answer shall hold beside its items: without it, reasoning could not go back, because nothing is stored.
const INCLUDED: [&str; 1] = ["reasoning.encrypted_content"];

/// Members that are the same in both of the family's APIs.
const SAME: [Parameter; 8] = [
    Parameter::Temperature,
    Parameter::TopP,
    Parameter::PromptCacheKey,
    Parameter::PromptCacheRetention,
    Parameter::PromptCacheOptions,
    Parameter::SafetyIdentifier,
    Parameter::User,
    Parameter::Metadata,
];

#[derive(Debug, Serialize)]
struct Body<'a> {
    model: &'a str,
    input: Vec<InputItem<'a>>,
    store: bool,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    include: &'static [&'static str],
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Reasoning<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ListedTool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tool_calls: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<TextOptions<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    service_tier: Option<&'static str>,
    #[serde(flatten)]
    same: BTreeMap<&'static str, Cow<'a, RawValue>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stream: bool,
}

#[derive(Debug, Serialize)]
struct Reasoning<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<&'a str>,
}

/// A function of the client or a search, or another tool that the provider runs.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum ListedTool<'a> {
    Own(WireTool<'a>),
    Hosted(Value),
}

#[derive(Debug, Serialize)]
struct TextOptions<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<TextFormat<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verbosity: Option<Cow<'a, RawValue>>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum TextFormat<'a> {
    JsonObject,
    JsonSchema {
        name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<&'a str>,
        schema: &'a RawValue,
        #[serde(skip_serializing_if = "Option::is_none")]
        strict: Option<bool>,
    },
}

/// Returns what this wire does with parameters and how it tells a model to reason.
///
/// Dropped are wishes that providers only try to follow, refused are members that it has no word for and that change the
/// answer.
pub(super) fn defaults() -> ProviderDefaults {
    let dropped = [
        Parameter::Seed,
        Parameter::Store,
        Parameter::MessageName,
        Parameter::PromptCacheOptions,
        Parameter::SensitiveWordCheck,
        Parameter::ImageSeed,
        Parameter::ImageStyle,
        // Its search among functions has other words, and its calls other members.
        Parameter::ToolSearch,
        Parameter::AllowedCallers,
    ];
    let refused = [
        Parameter::BlockedDomains,
        Parameter::VendorSafeguards,
        Parameter::Stop,
        Parameter::FrequencyPenalty,
        Parameter::PresencePenalty,
        Parameter::Effort,
        Parameter::LogitBias,
        Parameter::Logprobs,
        Parameter::TopLogprobs,
        Parameter::Prediction,
        Parameter::Modalities,
        Parameter::Audio,
        Parameter::Functions,
        Parameter::FunctionCall,
        Parameter::ImageCount,
    ];
    ProviderDefaults {
        parameters: Parameters::plain().without(&dropped, &refused),
        ..ProviderDefaults::plain()
    }
}

pub(super) fn encode(request: &ModelRequest, target: &Target<'_>) -> Result<Vec<BodySlice>, Fault> {
    if let Some(facts) = splice::facts(request, target.is_vendor) {
        return splice::encode(request, facts, target);
    }
    let mut chat = request.front.conversation(request)?;
    opaque::keep_own(&mut chat, Dialect::Responses, target, |_| false);
    let history = History::read(&chat, target)?;
    let reasons = target.thinking.reasons != Some(false);
    let option = |parameter| target.treated(chat.option(parameter)?, parameter, request);
    let says_parallel = target.treat(Parameter::ParallelToolCalls, request) != Treatment::Drop;
    let parallel = chat.option(Parameter::ParallelToolCalls);
    let drawing = drawing::tool(request, &chat, target)?.map(ListedTool::Hosted);
    let tools = tools::list(request, &chat, target).into_iter();
    let tools = tools.map(ListedTool::Own);
    let has_functions = chat.functions().next().is_some();
    let searches = request.needs.web_search.is_some();
    let body = Body {
        model: target.model,
        input: history.items,
        store: false,
        include: if reasons { &INCLUDED } else { &[] },
        reasoning: reasons.then(|| reasoning(request, target)),
        tools: tools.chain(drawing).collect(),
        tool_choice: tool_choice(&chat, target).filter(|_| has_functions || searches),
        parallel_tool_calls: parallel
            .filter(|_| has_functions && says_parallel)
            .map(|parallel| parallel.get() == "true"),
        max_tool_calls: tools::max_calls(request, target),
        text: text_options(&chat, option(Parameter::Verbosity)),
        max_output_tokens: max_output(request, target)
            .and_then(|most| target.said_limit(most, request)),
        service_tier: request.needs.service_tier.wire_word(),
        same: SAME
            .iter()
            .filter_map(|same| Some((same.as_str(), option(*same)?)))
            .collect(),
        stream: request.is_stream,
    };
    write_body(&body, request.source.body.len())
}

/// Returns the limit of tokens that is sent.
pub(super) fn max_output(request: &ModelRequest, target: &Target<'_>) -> Option<u64> {
    let asked = target.max_tokens(request)?;
    Some(asked.max(MIN_OUTPUT_TOKENS))
}

/// A model that does not reason refuses the member. One that does shall tell its reasoning, unless it was asked for none.
fn reasoning<'a>(request: &'a ModelRequest, target: &Target<'_>) -> Reasoning<'a> {
    let needs = &request.needs;
    let effort = target.thinking.effort(needs);
    let tells =
        effort != Some(Effort::None) && target.parameters.supports(Parameter::ReasoningSummary);
    Reasoning {
        effort: effort.map(Effort::as_str),
        summary: tells.then_some("auto"),
        context: needs.reasoning_context.as_deref(),
        mode: needs.reasoning_mode.as_deref(),
    }
}

fn tool_choice(chat: &Conversation<'_>, target: &Target<'_>) -> Option<Value> {
    Some(match chat.choice.as_ref()? {
        ToolChoice::Auto => "auto".into(),
        ToolChoice::None => "none".into(),
        ToolChoice::WebSearch => json!({ "type": "web_search" }),
        _ if target.lower_tool_choice => "auto".into(),
        ToolChoice::Required => "required".into(),
        ToolChoice::Function(name) => json!({ "type": "function", "name": &**name }),
    })
}

fn text_options<'a>(
    chat: &'a Conversation<'_>,
    verbosity: Option<Cow<'a, RawValue>>,
) -> Option<TextOptions<'a>> {
    let format = match &chat.form {
        AnswerForm::Text => None,
        AnswerForm::Json => Some(TextFormat::JsonObject),
        AnswerForm::Schema(form) => Some(TextFormat::JsonSchema {
            name: &form.name,
            description: form.description.as_deref(),
            schema: &form.schema,
            strict: form.strict,
        }),
    };
    (format.is_some() || verbosity.is_some()).then_some(TextOptions { format, verbosity })
}
