//! Messages and their parts. Source: docs/model-gateway.md 2.2, 2.3.

use super::Findings;
use super::media::{audio, drawn_images, file, image};
use crate::json::{Type, Walker};
use crate::models::check::read::{
    OneOf, array, boolean, integer, object, object_of_set, one_of, required, string,
};
use crate::models::check::reject::{Reject, other};
use crate::models::parameter::Parameter;

const ROLES: [&str; 6] = [
    "developer",
    "system",
    "user",
    "assistant",
    "tool",
    "function",
];
const PHASES: [&str; 2] = ["commentary", "final_answer"];

const MESSAGE: [&str; 14] = [
    "role",
    "content",
    "name",
    "tool_call_id",
    "tool_calls",
    "reasoning",
    "reasoning_content",
    "reasoning_details",
    "phase",
    "content_before_tool_calls",
    "message_items",
    "vendor_native_blocks",
    "tool_result_cache_control",
    "images",
];

/// The maximum number of messages. Source: docs/hostile-input.md 28.
const MAX_MESSAGES: usize = 10_000;
/// The maximum number of tool calls of one message. Source: docs/hostile-input.md 28.
const MAX_TOOL_CALLS: usize = 1024;

/// The maximum number of parts, calls and items of reasoning in all messages together. Each becomes a structure that is much
/// larger than its shortest text. Source: docs/hostile-input.md 28.
const MAX_ITEMS: usize = 20_000;

/// `messages`.
pub(super) fn messages(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    let count = array(walk, |walk, at| {
        walk.peek()?;
        let start = walk.at();
        found.place = (at, 0);
        found.is_special = false;
        found.holds_media = false;
        message(walk, found)?;
        if found.is_special {
            found.special_messages.push(start..walk.at());
        }
        Ok(())
    })?;
    found.messages = Some(count);
    if count > MAX_MESSAGES {
        return Err(Reject::rule(format!(
            "holds {count} messages; accepted are at most {MAX_MESSAGES}"
        )));
    }
    Ok(())
}

fn message(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    let mut role = None;
    let mut is_named = false;
    object_of_set(walk, &MESSAGE, |walk, key| {
        match key {
            "role" => role = Some(one_of(walk, &ROLES)?),
            "content" => content(walk, found)?,
            "name" => is_named = !string(walk)?.is_empty(),
            // A result without one answers the first call that has none yet.
            "tool_call_id" => _ = string(walk)?,
            "tool_calls" => tool_calls(walk, found)?,
            "reasoning" | "reasoning_content" => {
                found.is_special = true;
                found.text_bytes += string(walk)?.len() as u64;
            }
            "reasoning_details" => typed_items(walk, found, &["text", "type"])?,
            "vendor_native_blocks" => typed_items(walk, found, &["type"])?,
            "tool_result_cache_control" => cache_control(walk, found)?,
            "phase" => {
                one_of(walk, &PHASES)?;
                found.is_special = true;
            }
            "content_before_tool_calls" => {
                boolean(walk)?;
                found.is_special = true;
            }
            "message_items" => message_items(walk, found)?,
            "images" => drawn_images(walk, found)?,
            _ => _ = walk.skip()?,
        }
        Ok(())
    })?;
    let role = required(role, "role", OneOf(&ROLES))?;
    // The name of a `function` says which call it answers, and every wire reads it.
    if is_named && role != "function" {
        found.asked.set.insert(Parameter::MessageName);
    }
    if !found.has_turn && !matches!(role, "system" | "developer") {
        found.has_turn = true;
        found.needs.assistant_first = role == "assistant";
    }
    if found.holds_media && matches!(role, "tool" | "function") {
        found.asked.set.insert(Parameter::ToolResultMedia);
    }
    Ok(())
}

fn content(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    match walk.peek()? {
        Type::String => found.text_bytes += walk.string()?.len() as u64,
        Type::Array => {
            array(walk, |walk, at| {
                found.place.1 = at;
                part(walk, found)
            })?;
        }
        _ => return Err(other(walk, "a string, an array of parts, or null")),
    }
    Ok(())
}

const PART: [&str; 9] = [
    "type",
    "text",
    "image_url",
    "input_audio",
    "file",
    "refusal",
    "extra_content",
    "cache_control",
    "prompt_cache_breakpoint",
];
const PART_TYPES: [&str; 5] = ["text", "image_url", "input_audio", "file", "refusal"];

/// Counts a part, call or item of a message.
fn count_item(found: &mut Findings) -> Result<(), Reject> {
    found.items += 1;
    if found.items > MAX_ITEMS {
        return Err(Reject::rule(format!(
            "is one of more than {MAX_ITEMS} parts, calls and items of all messages"
        )));
    }
    Ok(())
}

