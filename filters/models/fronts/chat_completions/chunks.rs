//! A response as chunks: the one place that keeps the promises about a stream's shape.
//!
//! The promises, whatever the provider sends: one id, time and model for all chunks; the role once per choice and
//! first; tool calls numbered densely from 0, opened once with id and name, arguments never left empty; exactly one
//! finish reason per choice and nothing behind it; usage and metadata once, last; `[DONE]` only after a whole answer.
//! Source: docs/facts/wire-formats.md R1–R4, docs/decisions.md 1–3.

use bytes::Bytes;

use super::members::DeltaMembers;
use super::tools::{CallPiece, Opening, Tools};
use super::turn::Turn;
use crate::fault::Fault;
use crate::json::{Str, write_escaped, write_number};
use crate::models::chat::piece::{Finish, Piece, StateOf, StatePiece, split_finish};
use crate::models::fronts::head::write_head;
use crate::models::metadata::{Metadata, USAGE_CAPACITY, write_usage};
use crate::models::numbering::Numbering;
use crate::models::reply::{ReplyIdentity, Reported, ResponseKind, Sink, Writer};
use crate::models::usage::{Settlement, Usage};
use crate::money::ServiceTier;
use crate::sse::join_lines;

/// Writes chunks.
#[derive(Debug)]
pub struct ChunkWriter {
    identity: ReplyIdentity,
    /// Whether the client asked for a usage chunk.
    includes_usage: bool,
    /// `data: {"id":…,"model":"…"` without the closing brace; rendered with the first chunk.
    head: Vec<u8>,
    /// Everything of a chunk with a text alone up to the text, for the choice that wrote one last.
    text_head: Vec<u8>,
    text_index: u32,
    out: Vec<u8>,
    /// The size of the last piece, because the next is likely to be as long.
    taken_bytes: usize,
    choices: Vec<ChunkChoice>,
    /// Where the choice of an index is.
    numbers: Numbering<u32>,
    top_level: Vec<(Box<str>, Box<str>)>,
    top_level_is_new: bool,
    reported: Reported,
    has_content: bool,
}

#[derive(Debug)]
struct ChunkChoice {
    index: u32,
    has_role: bool,
    is_finished: bool,
    tools: Tools,
    turn: Turn,
}

impl ChunkWriter {
    /// A stream with this identity; `includes_usage`: the client asked for a usage chunk.
    pub fn new(identity: ReplyIdentity, includes_usage: bool) -> Self {
        Self {
            identity,
            includes_usage,
            head: Vec::new(),
            text_head: Vec::new(),
            text_index: 0,
            out: Vec::new(),
            taken_bytes: 0,
            choices: Vec::new(),
            numbers: Numbering::default(),
            top_level: Vec::new(),
            top_level_is_new: false,
            reported: Reported::default(),
            has_content: false,
        }
    }

