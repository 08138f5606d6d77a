//! Turns as this wire wants them: instructions apart, turns alternating, results together.
//!
//! Source: docs/facts/wire-formats.md 5.2. What the wire would refuse is refused here, naming the place.

use serde_json::value::RawValue;

use super::blocks::{CachePoint, ContentBlock, ReasoningContent, ToolResult, ToolUse, WireTurn};
use super::media::{self, DocumentNames};
use super::names::ToolNames;
use crate::fault::Fault;
use crate::models::chat::conversation::{Block, BlockKind, Conversation, Role, Turn};
use crate::models::chat::inlined::InlinedImages;
use crate::models::chat::input::object;
use crate::models::dialects::NamedMember;
use crate::models::wires::history::{CallIds, check_texts, no_call, open_calls};
use crate::models::wires::open_calls::OpenCalls;

/// Ends of prefixes to cache in one request.
pub(super) const POINTS: u32 = 4;

/// The conversation in the making.
#[derive(Debug)]
pub(super) struct ConverseConversation<'a> {
    pub(super) system: Vec<ContentBlock<'a>>,
    pub(super) turns: Vec<WireTurn<'a>>,
    /// The ends of prefixes to cache so far.
    points: u32,
    conversation: &'a Conversation<'a>,
    names: &'a ToolNames,
    documents: DocumentNames,
    /// Calls of the last assistant turn that have no result yet, each with the id that goes out.
    open: OpenCalls<'a, String>,
    ids: CallIds,
    asked_at: u32,
    inlined: &'a InlinedImages,
}

impl<'a> ConverseConversation<'a> {
    /// Reads all turns. `points` are the ends of prefixes that tools have used up, `inlined` the images that were fetched.
    pub(super) fn read(
        conversation: &'a Conversation<'a>,
        names: &'a ToolNames,
        points: u32,
        inlined: &'a InlinedImages,
    ) -> Result<Self, Fault> {
        let mut read = Self {
            system: Vec::new(),
            turns: Vec::new(),
            points,
            conversation,
            names,
            documents: DocumentNames::default(),
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
        read.turns.iter_mut().for_each(name_documents);
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
        if !turn.blocks.iter().any(is_result) {
            self.check_answered()?;
        }
        let blocks = self.content(&turn.blocks)?;
        if blocks.is_empty() {
            let said = "is empty; a user's message needs text or a part";
            let content = Some(NamedMember::Content);
            return Err(self.conversation.fault(turn.at, content, said));
        }
        self.turn("user").extend(blocks);
        Ok(())
    }

    /// Returns whether the turn that the model goes on with has calls, but not the reasoning that led to them. It is refused
    /// beside reasoning with a budget.
    pub(super) fn lacks_reasoning(&self) -> bool {
        let [.., asked, answered] = &*self.turns else {
            return false;
        };
        let is_result = |block: &ContentBlock<'_>| matches!(block, ContentBlock::ToolResult(_));
        let first = asked.content.first();
        let is_reasoning = matches!(first, Some(ContentBlock::ReasoningContent(_)));
        answered.content.iter().any(is_result) && !is_reasoning
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

    /// Returns the end of a prefix where a mark asks for one.
    fn point(&mut self, mark: Option<&RawValue>) -> Option<ContentBlock<'a>> {
        let mark = mark.filter(|_| self.points < POINTS)?;
        self.points += 1;
        Some(ContentBlock::CachePoint(CachePoint::read(mark)))
    }

    /// Returns blocks, each with the end of a prefix behind it that its mark asks for. Inside of results there are no ends.
    fn content(&mut self, said: &'a [Block<'a>]) -> Result<Vec<ContentBlock<'a>>, Fault> {
        let mut blocks = Vec::with_capacity(said.len());
        for block in said {
            if let Some(own) = self.block(block)? {
                blocks.push(own);
                blocks.extend(self.point(block.marks.control));
            }
        }
        Ok(blocks)
    }

    /// Returns what a block is here; `None`: nothing. State that is left is of this provider.
    fn block(&mut self, block: &'a Block<'a>) -> Result<Option<ContentBlock<'a>>, Fault> {
        let state = block.states.first().map_or("", |state| &state.text);
        Ok(match &block.kind {
            BlockKind::Text(text) | BlockKind::Refusal(text) => {
                // Blank texts are refused.
                (!text.trim().is_empty()).then(|| ContentBlock::Text(text.quoted()))
            }
            BlockKind::Media(media) => {
                let (inlined, names) = (self.inlined, &mut self.documents);
                media::block(self.conversation, block.at, media, inlined, names)?
            }
            BlockKind::Reasoning(_) | BlockKind::Redacted if state.is_empty() => None,
            BlockKind::Reasoning(text) => {
                let signature = state;
                let own = ReasoningContent::ReasoningText { text, signature };
                Some(ContentBlock::ReasoningContent(own))
            }
            BlockKind::Redacted => Some(ContentBlock::ReasoningContent(
                ReasoningContent::RedactedContent(state),
            )),
            BlockKind::Native(_) => None,
            BlockKind::Call { id, name, input } => {
                let is_good =
                    |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':');
                let tool_use_id = self.ids.unique(id, is_good);
                self.open.push(id, name, tool_use_id.clone());
                Some(ContentBlock::ToolUse(ToolUse {
                    tool_use_id,
                    name: self.names.to_wire(name),
                    input: object(input),
                }))
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
                let blocks = content.iter().map(|inner| self.block(inner));
                let blocks: Result<Vec<_>, Fault> = blocks.collect();
                Some(ContentBlock::ToolResult(ToolResult {
                    tool_use_id,
                    content: blocks?.into_iter().flatten().collect(),
                    status: is_error.then_some("error"),
                }))
            }
        })
    }
}

/// A turn with a document needs a text: the names of its documents, where it has none.
fn name_documents(turn: &mut WireTurn<'_>) {
    let is_text = |block: &ContentBlock<'_>| matches!(block, ContentBlock::Text(_));
    let names = turn.content.iter().filter_map(|block| match block {
        ContentBlock::Document(document) => Some(document.name.as_str()),
        _ => None,
    });
    let names: Vec<&str> = names.collect();
    if !names.is_empty() && !turn.content.iter().any(is_text) {
        let named = names.join(", ");
        turn.content.push(ContentBlock::OwnText(named));
    }
}
