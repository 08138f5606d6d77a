//! Messages as this wire wants them: instructions apart, turns alternating, results first and together.
//!
//! Source: docs/facts/wire-formats.md 3.1, 3.3, 3.7. What the wire would refuse is refused here, naming the message.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::blocks::{ContentBlock, Turn};
use super::earlier::{earlier_state, weave};
use super::media::{document, image_source};
use crate::fault::Fault;
use crate::models::chat::inlined::InlinedImages;
use crate::models::chat::tree::{
    ChatMessage, ContentPart, MessageContent, PartType, Role, ToolCall,
};
use crate::models::wires::history::{
    CallIds, answers_no_call, fault, has_open_calls, object, only_texts,
};

/// Cache markers of one request. Source: docs/facts/wire-formats.md 3.3.
const MARKERS: u32 = 4;

/// The conversation in the making.
#[derive(Debug)]
pub(super) struct MessagesConversation<'a, 'p> {
    pub(super) system: Vec<ContentBlock<'a>>,
    pub(super) turns: Vec<Turn<'a>>,
    pub(super) markers: u32,
    origin: Option<&'p str>,
    /// The number of messages.
    count: usize,
    /// Calls of the last assistant turn that have no result yet: the client's id and ours.
    open: Vec<(&'a str, String)>,
    /// The ids that calls have, each with the last number that was put behind it.
    ids: CallIds,
    asked_at: usize,
    inlined: &'a InlinedImages,
}

impl<'a, 'p> MessagesConversation<'a, 'p> {
    /// Reads all messages. `markers` are those that tools have used up, `inlined` the images that were fetched.
    pub(super) fn read(
        messages: &'a [ChatMessage<'a>],
        origin: Option<&'p str>,
        markers: u32,
        inlined: &'a InlinedImages,
    ) -> Result<Self, Fault> {
        let mut conversation = Self {
            system: Vec::new(),
            turns: Vec::new(),
            markers,
            origin,
            count: messages.len(),
            open: Vec::new(),
            ids: CallIds::default(),
            asked_at: 0,
            inlined,
        };
        for (at, message) in messages.iter().enumerate() {
            conversation.message(at, message)?;
        }
        conversation.all_answered(messages.len())?;
        conversation.check_shape()?;
        Ok(conversation)
    }

    fn message(&mut self, at: usize, message: &'a ChatMessage<'a>) -> Result<(), Fault> {
        match message.role {
            Role::System | Role::Developer => {
                only_texts(at, message)?;
                let blocks = self.content(at, message.content.as_ref())?;
                self.system.extend(blocks);
                Ok(())
            }
            Role::User => {
                self.all_answered(at)?;
                let blocks = self.content(at, message.content.as_ref())?;
                if blocks.is_empty() {
                    return Err(fault(
                        at,
                        "content",
                        "is empty; a user's message needs text or a part",
                    ));
                }
                self.turn("user").extend(blocks);
                Ok(())
            }
            Role::Assistant => self.assistant(at, message),
            Role::Tool | Role::Function => self.result(at, message),
        }
    }

    fn assistant(&mut self, at: usize, message: &'a ChatMessage<'a>) -> Result<(), Fault> {
        self.all_answered(at)?;
        only_texts(at, message)?;
        let content = self.content(at, message.content.as_ref())?;
        let state = earlier_state(message, self.origin, at + 1 == self.count);
        let text = match &message.content {
            Some(MessageContent::Text(text)) => Some(&**text),
            _ => None,
        };
        let mut blocks = weave(state, text, content);
        self.asked_at = at;
        for call in message.tool_calls.iter().flatten() {
            blocks.push(self.call(call));
        }
        if !blocks.is_empty() {
            self.turn("assistant").extend(blocks);
        }
        Ok(())
    }

