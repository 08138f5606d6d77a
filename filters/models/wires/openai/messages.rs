//! Messages and tools with the members that this provider does not take left out.
//!
//! Only messages that hold such members are walked again; all other messages and members stay slices.
//! Source: docs/model-gateway.md 2.2–2.4 ("stripped otherwise"), docs/facts/wire-formats.md R16, R17.

use std::ops::Range;

use super::calls::shorten_id;
use super::media;
use super::request::walker;
use crate::fault::Fault;
use crate::json::{Error, Type, Walker};
use crate::models::chat::facts::ChatFacts;
use crate::models::dialects::chat_state::{open_items, open_vendors};
use crate::models::parameter::Parameter;
use crate::models::request::{ModelRequest, RequestMember};
use crate::models::wires::quirks::ReasoningReplay;
use crate::models::wires::splice::internal;
use crate::models::wires::splice::{Splice, span};
use crate::models::wires::wire::Target;

/// Members of a message that no provider of the plain convention takes.
const BEYOND: [&str; 8] = [
    "reasoning",
    "reasoning_content",
    "reasoning_details",
    "phase",
    "content_before_tool_calls",
    "message_items",
    "vendor_native_blocks",
    "tool_result_cache_control",
];

/// Members of a message in the plain convention.
const PLAIN: [&str; 8] = [
    "role",
    "content",
    "name",
    "tool_call_id",
    "tool_calls",
    "refusal",
    "audio",
    "function_call",
];

/// Members of parts, calls and tools that no provider of the plain convention takes.
const BEYOND_INSIDE: [&str; 3] = ["cache_control", "allowed_callers", "defer_loading"];

/// The member of a message, a part or a call that holds state of the provider that made it.
const EXTRA_CONTENT: &str = "extra_content";

/// Whether any message has to change for this provider.
pub(super) fn must_rewrite(request: &ModelRequest, chat: &ChatFacts, target: &Target<'_>) -> bool {
    !chat.special_messages.is_empty() || must_rewrite_all(request, target)
}

/// Whether plain messages have to change too.
fn must_rewrite_all(request: &ModelRequest, target: &Target<'_>) -> bool {
    let quirks = target.quirks;
    quirks.developer_is_system
        || quirks.null_content_is_empty
        || quirks.tool_call_ids_of_nine
        || quirks.reasoning_replay == ReasoningReplay::ReasoningContentRequired
        || quirks.strict_messages
        || media::must_rewrite(request, target)
        || [Parameter::MessageName, Parameter::ImageDetail]
            .into_iter()
            .any(|parameter| is_lost(parameter, request, target))
}

/// Returns whether the request asks for a parameter that this provider does not get.
pub(super) fn is_lost(parameter: Parameter, request: &ModelRequest, target: &Target<'_>) -> bool {
    request.asked.set.contains(parameter) && !target.parameters.supports(parameter)
}

/// Writes the member `messages`.
pub(super) fn rewrite(
    request: &ModelRequest,
    chat: &ChatFacts,
    member: &RequestMember,
    target: &Target<'_>,
    splice: &mut Splice<'_>,
) -> Result<(), Fault> {
    let all = must_rewrite_all(request, target);
    let ranges = splice.items(member.value.clone()).map_err(internal)?;
    splice.new_bytes(b"\"messages\":[");
    for (at, range) in ranges.into_iter().enumerate() {
        if at > 0 {
            splice.new_bytes(b",");
        }
        if all || chat.special_messages.contains(&range) {
            message(splice, range, target).map_err(internal)?;
        } else {
            splice.slice(range);
        }
    }
    splice.new_bytes(b"]");
    Ok(())
}

/// What a message is, as far as its rewriting depends on it.
#[derive(Default)]
struct MessageKind {
    is_assistant: bool,
    is_function: bool,
    has_calls: bool,
    has_reasoning: bool,
    /// The provider's own `reasoning_details`, inside of a JSON array.
    details: String,
    /// The provider's own `extra_content`.
    extra: Option<String>,
}

