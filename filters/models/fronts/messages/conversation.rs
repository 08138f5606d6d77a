//! A checked body as a [`Conversation`], for wires of other dialects. What only the vendor knows stays out of it, but for
//! sealed state, which goes back to its maker.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::blocks::{self, Reader, offset};
use super::tool_types::{self, ToolType};
use crate::fault::Fault;
use crate::json::{Error, offset_of};
use crate::models::chat::conversation::{
    AnswerForm, AnswerSchema, Block, Conversation, Role, Turn,
};
use crate::models::chat::text::Text;
use crate::models::chat::tools::{Function, SearchLocation, Tool, ToolChoice, WebSearchTool};
use crate::models::dialects::Dialect;
use crate::models::fronts::checked_body::{CheckedBody, unparsed};
use crate::models::parameter::Parameter;
use crate::models::request::ModelRequest;

/// What `tool_choice` says for one call at a time.
static SERIAL: LazyLock<Box<RawValue>> =
    LazyLock::new(|| RawValue::from_string("false".to_owned()).unwrap_or_default());

/// A tool of any type.
#[derive(Deserialize)]
struct SaidTool<'a> {
    #[serde(borrow, rename = "type", default)]
    kind: Option<Text<'a>>,
    #[serde(borrow, default)]
    name: Option<Text<'a>>,
    #[serde(borrow, default)]
    description: Option<Text<'a>>,
    #[serde(borrow, default)]
    input_schema: Option<&'a RawValue>,
    #[serde(default)]
    strict: Option<bool>,
    #[serde(borrow, default)]
    cache_control: Option<&'a RawValue>,
    #[serde(default)]
    defer_loading: Option<bool>,
    #[serde(borrow, default)]
    user_location: Option<SearchLocation<'a>>,
    #[serde(borrow, default)]
    allowed_domains: Option<&'a RawValue>,
    #[serde(borrow, default)]
    blocked_domains: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow, default)]
    name: Option<Text<'a>>,
    #[serde(default)]
    disable_parallel_tool_use: Option<bool>,
}

#[derive(Deserialize)]
struct OutputConfig<'a> {
    #[serde(borrow, default)]
    format: Option<Format<'a>>,
}

#[derive(Deserialize)]
struct Format<'a> {
    #[serde(borrow)]
    schema: &'a RawValue,
}

/// Reads the conversation of a checked request.
///
/// Cost: one pass; text without escapes is borrowed from the body. Errors: an internal fault, because the checks have passed.
pub(super) fn read(request: &ModelRequest) -> Result<Conversation<'_>, Fault> {
    let body = simdutf8::basic::from_utf8(&request.source.body).unwrap_or_default();
    let checked = CheckedBody {
        text: body,
        source: &request.source,
    };
    let config: Option<OutputConfig<'_>> = checked.parsed("output_config")?;
    let mut conversation = Conversation {
        dialect: Dialect::Messages,
        body,
        turns: Vec::new(),
        tools: Vec::new(),
        choice: None,
        form: form(body, config),
        stop: checked.parsed("stop_sequences")?.unwrap_or_default(),
        options: Vec::new(),
    };
    let mut reader = Reader {
        body,
        referenced: Vec::new(),
    };
    turns(&checked, &mut reader, &mut conversation.turns).map_err(unparsed)?;
    let tools: Vec<SaidTool<'_>> = checked.parsed("tools")?.unwrap_or_default();
    let choice: Option<Choice<'_>> = checked.parsed("tool_choice")?;
    let mut searches = tools
        .iter()
        .filter(|tool| tool.kind() == ToolType::WebSearch);
    let search = searches.find_map(|tool| tool.name.as_deref());
    let choice = choice.as_ref();
    conversation.choice = choice.map(|choice| chosen(choice, search));
    let is_serial = choice.and_then(|choice| choice.disable_parallel_tool_use);
    let options = [
        (Parameter::Temperature, checked.parsed("temperature")?),
        (Parameter::TopP, checked.parsed("top_p")?),
        (
            Parameter::ParallelToolCalls,
            (is_serial == Some(true)).then_some(&**SERIAL),
        ),
    ];
    for (parameter, value) in options {
        let option = value.map(|value: &RawValue| (parameter, Cow::Borrowed(value)));
        conversation.options.extend(option);
    }
    conversation.tools = list(body, tools, &reader.referenced);
    Ok(conversation)
}

/// Reads the instructions and the messages.
fn turns<'a>(
    checked: &CheckedBody<'a>,
    reader: &mut Reader<'a>,
    turns: &mut Vec<Turn<'a>>,
) -> Result<(), Error> {
    if let Some(mut walk) = checked.walker("system") {
        walk.peek()?;
        let at = offset(&walk);
        let mut instructions = reader.content(&mut walk)?;
        instructions.retain(|block| !blocks::is_attribution(block));
        push(turns, Role::System, at, instructions);
    }
    let Some(mut walk) = checked.walker("messages") else {
        return Ok(());
    };
    walk.array(|walk, _| {
        let (mut role, mut at, mut content) = (Role::User, 0, Vec::new());
        walk.object(|walk, key| {
            match &*key {
                "role" => role = role_of(&walk.text()?),
                "content" => {
                    walk.peek()?;
                    at = offset(walk);
                    content = reader.content(walk)?;
                }
                _ => _ = walk.skip()?,
            }
            Ok::<(), Error>(())
        })?;
        push_message(turns, role, at, content);
        Ok(())
    })
}

