//! One answer of several replies: a provider that draws one image at once is asked again for each further one.
//! Source: docs/model-gateway.md 2.1.
//!
//! It stands before the writer of a response, so that wires and writers do not know of it. The first reply is the answer;
//! of the others come the images alone, because their words, calls and state say the same turn once more. The end of a
//! choice is withheld until the whole answer has ended.

use bytes::Bytes;

use super::items::write_image;
use crate::fault::Fault;
use crate::json::Str;
use crate::models::chat::piece::{Finish, Image, Piece, split_finish};
use crate::models::metadata::Metadata;
use crate::models::reply::{Reported, ResponseKind, Sink, StructuredAnswer, Writer};
use crate::models::usage::{Settlement, Usage};

/// Writes an answer of several replies.
pub(super) struct RepeatedWriter {
    inner: Box<dyn Writer>,
    /// The choices whose first reply has ended, and how the last one has.
    ended: Vec<(u32, Finish<'static>)>,
    /// The images of a further reply, which is asked for again if it breaks off.
    waiting: Vec<Waiting>,
    /// A reply has ended, so what comes is of a further one.
    is_further: bool,
    /// What the reply at hand has reported.
    part: PartReport,
}

/// Images of a choice, as items of a list, and their number.
struct Waiting {
    index: u32,
    items: Box<str>,
    count: u64,
}

/// The provider's reports on one reply.
#[derive(Default)]
struct PartReport {
    usage: Option<Usage>,
    /// Bytes of text that were written before it.
    earlier_bytes: u64,
    /// Bytes of its text that were not written.
    dropped_bytes: u64,
    images: u64,
    searches: u64,
    has_finished: bool,
}

impl RepeatedWriter {
    /// Writes by `inner`.
    pub(super) fn new(inner: Box<dyn Writer>) -> Self {
        Self {
            inner,
            ended: Vec::new(),
            waiting: Vec::new(),
            is_further: false,
            part: PartReport::default(),
        }
    }

    /// Returns whether what comes of a choice is of a further reply. A replay from the cache has no parts, but the end of each.
    fn is_further(&self, index: u32) -> bool {
        self.is_further || self.ended.iter().any(|(ended, _)| *ended == index)
    }

    fn note_finish(&mut self, index: u32, finish: Finish<'_>) {
        let finish = match finish {
            // The convention has no word for which.
            Finish::Stop | Finish::Sequence(_) => Finish::Stop,
            Finish::Length => Finish::Length,
            Finish::ContextFull => Finish::ContextFull,
            Finish::ToolCalls => Finish::ToolCalls,
            Finish::Paused => Finish::Paused,
            Finish::Filtered => Finish::Filtered,
        };
        self.part.has_finished = true;
        match self.ended.iter_mut().find(|(ended, _)| *ended == index) {
            Some((_, last)) => *last = finish,
            None => self.ended.push((index, finish)),
        }
    }

    /// Takes of a piece of a further reply what joins the answer.
    fn keep(&mut self, index: u32, piece: &Piece<'_>) {
        match piece {
            Piece::Text(text) | Piece::Reasoning(text) | Piece::Refusal(text) => {
                self.part.dropped_bytes += text.len() as u64;
            }
            Piece::Image(image) => {
                let mut items = Vec::new();
                let items = match write_image(image, &mut items) {
                    Some(said) => said.into(),
                    None => String::from_utf8(items).unwrap_or_default().into(),
                };
                self.waiting.push(Waiting {
                    index,
                    items,
                    count: image.count(),
                });
            }
            _ => {}
        }
    }

    /// Writes the images of further replies that have ended.
    fn show_waiting(&mut self) {
        for waiting in std::mem::take(&mut self.waiting) {
            let image = Image::Said {
                items: &waiting.items,
                count: waiting.count,
            };
            self.inner.pieces(waiting.index, &[Piece::Image(image)]);
        }
    }
}

impl Sink for RepeatedWriter {
    fn inner(&mut self) -> Option<&mut dyn Sink> {
        Some(&mut *self.inner)
    }

    fn identity(&mut self, id: Option<&str>, created: Option<u64>) {
        if !self.is_further {
            self.inner.identity(id, created);
        }
    }

    fn pieces(&mut self, index: u32, pieces: &[Piece<'_>]) {
        let (said, finish) = split_finish(pieces);
        for piece in said {
            if let Piece::Image(image) = piece {
                self.part.images += image.count();
            }
        }
        if self.is_further(index) {
            said.iter().for_each(|piece| self.keep(index, piece));
        } else {
            self.inner.pieces(index, said);
        }
        if let Some(finish) = finish {
            self.note_finish(index, finish);
        }
    }

    fn text(&mut self, index: u32, text: Str<'_>) {
        if self.is_further(index) {
            self.part.dropped_bytes += text.len() as u64;
        } else {
            self.inner.text(index, text);
        }
    }

    fn searches(&mut self, count: u64) {
        self.part.searches = count;
    }

    /// An intermediate report of zeros means nothing. Source: docs/decisions.md 14.
    fn usage(&mut self, usage: Usage) {
        if !usage.is_zero() || self.part.has_finished {
            self.part.usage = Some(usage);
        }
    }
}

impl Writer for RepeatedWriter {
    fn has_content(&self) -> bool {
        self.inner.has_content()
    }

    fn kind(&self) -> ResponseKind {
        self.inner.kind()
    }

    fn take(&mut self) -> Bytes {
        self.inner.take()
    }

    /// The reports on the reply at hand: those that have ended are counted.
    fn reported(&self) -> Reported {
        let reported = self.inner.reported();
        let part = &self.part;
        let written = reported.output_bytes.saturating_sub(part.earlier_bytes);
        Reported {
            usage: part.usage,
            output_bytes: written + part.dropped_bytes,
            images: part.images,
            searches: part.searches,
            has_finished: part.has_finished,
            ..reported
        }
    }

    fn holds_text(&self) -> bool {
        self.inner.holds_text()
    }

    fn end_text(&mut self, is_whole: bool) {
        self.inner.end_text(is_whole);
    }

    fn structured(&self) -> Option<StructuredAnswer<'_>> {
        self.inner.structured()
    }

    fn end_part(&mut self) {
        self.show_waiting();
        self.is_further = true;
        self.part = PartReport {
            earlier_bytes: self.inner.reported().output_bytes,
            ..PartReport::default()
        };
    }

    fn begin_part(&mut self) {
        self.waiting.clear();
        self.part = PartReport {
            earlier_bytes: self.part.earlier_bytes,
            ..PartReport::default()
        };
    }

    fn complete(&mut self, settlement: &Settlement, metadata: &Metadata<'_>) {
        self.show_waiting();
        for (index, finish) in std::mem::take(&mut self.ended) {
            self.inner.pieces(index, &[Piece::Finish(finish)]);
        }
        self.inner.complete(settlement, metadata);
    }

    fn fail(&mut self, fault: &Fault, settlement: Option<&Settlement>) {
        self.inner.fail(fault, settlement);
    }
}
