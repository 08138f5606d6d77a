//! The turns of a conversation as messages.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::fault::Fault;
use crate::json::{Object, Str};
use crate::models::chat::conversation::{
    Block, BlockKind, Conversation, Media, MediaKind, MediaSource, Role, Turn,
};
use crate::models::chat::data_url;
use crate::models::chat::text::BlockText;
use crate::models::parameter::Parameter;
use crate::models::wires::history::{no_call, open_calls};
use crate::models::wires::open_calls::OpenCalls;
use crate::models::wires::openai::calls::shorten_id;
use crate::models::wires::quirks::ReasoningReplay;
use crate::models::wires::wire::Target;

/// Writes the messages of a conversation, as an array.
///
/// Errors: 400 naming a result without its call, or calls without a result.
pub(super) fn write<'a>(
    conversation: &'a Conversation<'a>,
    target: &'a Target<'a>,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    out.push(b'[');
    let start = out.len();
    let mut messages = Messages {
        out,
        start,
        conversation,
        target,
        open: OpenCalls::default(),
        asked_at: 0,
    };
    for turn in &conversation.turns {
        messages.turn(turn)?;
    }
    messages.check_answered()?;
    if out.len() == start {
        return Err(conversation.fault_of_all("says nothing"));
    }
    out.push(b']');
    Ok(())
}

/// The messages in the making.
struct Messages<'o, 'a> {
    out: &'o mut Vec<u8>,
    /// Where the first one begins.
    start: usize,
    conversation: &'a Conversation<'a>,
    target: &'a Target<'a>,
    /// Calls without a result, each with its id.
    open: OpenCalls<'a, &'a str>,
    asked_at: u32,
}

impl<'a> Messages<'_, 'a> {
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
            }
        }
        Ok(())
    }

    /// Begins a message.
    fn message(&mut self, role: &'static str) -> Object<'_> {
        if self.out.len() > self.start {
            self.out.push(b',');
        }
        let mut message = Object::open(self.out);
        message.text("role", role);
        message
    }

    /// Adds a message, unless it says nothing. Texts alone are one string, because some providers take no parts.
    fn say(&mut self, role: &'static str, blocks: &'a [Block<'a>]) {
        let target = self.target;
        if !blocks.iter().any(is_part) {
            return;
        }
        let mut message = self.message(role);
        match media(blocks).next() {
            None => message.value("content", |out| write_texts(blocks, "\n\n", out)),
            Some(_) => {
                let parts = blocks.iter().filter(|block| is_part(block));
                message.array("content", parts, |block, out| match &block.kind {
                    BlockKind::Media(media) => write_media(media, target, out),
                    _ => {
                        let mut part = Object::open(out);
                        part.raw("type", "\"text\"");
                        part.value("text", |out| write_texts([block], "", out));
                        part.close();
                    }
                });
            }
        }
        message.close();
    }

    fn assistant(&mut self, turn: &'a Turn<'a>) {
        let (quirks, target) = (self.target.quirks, self.target);
        let mut reasoning = String::new();
        let (mut calls, mut details, mut extra) = (Vec::new(), None, None);
        for block in &turn.blocks {
            let state = block.states.first().map(|state| &*state.text);
            match &block.kind {
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
                    calls.push((&**id, &**name, &**input, extra.take()));
                }
                _ => {}
            }
        }
        let (refused, said) = texts_of(&turn.blocks, quirks.strict_messages);
        let says_nothing = said.is_empty();
        if says_nothing && refused.is_empty() && calls.is_empty() {
            return;
        }
        let mut message = self.message("assistant");
        match says_nothing && !quirks.null_content_is_empty {
            true => message.raw("content", "null"),
            false => message.value("content", |out| write_texts(said, "", out)),
        }
        if !refused.is_empty() {
            message.value("refusal", |out| write_texts(refused, "", out));
        }
        let told = Some(reasoning).filter(|reasoning| !reasoning.is_empty());
        let has_calls = !calls.is_empty();
        replay_reasoning(
            &mut message,
            quirks.reasoning_replay,
            told,
            details,
            has_calls,
        );
        if has_calls {
            message.array("tool_calls", calls, |call, out| {
                write_call(call, target, out);
            });
        }
        message.close();
    }

    /// Adds results: texts, and behind all of them the media, which results of this convention cannot hold.
    fn results(&mut self, turn: &'a Turn<'a>) -> Result<(), Fault> {
        let target = self.target;
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
            let before = behind.len();
            behind.extend(media(held));
            let has_media = behind.len() > before;
            let mut message = self.message("tool");
            message.value("content", |out| {
                write_result(held, *is_error, has_media, out)
            });
            message.text("tool_call_id", &call_id(id, target));
            message.close();
        }
        if !behind.is_empty() {
            let mut message = self.message("user");
            message.array("content", behind, |media, out| {
                write_media(media, target, out);
            });
            message.close();
        }
        Ok(())
    }
}

/// A call: its id, its name, its arguments, and what its maker has signed it with.
type SaidCall<'a> = (&'a str, &'a str, &'a str, Option<&'a RawValue>);

fn write_call((id, name, input, extra): SaidCall<'_>, target: &Target<'_>, out: &mut Vec<u8>) {
    let mut call = Object::open(out);
    call.text("id", &call_id(id, target));
    call.raw("type", "\"function\"");
    call.object("function", |function| {
        function.text("name", name);
        function.text("arguments", input);
    });
    if let Some(extra) = extra {
        call.raw("extra_content", extra.get());
    }
    call.close();
}

