//! From a checked request to the body for a provider: most members stay slices, few are replaced.

use super::drawing;
use super::messages;
use super::search;
use super::strict;
use super::tools;
use crate::fault::Fault;
use crate::json::{Walker, quoted};
use crate::models::chat::facts::ChatFacts;
use crate::models::dialects::{Dialect, chat};
use crate::models::parameter::Parameter;
use crate::models::request::{Effort, ModelRequest, RequestMember};
use crate::models::routing::parameters::{Parameters, Treatment};
use crate::models::routing::providers::ProviderDefaults;
use crate::models::routing::search::SearchDialect;
use crate::models::routing::thinking::{ThinkingControl, ThinkingDefaults};
use crate::models::wires::codec::BodySlice;
use crate::models::wires::quirks::StreamUsage;
use crate::models::wires::splice::Splice;
use crate::models::wires::wire::Target;

/// Returns what this wire does with parameters and how it tells a model to reason.
pub(super) fn defaults() -> ProviderDefaults {
    ProviderDefaults {
        parameters: Parameters::plain()
            .without(
                // Few models of these providers know them.
                &[
                    Parameter::PromptCacheOptions,
                    Parameter::SensitiveWordCheck,
                    Parameter::ImageQuality,
                    Parameter::ImageModeration,
                    Parameter::ImageSeed,
                    Parameter::ToolSearch,
                    Parameter::AllowedCallers,
                ],
                // Results of tools are texts in this convention.
                &[
                    Parameter::ToolResultMedia,
                    Parameter::Effort,
                    Parameter::ImageCount,
                    Parameter::VendorSafeguards,
                ],
            )
            .without_image_options(),
        thinking: ThinkingDefaults::LEVELS,
        search: SearchDialect::None,
        others: Vec::new(),
    }
}

pub(super) fn encode(
    request: &ModelRequest,
    facts: &ChatFacts,
    target: &Target<'_>,
) -> Result<Vec<BodySlice>, Fault> {
    let mut splice = Splice::new(&request.source.body);
    let mut is_first = true;
    splice.new_bytes(b"{");
    for member in &request.source.members {
        let change = change(member, request, facts, target);
        if matches!(change, Change::Drop) {
            continue;
        }
        splice.separate(&mut is_first);
        match change {
            Change::Keep | Change::Drop => splice.slice(member.whole.clone()),
            Change::Replace(key, value) => new_member(&mut splice, key, &value),
            Change::Rename(key) => {
                new_member(&mut splice, key, b"");
                splice.slice(member.value.clone());
            }
            Change::Messages => messages::rewrite(request, facts, member, target, &mut splice)?,
            Change::Tools => {
                let search = search::tool(request, target);
                tools::rewrite(member, target, search, &mut splice)?;
            }
        }
    }
    for (key, value) in additions(request, target) {
        splice.separate(&mut is_first);
        new_member(&mut splice, key, &value);
    }
    splice.new_bytes(b"}");
    Ok(splice.finish())
}

/// What happens to a top-level member.
enum Change<'a> {
    Keep,
    Drop,
    Replace(&'a str, Vec<u8>),
    Rename(&'a str),
    Messages,
    Tools,
}

fn change<'a>(
    member: &RequestMember,
    request: &ModelRequest,
    facts: &ChatFacts,
    target: &Target<'a>,
) -> Change<'a> {
    let key = &*member.key;
    if chat::is_gateways(key) || !target.quirks.passes(key, &chat::KEYS) {
        return Change::Drop;
    }
    if target.quirks.strict_schema
        && let Some(closed) = closed(member, request)
    {
        return Change::Replace(closed.0, closed.1);
    }
    match key {
        "model" => Change::Replace("model", quoted(target.model).into()),
        "messages" if messages::must_rewrite(request, facts, target) => Change::Messages,
        // Of tools that the provider runs nothing is left, or the provider's own.
        "tools" if !request.needs.tools && facts.special_tools => {
            match search::tool(request, target) {
                Some(tool) => Change::Replace("tools", format!("[{tool}]").into()),
                None => Change::Drop,
            }
        }
        "tool_choice" if facts.special_tools && chooses_hosted(request) => Change::Drop,
        "tools"
            if facts.special_tools
                || messages::is_lost(Parameter::StrictTools, request, target) =>
        {
            Change::Tools
        }
        "stream_options" => Change::Drop,
        "tool_choice" if target.lower_tool_choice && request.needs.forced_tools => {
            Change::Replace("tool_choice", quoted("auto").into())
        }
        "parallel_tool_calls" if !request.needs.tools => Change::Drop,
        "service_tier" if request.needs.service_tier.wire_word().is_none() => Change::Drop,
        "reasoning" | "reasoning_effort" => reasoning(key, request, target),
        "image_config" => drawing::image_config(request.source.value(member), request, target)
            .map_or(Change::Drop, |value| Change::Replace("image_config", value)),
        _ if request.source.is_null(member) => Change::Drop,
        _ => chat::find_parameter(key).map_or(Change::Keep, |parameter| {
            treated(parameter, key, request, target)
        }),
    }
}

/// Whether the choice is about tools that do not go out as such.
fn chooses_hosted(request: &ModelRequest) -> bool {
    let needs = &request.needs;
    !needs.tools || needs.web_search.is_some_and(|search| search.is_demanded)
}

