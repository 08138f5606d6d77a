//! One whole response, made of the same pieces that make a stream.

use bytes::Bytes;

use super::items::{LISTS, list_items, other_member};
use super::members::write_key;
use super::text::KeptText;
use super::tools::{CallPiece, Opening, Tools};
use super::turn::Turn;
use crate::fault::Fault;
use crate::json::{Str, write_number};
use crate::models::chat::piece::{Finish, Piece, split_finish};
use crate::models::dialects::state::OwnedMaker;
use crate::models::fronts::head::write_head;
use crate::models::metadata::{Metadata, USAGE_CAPACITY, write_usage};
use crate::models::numbering::Numbering;
use crate::models::reply::{ReplyIdentity, Reported, Sink, Writer};
use crate::models::usage::{Settlement, Usage};
use crate::money::ServiceTier;

/// Writes one whole response.
#[derive(Debug)]
pub struct WholeWriter {
    identity: ReplyIdentity,
    /// The provider's reply, which most texts are slices of.
    source: Bytes,
    choices: Vec<WholeChoice>,
    /// Where the choice of an index is.
    numbers: Numbering<u32>,
    top_level: Vec<(Box<str>, Box<str>)>,
    reported: Reported,
    /// The rendered reply, once it is complete.
    out: Vec<u8>,
}

/// Texts are insides of JSON strings, lists insides of JSON arrays.
#[derive(Debug)]
struct WholeChoice {
    index: u32,
    content: KeptText,
    reasoning: KeptText,
    refusal: KeptText,
    lists: [KeptText; 4],
    logprobs: Option<Box<str>>,
    extra: Vec<(Box<str>, Box<str>)>,
    calls: Vec<(Opening, Vec<u8>)>,
    tools: Tools,
    turn: Turn,
    finish_reason: Option<&'static str>,
}

impl WholeWriter {
    /// A reply with this identity.
    pub fn new(identity: ReplyIdentity) -> Self {
        Self {
            identity,
            source: Bytes::new(),
            choices: Vec::new(),
            numbers: Numbering::default(),
            top_level: Vec::new(),
            reported: Reported::default(),
            out: Vec::new(),
        }
    }

    /// Returns whether there is an answer: at least one choice, each with its end.
    fn is_whole(&self) -> bool {
        !self.choices.is_empty()
            && self
                .choices
                .iter()
                .all(|choice| choice.finish_reason.is_some())
    }

    /// Returns the whole response. `usage` and `metadata` write JSON objects of about `their_bytes`. Source:
    /// docs/model-gateway.md 2.5.
    pub(crate) fn render(
        &mut self,
        their_bytes: usize,
        usage: impl FnOnce(&mut Vec<u8>),
        metadata: impl FnOnce(&mut Vec<u8>),
    ) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.reported.output_bytes as usize + their_bytes + 512);
        write_head(&self.identity, "chat.completion", &mut out);
        out.extend_from_slice(b",\"choices\":[");
        self.choices.sort_by_key(|choice| choice.index);
        for choice in &mut self.choices {
            choice.write(&mut out);
            out.push(b',');
        }
        close_list(&mut out);
        out.extend_from_slice(b",\"usage\":");
        usage(&mut out);
        for (key, value) in &self.top_level {
            out.push(b',');
            write_key(key, &mut out);
            out.extend_from_slice(value.as_bytes());
        }
        out.extend_from_slice(b",\"metadata\":");
        metadata(&mut out);
        out.push(b'}');
        out
    }

    /// Returns the place of a choice, which it makes at its first piece.
    fn choice(&mut self, index: u32) -> usize {
        let (at, is_new) = self.numbers.see(index);
        if is_new {
            self.choices
                .push(WholeChoice::new(index, &self.identity.maker));
        }
        at
    }
}

impl WholeChoice {
    fn new(index: u32, maker: &OwnedMaker) -> Self {
        Self {
            index,
            content: KeptText::default(),
            reasoning: KeptText::default(),
            refusal: KeptText::default(),
            lists: Default::default(),
            logprobs: None,
            extra: Vec::new(),
            calls: Vec::new(),
            tools: Tools::new(index),
            turn: Turn::new(maker),
            finish_reason: None,
        }
    }