    /// Writes the end of a whole answer: missing finish reasons, the last chunk, `[DONE]`.
    ///
    /// `usage` and `metadata` write JSON objects. `choices` of the last chunk is empty where the client asked for a
    /// usage chunk, else it holds one empty delta. Source: docs/decisions.md 1.
    pub(crate) fn finish_stream(
        &mut self,
        usage: impl FnOnce(&mut Vec<u8>),
        metadata: impl FnOnce(&mut Vec<u8>),
    ) {
        let open: Vec<u32> = self
            .choices
            .iter()
            .filter(|c| !c.is_finished)
            .map(|c| c.index)
            .collect();
        for index in open {
            self.finish(index, Finish::Stop);
        }
        self.open_chunk();
        if self.includes_usage {
            self.out.extend_from_slice(b",\"choices\":[]");
        } else {
            self.out.extend_from_slice(
                b",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":null}]",
            );
        }
        self.out.extend_from_slice(b",\"usage\":");
        usage(&mut self.out);
        self.out.extend_from_slice(b",\"metadata\":");
        metadata(&mut self.out);
        self.out.extend_from_slice(b"}\n\ndata: [DONE]\n\n");
    }

    fn choice(&mut self, index: u32) -> usize {
        let (at, is_new) = self.numbers.see(index);
        if is_new {
            self.choices.push(ChunkChoice {
                index,
                has_role: false,
                is_finished: false,
                tools: Tools::new(index),
                turn: Turn::new(&self.identity.maker),
            });
        }
        at
    }

    /// Writes everything of a chunk up to its choices.
    fn open_chunk(&mut self) {
        if self.head.is_empty() {
            self.head.extend_from_slice(b"data: ");
            write_head(&self.identity, "chat.completion.chunk", &mut self.head);
        }
        self.out.extend_from_slice(&self.head);
        if self.top_level_is_new {
            self.top_level_is_new = false;
            let start = self.out.len();
            for (key, value) in &self.top_level {
                self.out.extend_from_slice(b",\"");
                write_escaped(key, &mut self.out);
                self.out.extend_from_slice(b"\":");
                self.out.extend_from_slice(value.as_bytes());
            }
            self.join_lines(start);
        }
    }

    /// Makes one line of what was written from `start` on.
    fn join_lines(&mut self, start: usize) {
        join_lines(self.out.get_mut(start..).unwrap_or_default());
    }

    /// Writes a chunk of one choice; `members` writes the members of its delta, each with a comma behind it.
    fn chunk(
        &mut self,
        index: u32,
        finish_reason: Option<&str>,
        logprobs: Option<&str>,
        members: impl FnOnce(&mut Vec<u8>),
    ) {
        let at = self.choice(index);
        self.open_chunk();
        let start = self.out.len();
        self.out.extend_from_slice(b",\"choices\":[{\"index\":");
        write_number(u64::from(index), &mut self.out);
        self.out.extend_from_slice(b",\"delta\":{");
        if let Some(choice) = self.choices.get_mut(at)
            && !choice.has_role
        {
            choice.has_role = true;
            self.out.extend_from_slice(b"\"role\":\"assistant\",");
        }
        members(&mut self.out);
        if self.out.last() == Some(&b',') {
            self.out.pop();
        }
        self.out.push(b'}');
        if let Some(logprobs) = logprobs {
            self.out.extend_from_slice(b",\"logprobs\":");
            self.out.extend_from_slice(logprobs.as_bytes());
        }
        self.join_lines(start);
        self.out.extend_from_slice(b",\"finish_reason\":");
        match finish_reason {
            None => self.out.extend_from_slice(b"null"),
            Some(reason) => Str::Plain(reason).write(&mut self.out),
        }
        self.out.extend_from_slice(b"}]}\n\n");
    }

    /// Writes the most frequent chunk: [`Self::chunk`] with a text alone.
    fn write_text(&mut self, index: u32, text: Str<'_>) {
        const TAIL: &[u8] = b"\"},\"finish_reason\":null}]}\n\n";
        self.has_content = true;
        self.reported.output_bytes += text.len() as u64;
        if self.text_head.is_empty() || self.text_index != index {
            self.text_index = index;
            self.text_head.clear();
            self.text_head.extend_from_slice(&self.head);
            self.text_head
                .extend_from_slice(b",\"choices\":[{\"index\":");
            write_number(u64::from(index), &mut self.text_head);
            self.text_head
                .extend_from_slice(b",\"delta\":{\"content\":\"");
        }
        let bytes = self.text_head.len() + text.len() + TAIL.len();
        let expected = if self.out.is_empty() {
            bytes.max(self.taken_bytes + self.taken_bytes / 8)
        } else {
            bytes
        };
        self.out.reserve(expected);
        self.out.extend_from_slice(&self.text_head);
        text.write_contents(&mut self.out);
        self.out.extend_from_slice(TAIL);
    }

    fn call(&mut self, index: u32, call: CallPiece<'_>) {
        let at = self.choice(index);
        let Some(choice) = self.choices.get_mut(at) else {
            return;
        };
        let Some(piece) = choice.tools.take(call, &self.identity) else {
            return;
        };
        self.has_content = true;
        self.reported.output_bytes += piece.arguments.len() as u64;
        self.chunk(index, None, None, |out| {
            write_piece(piece.number, piece.opening.as_ref(), &piece.arguments, out);
        });
    }

    fn fill_arguments(&mut self, index: u32, key: Option<u64>) {
        let at = self.choice(index);
        let Some(choice) = self.choices.get_mut(at) else {
            return;
        };
        for number in choice.tools.close(key) {
            self.chunk(index, None, None, |out| {
                write_piece(number, None, "{}", out)
            });
        }
    }

    fn finish(&mut self, index: u32, finish: Finish<'_>) {
        self.fill_arguments(index, None);
        let at = self.choice(index);
        let Some(choice) = self.choices.get_mut(at) else {
            return;
        };
        choice.is_finished = true;
        let reason = choice.tools.finish_reason(finish);
        self.has_content = true;
        self.chunk(index, Some(reason), None, |_| ());
    }
}

impl ChunkWriter {
    /// Returns whether the provider has ended a choice; earlier reports of usage are not final.
    fn has_finished(&self) -> bool {
        self.choices.iter().any(|choice| choice.is_finished)
    }
}

impl Sink for ChunkWriter {
    fn identity(&mut self, id: Option<&str>, created: Option<u64>) {
        if self.head.is_empty() {
            self.identity.identify(id, created);
        }
    }

