//! Turns as this wire wants them: instructions apart, turns alternating, results together and by name.
//!
//! Source: docs/facts/wire-formats.md 4.1, 4.3. What the wire would refuse is refused here, naming the place.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

use super::parts::{FunctionCall, FunctionResponse, GooglePart, media, native, plain};
use super::request::has_levels;
use crate::fault::Fault;
use crate::models::chat::conversation::{Block, BlockKind, Conversation, MediaKind, Role, Turn};
use crate::models::chat::inlined::InlinedImages;
use crate::models::chat::input::object;
use crate::models::dialects::contents::NO_SIGNATURE;
use crate::models::wires::history::{no_call, open_calls};
use crate::models::wires::open_calls::OpenCalls;
use crate::models::wires::wire::Target;

/// A turn, or its part that holds results: they stand alone.
#[derive(Debug, Serialize)]
pub(super) struct GoogleContent<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    role: &'static str,
    parts: Vec<GooglePart<'a>>,
    #[serde(skip)]
    holds_results: bool,
}

impl<'a> GoogleContent<'a> {
    /// Returns instructions, which are of no role.
    pub(super) fn instruction(parts: Vec<GooglePart<'a>>) -> Self {
        Self {
            role: "",
            parts,
            holds_results: false,
        }
    }
}

#[derive(Debug)]
struct ToolResult<'a> {
    response: Value,
    media: Vec<GooglePart<'a>>,
}

/// The conversation in the making.
#[derive(Debug)]
pub(super) struct ContentsConversation<'a> {
    pub(super) system: Vec<GooglePart<'a>>,
    pub(super) contents: Vec<GoogleContent<'a>>,
    conversation: &'a Conversation<'a>,
    /// Calls without all results, each with its result.
    open: OpenCalls<'a, Option<ToolResult<'a>>>,
    asked_at: u32,
    /// The model refuses calls without a signature, and takes media within results.
    has_levels: bool,
    /// The model gets the images that were drawn in earlier turns.
    draws: bool,
    /// The images that were fetched.
    inlined: &'a InlinedImages,
}

impl<'a> ContentsConversation<'a> {
    /// Reads all turns.
    pub(super) fn read(
        conversation: &'a Conversation<'a>,
        target: &Target<'a>,
    ) -> Result<Self, Fault> {
        let mut read = Self {
            system: Vec::new(),
            contents: Vec::new(),
            conversation,
            open: OpenCalls::default(),
            asked_at: 0,
            has_levels: has_levels(target),
            draws: target.image_output == Some(true),
            inlined: target.inlined,
        };
        for turn in &conversation.turns {
            read.read_turn(turn)?;
        }
        read.answer()?;
        if read.contents.is_empty() {
            return Err(conversation.fault_of_all("holds no user's message"));
        }
        Ok(read)
    }

    fn read_turn(&mut self, turn: &'a Turn<'a>) -> Result<(), Fault> {
        let is_result = |block: &Block<'_>| matches!(block.kind, BlockKind::Result { .. });
        if turn.blocks.iter().any(is_result) {
            let mut blocks = turn.blocks.iter();
            return blocks.try_for_each(|block| self.result(turn, block));
        }
        self.answer()?;
        match turn.role {
            Role::System | Role::Developer => {
                let parts = self.parts(&turn.blocks)?;
                self.system.extend(parts);
            }
            Role::User => {
                let mut parts = self.parts(&turn.blocks)?;
                if parts.iter().all(|part| part.text.is_none()) {
                    // A turn of media alone is refused.
                    parts.extend(plain(" "));
                }
                self.turn("user").extend(parts);
            }
            Role::Assistant => {
                self.asked_at = turn.at;
                let parts = self.parts(&turn.blocks)?;
                if !parts.is_empty() {
                    self.turn("model").extend(parts);
                }
            }
        }
        Ok(())
    }