/// Returns the refusals and the other texts of what the assistant has said; `is_strict`: refusals are texts, too.
fn texts_of<'b, 'a>(
    blocks: &'b [Block<'a>],
    is_strict: bool,
) -> (Vec<&'b Block<'a>>, Vec<&'b Block<'a>>) {
    let said = blocks
        .iter()
        .filter(|block| texts([*block]).next().is_some());
    said.partition(|block| matches!(block.kind, BlockKind::Refusal(_)) && !is_strict)
}

/// Returns the texts of blocks that say something.
fn texts<'b, 'a: 'b>(
    blocks: impl IntoIterator<Item = &'b Block<'a>>,
) -> impl Iterator<Item = &'b BlockText<'a>> {
    blocks.into_iter().filter_map(|block| match &block.kind {
        BlockKind::Text(text) | BlockKind::Refusal(text) if !text.is_empty() => Some(text),
        _ => None,
    })
}

fn media<'b, 'a: 'b>(blocks: &'b [Block<'a>]) -> impl Iterator<Item = &'b Media<'a>> {
    blocks.iter().filter_map(|block| match &block.kind {
        BlockKind::Media(media) => Some(media),
        _ => None,
    })
}

/// Returns whether a block is a part of a message.
fn is_part(block: &Block<'_>) -> bool {
    matches!(block.kind, BlockKind::Media(_)) || texts([block]).next().is_some()
}

/// Writes the texts of blocks as one string.
fn write_texts<'b, 'a: 'b>(
    blocks: impl IntoIterator<Item = &'b Block<'a>>,
    between: &str,
    out: &mut Vec<u8>,
) {
    out.push(b'"');
    write_joined(blocks, between, out);
    out.push(b'"');
}

fn write_joined<'b, 'a: 'b>(
    blocks: impl IntoIterator<Item = &'b Block<'a>>,
    between: &str,
    out: &mut Vec<u8>,
) {
    for (at, text) in texts(blocks).enumerate() {
        if at > 0 {
            Str::Plain(between).write_contents(out);
        }
        text.quoted().write_contents(out);
    }
}

/// Writes a result as a string.
fn write_result(held: &[Block<'_>], is_error: bool, has_media: bool, out: &mut Vec<u8>) {
    out.extend_from_slice(if is_error { b"\"Error: " } else { b"\"" });
    write_joined(held, "\n\n", out);
    if has_media {
        let has_texts = texts(held).next().is_some();
        out.extend_from_slice(if has_texts { br"\n\n" } else { b"" });
        out.extend_from_slice(b"The result holds media, which stand in the next message.");
    }
    out.push(b'"');
}

/// Gives the reasoning of a turn back, as the provider takes it.
fn replay_reasoning(
    message: &mut Object<'_>,
    replay: ReasoningReplay,
    told: Option<String>,
    details: Option<&RawValue>,
    has_calls: bool,
) {
    let (key, told) = match replay {
        ReasoningReplay::None => return,
        ReasoningReplay::ReasoningContent => ("reasoning_content", told),
        ReasoningReplay::ReasoningContentRequired => {
            let told = told.or(has_calls.then(String::new));
            ("reasoning_content", told)
        }
        ReasoningReplay::ReasoningDetails if details.is_some() => {
            let details = details.map_or("null", RawValue::get);
            return message.raw("reasoning_details", details);
        }
        ReasoningReplay::Reasoning | ReasoningReplay::ReasoningDetails => ("reasoning", told),
    };
    message.optional_text(key, told.as_deref());
}

fn write_media(media: &Media<'_>, target: &Target<'_>, out: &mut Vec<u8>) {
    let mut part = Object::open(out);
    match (&media.source, media.kind) {
        (MediaSource::Url(url), MediaKind::Image | MediaKind::Drawn) => {
            let fetched = target
                .inlined
                .find(url)
                .map(|fetched| Cow::Borrowed(&*fetched.url));
            let typed = || data_url::retyped(url).map_or(Cow::Borrowed(&**url), Cow::Owned);
            part.raw("type", "\"image_url\"");
            part.object("image_url", |image| {
                image.text("url", &fetched.unwrap_or_else(typed));
                let detail = media.detail.as_deref().filter(|detail| *detail != "auto");
                let is_taken = target.parameters.supports(Parameter::ImageDetail);
                image.optional_text("detail", detail.filter(|_| is_taken));
            });
        }
        (MediaSource::Url(url), _) => {
            let kind = || data_url::media_type(url);
            let name = media.name.as_deref();
            let name = name.or_else(|| kind().map(|kind| data_url::file_name(&kind)));
            part.raw("type", "\"file\"");
            part.object("file", |file| {
                file.optional_text("filename", name);
                file.text("file_data", url);
            });
        }
        (MediaSource::Id(id), _) => {
            part.raw("type", "\"file\"");
            part.object("file", |file| file.text("file_id", id));
        }
        (MediaSource::Data { data, format }, _) => {
            part.raw("type", "\"input_audio\"");
            part.object("input_audio", |sound| {
                sound.text("data", data);
                sound.text("format", data_url::audio_format(format));
            });
        }
    }
    part.close();
}

fn call_id<'a>(id: &'a str, target: &Target<'_>) -> Cow<'a, str> {
    match target.quirks.tool_call_ids_of_nine {
        true => Cow::Owned(shorten_id(id)),
        false => Cow::Borrowed(id),
    }
}