    fn call(&mut self, call: &'a ToolCall<'a>) -> ContentBlock<'a> {
        let is_good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let id = self.ids.unique(&call.id, is_good);
        self.open.push((&call.id, id.clone()));
        ContentBlock::ToolUse {
            id,
            name: &call.function.name,
            input: object(&call.function.arguments),
            cache_control: None,
        }
    }

    fn result(&mut self, at: usize, message: &'a ChatMessage<'a>) -> Result<(), Fault> {
        let wanted = message.answered_call();
        let position = match wanted {
            Some(wanted) => self.open.iter().position(|(id, _)| *id == wanted),
            // The old form names no call: it answers the next one.
            None => (!self.open.is_empty()).then_some(0),
        };
        let Some(position) = position else {
            return Err(answers_no_call(at));
        };
        let (_, tool_use_id) = self.open.remove(position);
        let content = self.content(at, message.content.as_ref())?;
        let cache_control = self.marker(message.tool_result_cache_control);
        self.turn("user").push(ContentBlock::ToolResult {
            tool_use_id,
            content,
            cache_control,
        });
        Ok(())
    }

    /// Returns whether the turn that the model goes on with has calls, but not the thinking that led to them. It is refused
    /// beside thinking with a budget.
    pub(super) fn lacks_thinking(&self) -> bool {
        let [.., asked, answered] = &*self.turns else {
            return false;
        };
        let is_result = |block: &ContentBlock<'_>| matches!(block, ContentBlock::ToolResult { .. });
        let is_thinking = |block: &ContentBlock<'_>| {
            matches!(
                block,
                ContentBlock::Thinking { .. } | ContentBlock::RedactedThinking { .. }
            )
        };
        answered.content.iter().any(is_result) && !asked.content.first().is_some_and(is_thinking)
    }

    fn all_answered(&self, _at: usize) -> Result<(), Fault> {
        match self.open.first() {
            None => Ok(()),
            Some(_) => Err(has_open_calls(self.asked_at)),
        }
    }

    fn check_shape(&self) -> Result<(), Fault> {
        match self.turns.first() {
            Some(first) if first.role == "user" => Ok(()),
            Some(_) => Err(Fault::invalid(
                "messages[0].role",
                "the conversation begins with the assistant; the chosen provider wants a user's message first",
            )),
            None => Err(Fault::invalid(
                "messages",
                "`messages` holds no user's message",
            )),
        }
    }

    fn turn(&mut self, role: &'static str) -> &mut Vec<ContentBlock<'a>> {
        if self.turns.last().is_none_or(|turn| turn.role != role) {
            self.turns.push(Turn {
                role,
                content: Vec::new(),
            });
        }
        let at = self.turns.len().saturating_sub(1);
        match self.turns.get_mut(at) {
            Some(turn) => &mut turn.content,
            // There is always a turn by now.
            None => &mut self.system,
        }
    }

    fn marker(&mut self, marker: Option<&'a RawValue>) -> Option<&'a RawValue> {
        let marker = marker.filter(|_| self.markers < MARKERS)?;
        self.markers += 1;
        Some(marker)
    }

    fn content(
        &mut self,
        at: usize,
        content: Option<&'a MessageContent<'a>>,
    ) -> Result<Vec<ContentBlock<'a>>, Fault> {
        match content {
            None => Ok(Vec::new()),
            Some(MessageContent::Text(text)) => Ok(plain(text).into_iter().collect()),
            Some(MessageContent::Parts(parts)) => {
                let mut blocks = Vec::with_capacity(parts.len());
                for (number, part) in parts.iter().enumerate() {
                    blocks.extend(self.part(&format!("messages[{at}].content[{number}]"), part)?);
                }
                Ok(blocks)
            }
        }
    }

    fn part(
        &mut self,
        path: &str,
        part: &'a ContentPart<'a>,
    ) -> Result<Option<ContentBlock<'a>>, Fault> {
        Ok(match part.part_type {
            PartType::Text => match part.text.as_deref().and_then(plain) {
                Some(ContentBlock::Text { text, .. }) => Some(ContentBlock::Text {
                    text,
                    cache_control: self.marker(part.cache_control),
                }),
                other => other,
            },
            PartType::Refusal => part.refusal.as_deref().and_then(plain),
            PartType::ImageUrl => match &part.image_url {
                Some(image) => Some(ContentBlock::Image {
                    source: image_source(path, image, self.inlined)?,
                    cache_control: None,
                }),
                None => None,
            },
            PartType::File => match &part.file {
                Some(file) => Some(document(path, file)?),
                None => None,
            },
            PartType::InputAudio => {
                return Err(Fault::invalid(
                    path,
                    format!("`{path}` is audio, which the chosen provider does not take"),
                ));
            }
        })
    }
}

/// Text blocks may not be empty.
pub(super) fn plain(text: &str) -> Option<ContentBlock<'_>> {
    (!text.trim().is_empty()).then_some(ContentBlock::Text {
        text: Cow::Borrowed(text),
        cache_control: None,
    })
}
