//! A chat of another dialect in the words of this wire. What the wire would refuse is refused here, naming the place.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::calls::shorten_id;
use super::request::{additions, quoted};
use super::{search, strict};
use crate::fault::{Fault, FaultKind};
use crate::models::chat::conversation::{
    AnswerForm, Block, BlockKind, Conversation, Media, MediaKind, MediaSource, Role, Turn,
};
use crate::models::chat::data_url;
use crate::models::chat::inlined::InlinedImages;
use crate::models::chat::text::Quoted;
use crate::models::chat::tools::ToolChoice;
use crate::models::dialects::Dialect;
use crate::models::parameter::Parameter;
use crate::models::request::{Effort, ModelRequest};
use crate::models::routing::parameters::Treatment;
use crate::models::routing::thinking::ThinkingControl;
use crate::models::wires::codec::BodySlice;
use crate::models::wires::history::{fold_instructions, no_call, open_calls};
use crate::models::wires::opaque;
use crate::models::wires::quirks::ReasoningReplay;
use crate::models::wires::wire::{Target, write_body};

/// The most stop sequences that every provider takes.
const MAX_STOPS: usize = 4;

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stop: &'a [crate::models::chat::text::Text<'a>],
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<Cow<'a, RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<Cow<'a, RawValue>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stream: bool,
    #[serde(flatten)]
    more: std::collections::BTreeMap<&'a str, Box<RawValue>>,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Said<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_details: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<Cow<'a, str>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Said<'a> {
    Nothing(()),
    Text(Quoted<'a>),
    Joined(String),
    Parts(Vec<Part<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    Text { text: Quoted<'a> },
    ImageUrl { image_url: ImageUrl<'a> },
    File { file: File<'a> },
    InputAudio { input_audio: Sound<'a> },
}

#[derive(Serialize)]
struct ImageUrl<'a> {
    url: Cow<'a, str>,
}

#[derive(Serialize)]
struct File<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    filename: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_data: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_id: Option<&'a str>,
}

#[derive(Serialize)]
struct Sound<'a> {
    data: &'a str,
    format: &'a str,
}

#[derive(Serialize)]
struct Call<'a> {
    id: Cow<'a, str>,
    #[serde(rename = "type")]
    kind: &'static str,
    function: CalledFunction<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_content: Option<&'a RawValue>,
}

#[derive(Serialize)]
struct CalledFunction<'a> {
    name: &'a str,
    arguments: &'a str,
}

#[derive(Serialize)]
struct SaidTool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: SaidFunction<'a>,
}

#[derive(Serialize)]
struct SaidFunction<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    strict: Option<bool>,
}

/// Encodes a request whose front speaks another dialect.
pub(super) fn encode(request: &ModelRequest, target: &Target<'_>) -> Result<Vec<BodySlice>, Fault> {
    let mut chat = request.front.conversation(request)?;
    opaque::keep_own(&mut chat, Dialect::Chat, target, |_| false);
    fold_instructions(&mut chat);
    let messages = Messages::read(&chat, target)?;
    let option = |parameter| target.treated(chat.option(parameter)?, parameter, request);
    let has_tools = request.needs.tools;
    let is_serial = chat.option(Parameter::ParallelToolCalls).is_some();
    let parallel = target.treat(Parameter::ParallelToolCalls, request);
    let stops = match target.parameters.supports(Parameter::Stop) {
        true => chat.stop.get(..chat.stop.len().min(MAX_STOPS)),
        false => None,
    };
    let body = Body {
        model: target.model,
        messages,
        tools: tools(request, &chat, target),
        tool_choice: has_tools.then(|| tool_choice(&chat, target)).flatten(),
        parallel_tool_calls: (has_tools && is_serial && parallel == Treatment::Pass)
            .then_some(false),
        response_format: response_format(&chat, target),
        stop: stops.unwrap_or_default(),
        temperature: option(Parameter::Temperature),
        top_p: option(Parameter::TopP),
        stream: request.is_stream,
        more: more(request, target)?,
    };
    write_body(&body, request.source.body.len())
}