fn part(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    count_item(found)?;
    let mut part_type = None;
    let mut present: Vec<&'static str> = Vec::with_capacity(2);
    object_of_set(walk, &PART, |walk, key| {
        match key {
            "type" => part_type = Some(one_of(walk, &PART_TYPES)?),
            "text" | "refusal" => found.text_bytes += string(walk)?.len() as u64,
            "image_url" => image(walk, found)?,
            "input_audio" => audio(walk, found)?,
            "file" => file(walk, found)?,
            "extra_content" => extra_content(walk, found)?,
            "cache_control" => cache_control(walk, found)?,
            _ => {
                found.is_special = true;
                found.needs.cache_control = true;
                object(walk, &["mode"], |walk, _| {
                    one_of(walk, &["explicit"]).map(|_| ())
                })?;
            }
        }
        present.push(key);
        Ok(())
    })?;
    let part_type = required(part_type, "type", OneOf(&PART_TYPES))?;
    if present.contains(&part_type) {
        return Ok(());
    }
    required(
        None,
        part_type,
        format_args!("what a part of type `{part_type}` holds"),
    )
}

/// `{type: ephemeral, ttl: 5m or 1h}`.
pub(super) fn cache_control(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    let mut kind = None;
    object(walk, &["type", "ttl"], |walk, key| {
        if key == "type" {
            kind = Some(one_of(walk, &["ephemeral"])?);
            Ok(())
        } else {
            one_of(walk, &["5m", "1h"]).map(|_| ())
        }
    })?;
    found.is_special = true;
    found.needs.cache_control = true;
    required(kind, "type", "`ephemeral`").map(|_| ())
}

/// An object keyed by provider names, each holding `thought_signature`.
fn extra_content(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    found.is_special = true;
    crate::models::check::read::any_object(walk, &[], |walk, key, _| {
        object(walk, &["thought_signature"], |walk, _| {
            string(walk).map(|_| ())
        })
        .map_err(|reject| reject.within(&key))
    })
}

fn tool_calls(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    let count = array(walk, |walk, _| {
        count_item(found)?;
        let (mut id, mut kind, mut function) = (None, None, None);
        object_of_set(
            walk,
            &["id", "type", "function", "extra_content"],
            |walk, key| {
                match key {
                    "id" => id = Some(string(walk)?),
                    "type" => kind = Some(one_of(walk, &["function"])?),
                    "function" => function = Some(called(walk, found)?),
                    _ => extra_content(walk, found)?,
                }
                Ok(())
            },
        )?;
        required(id, "id", "a string")?;
        required(kind, "type", "`function`")?;
        required(
            function,
            "function",
            "an object with `name` and `arguments`",
        )
    })?;
    if count > MAX_TOOL_CALLS {
        return Err(Reject::rule(format!(
            "holds {count} calls; accepted are at most {MAX_TOOL_CALLS}"
        )));
    }
    Ok(())
}

fn called(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    let (mut name, mut arguments) = (None, None);
    object_of_set(walk, &["name", "arguments"], |walk, key| {
        let text = string(walk)?;
        found.text_bytes += text.len() as u64;
        *(if key == "name" {
            &mut name
        } else {
            &mut arguments
        }) = Some(text);
        Ok(())
    })?;
    required(name, "name", "a string")?;
    required(arguments, "arguments", "a string of JSON").map(|_| ())
}

/// An array of objects of which these members are strings; `type` is required where it is the only one.
fn typed_items(
    walk: &mut Walker<'_>,
    found: &mut Findings,
    strings: &'static [&'static str],
) -> Result<(), Reject> {
    array(walk, |walk, _| {
        count_item(found)?;
        found.is_special = true;
        let mut has_type = false;
        object_of_set(walk, strings, |walk, key| {
            has_type |= key == "type";
            string(walk).map(|_| ())
        })?;
        if strings.len() == 1 && !has_type {
            required(None, "type", "a string")
        } else {
            Ok(())
        }
    })
    .map(|_| ())
}

fn message_items(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    found.is_special = true;
    array(walk, |walk, _| {
        count_item(found)?;
        let mut has_text = false;
        object_of_set(
            walk,
            &["text", "phase", "preceding_tool_calls"],
            |walk, key| {
                match key {
                    "text" => {
                        found.text_bytes += string(walk)?.len() as u64;
                        has_text = true;
                    }
                    "phase" => _ = one_of(walk, &PHASES)?,
                    _ => _ = integer(walk, 0, u64::MAX)?,
                }
                Ok(())
            },
        )?;
        required(has_text.then_some(()), "text", "a string")
    })
    .map(|_| ())
}