fn message(splice: &mut Splice<'_>, range: Range<usize>, target: &Target<'_>) -> Result<(), Error> {
    let quirks = target.quirks;
    let members = splice.members(range)?;
    let kind = kind(splice, &members, target)?;
    splice.new_bytes(b"{");
    let mut is_first = true;
    for (key, value) in &members {
        let Some(name) = outgoing_name(key, &kind, &members, target) else {
            continue;
        };
        splice.write_name(name, &mut is_first);
        match name {
            "role"
                if quirks.developer_is_system && splice.text(value.clone()) == "\"developer\"" =>
            {
                splice.new_bytes(b"\"system\"");
            }
            "content" if is_text(splice, value, "null") && quirks.null_content_is_empty => {
                splice.new_bytes(b"\"\"");
            }
            "reasoning_details" => {
                splice.new_bytes(b"[");
                splice.new_bytes(kind.details.as_bytes());
                splice.new_bytes(b"]");
            }
            EXTRA_CONTENT => {
                splice.new_bytes(kind.extra.as_deref().unwrap_or("null").as_bytes());
            }
            "content" | "tool_calls" if splice.text(value.clone()).starts_with('[') => {
                items(splice, value.clone(), target)?;
            }
            "tool_call_id" if quirks.tool_call_ids_of_nine => {
                let id = Walker::over(splice.text(value.clone()))
                    .string()?
                    .unescaped();
                splice.new_string(&shorten_id(&id));
            }
            _ => splice.slice(value.clone()),
        }
    }
    let is_lost = kind.is_assistant && kind.has_calls && !kind.has_reasoning;
    if is_lost && quirks.reasoning_replay == ReasoningReplay::ReasoningContentRequired {
        splice.write_name("reasoning_content", &mut is_first);
        splice.new_bytes(b"\"\"");
    }
    splice.new_bytes(b"}");
    Ok(())
}

/// The name under which a member of a message goes out, if it does.
fn outgoing_name<'k>(
    key: &'k str,
    kind: &MessageKind,
    members: &[(String, Range<usize>)],
    target: &Target<'_>,
) -> Option<&'k str> {
    let quirks = target.quirks;
    if key == "images" {
        // A model that draws goes on with what it has drawn; no other provider knows the member.
        return (target.image_output == Some(true)).then_some(key);
    }
    if key == EXTRA_CONTENT {
        return kind.extra.is_some().then_some(key);
    }
    let is_name = key == "name" && !kind.is_function;
    let is_dropped = is_name && !target.parameters.supports(Parameter::MessageName);
    if is_dropped || quirks.strict_messages && !PLAIN.contains(&key) && !BEYOND.contains(&key) {
        return None;
    }
    if !BEYOND.contains(&key) {
        return Some(key);
    }
    let replay = match quirks.reasoning_replay {
        ReasoningReplay::None => return None,
        ReasoningReplay::ReasoningDetails if !kind.details.is_empty() => {
            return (key == "reasoning_details").then_some(key);
        }
        ReasoningReplay::Reasoning | ReasoningReplay::ReasoningDetails => "reasoning",
        ReasoningReplay::ReasoningContent | ReasoningReplay::ReasoningContentRequired => {
            "reasoning_content"
        }
    };
    let is_text = matches!(key, "reasoning" | "reasoning_content");
    // `reasoning` wins where both came.
    let is_shadowed =
        key == "reasoning_content" && members.iter().any(|(other, _)| other == "reasoning");
    (is_text && kind.is_assistant && !is_shadowed).then_some(replay)
}

fn kind(
    splice: &Splice<'_>,
    members: &[(String, Range<usize>)],
    target: &Target<'_>,
) -> Result<MessageKind, Error> {
    let replays = target.quirks.reasoning_replay == ReasoningReplay::ReasoningDetails;
    let mut kind = MessageKind::default();
    for (key, value) in members {
        match key.as_str() {
            "role" => {
                let role = Walker::over(splice.text(value.clone())).string()?;
                kind.is_assistant = role.unescaped() == "assistant";
                kind.is_function = role.unescaped() == "function";
            }
            "tool_calls" => {
                let calls = splice.text(value.clone());
                kind.has_calls = calls.starts_with('[') && calls.len() > 2;
            }
            "reasoning_details" => {
                let items = splice.text(value.clone());
                let inside = items.strip_prefix('[').unwrap_or_default();
                match inside.trim_start() {
                    "" | "]" => {}
                    _ if replays && !target.refuses_state => {
                        kind.details = open_items(items, target.maker, target.left_out_state);
                    }
                    _ => target.left_out_state.add(),
                }
            }
            EXTRA_CONTENT => kind.extra = own_state(splice.text(value.clone()), target),
            "reasoning" | "reasoning_content" => {
                kind.has_reasoning |= splice.text(value.clone()).starts_with('"');
            }
            _ => {}
        }
    }
    Ok(kind)
}

