//! Tools, the choice among them, and the form of the answer. Source: docs/model-gateway.md 2.1, 2.4.

use super::Findings;
use super::hosted::{HostedTool, TOOL};
use super::message::cache_control;
use crate::json::{Type, Walker};
use crate::models::check::read::{array, boolean, expect, object_of_set, one_of, required, string};
use crate::models::check::reject::{Reject, other};
use crate::models::parameter::Parameter;

/// Cache breakpoints on tools. Source: docs/model-gateway.md 8.6.
const BREAKPOINTS: u32 = 4;

/// The maximum number of tools. Source: docs/hostile-input.md 28.
const MAX_TOOLS: usize = 1024;

/// `tools`.
pub(super) fn tools(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    found.is_special = false;
    let count = array(walk, |walk, _| tool(walk, found))?;
    if count > MAX_TOOLS {
        return Err(Reject::rule(format!(
            "holds {count} tools; accepted are at most {MAX_TOOLS}"
        )));
    }
    found.special_tools = found.is_special;
    if found.strict_tools > 0 {
        let strict = f64::from(found.strict_tools);
        found.asked.add_number(Parameter::StrictTools, strict);
    }
    super::hosted::check_together(found)?;
    if found.tool_breakpoints > BREAKPOINTS {
        return Err(Reject::rule(format!(
            "holds {} cache breakpoints; accepted are at most {BREAKPOINTS}",
            found.tool_breakpoints
        )));
    }
    Ok(())
}

/// A tool: its members are those of its type, so they count once all of them are known.
fn tool(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    let (mut kind, mut has_function) = (None, false);
    let mut hosted = HostedTool::default();
    object_of_set(walk, &TOOL, |walk, key| {
        match key {
            "type" => kind = Some(one_of(walk, &["function", "tool_search", "web_search"])?),
            "function" => {
                function(walk, found)?;
                has_function = true;
            }
            "cache_control" => {
                cache_control(walk, found)?;
                found.tool_breakpoints += 1;
                hosted.has_breakpoint = true;
            }
            other => hosted.member(walk, other)?,
        }
        Ok(())
    })?;
    let kind = required(kind, "type", "`function`, `tool_search` or `web_search`")?;
    if kind == "function" && !has_function {
        return required(None, "function", "an object with a `name`");
    }
    hosted.note(kind, found)
}

fn function(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    let mut name = None;
    object_of_set(
        walk,
        &["name", "description", "parameters", "strict"],
        |walk, key| {
            match key {
                "name" => name = Some(string(walk)?.unescaped()),
                "description" => found.text_bytes += string(walk)?.len() as u64,
                "parameters" => {
                    expect(walk, Type::Object, "an object: a JSON schema")?;
                    found.text_bytes += walk.skip()?.len() as u64;
                }
                _ => found.strict_tools += u32::from(boolean(walk)?),
            }
            Ok(())
        },
    )?;
    let name = required(name.filter(|name| !name.is_empty()), "name", "a name")?;
    found.needs.tools = true;
    found.functions.push(name.into());
    Ok(())
}

/// `tool_choice`.
pub(super) fn tool_choice(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    const ACCEPTED: &str =
        "`auto`, `none`, `required`, {type: function, function: {name}} or {type: web_search}";
    match walk.peek()? {
        Type::String => {
            let word = one_of(walk, &["auto", "none", "required"])?;
            found.needs.forced_tools = word == "required";
            found.calls_nothing = word == "none";
        }
        Type::Object => {
            let (mut kind, mut name) = (None, None);
            object_of_set(walk, &["type", "function"], |walk, key| {
                if key == "type" {
                    kind = Some(one_of(walk, &["function", "web_search"])?);
                    return Ok(());
                }
                object_of_set(walk, &["name"], |walk, _| {
                    name = Some(string(walk)?.unescaped().into_owned());
                    Ok(())
                })
            })?;
            if required(kind, "type", "`function` or `web_search`")? == "web_search" {
                found.demands_search = true;
                return Ok(());
            }
            let name = required(name, "name", "the name of a function")
                .map_err(|r| r.within("function"))?;
            found.needs.forced_tools = true;
            found.chosen = Some(name.into());
        }
        _ => return Err(other(walk, ACCEPTED)),
    }
    Ok(())
}

/// `response_format`.
pub(super) fn response_format(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    let (mut kind, mut has_schema) = (None, false);
    object_of_set(walk, &["type", "json_schema"], |walk, key| {
        if key == "type" {
            kind = Some(one_of(walk, &["text", "json_object", "json_schema"])?);
            Ok(())
        } else {
            has_schema = true;
            json_schema(walk, found)
        }
    })?;
    match required(kind, "type", "`text`, `json_object` or `json_schema`")? {
        "json_schema" if !has_schema => {
            required(None, "json_schema", "an object with `name` and `schema`")
        }
        "json_schema" => {
            found.needs.json_schema = true;
            Ok(())
        }
        "json_object" => {
            found.needs.json_object = true;
            Ok(())
        }
        _ => Ok(()),
    }
}

fn json_schema(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    let (mut name, mut schema) = (None, None);
    object_of_set(
        walk,
        &["name", "description", "schema", "strict"],
        |walk, key| {
            match key {
                "name" => name = Some(string(walk)?),
                "schema" => {
                    expect(walk, Type::Object, "an object: a JSON schema")?;
                    let length = walk.skip()?.len();
                    schema = Some(walk.at() - length..walk.at());
                    found.text_bytes += length as u64;
                }
                "strict" => _ = boolean(walk)?,
                _ => _ = string(walk)?,
            }
            Ok(())
        },
    )?;
    required(name, "name", "a string")?;
    found.schema = Some(required(schema, "schema", "a JSON schema")?);
    Ok(())
}
