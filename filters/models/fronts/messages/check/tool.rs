//! Tools, and the choice among them.

use super::Findings;
use crate::json::{Type, Walker};
use crate::models::check::read::{
    array, boolean, expect, limit, object, object_of_set, required, string,
};
use crate::models::check::reject::Reject;
use crate::models::dialects::Dialect;
use crate::models::fronts::messages::tool_types::{self, ToolType};
use crate::models::parameter::Parameter;
use crate::models::request::{NativeNeed, SearchNeeds};

/// The maximum number of tools. Source: docs/hostile-input.md 28.
const MAX_TOOLS: usize = 4096;

/// `tools`.
pub(super) fn tools(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    found.tools = array(walk, |walk, _| tool(walk, found))?;
    if found.tools > MAX_TOOLS {
        return Err(Reject::rule(format!(
            "holds {} tools; accepted are at most {MAX_TOOLS}",
            found.tools
        )));
    }
    Ok(())
}

/// What a tool says.
#[derive(Default)]
struct Tool {
    kind: Option<String>,
    name: Option<String>,
    has_schema: bool,
    is_strict: bool,
    max_uses: Option<u64>,
    options: Vec<Parameter>,
}

const TOOL: [&str; 11] = [
    "type",
    "name",
    "description",
    "input_schema",
    "strict",
    "cache_control",
    "max_uses",
    "allowed_domains",
    "blocked_domains",
    "user_location",
    "defer_loading",
];

/// A tool: its members are those of its type, so they count once all of them are known.
fn tool(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    let mut tool = Tool::default();
    object_of_set(walk, &TOOL, |walk, key| {
        match key {
            "type" => tool.kind = Some(string(walk)?.unescaped().into_owned()),
            "name" => tool.name = Some(string(walk)?.unescaped().into_owned()),
            "description" => found.text_bytes += string(walk)?.len() as u64,
            "input_schema" => {
                expect(walk, Type::Object, "an object: a JSON schema")?;
                found.text_bytes += walk.skip()?.len() as u64;
                tool.has_schema = true;
            }
            "strict" => tool.is_strict = boolean(walk)?,
            "defer_loading" => _ = boolean(walk)?,
            "cache_control" => {
                expect(walk, Type::Object, "an object or null")?;
                walk.skip()?;
                found.needs.cache_control = true;
            }
            "max_uses" => {
                tool.max_uses = Some(limit(walk)?.count);
                tool.options.push(Parameter::SearchMaxUses);
            }
            "allowed_domains" | "blocked_domains" => {
                let parameter = match key {
                    "allowed_domains" => Parameter::AllowedDomains,
                    _ => Parameter::BlockedDomains,
                };
                if array(walk, |walk, _| string(walk).map(|_| ()))? > 0 {
                    tool.options.push(parameter);
                }
            }
            _ => {
                object(walk, &[], |_, _| Ok(()))?;
                tool.options.push(Parameter::SearchLocation);
            }
        }
        Ok(())
    })?;
    note(tool, found)
}

fn note(tool: Tool, found: &mut Findings) -> Result<(), Reject> {
    let kind = tool.kind.as_deref().unwrap_or(tool_types::CUSTOM);
    let is_named = tool.name.filter(|name| !name.is_empty());
    match tool_types::find(kind) {
        ToolType::Custom => {
            let name = required(is_named, "name", "a name")?;
            required(
                tool.has_schema.then_some(()),
                "input_schema",
                "a JSON schema",
            )?;
            found.strict_tools += u32::from(tool.is_strict);
            found.needs.tools = true;
            found.functions.push(name.into());
        }
        ToolType::Client(_) => {
            let name = required(is_named, "name", "the name of the tool")?;
            found.needs.tools = true;
            found.functions.push(name.into());
        }
        ToolType::WebSearch => {
            if found.search.is_some() {
                let said = "is a second search of the web; accepted is one";
                return Err(Reject::rule(said).within("type"));
            }
            found.search = Some(SearchNeeds {
                is_tool: true,
                is_demanded: false,
                max_uses: tool.max_uses,
            });
            found.functions.extend(is_named.map(Box::from));
            for option in tool.options {
                found.set.insert(option);
            }
        }
        // The vendor's search among deferred tools. Other models see the tools at once.
        ToolType::ToolSearch => found.functions.extend(is_named.map(Box::from)),
        ToolType::Native => {
            found.functions.extend(is_named.map(Box::from));
            let shown: String = kind.chars().take(64).collect();
            let need = || {
                let what = format!("tool of type `{shown}`");
                NativeNeed::new(Dialect::Messages, "tools", what)
            };
            found.native.get_or_insert_with(need);
        }
    }
    Ok(())
}

/// `tool_choice`.
pub(super) fn tool_choice(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    let (mut kind, mut name) = (None, None);
    let keys = ["type", "name", "disable_parallel_tool_use"];
    object_of_set(walk, &keys, |walk, key| {
        match key {
            "type" => {
                let words = ["auto", "any", "tool", "none"];
                kind = Some(crate::models::check::read::one_of(walk, &words)?);
            }
            "name" => name = Some(string(walk)?.unescaped().into_owned()),
            _ => found.is_serial = boolean(walk)?,
        }
        Ok(())
    })?;
    match required(kind, "type", "`auto`, `any`, `tool` or `none`")? {
        "any" => found.needs.forced_tools = true,
        "tool" => {
            found.needs.forced_tools = true;
            found.chosen = Some(required(name, "name", "the name of a tool")?.into());
        }
        "none" => found.calls_nothing = true,
        _ => {}
    }
    Ok(())
}