    fn pieces(&mut self, index: u32, pieces: &[Piece<'_>]) {
        let at = self.choice(index);
        let Some(choice) = self.choices.get_mut(at).filter(|it| !it.is_finished) else {
            return;
        };
        let (has_role, calls) = (choice.has_role, choice.tools.count());
        let maker = self.identity.maker.borrow();
        let members = DeltaMembers::new(pieces, &mut choice.turn, calls, maker);
        let called = CallPiece::read(pieces, maker);
        if members.any() || (!has_role && pieces.iter().all(is_of_delta)) {
            self.has_content |= members.is_content;
            self.reported.images += members.images;
            self.reported.output_bytes += members.bytes;
            self.reported.tells_reasoning |= members.tells_reasoning;
            self.chunk(index, None, members.logprobs, |out| {
                out.extend_from_slice(&members.json);
                if !has_role && !members.any() {
                    out.extend_from_slice(b"\"content\":\"\",");
                }
            });
        }
        for call in called {
            self.call(index, call);
        }
        for piece in pieces {
            if let Piece::CallEnd { key } = piece {
                self.fill_arguments(index, Some(*key));
            }
        }
        if let (_, Some(finish)) = split_finish(pieces) {
            self.finish(index, finish);
        }
    }

    fn text(&mut self, index: u32, text: Str<'_>) {
        let at = self.numbers.get(&index);
        let choice = at.and_then(|at| self.choices.get_mut(at));
        let choice = choice.filter(|choice| choice.has_role && !choice.is_finished);
        match choice.filter(|_| !self.top_level_is_new && !text.is_empty()) {
            Some(choice) => {
                choice.turn.text(text);
                self.write_text(index, text);
            }
            None => self.pieces(index, &[Piece::Text(text)]),
        }
    }

    fn member(&mut self, key: &str, value: &str) {
        match self.top_level.iter_mut().find(|(known, _)| &**known == key) {
            Some((_, known)) if &**known == value => {}
            Some((_, known)) => {
                *known = value.into();
                self.top_level_is_new = true;
            }
            None => {
                self.top_level.push((key.into(), value.into()));
                self.top_level_is_new = true;
            }
        }
    }

    fn service_tier(&mut self, tier: ServiceTier) {
        self.reported.service_tier = Some(tier);
    }

    fn searches(&mut self, count: u64) {
        self.reported.searches = count;
    }

    fn usage(&mut self, usage: Usage) {
        if !usage.is_zero() || self.has_finished() {
            self.reported.usage = Some(usage);
        }
    }
}

impl Writer for ChunkWriter {
    /// Source: docs/decisions.md 12; a role, an empty delta and a ping do not count.
    fn has_content(&self) -> bool {
        self.has_content
    }

    fn kind(&self) -> ResponseKind {
        ResponseKind::Events
    }

    fn take(&mut self) -> Bytes {
        self.taken_bytes = self.out.len();
        std::mem::take(&mut self.out).into()
    }

    fn reported(&self) -> Reported {
        Reported {
            has_finished: self.has_finished(),
            ..self.reported
        }
    }

    fn complete(&mut self, settlement: &Settlement, metadata: &Metadata<'_>) {
        self.out.reserve(USAGE_CAPACITY + metadata.capacity());
        self.finish_stream(
            |out| write_usage(settlement, out),
            |out| metadata.write(out),
        );
    }

    /// An error event with the usage so far. Source: docs/decisions.md 2.
    fn fail(&mut self, fault: &Fault, settlement: Option<&Settlement>) {
        let usage = settlement.map(|settlement| {
            let mut usage = Vec::with_capacity(USAGE_CAPACITY);
            write_usage(settlement, &mut usage);
            usage
        });
        self.out
            .extend_from_slice(&fault.error_event(usage.as_deref()));
    }
}

/// Returns whether a piece is a member of a delta, so that it opens a choice even if it is empty.
fn is_of_delta(piece: &Piece<'_>) -> bool {
    let is_of_call =
        |state: &StatePiece<'_>| matches!(state.of, StateOf::Call(_) | StateOf::Extra(Some(_)));
    match piece {
        Piece::State(state) => !is_of_call(state),
        Piece::Message { .. } | Piece::Call { .. } | Piece::Arguments { .. } => false,
        Piece::CallEnd { .. } | Piece::Finish(_) => false,
        _ => true,
    }
}

fn write_piece(number: usize, opening: Option<&Opening>, arguments: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"\"tool_calls\":[{\"index\":");
    write_number(number as u64, out);
    if let Some(opening) = opening {
        opening.write_head(out);
    }
    out.extend_from_slice(b",\"function\":{");
    if let Some(opening) = opening {
        out.extend_from_slice(b"\"name\":\"");
        out.extend_from_slice(opening.name.as_bytes());
        out.extend_from_slice(b"\",");
    }
    out.extend_from_slice(b"\"arguments\":\"");
    out.extend_from_slice(arguments.as_bytes());
    out.extend_from_slice(b"\"}}],");
}
