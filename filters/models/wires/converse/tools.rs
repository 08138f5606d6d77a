//! Tools in the words of this wire. Source: docs/facts/wire-formats.md 5.2.

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::blocks::CachePoint;
use super::names::ToolNames;
use crate::models::chat::conversation::{BlockKind, Conversation};
use crate::models::chat::tools::{Function, ToolChoice};
use crate::models::parameter::Parameter;
use crate::models::wires::closed_schema;
use crate::models::wires::wire::Target;

/// The functions, and whether one must be called.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolConfig<'a> {
    pub(super) tools: Vec<WireTool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
}

/// A function, or the end of a prefix to cache.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum WireTool<'a> {
    ToolSpec(ToolSpec<'a>),
    CachePoint(CachePoint),
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolSpec<'a> {
    pub(super) name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) description: Option<&'a str>,
    pub(super) input_schema: InputSchema,
    #[serde(skip_serializing_if = "Option::is_none")]
    strict: Option<bool>,
}

#[derive(Debug, Serialize)]
pub(super) struct InputSchema {
    pub(super) json: Box<RawValue>,
}

/// The schema of a function that takes anything.
const ANY_OBJECT: &str = r#"{"type":"object","properties":{}}"#;

/// What is said of tools.
pub(super) struct Tools<'a> {
    pub(super) config: Option<ToolConfig<'a>>,
    /// Whether functions have to be listed that must not be called now: the wire has no word for that.
    pub(super) forbids_calls: bool,
}

/// Returns the functions. A history with calls cannot be said without them, so they stay where none may be called, and those of
/// the history stand in for a list that is not there.
pub(super) fn list<'a>(
    chat: &'a Conversation<'a>,
    names: &'a ToolNames,
    target: &Target<'_>,
    points: &mut u32,
) -> Tools<'a> {
    let is_none = matches!(chat.choice, Some(ToolChoice::None));
    let has_functions = chat.functions().next().is_some();
    let called = called(chat);
    let forbids_calls = !called.is_empty() && (is_none || !has_functions);
    let mut tools = Vec::new();
    if has_functions && (!is_none || forbids_calls) {
        for function in chat.functions() {
            tools.push(WireTool::ToolSpec(spec(function, names, target)));
            if let Some(mark) = function.cache.filter(|_| *points < super::messages::POINTS) {
                *points += 1;
                tools.push(WireTool::CachePoint(CachePoint::read(mark)));
            }
        }
    } else if forbids_calls {
        let specs = called.into_iter().map(|name| ToolSpec {
            name: names.to_wire(name),
            description: None,
            input_schema: schema(ANY_OBJECT.to_owned()),
            strict: None,
        });
        tools.extend(specs.map(WireTool::ToolSpec));
    }
    let tool_choice = choice(chat, names, target);
    Tools {
        config: (!tools.is_empty()).then_some(ToolConfig { tools, tool_choice }),
        forbids_calls,
    }
}

/// Returns the functions that the history calls, each once.
fn called<'a>(chat: &'a Conversation<'a>) -> Vec<&'a str> {
    let blocks = chat.turns.iter().flat_map(|turn| &turn.blocks);
    let names = blocks.filter_map(|block| match &block.kind {
        BlockKind::Call { name, .. } => Some(&**name),
        _ => None,
    });
    let mut seen = std::collections::HashSet::new();
    names.filter(|name| seen.insert(*name)).collect()
}

fn choice(chat: &Conversation<'_>, names: &ToolNames, target: &Target<'_>) -> Option<Value> {
    match &chat.choice {
        Some(ToolChoice::Required) if !target.lower_tool_choice => Some(json!({ "any": {} })),
        Some(ToolChoice::Function(name)) if !target.lower_tool_choice => {
            Some(json!({ "tool": { "name": names.to_wire(name) } }))
        }
        Some(ToolChoice::Auto | ToolChoice::Required | ToolChoice::Function(_)) => {
            Some(json!({ "auto": {} }))
        }
        Some(ToolChoice::None | ToolChoice::WebSearch) | None => None,
    }
}

fn spec<'a>(function: &'a Function<'a>, names: &'a ToolNames, target: &Target<'_>) -> ToolSpec<'a> {
    let own = function.parameters.as_deref();
    let own = own.filter(|schema| schema.contains("\"type\""));
    let mut text = own.unwrap_or(ANY_OBJECT).to_owned();
    let is_strict = target.parameters.supports(Parameter::StrictTools);
    let strict = function.strict.filter(|strict| *strict && is_strict);
    if strict.is_some()
        && let Some(mut closed) = closed_schema::read(text.as_bytes())
    {
        closed_schema::close(&mut closed, &[]);
        text = closed.to_string();
    }
    ToolSpec {
        name: names.to_wire(&function.name),
        // An empty one is refused.
        description: function.description.as_deref().filter(|it| !it.is_empty()),
        input_schema: schema(text),
        strict,
    }
}

fn schema(text: String) -> InputSchema {
    InputSchema {
        json: RawValue::from_string(text).unwrap_or_default(),
    }
}
