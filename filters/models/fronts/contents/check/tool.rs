//! `tools` and `toolConfig`.

use super::Findings;
use crate::json::{Type, Walker};
use crate::models::check::read::{array, boolean, expect, required, string};
use crate::models::check::reject::{Reject, other};
use crate::models::fronts::contents::members::{all_members, object};
use crate::models::parameter::Parameter;

/// The maximum number of functions and other tools. Source: docs/hostile-input.md 28.
const MAX_TOOLS: usize = 4096;

const MODES: &str = "one of AUTO, ANY, NONE, VALIDATED";

/// `tools`: an array of objects, each with functions or with a tool that the provider runs.
pub(super) fn tools(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    match walk.peek()? {
        Type::Object => tool(walk, found),
        Type::Array => array(walk, |walk, _| tool(walk, found)).map(|_| ()),
        _ => Err(other(walk, "an array of tools")),
    }
}

const TOOL: [&str; 3] = [
    "functionDeclarations",
    "googleSearch",
    "googleSearchRetrieval",
];

fn tool(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    note_tool(found)?;
    all_members(walk, &TOOL, |walk, key, known| match known {
        Some("functionDeclarations") => array(walk, |walk, _| function(walk, found)).map(|_| ()),
        Some(_) => search(walk, found),
        None => {
            walk.skip()?;
            let shown: String = key.chars().take(64).collect();
            found.note_native("tools", || format!("tool `{shown}`"));
            Ok(())
        }
    })
}

fn note_tool(found: &mut Findings) -> Result<(), Reject> {
    found.tools += 1;
    if found.tools > MAX_TOOLS {
        let said = format!("is one of more than {MAX_TOOLS} tools");
        return Err(Reject::rule(said));
    }
    Ok(())
}

const FUNCTION: [&str; 7] = [
    "name",
    "description",
    "parameters",
    "parametersJsonSchema",
    "response",
    "responseJsonSchema",
    "behavior",
];

fn function(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    note_tool(found)?;
    let (mut name, mut schemas) = (Box::<str>::default(), 0);
    object(walk, &FUNCTION, |walk, key| {
        match key {
            "name" => name = string(walk)?.unescaped().into(),
            "description" => found.text_bytes += string(walk)?.len() as u64,
            "parameters" | "parametersJsonSchema" => {
                schemas += 1;
                if schemas > 1 {
                    let said = "stands beside another schema; accepted is `parameters` or `parametersJsonSchema`";
                    return Err(Reject::rule(said));
                }
                expect(walk, Type::Object, "an object: a schema")?;
                found.text_bytes += walk.skip()?.len() as u64;
            }
            // What a function returns, and whether the model waits for it: other models read it in the description.
            _ => _ = walk.skip()?,
        }
        Ok(())
    })?;
    let name = Some(name).filter(|name| !name.is_empty());
    found.functions.push(required(name, "name", "a name")?);
    found.needs.tools = true;
    Ok(())
}

fn search(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    found.has_search = true;
    let keys = ["excludeDomains", "dynamicRetrievalConfig"];
    all_members(walk, &keys, |walk, key, known| match known {
        Some("excludeDomains") => {
            if array(walk, |walk, _| string(walk).map(|_| ()))? > 0 {
                found.set.insert(Parameter::BlockedDomains);
            }
            Ok(())
        }
        // When the model shall search, which it decides itself elsewhere.
        Some(_) => Ok(walk.skip().map(|_| ())?),
        None => {
            walk.skip()?;
            let shown: String = key.chars().take(64).collect();
            found.note_native("tools", || format!("searches with `{shown}`"));
            Ok(())
        }
    })
}

/// `toolConfig`: `{functionCallingConfig, retrievalConfig, includeServerSideToolInvocations}`.
pub(super) fn tool_config(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    let keys = ["functionCallingConfig", "includeServerSideToolInvocations"];
    object(walk, &keys, |walk, key| match key {
        "functionCallingConfig" => calling(walk, found),
        // What the provider shows of its own tools.
        _ => boolean(walk).map(|_| ()),
    })
}

fn calling(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    object(walk, &["mode", "allowedFunctionNames"], |walk, key| {
        if key == "allowedFunctionNames" {
            array(walk, |walk, _| {
                found.allowed.push(string(walk)?.unescaped().into());
                Ok(())
            })?;
            return Ok(());
        }
        if walk.peek()? != Type::String {
            return Err(other(walk, MODES));
        }
        let mode = walk.string()?.unescaped().to_ascii_uppercase();
        match &*mode {
            // Whether calls fit their schemas is for hosts of the dialect.
            "AUTO" | "VALIDATED" | "MODE_UNSPECIFIED" => {}
            "ANY" => found.needs.forced_tools = true,
            "NONE" => found.calls_nothing = true,
            other => {
                let shown: String = other.chars().take(40).collect();
                return Err(Reject::rule(format!("is {shown:?}; accepted is {MODES}")));
            }
        }
        Ok(())
    })
}
