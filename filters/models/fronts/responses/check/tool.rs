//! Tools, and the choice among them.

use super::Findings;
use crate::json::{Type, Walker};
use crate::models::check::read::{
    array, boolean, expect, object, object_of_set, one_of, required, string,
};
use crate::models::check::reject::{Reject, other};
use crate::models::fronts::responses::tool_types::{self, ToolType};
use crate::models::parameter::Parameter;
use crate::models::request::SearchNeeds;

/// The maximum number of tools, those of namespaces counted. Source: docs/hostile-input.md 28.
const MAX_TOOLS: usize = 4096;

/// `tools`.
pub(super) fn tools(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    array(walk, |walk, _| tool(walk, found, None)).map(|_| ())
}

const TOOL: [&str; 11] = [
    "type",
    "name",
    "description",
    "parameters",
    "strict",
    "defer_loading",
    "format",
    "tools",
    "filters",
    "search_context_size",
    "user_location",
];

/// What a tool says.
#[derive(Default)]
struct Tool<'a> {
    kind: Option<String>,
    name: Option<String>,
    tools: Option<&'a str>,
    is_strict: bool,
    options: Vec<Parameter>,
}

/// A tool, perhaps of a namespace: its members are those of its type, so they count once all of them are known.
pub(super) fn tool(
    walk: &mut Walker<'_>,
    found: &mut Findings,
    namespace: Option<&str>,
) -> Result<(), Reject> {
    found.tools += 1;
    if found.tools > MAX_TOOLS {
        let said = format!("is one of more than {MAX_TOOLS} tools");
        return Err(Reject::rule(said));
    }
    let mut tool = Tool::default();
    object_of_set(walk, &TOOL, |walk, key| {
        match key {
            "type" => tool.kind = Some(string(walk)?.unescaped().into_owned()),
            "name" => tool.name = Some(string(walk)?.unescaped().into_owned()),
            "description" => found.text_bytes += string(walk)?.len() as u64,
            "parameters" => {
                expect(walk, Type::Object, "an object: a JSON schema")?;
                found.text_bytes += walk.skip()?.len() as u64;
            }
            "strict" => tool.is_strict = boolean(walk)?,
            "defer_loading" => _ = boolean(walk)?,
            "format" => {
                expect(walk, Type::Object, "an object")?;
                found.text_bytes += walk.skip()?.len() as u64;
            }
            "tools" => tool.tools = Some(walk.skip()?),
            "filters" => filters(walk, &mut tool.options)?,
            "search_context_size" => {
                string(walk)?;
                tool.options.push(Parameter::SearchContextSize);
            }
            _ => {
                object(walk, &[], |_, _| Ok(()))?;
                tool.options.push(Parameter::SearchLocation);
            }
        }
        Ok(())
    })?;
    note(tool, found, namespace)
}

/// The domains of a search. Other tools have filters of another form.
fn filters(walk: &mut Walker<'_>, options: &mut Vec<Parameter>) -> Result<(), Reject> {
    object(
        walk,
        &["allowed_domains", "blocked_domains"],
        |walk, key| {
            let parameter = match key {
                "allowed_domains" => Parameter::AllowedDomains,
                _ => Parameter::BlockedDomains,
            };
            if !walk.null()? && array(walk, |walk, _| string(walk).map(|_| ()))? > 0 {
                options.push(parameter);
            }
            Ok(())
        },
    )
}

fn note(tool: Tool<'_>, found: &mut Findings, namespace: Option<&str>) -> Result<(), Reject> {
    let kind = required(tool.kind.as_deref(), "type", "the type of the tool")?;
    let name = tool.name.filter(|name| !name.is_empty());
    match tool_types::find(kind) {
        ToolType::Function | ToolType::Custom => {
            let name = required(name, "name", "a name")?;
            found.strict_tools += u32::from(tool.is_strict);
            found.needs.tools = true;
            found.functions.push(match namespace {
                Some(namespace) => format!("{namespace}.{name}").into(),
                None => name.into(),
            });
            Ok(())
        }
        ToolType::Namespace if namespace.is_none() => {
            let name = required(name, "name", "a name")?;
            let inside = required(tool.tools, "tools", "an array of tools")?;
            let mut walk = Walker::over(inside);
            array(&mut walk, |walk, _| tool_of(walk, found, &name))
                .map_err(|reject| reject.within("tools"))?;
            Ok(())
        }
        ToolType::ToolSearch => {
            found.needs.tools = true;
            Ok(())
        }
        ToolType::WebSearch => {
            if found.search.is_some() {
                let said = "is a second search of the web; accepted is one";
                return Err(Reject::rule(said).within("type"));
            }
            found.search = Some(SearchNeeds {
                is_tool: true,
                is_demanded: false,
                max_uses: None,
            });
            for option in tool.options {
                found.set.insert(option);
            }
            Ok(())
        }
        ToolType::Namespace | ToolType::Native => {
            let shown: String = kind.chars().take(64).collect();
            found.note_native("tools", || format!("tool of type `{shown}`"));
            Ok(())
        }
    }
}

fn tool_of(walk: &mut Walker<'_>, found: &mut Findings, namespace: &str) -> Result<(), Reject> {
    tool(walk, found, Some(namespace))
}

/// `tool_choice`: a word, or an object.
pub(super) fn tool_choice(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    match walk.peek()? {
        Type::String => {
            match one_of(walk, &["auto", "none", "required"])? {
                "none" => found.calls_nothing = true,
                "required" => found.needs.forced_tools = true,
                _ => {}
            }
            Ok(())
        }
        Type::Object => chosen(walk, found),
        _ => Err(other(walk, "one of auto, none, required, or an object")),
    }
}

fn chosen(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    let (mut kind, mut name, mut namespace, mut mode) = (None, None, None, None);
    let keys = ["type", "name", "namespace", "mode", "tools"];
    object_of_set(walk, &keys, |walk, key| {
        match key {
            "type" => kind = Some(string(walk)?.unescaped().into_owned()),
            "name" => name = Some(string(walk)?.unescaped().into_owned()),
            "namespace" => namespace = Some(string(walk)?.unescaped().into_owned()),
            "mode" => mode = Some(one_of(walk, &["auto", "required"])?),
            _ => {
                expect(walk, Type::Array, "an array of tools")?;
                walk.skip()?;
            }
        }
        Ok(())
    })?;
    let kind = required(kind, "type", "the type of the tool that has to be called")?;
    match (&*kind, tool_types::find(&kind)) {
        ("allowed_tools", _) => {
            let mode = required(mode, "mode", "`auto` or `required`")?;
            found.needs.forced_tools = mode == "required";
        }
        (_, ToolType::Function | ToolType::Custom) => {
            let name = required(name, "name", "the name of a tool")?;
            found.needs.forced_tools = true;
            let name = match namespace {
                Some(namespace) => format!("{namespace}.{name}"),
                None => name,
            };
            found.chosen = Some((name.into(), "name"));
        }
        (_, ToolType::WebSearch) => found.demands_search = true,
        // It demands a tool of the vendor's, which its hosts alone know.
        _ => {
            found.needs.forced_tools = true;
            let shown: String = kind.chars().take(64).collect();
            found.note_native("tool_choice", || {
                format!("choice of a tool of type `{shown}`")
            });
        }
    }
    Ok(())
}
