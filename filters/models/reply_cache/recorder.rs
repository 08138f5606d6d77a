//! Records a reply while it passes from its decoder to its writer.

use std::ops::Range;

use bytes::Bytes;

use crate::json::Str;
use crate::models::chat::piece::{Finish, Piece};
use crate::models::reply::Sink;
use crate::models::sink_event::SinkEvent;

/// The record of one reply, and what decides whether it may be stored.
#[derive(Debug)]
pub struct ReplyRecorder {
    events: Vec<u8>,
    /// The length of the events up to the last part that has ended.
    ended_bytes: usize,
    max_bytes: usize,
    /// It is too long, or was filtered.
    is_refused: bool,
    /// It holds text, calls, media or items.
    has_content: bool,
    /// The choices, and whether each has ended.
    choices: Vec<(u32, bool)>,
}

impl ReplyRecorder {
    /// An empty record, which is given up beyond `max_bytes`.
    pub fn new(max_bytes: usize) -> Self {
        Self {
            events: Vec::new(),
            ended_bytes: 0,
            max_bytes,
            is_refused: false,
            has_content: false,
            choices: Vec::new(),
        }
    }

    /// Ends a part of a reply, as [`Writer::end_part`](crate::models::reply::Writer::end_part) does.
    pub fn end_part(&mut self) {
        self.ended_bytes = self.events.len();
    }

    /// Drops what came since the last part ended.
    pub fn begin_part(&mut self) {
        self.events.truncate(self.ended_bytes);
    }

    /// Returns whether it can no longer be stored, whatever comes.
    pub fn is_refused(&self) -> bool {
        self.is_refused
    }

    /// Returns the pieces of a reply that may be stored: it has content, every choice has ended, and none by a filter.
    /// The caller knows whether the reply is complete.
    pub fn into_events(self) -> Option<Bytes> {
        let is_ended = self.choices.iter().all(|(_, is_ended)| *is_ended);
        let is_stored = self.has_content && is_ended && !self.is_refused;
        // The buffer has spare capacity, so the cache gets a copy.
        is_stored.then(|| Bytes::copy_from_slice(&self.events))
    }

    fn refuse(&mut self) {
        self.is_refused = true;
        self.events = Vec::new();
    }

    /// Takes what `write` appends; `None` gives the record up.
    fn write(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Option<()>) {
        if self.is_refused {
            return;
        }
        let is_written = write(&mut self.events).is_some();
        if !is_written || self.events.len() > self.max_bytes {
            self.refuse();
        }
    }

    fn note_choice(&mut self, index: u32, has_ended: bool) {
        match self.choices.iter_mut().find(|(known, _)| *known == index) {
            Some((_, is_ended)) => *is_ended |= has_ended,
            None => self.choices.push((index, has_ended)),
        }
    }

    fn note_item(&mut self, item: &[u8]) {
        self.has_content = true;
        let text = std::str::from_utf8(item).ok();
        self.write(|out| text.and_then(|item| SinkEvent::Item(item).write(out)));
    }

    fn note_pieces(&mut self, choice: u32, pieces: &[Piece<'_>]) {
        self.note_choice(choice, matches!(pieces.last(), Some(Piece::Finish(_))));
        for piece in pieces {
            match piece {
                Piece::Refusal(text) if !text.is_empty() => self.refuse(),
                Piece::Finish(Finish::Filtered) => self.refuse(),
                // Reasoning alone is not an answer.
                Piece::Text(text) => self.has_content |= !text.is_empty(),
                Piece::Native { .. } | Piece::Image(_) => self.has_content = true,
                Piece::Call { .. } | Piece::Arguments { .. } => self.has_content = true,
                _ => {}
            }
        }
        self.write(|out| SinkEvent::Pieces(choice, pieces.to_vec()).write(out));
    }
}

/// A sink that records what another one takes.
pub struct Recording<'a> {
    /// What the client's response is made by.
    pub sink: &'a mut dyn Sink,
    pub recorder: &'a mut ReplyRecorder,
}

impl Sink for Recording<'_> {
    // Neither id nor time is recorded, because a replay has its own; nothing unfinished, because a replay has what it became;
    // and what was reported is stored as the usage that was settled.

    fn inner(&mut self) -> Option<&mut dyn Sink> {
        Some(self.sink)
    }

    fn pieces(&mut self, choice: u32, pieces: &[Piece<'_>]) {
        self.recorder.note_pieces(choice, pieces);
        self.sink.pieces(choice, pieces);
    }

    fn text(&mut self, choice: u32, text: Str<'_>) {
        let recorder = &mut *self.recorder;
        recorder.note_choice(choice, false);
        recorder.has_content |= !text.is_empty();
        recorder.write(|out| SinkEvent::Text(choice, text).write(out));
        self.sink.text(choice, text);
    }

    fn member(&mut self, key: &str, value: &str) {
        let event = SinkEvent::Member(key, value);
        self.recorder.write(|out| event.write(out));
        self.sink.member(key, value);
    }

    fn item(&mut self, item: &[u8]) {
        self.recorder.note_item(item);
        self.sink.item(item);
    }

    fn items(&mut self, body: &Bytes, place: Range<usize>) {
        self.recorder
            .note_item(body.get(place.clone()).unwrap_or_default());
        self.sink.items(body, place);
    }

    /// Media are not stored.
    fn media(&mut self, bytes: &Bytes) {
        self.recorder.refuse();
        self.sink.media(bytes);
    }
}