    fn parts(&mut self, blocks: &'a [Block<'a>]) -> Result<Vec<GooglePart<'a>>, Fault> {
        let mut parts = Vec::with_capacity(blocks.len());
        let mut is_first = true;
        for block in blocks {
            let mut part = self.part(block)?;
            let signature = block
                .states
                .first()
                .map(|state| Cow::Borrowed(&*state.text));
            if let BlockKind::Call { .. } = block.kind {
                let is_missing = self.has_levels && is_first;
                is_first = false;
                let missing = is_missing.then_some(Cow::Borrowed(NO_SIGNATURE));
                if let Some(part) = &mut part {
                    part.thought_signature = signature.or(missing);
                }
            } else if let Some(part) = part.as_mut().filter(|_| signature.is_some()) {
                part.thought_signature = signature;
            }
            parts.extend(part);
        }
        Ok(parts)
    }

    /// Returns what a block is here, without its signature; `None`: nothing.
    fn part(&mut self, block: &'a Block<'a>) -> Result<Option<GooglePart<'a>>, Fault> {
        Ok(match &block.kind {
            BlockKind::Text(text) | BlockKind::Refusal(text) => plain(text.quoted()),
            BlockKind::Media(drawn) if drawn.kind == MediaKind::Drawn && !self.draws => None,
            BlockKind::Media(own) => media(self.conversation, block.at, own, self.inlined)?,
            BlockKind::Native(block) => native(block),
            BlockKind::Call { id, name, input } => {
                self.open.push(id, name, None);
                let args = object(input);
                Some(GooglePart {
                    function_call: Some(FunctionCall { name, args }),
                    ..GooglePart::default()
                })
            }
            BlockKind::Reasoning(_) | BlockKind::Redacted | BlockKind::Result { .. } => None,
        })
    }

    fn result(&mut self, turn: &'a Turn<'a>, block: &'a Block<'a>) -> Result<(), Fault> {
        let BlockKind::Result {
            call,
            content,
            is_error,
        } = &block.kind
        else {
            return Ok(());
        };
        let result = self.tool_result(content, *is_error)?;
        match self.open.answer(call.as_deref(), turn.name.as_deref()) {
            Some(kept) => *kept = Some(result),
            None => return Err(no_call(self.conversation, block.at)),
        }
        Ok(())
    }

    /// Reads the content of a result. A text that is an object is the response; other texts are wrapped in one.
    fn tool_result(
        &mut self,
        content: &'a [Block<'a>],
        is_error: bool,
    ) -> Result<ToolResult<'a>, Fault> {
        let mut text = String::new();
        let mut media = Vec::new();
        for part in self.parts(content)? {
            match part.text {
                Some(said) => text.push_str(&said),
                None => media.push(part),
            }
        }
        let response = match serde_json::from_str(&text) {
            Ok(Value::Object(object)) if !is_error => Value::Object(object),
            _ if is_error => serde_json::json!({ "error": text }),
            _ => serde_json::json!({ "result": text }),
        };
        Ok(ToolResult { response, media })
    }

    /// Ends the results of a turn: all together, in the order of the calls. Models that take no media within results get
    /// them behind, each with the name of its function.
    fn answer(&mut self) -> Result<(), Fault> {
        let open = self.open.take();
        let mut behind = Vec::new();
        for (name, result) in open {
            let Some(ToolResult { response, media }) = result else {
                return Err(open_calls(self.conversation, self.asked_at));
            };
            let (parts, media) = match self.has_levels {
                true => (media, Vec::new()),
                false => (Vec::new(), media),
            };
            if !media.is_empty() {
                behind.extend(plain(name));
                behind.extend(media);
            }
            let function_response = Some(FunctionResponse {
                name,
                response,
                parts,
            });
            self.content("user", true).push(GooglePart {
                function_response,
                ..GooglePart::default()
            });
        }
        if !behind.is_empty() {
            self.turn("user").extend(behind);
        }
        Ok(())
    }

    fn turn(&mut self, role: &'static str) -> &mut Vec<GooglePart<'a>> {
        self.content(role, false)
    }

    /// Returns the parts of the last content, if it is of this kind, or of a new one.
    fn content(&mut self, role: &'static str, holds_results: bool) -> &mut Vec<GooglePart<'a>> {
        let last = self.contents.last();
        if last.is_none_or(|last| (last.role, last.holds_results) != (role, holds_results)) {
            self.contents.push(GoogleContent {
                role,
                parts: Vec::new(),
                holds_results,
            });
        }
        let at = self.contents.len().saturating_sub(1);
        match self.contents.get_mut(at) {
            Some(content) => &mut content.parts,
            // There is always a turn by now.
            None => &mut self.system,
        }
    }
}