/// Returns the members whose names depend on the provider.
fn more<'t>(
    request: &ModelRequest,
    target: &Target<'t>,
) -> Result<std::collections::BTreeMap<&'t str, Box<RawValue>>, Fault> {
    let mut more: Vec<(&str, Vec<u8>)> = additions(request, target);
    let limit = target.max_tokens(request);
    if let Some(limit) = limit.and_then(|limit| target.said_limit(limit, request)) {
        let name = target.parameters.name(Parameter::MaxTokens);
        if target.treat(Parameter::MaxTokens, request) != Treatment::Drop {
            more.push((name, limit.to_string().into()));
        }
    }
    let thinking = target.thinking;
    let effort = thinking.asked_word(&request.needs);
    let is_switched = thinking.control == ThinkingControl::Switch && effort == Some(Effort::None);
    if let Some(effort) = effort.filter(|_| thinking.takes_words() && !is_switched) {
        more.push(("reasoning_effort", quoted(effort.as_str())));
    }
    let internal = || Fault::new(FaultKind::Internal, "the request could not be translated");
    let raw = |(key, json): (&'t str, Vec<u8>)| {
        let json = String::from_utf8(json).ok().map(RawValue::from_string);
        let json = json.and_then(Result::ok).ok_or_else(internal)?;
        Ok((key, json))
    };
    more.into_iter().map(raw).collect()
}

fn tools(
    request: &ModelRequest,
    chat: &Conversation<'_>,
    target: &Target<'_>,
) -> Option<Box<RawValue>> {
    let takes_strict = target.parameters.supports(Parameter::StrictTools);
    let functions = chat.functions().map(|tool| {
        let parameters = tool
            .parameters
            .and_then(|schema| serde_json::from_str(schema).ok());
        let strict = tool.strict.filter(|strict| *strict && takes_strict);
        let tool = SaidTool {
            kind: "function",
            function: SaidFunction {
                name: &tool.name,
                description: tool.description.as_deref(),
                parameters,
                strict,
            },
        };
        serde_json::to_string(&tool).unwrap_or_default()
    });
    let search = search::tool(request, target).map(str::to_owned);
    let all: Vec<String> = functions.chain(search).collect();
    if all.is_empty() {
        return None;
    }
    let mut list = format!("[{}]", all.join(","));
    if target.quirks.strict_schema
        && let Some(closed) = strict::tools(list.as_bytes())
    {
        list = String::from_utf8(closed).unwrap_or_default();
    }
    RawValue::from_string(list).ok()
}

fn tool_choice(chat: &Conversation<'_>, target: &Target<'_>) -> Option<Value> {
    let may_force = !target.lower_tool_choice;
    Some(match chat.choice.as_ref()? {
        ToolChoice::None => "none".into(),
        ToolChoice::Required if may_force => "required".into(),
        ToolChoice::Function(name) if may_force => {
            json!({ "type": "function", "function": { "name": &**name } })
        }
        // The search is asked for in the provider's own way.
        ToolChoice::WebSearch => return None,
        _ => "auto".into(),
    })
}

fn response_format(chat: &Conversation<'_>, target: &Target<'_>) -> Option<Box<RawValue>> {
    let form = match &chat.form {
        AnswerForm::Text => return None,
        AnswerForm::Json => json!({ "type": "json_object" }),
        AnswerForm::Schema(form) => json!({
            "type": "json_schema",
            "json_schema": { "name": &*form.name, "schema": form.schema, "strict": form.strict },
        }),
    };
    let form = form.to_string();
    let closed = target
        .quirks
        .strict_schema
        .then(|| strict::response_format(form.as_bytes()));
    let closed = closed
        .flatten()
        .and_then(|closed| String::from_utf8(closed).ok());
    RawValue::from_string(closed.unwrap_or(form)).ok()
}

/// The messages in the making.
struct Messages<'a> {
    said: Vec<Message<'a>>,
    conversation: &'a Conversation<'a>,
    target: &'a Target<'a>,
    /// Ids of calls without a result.
    open: Vec<&'a str>,
    asked_at: u32,
}

