//! A checked body as a [`Conversation`], for wires of other dialects. What only the vendor knows stays out of it, but for sealed
//! state, which goes back to its maker.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::schema::to_json_schema;
use super::turns::ReadTurns;
use crate::fault::Fault;
use crate::json::{Error, Type, Walker, offset_of};
use crate::models::chat::conversation::{AnswerForm, AnswerSchema, Conversation};
use crate::models::chat::text::Text;
use crate::models::chat::tools::{Function, Tool, ToolChoice, WebSearchTool};
use crate::models::dialects::Dialect;
use crate::models::dialects::contents::{PARAMETERS, canonical, last_key};
use crate::models::fronts::checked_body::{CheckedBody, unparsed};
use crate::models::parameter::Parameter;
use crate::models::request::ModelRequest;

/// Parameters of which the conversation has members of their own.
const APART: [Parameter; 2] = [Parameter::MaxTokens, Parameter::Stop];

/// `toolConfig`.
#[derive(Default, Deserialize)]
struct ToolConfig<'a> {
    #[serde(
        borrow,
        default,
        rename = "functionCallingConfig",
        alias = "function_calling_config"
    )]
    calling: Option<Calling<'a>>,
}

#[derive(Default, Deserialize)]
struct Calling<'a> {
    #[serde(borrow, default)]
    mode: Option<Text<'a>>,
    #[serde(
        borrow,
        default,
        rename = "allowedFunctionNames",
        alias = "allowed_function_names"
    )]
    allowed: Option<Vec<Text<'a>>>,
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
    let mut turns = ReadTurns::default();
    if let Some(mut walk) = checked.walker("systemInstruction") {
        turns.system(&mut walk).map_err(unparsed)?;
    }
    if let Some(mut walk) = checked.walker("contents") {
        turns.contents(&mut walk).map_err(unparsed)?;
    }
    let mut conversation = Conversation {
        dialect: Dialect::Contents,
        body,
        turns: turns.finish(),
        tools: Vec::new(),
        choice: None,
        form: AnswerForm::Text,
        stop: Vec::new(),
        options: Vec::new(),
    };
    if let Some(mut walk) = checked.walker("tools") {
        tools(&mut walk, body, &mut conversation.tools).map_err(unparsed)?;
    }
    if let Some(mut walk) = checked.walker("generationConfig") {
        config(&mut walk, body, &mut conversation).map_err(unparsed)?;
    }
    let config: Option<ToolConfig<'_>> = checked.parsed("toolConfig")?;
    if let Some(calling) = config.and_then(|config| config.calling) {
        choose(calling, &mut conversation);
    }
    Ok(conversation)
}

/// Reads an array, or one value alone.
pub(super) fn each<'a>(
    walk: &mut Walker<'a>,
    mut one: impl FnMut(&mut Walker<'a>) -> Result<(), Error>,
) -> Result<(), Error> {
    match walk.peek()? {
        Type::Array => walk.array(|walk, _| one(walk)),
        Type::Object => one(walk),
        _ => walk.skip().map(|_| ()),
    }
}

/// Reads an object; `member` is called with each member that is not null, and its canonical key.
pub(super) fn members<'a>(
    walk: &mut Walker<'a>,
    mut member: impl FnMut(&mut Walker<'a>, &str, Type) -> Result<(), Error>,
) -> Result<(), Error> {
    if walk.peek()? != Type::Object {
        return walk.skip().map(|_| ());
    }
    walk.object(|walk, key| match walk.peek()? {
        Type::Null => walk.skip().map(|_| ()),
        kind => member(walk, &canonical(&key), kind),
    })
}

/// Reads `tools`.
fn tools<'a>(walk: &mut Walker<'a>, body: &str, list: &mut Vec<Tool<'a>>) -> Result<(), Error> {
    each(walk, |walk| {
        members(walk, |walk, key, _| match key {
            "functionDeclarations" => each(walk, |walk| {
                list.push(Tool::Function(function(walk, body)?));
                Ok(())
            }),
            "googleSearch" | "googleSearchRetrieval" => {
                list.push(Tool::WebSearch(search(walk)?));
                Ok(())
            }
            _ => walk.skip().map(|_| ()),
        })
    })
}

