//! Turns as this wire wants them: instructions apart, turns alternating, results together.
//!
//! Source: docs/facts/wire-formats.md 3.1, 3.3, 3.7. What the wire would refuse is refused here, naming the place.

use serde_json::value::RawValue;

use super::blocks::{ContentBlock, Turn as WireTurn};
use super::media;
use crate::fault::Fault;
use crate::models::chat::conversation::{Block, BlockKind, Conversation, Role, Turn};
use crate::models::chat::inlined::InlinedImages;
use crate::models::chat::input::object;
use crate::models::dialects::NamedMember;
use crate::models::wires::history::{CallIds, check_texts, no_call, open_calls};
use crate::models::wires::open_calls::OpenCalls;

/// Cache markers of one request. Source: docs/facts/wire-formats.md 3.3.
const MARKERS: u32 = 4;

/// The conversation in the making.
#[derive(Debug)]
pub(super) struct MessagesConversation<'a> {
    pub(super) system: Vec<ContentBlock<'a>>,
    pub(super) turns: Vec<WireTurn<'a>>,
    markers: u32,
    conversation: &'a Conversation<'a>,
    /// Calls of the last assistant turn that have no result yet, each with the id that goes out.
    open: OpenCalls<'a, String>,
    /// The ids that calls have, each with the last number that was put behind it.
    ids: CallIds,
    asked_at: u32,
    inlined: &'a InlinedImages,
}

impl<'a> MessagesConversation<'a> {
    /// Reads all turns. `markers` are those that tools have used up, `inlined` the images that were fetched.
    pub(super) fn read(
        conversation: &'a Conversation<'a>,
        markers: u32,
        inlined: &'a InlinedImages,
    ) -> Result<Self, Fault> {
        let mut read = Self {
            system: Vec::new(),
            turns: Vec::new(),
            markers,
            conversation,
            open: OpenCalls::default(),
            ids: CallIds::default(),
            asked_at: 0,
            inlined,
        };
        for turn in &conversation.turns {
            read.read_turn(turn)?;
        }
        read.check_answered()?;
        read.check_first()?;
        Ok(read)
    }

    fn read_turn(&mut self, turn: &'a Turn<'a>) -> Result<(), Fault> {
        match turn.role {
            Role::System | Role::Developer => {
                check_texts(self.conversation, turn)?;
                let blocks = self.content(&turn.blocks)?;
                self.system.extend(blocks);
            }
            Role::User => self.user(turn)?,
            Role::Assistant => {
                self.check_answered()?;
                check_texts(self.conversation, turn)?;
                self.asked_at = turn.at;
                let blocks = self.content(&turn.blocks)?;
                if !blocks.is_empty() {
                    self.turn("assistant").extend(blocks);
                }
            }
        }
        Ok(())
    }

    fn user(&mut self, turn: &'a Turn<'a>) -> Result<(), Fault> {
        let is_result = |block: &Block<'_>| matches!(block.kind, BlockKind::Result { .. });
        let has_results = turn.blocks.iter().any(is_result);
        if !has_results {
            self.check_answered()?;
        }
        let blocks = self.content(&turn.blocks)?;
        if blocks.is_empty() {
            let said = "is empty; a user's message needs text or a part";
            let fault = self
                .conversation
                .fault(turn.at, Some(NamedMember::Content), said);
            return Err(fault);
        }
        self.turn("user").extend(blocks);
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

    fn check_answered(&self) -> Result<(), Fault> {
        match self.open.is_empty() {
            true => Ok(()),
            false => Err(open_calls(self.conversation, self.asked_at)),
        }
    }

    fn check_first(&self) -> Result<(), Fault> {
        let is_said = |turn: &&Turn<'_>| turn.role == Role::Assistant;
        match self.turns.first() {
            Some(first) if first.role == "user" => Ok(()),
            Some(_) => {
                let at = self.conversation.turns.iter().find(is_said);
                let at = at.map_or(0, |turn| turn.at);
                Err(Fault::invalid(
                    self.conversation.path(at, Some(NamedMember::Role)),
                    "the conversation begins with the assistant; the chosen provider wants a user's message first",
                ))
            }
            None => Err(self.conversation.fault_of_all("holds no user's message")),
        }
    }

    fn turn(&mut self, role: &'static str) -> &mut Vec<ContentBlock<'a>> {
        if self.turns.last().is_none_or(|turn| turn.role != role) {
            self.turns.push(WireTurn {
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

    fn content(&mut self, said: &'a [Block<'a>]) -> Result<Vec<ContentBlock<'a>>, Fault> {
        let mut blocks = Vec::with_capacity(said.len());
        for block in said {
            blocks.extend(self.block(block)?);
        }
        Ok(blocks)
    }

    /// Returns what a block is here; `None`: nothing. State that is left is of this provider.
    fn block(&mut self, block: &'a Block<'a>) -> Result<Option<ContentBlock<'a>>, Fault> {
        let state = block.states.first().map_or("", |state| &state.text);
        Ok(match &block.kind {
            BlockKind::Text(text) if is_blank(text) => None,
            BlockKind::Text(text) => Some(ContentBlock::Text {
                text: text.quoted(),
                cache_control: self.marker(block.marks.control),
            }),
            BlockKind::Refusal(text) => {
                (!is_blank(text)).then(|| ContentBlock::text(text.quoted()))
            }
            BlockKind::Media(media) => {
                media::block(self.conversation, block.at, media, self.inlined)?
            }
            BlockKind::Reasoning(text) => Some(ContentBlock::Thinking {
                thinking: text,
                signature: state,
            }),
            BlockKind::Redacted => Some(ContentBlock::RedactedThinking { data: state }),
            BlockKind::Native(native) => Some(ContentBlock::Native(&native.json)),
            BlockKind::Call { id, name, input } => {
                let is_good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
                let own_id = self.ids.unique(id, is_good);
                self.open.push(id, name, own_id.clone());
                Some(ContentBlock::ToolUse {
                    id: own_id,
                    name,
                    input: object(input),
                    cache_control: None,
                })
            }
            BlockKind::Result {
                call,
                content,
                is_error,
            } => {
                // One that names no call answers the next one.
                let Some(own_id) = self.open.answer(call.as_deref(), None) else {
                    return Err(no_call(self.conversation, block.at));
                };
                let tool_use_id = std::mem::take(own_id);
                Some(ContentBlock::ToolResult {
                    tool_use_id,
                    content: self.content(content)?,
                    is_error: *is_error,
                    cache_control: self.marker(block.marks.control),
                })
            }
        })
    }
}

/// Text blocks may not be empty.
fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}