impl<'a> Messages<'a> {
    fn read(
        conversation: &'a Conversation<'a>,
        target: &'a Target<'a>,
    ) -> Result<Vec<Message<'a>>, Fault> {
        let mut messages = Self {
            said: Vec::with_capacity(conversation.turns.len()),
            conversation,
            target,
            open: Vec::new(),
            asked_at: 0,
        };
        for turn in &conversation.turns {
            messages.turn(turn)?;
        }
        messages.check_answered()?;
        if messages.said.is_empty() {
            return Err(conversation.fault_of_all("says nothing"));
        }
        Ok(messages.said)
    }

    fn check_answered(&self) -> Result<(), Fault> {
        match self.open.first() {
            None => Ok(()),
            Some(_) => Err(open_calls(self.conversation, self.asked_at)),
        }
    }

    fn turn(&mut self, turn: &'a Turn<'a>) -> Result<(), Fault> {
        let is_result = |block: &Block<'_>| matches!(block.kind, BlockKind::Result { .. });
        if turn.blocks.iter().any(is_result) {
            return self.results(turn);
        }
        self.check_answered()?;
        match turn.role {
            Role::System | Role::Developer => self.say("system", &turn.blocks),
            Role::User => self.say("user", &turn.blocks),
            Role::Assistant => {
                self.asked_at = turn.at;
                self.assistant(turn);
                Ok(())
            }
        }
    }

    /// Adds a message, unless it says nothing.
    fn say(&mut self, role: &'static str, blocks: &'a [Block<'a>]) -> Result<(), Fault> {
        let parts = self.parts(blocks)?;
        if !parts.is_empty() {
            self.said.push(message(role, content(parts, "\n\n")));
        }
        Ok(())
    }

    fn assistant(&mut self, turn: &'a Turn<'a>) {
        let quirks = self.target.quirks;
        let (mut texts, mut reasoning) = (Vec::new(), String::new());
        let (mut calls, mut details, mut extra) = (Vec::new(), None, None);
        for block in &turn.blocks {
            let state = block.states.first().map(|state| &*state.text);
            match &block.kind {
                BlockKind::Text(text) | BlockKind::Refusal(text) if !text.is_empty() => {
                    texts.push(Part::Text {
                        text: text.quoted(),
                    });
                }
                BlockKind::Reasoning(text) => reasoning.push_str(text),
                BlockKind::Redacted => {
                    let state: Option<&RawValue> =
                        state.and_then(|state| serde_json::from_str(state).ok());
                    match state {
                        Some(state) if state.get().starts_with('{') => extra = Some(state),
                        state => details = state.or(details),
                    }
                }
                BlockKind::Call { id, name, input } => {
                    self.open.push(id);
                    calls.push(Call {
                        id: call_id(id, self.target),
                        kind: "function",
                        function: CalledFunction {
                            name,
                            arguments: input,
                        },
                        extra_content: extra.take(),
                    });
                }
                _ => {}
            }
        }
        if texts.is_empty() && calls.is_empty() {
            return;
        }
        let said = match texts.is_empty() {
            true if quirks.null_content_is_empty => Said::Joined(String::new()),
            true => Said::Nothing(()),
            false => content(texts, ""),
        };
        let mut message = message("assistant", said);
        message.tool_calls = calls;
        let told = Some(reasoning).filter(|reasoning| !reasoning.is_empty());
        message.replay_reasoning(quirks.reasoning_replay, told, details);
        self.said.push(message);
    }

    /// Adds results: texts, and behind all of them the media, which results of this convention cannot hold.
    fn results(&mut self, turn: &'a Turn<'a>) -> Result<(), Fault> {
        let mut behind = Vec::new();
        for block in &turn.blocks {
            let BlockKind::Result {
                call,
                content: held,
                is_error,
            } = &block.kind
            else {
                continue;
            };
            let at = call
                .as_deref()
                .and_then(|call| self.open.iter().position(|id| *id == call));
            let Some(at) = at else {
                return Err(no_call(self.conversation, block.at));
            };
            let id = self.open.remove(at);
            let (texts, media): (Vec<_>, Vec<_>) = self
                .parts(held)?
                .into_iter()
                .partition(|part| matches!(part, Part::Text { .. }));
            let mut text = String::from(if *is_error { "Error: " } else { "" });
            for (at, part) in texts.iter().enumerate() {
                if let Part::Text { text: said } = part {
                    text.push_str(if at > 0 { "\n\n" } else { "" });
                    text.push_str(said);
                }
            }
            if !media.is_empty() {
                text.push_str(if texts.is_empty() { "" } else { "\n\n" });
                text.push_str("The result holds media, which stand in the next message.");
                behind.extend(media);
            }
            let mut result = message("tool", Said::Joined(text));
            result.tool_call_id = Some(call_id(id, self.target));
            self.said.push(result);
        }
        if !behind.is_empty() {
            self.said.push(message("user", Said::Parts(behind)));
        }
        Ok(())
    }

    fn parts(&self, blocks: &'a [Block<'a>]) -> Result<Vec<Part<'a>>, Fault> {
        let mut parts = Vec::with_capacity(blocks.len());
        for block in blocks {
            match &block.kind {
                BlockKind::Text(text) | BlockKind::Refusal(text) if !text.is_empty() => {
                    parts.push(Part::Text {
                        text: text.quoted(),
                    });
                }
                BlockKind::Media(media) => parts.push(part(media, self.target.inlined)),
                _ => {}
            }
        }
        Ok(parts)
    }
}

