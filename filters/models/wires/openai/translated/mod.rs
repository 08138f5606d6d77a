//! A chat of another dialect in the words of this wire. What the wire would refuse is refused here, naming the place.

mod messages;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use self::messages::Message;
use super::request::additions;
use super::{search, strict};
use crate::fault::{Fault, FaultKind};
use crate::json::quoted;
use crate::models::chat::conversation::{AnswerForm, Conversation};
use crate::models::chat::text::Text;
use crate::models::chat::tools::ToolChoice;
use crate::models::dialects::Dialect;
use crate::models::parameter::Parameter;
use crate::models::request::{Effort, ModelRequest};
use crate::models::routing::parameters::Treatment;
use crate::models::routing::thinking::ThinkingControl;
use crate::models::wires::codec::BodySlice;
use crate::models::wires::history::fold_instructions;
use crate::models::wires::opaque;
use crate::models::wires::wire::{Target, write_body};

/// The most stop sequences that every provider takes.
const MAX_STOPS: usize = 4;

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stop: &'a [Text<'a>],
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<Cow<'a, RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<Cow<'a, RawValue>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stream: bool,
    #[serde(flatten)]
    more: BTreeMap<&'a str, Box<RawValue>>,
}

#[derive(Serialize)]
struct SaidTool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: SaidFunction<'a>,
}

#[derive(Serialize)]
struct SaidFunction<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    strict: Option<bool>,
}

/// Encodes a request whose front speaks another dialect.
pub(super) fn encode(request: &ModelRequest, target: &Target<'_>) -> Result<Vec<BodySlice>, Fault> {
    let mut chat = request.front.conversation(request)?;
    opaque::keep_own(&mut chat, Dialect::Chat, target, |_| false);
    if !target.quirks.late_instructions {
        fold_instructions(&mut chat);
    }
    let messages = messages::read(&chat, target)?;
    let option = |parameter| target.treated(chat.option(parameter)?, parameter, request);
    let has_tools = request.needs.tools;
    let is_serial = chat.option(Parameter::ParallelToolCalls).is_some();
    let parallel = target.treat(Parameter::ParallelToolCalls, request);
    let stops = match target.parameters.supports(Parameter::Stop) {
        true => chat.stop.get(..chat.stop.len().min(MAX_STOPS)),
        false => None,
    };
    let body = Body {
        model: target.model,
        messages,
        tools: tools(request, &chat, target),
        tool_choice: has_tools.then(|| tool_choice(&chat, target)).flatten(),
        parallel_tool_calls: (has_tools && is_serial && parallel == Treatment::Pass)
            .then_some(false),
        response_format: response_format(&chat, target),
        stop: stops.unwrap_or_default(),
        temperature: option(Parameter::Temperature),
        top_p: option(Parameter::TopP),
        stream: request.is_stream,
        more: more(request, target)?,
    };
    write_body(&body, request.source.body.len())
}

/// Returns the members whose names depend on the provider.
fn more<'t>(
    request: &ModelRequest,
    target: &Target<'t>,
) -> Result<BTreeMap<&'t str, Box<RawValue>>, Fault> {
    let mut more: Vec<(&str, Vec<u8>)> = additions(request, target);
    let limit = target.max_tokens(request);
    if let Some(limit) = limit.and_then(|limit| target.said_limit(limit, request)) {
        let name = target.parameters.name(Parameter::MaxTokens);
        if target.treat(Parameter::MaxTokens, request) != Treatment::Drop {
            more.push((name, limit.to_string().into()));
        }
    }
    let thinking = target.thinking;
    let effort = thinking.asked_word(&request.needs);
    let is_switched = thinking.control == ThinkingControl::Switch && effort == Some(Effort::None);
    if let Some(effort) = effort.filter(|_| thinking.takes_words() && !is_switched) {
        more.push(("reasoning_effort", quoted(effort.as_str()).into()));
    }
    let internal = || Fault::new(FaultKind::Internal, "the request could not be translated");
    let raw = |(key, json): (&'t str, Vec<u8>)| {
        let json = String::from_utf8(json).ok().map(RawValue::from_string);
        let json = json.and_then(Result::ok).ok_or_else(internal)?;
        Ok((key, json))
    };
    more.into_iter().map(raw).collect()
}

fn tools(
    request: &ModelRequest,
    chat: &Conversation<'_>,
    target: &Target<'_>,
) -> Option<Box<RawValue>> {
    let takes_strict = target.parameters.supports(Parameter::StrictTools);
    let functions = chat.functions().map(|tool| {
        let parameters = tool
            .parameters
            .and_then(|schema| serde_json::from_str(schema).ok());
        let strict = tool.strict.filter(|strict| *strict && takes_strict);
        let tool = SaidTool {
            kind: "function",
            function: SaidFunction {
                name: &tool.name,
                description: tool.description.as_deref(),
                parameters,
                strict,
            },
        };
        serde_json::to_string(&tool).unwrap_or_default()
    });
    let search = search::tool(request, target).map(str::to_owned);
    let all: Vec<String> = functions.chain(search).collect();
    if all.is_empty() {
        return None;
    }
    let mut list = format!("[{}]", all.join(","));
    if target.quirks.strict_schema
        && let Some(closed) = strict::tools(list.as_bytes())
    {
        list = String::from_utf8(closed).unwrap_or_default();
    }
    RawValue::from_string(list).ok()
}

fn tool_choice(chat: &Conversation<'_>, target: &Target<'_>) -> Option<Value> {
    let may_force = !target.lower_tool_choice;
    Some(match chat.choice.as_ref()? {
        ToolChoice::None => "none".into(),
        ToolChoice::Required if may_force => "required".into(),
        ToolChoice::Function(name) if may_force => {
            json!({ "type": "function", "function": { "name": &**name } })
        }
        // The search is asked for in the provider's own way.
        ToolChoice::WebSearch => return None,
        _ => "auto".into(),
    })
}

fn response_format(chat: &Conversation<'_>, target: &Target<'_>) -> Option<Box<RawValue>> {
    let form = match &chat.form {
        AnswerForm::Text => return None,
        AnswerForm::Json => json!({ "type": "json_object" }),
        AnswerForm::Schema(form) => json!({
            "type": "json_schema",
            "json_schema": { "name": &*form.name, "schema": form.schema, "strict": form.strict },
        }),
    };
    let form = form.to_string();
    let closed = target
        .quirks
        .strict_schema
        .then(|| strict::response_format(form.as_bytes()));
    let closed = closed
        .flatten()
        .and_then(|closed| String::from_utf8(closed).ok());
    RawValue::from_string(closed.unwrap_or(form)).ok()
}