    /// Takes pieces that are said together. Returns the bytes of their text.
    fn take(&mut self, pieces: &[Piece<'_>], source: &Bytes, identity: &ReplyIdentity) -> u64 {
        let mut bytes = 0;
        let maker = identity.maker.borrow();
        for piece in pieces {
            bytes += self.take_text(piece, source);
            self.turn.note(piece, self.tools.count());
            if let Some((list, items)) = list_items(piece, &self.turn, maker)
                && let Some(kept) = self.lists.get_mut(list)
            {
                if !kept.is_empty() {
                    kept.push(Str::Raw(","), source);
                }
                kept.push(Str::Raw(&items), source);
            }
            if let Some((key, json)) = other_member(piece, maker) {
                self.set_extra(key, &json);
            }
            if let Piece::Logprobs(logprobs) = piece {
                self.logprobs = Some((*logprobs).into());
            }
        }
        for call in CallPiece::read(pieces, maker) {
            bytes += self.take_call(call, identity);
        }
        for piece in pieces {
            if let Piece::CallEnd { key } = piece {
                // Empty arguments become `{}` when the reply is written.
                self.tools.close(Some(*key));
            }
        }
        if let (_, Some(finish)) = split_finish(pieces) {
            for (key, json) in self.turn.members(self.tools.count()) {
                self.set_extra(key, &json);
            }
            self.finish_reason = Some(self.tools.finish_reason(finish));
        }
        bytes
    }

    /// Takes a part of a text. Returns its bytes.
    fn take_text(&mut self, piece: &Piece<'_>, source: &Bytes) -> u64 {
        let (text, kept) = match piece {
            Piece::Text(text) => (text, &mut self.content),
            Piece::Reasoning(text) => (text, &mut self.reasoning),
            Piece::Refusal(text) => (text, &mut self.refusal),
            _ => return 0,
        };
        kept.push(*text, source);
        text.len() as u64
    }

    /// Takes what comes of a call. Returns the bytes of its arguments.
    fn take_call(&mut self, call: CallPiece<'_>, identity: &ReplyIdentity) -> u64 {
        let Some(piece) = self.tools.take(call, identity) else {
            return 0;
        };
        if let Some(opening) = piece.opening {
            self.calls.push((opening, Vec::new()));
        }
        if let Some((_, arguments)) = self.calls.get_mut(piece.number) {
            arguments.extend_from_slice(piece.arguments.as_bytes());
        }
        piece.arguments.len() as u64
    }

    fn set_extra(&mut self, key: &str, json: &str) {
        self.extra.retain(|(known, _)| &**known != key);
        self.extra.push((key.into(), json.into()));
    }

    fn write(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"index\":");
        write_number(u64::from(self.index), out);
        out.extend_from_slice(b",\"message\":{\"role\":\"assistant\",\"content\":");
        if self.content.is_empty() && !self.calls.is_empty() {
            out.extend_from_slice(b"null");
        } else {
            write_quoted(self.content.as_bytes(), out);
        }
        for (key, text) in [("refusal", &self.refusal), ("reasoning", &self.reasoning)] {
            if !text.is_empty() {
                out.push(b',');
                write_key(key, out);
                write_quoted(text.as_bytes(), out);
            }
        }
        for (key, list) in LISTS.into_iter().zip(&self.lists) {
            if !list.is_empty() {
                out.push(b',');
                write_key(key, out);
                out.push(b'[');
                out.extend_from_slice(list.as_bytes());
                out.push(b']');
            }
        }
        self.write_calls(out);
        for (key, value) in &self.extra {
            out.push(b',');
            write_key(key, out);
            out.extend_from_slice(value.as_bytes());
        }
        out.push(b'}');
        if let Some(logprobs) = &self.logprobs {
            out.extend_from_slice(b",\"logprobs\":");
            out.extend_from_slice(logprobs.as_bytes());
        }
        let natural = || self.tools.finish_reason(Finish::Stop);
        let reason = self.finish_reason.unwrap_or_else(natural);
        out.extend_from_slice(b",\"finish_reason\":");
        Str::Plain(reason).write(out);
        out.push(b'}');
    }

    fn write_calls(&self, out: &mut Vec<u8>) {
        if self.calls.is_empty() {
            return;
        }
        out.extend_from_slice(b",\"tool_calls\":[");
        for (opening, arguments) in &self.calls {
            let start = out.len();
            opening.write_head(out);
            // `write_head` begins with the comma that a chunk's `index` needs in front.
            if let Some(first) = out.get_mut(start) {
                *first = b'{';
            }
            out.extend_from_slice(b",\"function\":{\"name\":");
            write_quoted(opening.name.as_bytes(), out);
            out.extend_from_slice(b",\"arguments\":");
            write_quoted(
                if arguments.is_empty() {
                    b"{}"
                } else {
                    arguments
                },
                out,
            );
            out.extend_from_slice(b"}},");
        }
        close_list(out);
    }
}

impl Sink for WholeWriter {
    fn source(&mut self, body: &Bytes) {
        self.source = body.clone();
    }

    fn identity(&mut self, id: Option<&str>, created: Option<u64>) {
        if self.choices.is_empty() {
            self.identity.identify(id, created);
        }
    }

    fn pieces(&mut self, index: u32, pieces: &[Piece<'_>]) {
        let at = self.choice(index);
        let choice = self.choices.get_mut(at);
        if let Some(choice) = choice.filter(|choice| choice.finish_reason.is_none()) {
            let images = choice.turn.images;
            self.reported.output_bytes += choice.take(pieces, &self.source, &self.identity);
            self.reported.images += choice.turn.images - images;
        }
    }

    fn member(&mut self, key: &str, value: &str) {
        self.top_level.retain(|(known, _)| &**known != key);
        self.top_level.push((key.into(), value.into()));
    }

    fn service_tier(&mut self, tier: ServiceTier) {
        self.reported.service_tier = Some(tier);
    }

    fn searches(&mut self, count: u64) {
        self.reported.searches = count;
    }

    fn usage(&mut self, usage: Usage) {
        if !usage.is_zero() || self.is_whole() || self.reported.usage.is_none() {
            self.reported.usage = Some(usage);
        }
    }
}

impl Writer for WholeWriter {
    /// Nothing goes out before the reply is whole.
    fn has_content(&self) -> bool {
        !self.out.is_empty()
    }

    fn take(&mut self) -> Bytes {
        std::mem::take(&mut self.out).into()
    }

    fn reported(&self) -> Reported {
        self.reported
    }

    fn complete(&mut self, settlement: &Settlement, metadata: &Metadata<'_>) {
        self.out = self.render(
            USAGE_CAPACITY + metadata.capacity(),
            |out| write_usage(settlement, out),
            |out| metadata.write(out),
        );
    }

    /// Writes nothing: the head has not gone out, so the error becomes a response of its own.
    fn fail(&mut self, _fault: &Fault, _settlement: Option<&Settlement>) {}
}

fn write_quoted(inside: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    out.extend_from_slice(inside);
    out.push(b'"');
}

/// Replaces the comma behind the last item by the bracket.
fn close_list(out: &mut Vec<u8>) {
    if out.last() == Some(&b',') {
        out.pop();
    }
    out.push(b']');
}