fn function<'a>(walk: &mut Walker<'a>, body: &str) -> Result<Function<'a>, Error> {
    let mut function = Function {
        name: Text::default(),
        description: None,
        parameters: None,
        at: 0,
        strict: None,
        cache: None,
        is_deferred: false,
        callers: None,
    };
    members(walk, |walk, key, kind| {
        match (key, kind) {
            ("name", Type::String) => function.name = Text(walk.text()?),
            ("description", Type::String) => function.description = Some(Text(walk.text()?)),
            ("parameters", _) => {
                let schema = walk.skip()?;
                function.at = offset_of(body, schema);
                function.parameters = Some(to_json_schema(schema)?.into());
            }
            ("parametersJsonSchema", _) => {
                let schema = walk.skip()?;
                function.at = offset_of(body, schema);
                function.parameters = Some(schema.into());
            }
            _ => _ = walk.skip()?,
        }
        Ok(())
    })?;
    Ok(function)
}

fn search<'a>(walk: &mut Walker<'a>) -> Result<WebSearchTool<'a>, Error> {
    let mut search = WebSearchTool::default();
    members(walk, |walk, key, _| {
        let value = walk.skip()?;
        if key == "excludeDomains" {
            search.blocked_domains = serde_json::from_str(value).ok();
        }
        Ok(())
    })?;
    Ok(search)
}

/// Reads `generationConfig`.
fn config<'a>(
    walk: &mut Walker<'a>,
    body: &str,
    conversation: &mut Conversation<'a>,
) -> Result<(), Error> {
    let (mut is_json, mut schema) = (false, None);
    members(walk, |walk, key, _| {
        let value = walk.skip()?;
        let raw: Option<&'a RawValue> = serde_json::from_str(value).ok();
        match key {
            "stopSequences" => {
                conversation.stop = serde_json::from_str(value).unwrap_or_default();
            }
            "responseMimeType" => is_json = value == "\"application/json\"",
            "responseSchema" => {
                let owned = RawValue::from_string(to_json_schema(value)?).ok();
                schema = owned.map(|owned| (Cow::Owned(owned), offset_of(body, value)));
            }
            "responseJsonSchema" | "_responseJsonSchema" => {
                schema = raw.map(|raw| (Cow::Borrowed(raw), offset_of(body, value)));
            }
            key => {
                let mut asked = PARAMETERS.iter();
                let asked = asked.find(|(path, _)| last_key(path) == key);
                let asked = asked.filter(|(_, parameter)| !APART.contains(parameter));
                if let Some(((_, parameter), raw)) = asked.zip(raw) {
                    conversation.options.push((*parameter, Cow::Borrowed(raw)));
                }
            }
        }
        Ok(())
    })?;
    conversation.form = match schema {
        Some((schema, at)) => AnswerForm::Schema(AnswerSchema {
            name: Text("answer".into()),
            description: None,
            schema,
            strict: None,
            at,
        }),
        None if is_json => AnswerForm::Json,
        None => AnswerForm::Text,
    };
    Ok(())
}

/// Notes what has to be called. Functions that are not among those allowed are left out.
fn choose<'a>(calling: Calling<'a>, conversation: &mut Conversation<'a>) {
    let mode = calling.mode.as_deref().unwrap_or_default();
    let allowed = calling.allowed.unwrap_or_default();
    if !allowed.is_empty() {
        let allowed: std::collections::HashSet<&str> = allowed.iter().map(|it| &**it).collect();
        conversation.tools.retain(|tool| match tool {
            Tool::Function(function) => allowed.contains(&*function.name),
            _ => true,
        });
    }
    conversation.choice = match mode.to_ascii_uppercase().as_str() {
        "NONE" => Some(ToolChoice::None),
        "ANY" => match <[Text<'a>; 1]>::try_from(allowed) {
            Ok([name]) => Some(ToolChoice::Function(name)),
            Err(_) => Some(ToolChoice::Required),
        },
        _ => None,
    };
}