fn message<'a>(role: &'static str, content: Said<'a>) -> Message<'a> {
    Message {
        role,
        content,
        reasoning_content: None,
        reasoning: None,
        reasoning_details: None,
        tool_calls: Vec::new(),
        tool_call_id: None,
    }
}

impl<'a> Message<'a> {
    /// Gives the reasoning of the turn back, as the provider takes it.
    fn replay_reasoning(
        &mut self,
        replay: ReasoningReplay,
        told: Option<String>,
        details: Option<&'a RawValue>,
    ) {
        let has_calls = !self.tool_calls.is_empty();
        match replay {
            ReasoningReplay::None => {}
            ReasoningReplay::ReasoningContent => self.reasoning_content = told,
            ReasoningReplay::ReasoningContentRequired => {
                self.reasoning_content = told.or(has_calls.then(String::new));
            }
            ReasoningReplay::ReasoningDetails if details.is_some() => {
                self.reasoning_details = details;
            }
            ReasoningReplay::Reasoning | ReasoningReplay::ReasoningDetails => {
                self.reasoning = told;
            }
        }
    }
}

/// Returns parts as content. Texts alone are one string, because some providers take no parts.
fn content<'a>(parts: Vec<Part<'a>>, between: &str) -> Said<'a> {
    let texts: Option<Vec<Quoted<'a>>> = parts
        .iter()
        .map(|part| match part {
            Part::Text { text } => Some(*text),
            _ => None,
        })
        .collect();
    match texts.as_deref() {
        Some([text]) => Said::Text(*text),
        Some(texts) => {
            let texts: Vec<&str> = texts.iter().map(|text| &**text).collect();
            Said::Joined(texts.join(between))
        }
        None => Said::Parts(parts),
    }
}

fn part<'a>(media: &'a Media<'a>, inlined: &'a InlinedImages) -> Part<'a> {
    match (&media.source, media.kind) {
        (MediaSource::Url(url), MediaKind::Image | MediaKind::Drawn) => {
            let fetched = inlined
                .find(url)
                .map(|fetched| Cow::Borrowed(&*fetched.url));
            let typed = || data_url::retyped(url).map_or(Cow::Borrowed(&**url), Cow::Owned);
            Part::ImageUrl {
                image_url: ImageUrl {
                    url: fetched.unwrap_or_else(typed),
                },
            }
        }
        (MediaSource::Url(url), _) => Part::File {
            file: File {
                filename: media
                    .name
                    .as_deref()
                    .or_else(|| data_url::media_type(url).map(|kind| data_url::file_name(&kind))),
                file_data: Some(url),
                file_id: None,
            },
        },
        (MediaSource::Id(id), _) => Part::File {
            file: File {
                filename: None,
                file_data: None,
                file_id: Some(id),
            },
        },
        (MediaSource::Data { data, format }, _) => Part::InputAudio {
            input_audio: Sound {
                data,
                format: data_url::audio_format(format),
            },
        },
    }
}

fn call_id<'a>(id: &'a str, target: &Target<'_>) -> Cow<'a, str> {
    match target.quirks.tool_call_ids_of_nine {
        true => Cow::Owned(shorten_id(id)),
        false => Cow::Borrowed(id),
    }
}