fn role_of(word: &str) -> Role {
    match word {
        "assistant" => Role::Assistant,
        "system" => Role::System,
        _ => Role::User,
    }
}

/// Adds the turns of a message. Wires want the results of calls by themselves, right behind the calls.
fn push_message<'a>(turns: &mut Vec<Turn<'a>>, role: Role, at: u32, content: Vec<Block<'a>>) {
    let results = content.iter().filter(|block| blocks::is_result(block));
    let results = results.count();
    if results == 0 || results == content.len() {
        return push(turns, role, at, content);
    }
    let (results, others) = content.into_iter().partition(blocks::is_result);
    push(turns, role, at, results);
    push(turns, role, at, others);
}

/// Returns what has to be called; `search` is the name of the web search.
fn chosen<'a>(choice: &Choice<'a>, search: Option<&str>) -> ToolChoice<'a> {
    match &*choice.kind {
        "any" => ToolChoice::Required,
        "none" => ToolChoice::None,
        "tool" => match &choice.name {
            Some(name) if Some(&**name) == search => ToolChoice::WebSearch,
            name => ToolChoice::Function(name.clone().unwrap_or_default()),
        },
        _ => ToolChoice::Auto,
    }
}

fn push<'a>(turns: &mut Vec<Turn<'a>>, role: Role, at: u32, blocks: Vec<Block<'a>>) {
    if blocks.is_empty() {
        return;
    }
    turns.push(Turn::new(role, at, blocks));
}

impl SaidTool<'_> {
    fn kind(&self) -> ToolType {
        tool_types::find(self.kind.as_deref().unwrap_or(tool_types::CUSTOM))
    }
}

/// Returns the tools. A deferred one is hidden until a result refers to it, and then stands behind the others, so that the
/// prefix that providers cache stays. Where the vendor searches among them, all are shown, because other models cannot.
fn list<'a>(body: &'a str, said: Vec<SaidTool<'a>>, referenced: &[Cow<'a, str>]) -> Vec<Tool<'a>> {
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (place, name) in referenced.iter().enumerate() {
        places.entry(name).or_insert(place);
    }
    let shows_all = said.iter().any(|tool| tool.kind() == ToolType::ToolSearch);
    let mut tools = Vec::with_capacity(said.len());
    let mut deferred = Vec::new();
    for tool in said {
        let name = tool.name.as_deref().unwrap_or_default();
        let is_deferred = tool.defer_loading == Some(true) && !shows_all;
        let found = places.get(name).copied();
        if is_deferred && found.is_none() {
            continue;
        }
        let place = found.filter(|_| is_deferred);
        let Some(tool) = translate(body, tool) else {
            continue;
        };
        match place {
            Some(place) => deferred.push((place, tool)),
            None => tools.push(tool),
        }
    }
    deferred.sort_by_key(|(place, _)| *place);
    tools.extend(deferred.into_iter().map(|(_, tool)| tool));
    tools
}

/// Returns a tool in the words that all dialects have; `None`: they have none.
fn translate<'a>(body: &'a str, tool: SaidTool<'a>) -> Option<Tool<'a>> {
    let kind = tool.kind();
    let described = match kind {
        ToolType::Client(described) => Some(described),
        _ => None,
    };
    match kind {
        ToolType::Custom | ToolType::Client(_) => {
            let said = tool.input_schema.map(RawValue::get);
            Some(Tool::Function(Function {
                name: tool.name?,
                description: match described {
                    Some(described) => Some(Text(described.description.into())),
                    None => tool.description,
                },
                parameters: described
                    .map(|described| described.schema)
                    .or(said)
                    .map(Cow::Borrowed),
                at: said.map_or(0, |schema| offset_of(body, schema)),
                strict: tool.strict,
                cache: tool.cache_control,
                is_deferred: false,
                callers: None,
            }))
        }
        ToolType::WebSearch => Some(Tool::WebSearch(WebSearchTool {
            user_location: tool.user_location,
            search_context_size: None,
            allowed_domains: tool.allowed_domains,
            blocked_domains: tool.blocked_domains,
        })),
        ToolType::ToolSearch | ToolType::Native => None,
    }
}

fn form<'a>(body: &str, config: Option<OutputConfig<'a>>) -> AnswerForm<'a> {
    match config.and_then(|config| config.format) {
        Some(format) => AnswerForm::Schema(AnswerSchema {
            name: Text("answer".into()),
            description: None,
            schema: Cow::Borrowed(format.schema),
            strict: Some(true),
            at: offset_of(body, format.schema.get()),
        }),
        None => AnswerForm::Text,
    }
}