/// A member with its schemas strict and closed, for providers that take no others; `None`: it has none.
fn closed(member: &RequestMember, request: &ModelRequest) -> Option<(&'static str, Vec<u8>)> {
    let value = request.source.value(member);
    match &*member.key {
        "response_format" => Some(("response_format", strict::response_format(value)?)),
        "tools" => Some(("tools", strict::tools(value)?)),
        _ => None,
    }
}

/// What the table of the mapping makes of a parameter.
fn treated<'a>(
    parameter: Parameter,
    key: &str,
    request: &ModelRequest,
    target: &Target<'a>,
) -> Change<'a> {
    let is_overruled = key == "max_tokens"
        && request
            .source
            .member(chat::NEWER_LIMIT)
            .is_some_and(|other| !request.source.is_null(other));
    let name = target.parameters.name(parameter);
    // A null beside the limit that is added says nothing.
    let is_unasked = parameter == Parameter::MaxTokens && request.needs.max_tokens.is_none();
    match target.treat(parameter, request) {
        _ if is_unasked && target.max_tokens(request).is_some() => Change::Drop,
        // Where the client sent both limits, the newer one counts.
        _ if is_overruled => Change::Drop,
        Treatment::Drop => Change::Drop,
        Treatment::Number(number) => Change::Replace(name, number.to_string().into_bytes()),
        Treatment::Pass if name == key => Change::Keep,
        Treatment::Pass => Change::Rename(name),
    }
}

/// `reasoning` in this convention is `reasoning_effort`, unless the mapping is told to reason otherwise.
fn reasoning<'a>(key: &str, request: &ModelRequest, target: &Target<'_>) -> Change<'a> {
    let needs = &request.needs;
    let thinking = target.thinking;
    if !thinking.takes_words() {
        return Change::Drop;
    }
    if let Some(budget) = needs.reasoning_tokens {
        return match key {
            "reasoning" => {
                Change::Replace("reasoning", format!("{{\"max_tokens\":{budget}}}").into())
            }
            _ => Change::Drop,
        };
    }
    let has_own = |member| {
        let own = request.source.member(member);
        own.is_some_and(|own| !request.source.is_null(own))
    };
    match thinking.effort(needs) {
        // A model that does not reason has nothing to switch off, and no such field; another has a switch for it.
        Some(Effort::None)
            if thinking.reasons == Some(false) || thinking.control == ThinkingControl::Switch =>
        {
            Change::Drop
        }
        Some(effort) if key == "reasoning_effort" || !has_own("reasoning_effort") => {
            Change::Replace("reasoning_effort", quoted(effort.as_str()).into())
        }
        _ => Change::Drop,
    }
}

pub(super) fn additions<'t>(
    request: &ModelRequest,
    target: &Target<'t>,
) -> Vec<(&'t str, Vec<u8>)> {
    let mut additions = Vec::new();
    if request.source.member("model").is_none() {
        additions.push(("model", quoted(target.model).into()));
    }
    if request.is_stream && target.quirks.stream_usage == StreamUsage::Ask {
        additions.push(("stream_options", br#"{"include_usage":true}"#.to_vec()));
    }
    let unasked = target.max_tokens(request);
    if let Some(limit) = unasked.filter(|_| request.needs.max_tokens.is_none()) {
        let name = target.parameters.name(Parameter::MaxTokens);
        additions.push((name, limit.to_string().into()));
    }
    if drawing::must_say_modalities(request, target) {
        let name = target.parameters.name(Parameter::Modalities);
        additions.push((name, br#"["image","text"]"#.to_vec()));
    }
    if request.is_said_in(Dialect::Chat) && !has_tools_member(request) {
        // The flag alone asks for the search.
        let tool = search::tool(request, target);
        additions.extend(tool.map(|tool| ("tools", format!("[{tool}]").into())));
    }
    additions.extend(search::members(request, target));
    let needs = &request.needs;
    let is_said = target.thinking.effort(needs).is_some() || needs.reasoning_tokens.is_some();
    if !is_said || target.thinking.reasons == Some(false) {
        return additions;
    }
    let is_on = target.thinking.is_on(needs);
    match target.thinking.control {
        ThinkingControl::Switch => {
            let word = if is_on { "enabled" } else { "disabled" };
            additions.push(("thinking", format!("{{\"type\":\"{word}\"}}").into()));
        }
        ThinkingControl::Budget => {
            additions.push(("enable_thinking", is_on.to_string().into()));
            if let Some(budget) = target.thinking.asked_budget(needs) {
                additions.push(("thinking_budget", budget.to_string().into()));
            }
        }
        ThinkingControl::Levels | ThinkingControl::Adaptive | ThinkingControl::Fixed => {}
    }
    additions
}

fn has_tools_member(request: &ModelRequest) -> bool {
    let member = request.source.member("tools");
    member.is_some_and(|member| !request.source.is_null(member))
}

pub(super) fn new_member(splice: &mut Splice<'_>, key: &str, value: &[u8]) {
    splice.new_bytes(b"\"");
    splice.new_bytes(key.as_bytes());
    splice.new_bytes(b"\":");
    splice.new_bytes(value);
}

/// A walker over a range of the body, and where the range starts.
pub(super) fn walker<'a>(
    splice: &Splice<'a>,
    range: std::ops::Range<usize>,
) -> (Walker<'a>, usize) {
    (Walker::over(splice.text(range.clone())), range.start)
}
