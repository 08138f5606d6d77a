//! A chat of another dialect in the words of this wire. What the wire would refuse is refused here, naming the place.

mod messages;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::request::additions;
use super::{search, strict};
use crate::fault::{Fault, FaultKind};
use crate::json::{Object, Str, quoted};
use crate::models::chat::conversation::{AnswerForm, Conversation};
use crate::models::chat::tools::ToolChoice;
use crate::models::dialects::Dialect;
use crate::models::parameter::Parameter;
use crate::models::request::{Effort, ModelRequest};
use crate::models::routing::parameters::Treatment;
use crate::models::routing::thinking::ThinkingControl;
use crate::models::wires::codec::BodySlice;
use crate::models::wires::history::fold_instructions;
use crate::models::wires::opaque;
use crate::models::wires::wire::Target;

/// The most stop sequences that every provider takes.
const MAX_STOPS: usize = 4;

/// Members that other dialects have under the same names.
const OPTIONS: [Parameter; 7] = [
    Parameter::Temperature,
    Parameter::TopP,
    Parameter::FrequencyPenalty,
    Parameter::PresencePenalty,
    Parameter::Seed,
    Parameter::LogitBias,
    Parameter::User,
];

/// Encodes a request whose front speaks another dialect.
pub(super) fn encode(request: &ModelRequest, target: &Target<'_>) -> Result<Vec<BodySlice>, Fault> {
    let mut chat = request.front.conversation(request)?;
    opaque::keep_own(&mut chat, Dialect::Chat, target, |_| false);
    if !target.quirks.late_instructions {
        fold_instructions(&mut chat);
    }
    // What a request says in other words is about as long as it was.
    let mut out = Vec::with_capacity(request.source.body.len() + 4096);
    let mut body = Object::open(&mut out);
    body.text("model", target.model);
    let mut written = Ok(());
    body.value("messages", |out| {
        written = messages::write(&chat, target, out);
    });
    written?;
    write_tools(&mut body, request, &chat, target);
    if let Some(format) = response_format(&chat, target) {
        body.raw("response_format", &format);
    }
    let stops = chat.stop.iter().take(MAX_STOPS);
    if target.parameters.supports(Parameter::Stop) && stops.len() > 0 {
        body.array("stop", stops, |stop, out| Str::Plain(stop).write(out));
    }
    let option = |parameter| target.treated(chat.option(parameter)?, parameter, request);
    for parameter in OPTIONS {
        if let Some(value) = option(parameter) {
            body.foreign(target.parameters.name(parameter), value.get());
        }
    }
    if request.needs.choices > 1 {
        body.number("n", request.needs.choices.into());
    }
    if request.is_stream {
        body.bool("stream", true);
    }
    for (key, json) in more(request, target)? {
        body.foreign(key, &json);
    }
    body.close();
    Ok(vec![out.into()])
}

/// Writes the tools, and what the request says of their calls.
fn write_tools(
    body: &mut Object<'_>,
    request: &ModelRequest,
    chat: &Conversation<'_>,
    target: &Target<'_>,
) {
    if let Some(tools) = tools(request, chat, target) {
        body.raw("tools", &tools);
    }
    if !request.needs.tools {
        return;
    }
    if let Some(choice) = tool_choice(chat, target) {
        body.raw("tool_choice", &choice.to_string());
    }
    let asked = chat.option(Parameter::ParallelToolCalls);
    let is_serial = asked.is_some_and(|asked| asked.get() == "false");
    let parallel = target.treat(Parameter::ParallelToolCalls, request);
    if is_serial && parallel == Treatment::Pass {
        body.bool("parallel_tool_calls", false);
    }
}

/// Returns the members whose names depend on the provider.
fn more<'t>(
    request: &ModelRequest,
    target: &Target<'t>,
) -> Result<BTreeMap<&'t str, String>, Fault> {
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
    let text = |(key, json): (&'t str, Vec<u8>)| {
        let json = String::from_utf8(json).map_err(|_| internal())?;
        Ok((key, json))
    };
    more.into_iter().map(text).collect()
}

fn tools(request: &ModelRequest, chat: &Conversation<'_>, target: &Target<'_>) -> Option<String> {
    let takes_strict = target.parameters.supports(Parameter::StrictTools);
    let mut list = Vec::new();
    for tool in chat.functions() {
        list.push(if list.is_empty() { b'[' } else { b',' });
        let mut said = Object::open(&mut list);
        said.raw("type", "\"function\"");
        said.object("function", |function| {
            function.text("name", &tool.name);
            function.optional_text("description", tool.description.as_deref());
            if let Some(schema) = tool.parameters.as_deref() {
                function.raw("parameters", schema);
            }
            if takes_strict && tool.strict == Some(true) {
                function.bool("strict", true);
            }
        });
        said.close();
    }
    if let Some(search) = search::tool(request, target) {
        list.push(if list.is_empty() { b'[' } else { b',' });
        list.extend_from_slice(search.as_bytes());
    }
    if list.is_empty() {
        return None;
    }
    list.push(b']');
    let closed = target
        .quirks
        .strict_schema
        .then(|| strict::tools(&list))
        .flatten();
    String::from_utf8(closed.unwrap_or(list)).ok()
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

fn response_format(chat: &Conversation<'_>, target: &Target<'_>) -> Option<String> {
    let form = match &chat.form {
        AnswerForm::Text => return None,
        AnswerForm::Json => json!({ "type": "json_object" }),
        AnswerForm::Schema(form) => {
            let strict = form.strict.map(|strict| ("strict", strict.into()));
            let members = [("name", json!(&*form.name)), ("schema", json!(form.schema))];
            let said: Value = members.into_iter().chain(strict).collect();
            json!({ "type": "json_schema", "json_schema": said })
        }
    };
    let form = form.to_string();
    let closed = target
        .quirks
        .strict_schema
        .then(|| strict::response_format(form.as_bytes()));
    let closed = closed
        .flatten()
        .and_then(|closed| String::from_utf8(closed).ok());
    Some(closed.unwrap_or(form))
}
