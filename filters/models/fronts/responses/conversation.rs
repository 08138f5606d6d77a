//! A checked body as a [`Conversation`], for wires of other dialects. What only the vendor knows stays out of it, but for
//! sealed state, which goes back to its maker.

use std::borrow::Cow;
use std::collections::HashSet;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::items::ReadTurns;
use super::tool_types::{self, ToolType};
use super::tools::{self, ToolList, ToolNames};
use crate::fault::Fault;
use crate::json::offset_of;
use crate::models::chat::conversation::{AnswerForm, AnswerSchema, Conversation};
use crate::models::chat::text::Text;
use crate::models::chat::tools::{Tool, ToolChoice};
use crate::models::dialects::Dialect;
use crate::models::dialects::compaction::{self, Compaction};
use crate::models::dialects::responses::PARAMETERS;
use crate::models::fronts::checked_body::{CheckedBody, unparsed};
use crate::models::parameter::Parameter;
use crate::models::request::ModelRequest;

/// Parameters of which the conversation has members of their own.
const APART: [Parameter; 4] = [
    Parameter::MaxTokens,
    Parameter::Tools,
    Parameter::ToolChoice,
    Parameter::SearchMaxUses,
];

#[derive(Default, Deserialize)]
struct TextOptions<'a> {
    #[serde(borrow, default)]
    format: Option<Format<'a>>,
}

#[derive(Deserialize)]
struct Format<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow, default)]
    name: Option<Text<'a>>,
    #[serde(borrow, default)]
    description: Option<Text<'a>>,
    #[serde(borrow, default)]
    schema: Option<&'a RawValue>,
    #[serde(default)]
    strict: Option<bool>,
}

/// `tool_choice`, where it is an object.
#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow, default)]
    name: Option<Text<'a>>,
    #[serde(borrow, default)]
    namespace: Option<Text<'a>>,
    #[serde(borrow, default)]
    mode: Option<Text<'a>>,
    #[serde(borrow, default)]
    tools: Option<Vec<AllowedTool<'a>>>,
}

/// A tool of those that may be called.
#[derive(Deserialize)]
struct AllowedTool<'a> {
    #[serde(borrow, rename = "type", default)]
    kind: Text<'a>,
    #[serde(borrow, default)]
    name: Option<Text<'a>>,
    #[serde(borrow, default)]
    namespace: Option<Text<'a>>,
}

/// Reads the conversation of a checked request.
///
/// Cost: text without escapes is borrowed from the body. Errors: an internal fault, because the checks have passed.
pub(super) fn read(request: &ModelRequest) -> Result<Conversation<'_>, Fault> {
    let body = simdutf8::basic::from_utf8(&request.source.body).unwrap_or_default();
    let checked = CheckedBody {
        text: body,
        source: &request.source,
    };
    let text: TextOptions<'_> = checked.parsed("text")?.unwrap_or_default();
    let ToolList { names, tools } = tools::read(body, &request.source);
    let mut turns = ReadTurns::new(&names);
    if let Some(mut walk) = checked.walker("instructions") {
        turns.instructions(&mut walk).map_err(unparsed)?;
    }
    if let Some(mut walk) = checked.walker("input") {
        turns.input(&mut walk).map_err(unparsed)?;
    }
    if let Some(at) = turns.foreign_summary {
        return Err(compaction::unreadable(body, at as usize));
    }
    let summarizes = request.compaction() != Compaction::No;
    if summarizes {
        turns.ask(compaction::REQUEST);
    }
    let mut options = Vec::new();
    let asked = PARAMETERS.iter();
    for (key, parameter) in asked.filter(|(_, parameter)| !APART.contains(parameter)) {
        let value: Option<&RawValue> = checked.parsed(key)?;
        options.extend(value.map(|value| (*parameter, Cow::Borrowed(value))));
    }
    let mut conversation = Conversation {
        dialect: Dialect::Responses,
        body,
        turns: turns.finish(),
        tools,
        choice: None,
        form: form(body, text.format),
        stop: Vec::new(),
        options,
    };
    let choice: Option<&RawValue> = checked.parsed("tool_choice")?;
    if let Some(choice) = choice {
        choose(choice.get(), &names, &mut conversation).map_err(unparsed)?;
    }
    if summarizes {
        conversation.choice = (!conversation.tools.is_empty()).then_some(ToolChoice::None);
        conversation.form = AnswerForm::Text;
    }
    Ok(conversation)
}

/// Notes what has to be called. Tools that are not among those allowed are left out.
fn choose<'a>(
    json: &'a str,
    names: &ToolNames,
    conversation: &mut Conversation<'a>,
) -> Result<(), serde_json::Error> {
    let word = |word: &str| match word {
        "required" => ToolChoice::Required,
        "none" => ToolChoice::None,
        _ => ToolChoice::Auto,
    };
    if json.starts_with('"') {
        let said: Text<'_> = serde_json::from_str(json)?;
        conversation.choice = Some(word(&said));
        return Ok(());
    }
    let choice: Choice<'a> = serde_json::from_str(json)?;
    if &*choice.kind == "allowed_tools" {
        let allowed = choice.tools.unwrap_or_default();
        allow(&mut conversation.tools, &allowed, names);
        conversation.choice = Some(word(choice.mode.as_deref().unwrap_or_default()));
        return Ok(());
    }
    conversation.choice = Some(match tool_types::find(&choice.kind) {
        ToolType::WebSearch => ToolChoice::WebSearch,
        _ => {
            let name = choice.name.as_deref().unwrap_or_default();
            let flat = names.flat(choice.namespace.as_deref(), name).into_owned();
            ToolChoice::Function(Text(flat.into()))
        }
    });
    Ok(())
}

/// Leaves in the list the tools that may be called.
fn allow(tools: &mut Vec<Tool<'_>>, allowed: &[AllowedTool<'_>], names: &ToolNames) {
    let functions: HashSet<Cow<'_, str>> = allowed
        .iter()
        .map(|said| {
            let name = said.name.as_deref().unwrap_or_default();
            names.flat(said.namespace.as_deref(), name)
        })
        .collect();
    let mut kinds = allowed.iter().map(|said| tool_types::find(&said.kind));
    let searches = kinds.any(|kind| kind == ToolType::WebSearch);
    tools.retain(|tool| match tool {
        Tool::Function(function) => functions.contains(&*function.name),
        Tool::WebSearch(_) => searches,
        Tool::ToolSearch(_) => false,
    });
}

fn form<'a>(body: &str, format: Option<Format<'a>>) -> AnswerForm<'a> {
    let Some(format) = format else {
        return AnswerForm::Text;
    };
    match (&*format.kind, format.schema) {
        ("json_object", _) => AnswerForm::Json,
        ("json_schema", Some(schema)) => AnswerForm::Schema(AnswerSchema {
            name: format.name.unwrap_or_else(|| Text("answer".into())),
            description: format.description,
            schema: Cow::Borrowed(schema),
            strict: format.strict,
            at: offset_of(body, schema.get()),
        }),
        _ => AnswerForm::Text,
    }
}
