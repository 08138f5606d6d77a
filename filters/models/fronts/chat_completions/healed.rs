//! Holds the text of an answer back until its end, to repair the JSON that it should be.
//! Source: docs/model-gateway.md 2.1; docs/facts/model-gateway.md 11.1.
//!
//! It stands before the writer of a response, so that wires and writers do not know of it. Reasoning, refusals and calls
//! pass as they come. A text beside calls is not an answer in JSON, and what a filter cut off is not either: both go out as they
//! came. A text that is held back was not delivered: another provider may still answer.

use bytes::Bytes;

use crate::fault::Fault;
use crate::json::Str;
use crate::models::chat::piece::{Finish, Piece, split_finish};
use crate::models::healing::{Outcome, heal, is_valid};
use crate::models::metadata::Metadata;
use crate::models::reply::{Reported, ResponseKind, Sink, StructuredAnswer, Writer};
use crate::models::usage::Settlement;

/// A longer text is let go: no model writes as much, and it takes memory.
const MAX_HELD_BYTES: usize = 8 << 20;

/// Writes the only choice of an answer.
pub(super) struct HealedWriter {
    inner: Box<dyn Writer>,
    wants_object: bool,
    /// The text is held back.
    is_holding: bool,
    /// The text so far, then as it went out.
    text: String,
    /// The bytes of the text that came, and of the one that went out in its place.
    bytes: (u64, u64),
    outcome: Option<Outcome>,
}

impl HealedWriter {
    /// Writes by `inner`. `wants_object`: the answer is not a list.
    pub(super) fn new(inner: Box<dyn Writer>, wants_object: bool) -> Self {
        Self {
            inner,
            wants_object,
            is_holding: true,
            text: String::new(),
            bytes: (0, 0),
            outcome: None,
        }
    }

    fn holds(&self, index: u32) -> bool {
        self.is_holding && index == 0
    }

    fn hold(&mut self, text: Str<'_>) {
        self.bytes.0 += text.len() as u64;
        self.text.push_str(&text.unescaped());
        if self.text.len() > MAX_HELD_BYTES {
            self.let_go();
        }
    }

    /// Writes the text repaired.
    fn heal(&mut self) {
        if !self.is_holding || self.text.is_empty() {
            return self.let_go();
        }
        self.outcome = Some(match heal(&self.text, self.wants_object) {
            Some(healed) => {
                self.text = healed.json;
                Outcome::Healed(healed.strategy)
            }
            None if is_valid(&self.text) => Outcome::Valid,
            None => Outcome::Unhealed,
        });
        self.let_go();
    }

    /// Writes the text as it is, and holds nothing back any more.
    fn let_go(&mut self) {
        if std::mem::take(&mut self.is_holding) && !self.text.is_empty() {
            self.bytes.1 = self.text.len() as u64;
            self.inner.text(0, Str::Plain(&self.text));
        }
    }
}

impl Sink for HealedWriter {
    fn inner(&mut self) -> Option<&mut dyn Sink> {
        Some(&mut *self.inner)
    }

    fn pieces(&mut self, index: u32, pieces: &[Piece<'_>]) {
        let is_call =
            |piece: &Piece<'_>| matches!(piece, Piece::Call { .. } | Piece::Arguments { .. });
        if self.holds(index) && pieces.iter().any(is_call) {
            self.let_go();
        }
        if !self.holds(index) {
            return self.inner.pieces(index, pieces);
        }
        let (said, finish) = split_finish(pieces);
        let mut others = Vec::new();
        for piece in said {
            match piece {
                Piece::Text(text) => self.hold(*text),
                other => others.push(*other),
            }
        }
        let is_text_alone = matches!(pieces, [Piece::Text(text)] if !text.is_empty());
        if !is_text_alone {
            self.inner.pieces(index, &others);
        }
        if let Some(finish) = finish {
            match finish {
                Finish::Filtered => self.let_go(),
                _ => self.heal(),
            }
            self.inner.pieces(index, &[Piece::Finish(finish)]);
        }
    }

    fn text(&mut self, index: u32, text: Str<'_>) {
        if self.holds(index) {
            self.hold(text);
        } else {
            self.inner.text(index, text);
        }
    }
}

impl Writer for HealedWriter {
    fn has_content(&self) -> bool {
        self.inner.has_content()
    }

    fn kind(&self) -> ResponseKind {
        self.inner.kind()
    }

    fn take(&mut self) -> Bytes {
        self.inner.take()
    }

    /// The text counts as it came, once it has gone out: what the repair left out was generated, too.
    fn reported(&self) -> Reported {
        let reported = self.inner.reported();
        let (came, went) = match self.is_holding {
            true => (0, 0),
            false => self.bytes,
        };
        Reported {
            output_bytes: (reported.output_bytes + came).saturating_sub(went),
            ..reported
        }
    }

    fn holds_text(&self) -> bool {
        self.is_holding && !self.text.is_empty()
    }

    fn end_text(&mut self, is_whole: bool) {
        if is_whole {
            self.heal();
        } else {
            self.let_go();
        }
    }

    fn structured(&self) -> Option<StructuredAnswer<'_>> {
        let text = &*self.text;
        self.outcome
            .map(|outcome| StructuredAnswer { text, outcome })
    }

    fn complete(&mut self, settlement: &Settlement, metadata: &Metadata<'_>) {
        self.heal();
        self.inner.complete(settlement, metadata);
    }

    fn fail(&mut self, fault: &Fault, settlement: Option<&Settlement>) {
        self.inner.fail(fault, settlement);
    }
}
