//! Tools, the choice among them, and the form of the answer. Source: docs/model-gateway.md 2.4.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::json::offset_of;
use crate::models::chat::conversation::{AnswerForm, AnswerSchema};
use crate::models::chat::text::Text;
use crate::models::chat::tools::{Function, Tool, ToolChoice, ToolSearchTool};

/// A tool of any type, but for the members of a web search.
#[derive(Deserialize)]
struct AnyTool<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    function: Option<NamedFunction<'a>>,
    cache_control: Option<&'a RawValue>,
    defer_loading: Option<bool>,
    allowed_callers: Option<&'a RawValue>,
    tool_search_type: Option<Text<'a>>,
    name: Option<Text<'a>>,
}

/// `function` of a tool, and of a choice.
#[derive(Deserialize)]
struct NamedFunction<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    description: Option<Text<'a>>,
    parameters: Option<&'a RawValue>,
    strict: Option<bool>,
}

/// Reads a tool; `None`: it is of no type that the checks let pass.
pub(super) fn tool<'a>(body: &'a str, json: &'a str) -> Option<Tool<'a>> {
    let tool: AnyTool<'_> = serde_json::from_str(json).ok()?;
    match &*tool.kind {
        "function" => {
            let function = tool.function?;
            let parameters = function.parameters.map(RawValue::get);
            Some(Tool::Function(Function {
                name: function.name,
                description: function.description,
                parameters: parameters.map(Cow::Borrowed),
                at: parameters.map_or(0, |schema| offset_of(body, schema)),
                strict: function.strict,
                cache: tool.cache_control,
                is_deferred: tool.defer_loading == Some(true),
                callers: tool.allowed_callers,
            }))
        }
        "web_search" => serde_json::from_str(json).ok().map(Tool::WebSearch),
        "tool_search" => Some(Tool::ToolSearch(ToolSearchTool {
            kind: tool.tool_search_type?,
            name: tool.name,
        })),
        _ => None,
    }
}

/// Reads `tool_choice`.
pub(super) fn choice(json: &str) -> Option<ToolChoice<'_>> {
    #[derive(Deserialize)]
    struct Choice<'a> {
        #[serde(borrow, rename = "type")]
        kind: Text<'a>,
        function: Option<NamedFunction<'a>>,
    }
    Some(match json {
        "null" => return None,
        "\"none\"" => ToolChoice::None,
        "\"required\"" => ToolChoice::Required,
        object if object.starts_with('{') => {
            let choice: Choice<'_> = serde_json::from_str(object).ok()?;
            match choice.function.filter(|_| &*choice.kind != "web_search") {
                Some(function) => ToolChoice::Function(function.name),
                // The checks let no other object without a function pass.
                None => ToolChoice::WebSearch,
            }
        }
        _ => ToolChoice::Auto,
    })
}

/// Reads `response_format`.
pub(super) fn form<'a>(body: &str, json: &'a str) -> Option<AnswerForm<'a>> {
    #[derive(Deserialize)]
    struct Format<'a> {
        #[serde(borrow, rename = "type")]
        kind: Text<'a>,
        json_schema: Option<Schema<'a>>,
    }
    #[derive(Deserialize)]
    struct Schema<'a> {
        #[serde(borrow)]
        name: Text<'a>,
        description: Option<Text<'a>>,
        schema: &'a RawValue,
        strict: Option<bool>,
    }
    let format: Format<'_> = serde_json::from_str(json).ok()?;
    Some(match (&*format.kind, format.json_schema) {
        ("json_schema", Some(form)) => AnswerForm::Schema(AnswerSchema {
            name: form.name,
            description: form.description,
            schema: Cow::Borrowed(form.schema),
            strict: form.strict,
            at: offset_of(body, form.schema.get()),
        }),
        ("json_object", _) => AnswerForm::Json,
        _ => AnswerForm::Text,
    })
}
