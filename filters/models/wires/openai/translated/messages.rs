//! The turns of a conversation as messages.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::fault::Fault;
use crate::models::chat::conversation::{
    Block, BlockKind, Conversation, Media, MediaKind, MediaSource, Role, Turn,
};
use crate::models::chat::data_url;
use crate::models::chat::inlined::InlinedImages;
use crate::models::chat::text::Quoted;
use crate::models::wires::history::{no_call, open_calls};
use crate::models::wires::open_calls::OpenCalls;
use crate::models::wires::openai::calls::shorten_id;
use crate::models::wires::quirks::ReasoningReplay;
use crate::models::wires::wire::Target;

#[derive(Serialize)]
pub(super) struct Message<'a> {
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

/// Returns the messages of a conversation.
///
/// Errors: 400 naming a result without its call, or calls without a result.
pub(super) fn read<'a>(
    conversation: &'a Conversation<'a>,
    target: &'a Target<'a>,
) -> Result<Vec<Message<'a>>, Fault> {
    let mut messages = Messages {
        said: Vec::with_capacity(conversation.turns.len()),
        conversation,
        target,
        open: OpenCalls::default(),
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

/// The messages in the making.
struct Messages<'a> {
    said: Vec<Message<'a>>,
    conversation: &'a Conversation<'a>,
    target: &'a Target<'a>,
    /// Calls without a result, each with its id.
    open: OpenCalls<'a, &'a str>,
    asked_at: u32,
}

impl<'a> Messages<'a> {
    fn check_answered(&self) -> Result<(), Fault> {
        match self.open.is_empty() {
            true => Ok(()),
            false => Err(open_calls(self.conversation, self.asked_at)),
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
                    self.open.push(id, name, id);
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
            let Some(id) = call
                .as_deref()
                .and_then(|call| self.open.answer(Some(call), None))
            else {
                return Err(no_call(self.conversation, block.at));
            };
            let id = *id;
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
