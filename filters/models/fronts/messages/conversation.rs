//! A checked body as a [`Conversation`], for wires of other dialects. What only the vendor knows stays out of it, but for
//! sealed state, which goes back to its maker.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::blocks::{self, Content};
use super::tool_types::{self, ToolType};
use crate::fault::{Fault, FaultKind};
use crate::json::offset_of;
use crate::models::chat::conversation::{AnswerForm, AnswerSchema, Conversation, Role, Turn};
use crate::models::chat::text::Text;
use crate::models::chat::tools::{Function, SearchLocation, Tool, ToolChoice, WebSearchTool};
use crate::models::dialects::Dialect;
use crate::models::parameter::Parameter;
use crate::models::request::ModelRequest;

/// What `tool_choice` says for one call at a time.
static SERIAL: LazyLock<Box<RawValue>> =
    LazyLock::new(|| RawValue::from_string("false".to_owned()).unwrap_or_default());

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow, default)]
    system: Option<Content<'a>>,
    #[serde(borrow)]
    messages: Vec<Message<'a>>,
    #[serde(borrow, default)]
    tools: Option<Vec<SaidTool<'a>>>,
    #[serde(borrow, default)]
    tool_choice: Option<Choice<'a>>,
    #[serde(borrow, default)]
    output_config: Option<OutputConfig<'a>>,
    #[serde(borrow, default)]
    stop_sequences: Option<Vec<Text<'a>>>,
    #[serde(borrow, default)]
    temperature: Option<&'a RawValue>,
    #[serde(borrow, default)]
    top_p: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    role: Text<'a>,
    #[serde(borrow)]
    content: Content<'a>,
}

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
    let text = std::str::from_utf8(&request.source.body).unwrap_or_default();
    let body: Body<'_> = serde_json::from_str(text).map_err(|error| {
        Fault::new(FaultKind::Internal, "the request could not be translated")
            .with_detail(format!("checked request does not parse: {error}"))
    })?;
    let mut conversation = Conversation {
        dialect: Dialect::Messages,
        body: text,
        turns: Vec::with_capacity(body.messages.len() + 1),
        tools: Vec::new(),
        choice: None,
        form: form(text, body.output_config),
        stop: body.stop_sequences.unwrap_or_default(),
        options: Vec::new(),
    };
    let referenced = read_turns(
        text,
        body.system.as_ref(),
        &body.messages,
        &mut conversation,
    );
    let tools = body.tools.unwrap_or_default();
    let searches = tools
        .iter()
        .filter(|tool| tool.kind() == ToolType::WebSearch);
    let search = searches.filter_map(|tool| tool.name.as_deref()).next();
    let choice = body.tool_choice.as_ref();
    conversation.choice = choice.map(|choice| chosen(choice, search));
    let is_serial = choice.and_then(|choice| choice.disable_parallel_tool_use);
    let options = [
        (Parameter::Temperature, body.temperature),
        (Parameter::TopP, body.top_p),
        (
            Parameter::ParallelToolCalls,
            (is_serial == Some(true)).then_some(&**SERIAL),
        ),
    ];
    for (parameter, value) in options {
        let value = value.filter(|value| value.get() != "null");
        let option = value.map(|value| (parameter, Cow::Borrowed(value)));
        conversation.options.extend(option);
    }
    conversation.tools = list(text, tools, &referenced);
    Ok(conversation)
}

/// Reads the instructions and the messages. Returns the names of tools that results refer to.
fn read_turns<'a>(
    text: &'a str,
    system: Option<&Content<'a>>,
    messages: &[Message<'a>],
    conversation: &mut Conversation<'a>,
) -> Vec<Cow<'a, str>> {
    let mut referenced = Vec::new();
    if let Some(system) = system {
        let mut instructions = blocks::read(text, system, &mut referenced);
        instructions.retain(|block| !blocks::is_attribution(block));
        push(conversation, Role::System, instructions, system, text);
    }
    for Message { role, content } in messages {
        let read = blocks::read(text, content, &mut referenced);
        let role = match &**role {
            "assistant" => Role::Assistant,
            "system" => Role::System,
            _ => Role::User,
        };
        // Wires want the results of calls by themselves, right behind the calls.
        let (results, others) = read.into_iter().partition(blocks::is_result);
        push(conversation, role, results, content, text);
        push(conversation, role, others, content, text);
    }
    referenced
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

fn push<'a>(
    conversation: &mut Conversation<'a>,
    role: Role,
    blocks: Vec<crate::models::chat::conversation::Block<'a>>,
    content: &Content<'a>,
    body: &str,
) {
    if blocks.is_empty() {
        return;
    }
    conversation.turns.push(Turn {
        role,
        name: None,
        phase: None,
        at: content.at(body),
        blocks,
        divided: Vec::new(),
    });
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
                parameters: described.map(|described| described.schema).or(said),
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
            schema: format.schema,
            strict: Some(true),
            at: offset_of(body, format.schema.get()),
        }),
        None => AnswerForm::Text,
    }
}