/// Parts or calls: each item without what is beyond the convention or dropped, ids shortened where that is asked, media as
/// this provider takes them.
fn items(splice: &mut Splice<'_>, range: Range<usize>, target: &Target<'_>) -> Result<(), Error> {
    each_item(splice, range, |splice, item| {
        for (at, (key, value)) in kept(splice, item, target)?.into_iter().enumerate() {
            let mut is_first = at == 0;
            splice.write_name(&key, &mut is_first);
            let text = splice.text(value.clone());
            match key.as_str() {
                "id" if target.quirks.tool_call_ids_of_nine && text.starts_with('"') => {
                    let id = Walker::over(text).string()?.unescaped();
                    splice.new_string(&shorten_id(&id));
                }
                _ if text == "null" => splice.slice(value),
                "image_url" => media::write_image(splice, value, target)?,
                "input_audio" => media::write_audio(splice, value)?,
                "file" => media::write_file(splice, value)?,
                EXTRA_CONTENT => {
                    let own = own_state(text, target);
                    splice.new_bytes(own.as_deref().unwrap_or("null").as_bytes());
                }
                _ => splice.slice(value),
            }
        }
        Ok(())
    })
}

/// Writes an object without one of its members.
pub(super) fn without_member(
    splice: &mut Splice<'_>,
    range: Range<usize>,
    left_out: &str,
) -> Result<(), Error> {
    let mut members = splice.members(range)?;
    members.retain(|(key, _)| key != left_out);
    splice.new_bytes(b"{");
    for (at, (key, value)) in members.into_iter().enumerate() {
        splice.write_name(&key, &mut (at == 0));
        splice.slice(value);
    }
    splice.new_bytes(b"}");
    Ok(())
}

/// Walks an array; `write` writes the members of each item that is an object.
fn each_item(
    splice: &mut Splice<'_>,
    range: Range<usize>,
    mut write: impl FnMut(&mut Splice<'_>, Range<usize>) -> Result<(), Error>,
) -> Result<(), Error> {
    let (mut walk, base) = walker(splice, range);
    splice.new_bytes(b"[");
    walk.array(|walk, index| {
        if index > 0 {
            splice.new_bytes(b",");
        }
        let is_object = walk.peek()? == Type::Object;
        let item = span(walk, base)?;
        if is_object {
            splice.new_bytes(b"{");
            write(splice, item)?;
            splice.new_bytes(b"}");
        } else {
            splice.slice(item);
        }
        Ok::<(), Error>(())
    })?;
    splice.new_bytes(b"]");
    Ok(())
}

/// Returns the state of an earlier turn, if this provider made it, as the provider said it.
fn own_state(extra: &str, target: &Target<'_>) -> Option<String> {
    if target.refuses_state {
        target.left_out_state.add();
        return None;
    }
    open_vendors(extra, target.maker, target.left_out_state)
}

/// The members of an object that stay in it.
pub(super) fn kept(
    splice: &Splice<'_>,
    range: Range<usize>,
    target: &Target<'_>,
) -> Result<Vec<(String, Range<usize>)>, Error> {
    let keeps_breakpoints = target.parameters.supports(Parameter::PromptCacheOptions);
    let mut members = splice.members(range)?;
    members.retain(|(key, value)| match key.as_str() {
        "prompt_cache_breakpoint" => keeps_breakpoints,
        EXTRA_CONTENT => own_state(splice.text(value.clone()), target).is_some(),
        key => !BEYOND_INSIDE.contains(&key),
    });
    Ok(members)
}

fn is_text(splice: &Splice<'_>, range: &Range<usize>, text: &str) -> bool {
    splice.text(range.clone()) == text
}
