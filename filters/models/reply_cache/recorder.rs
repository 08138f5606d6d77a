//! Records a reply while it passes from its decoder to its writer.

use std::ops::Range;

use bytes::Bytes;

use super::event::{Event, inside, write_delta};
use crate::json::Str;
use crate::models::chat::delta::{Delta, Finish};
use crate::models::reply::Sink;
use crate::models::speech::format::AudioFormat;
use crate::models::usage::Usage;
use crate::money::ServiceTier;

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
        self.write(|out| text.and_then(|item| Event::Item(item).write(out)));
    }

    fn note_delta(&mut self, delta: &Delta<'_>) {
        self.note_choice(delta.index, delta.finish.is_some());
        let refusal = delta.refusal.filter(|text| !text.is_empty());
        if refusal.is_some() || delta.finish == Some(Finish::ContentFilter) {
            self.refuse();
        }
        let lists = [delta.native_blocks, delta.images];
        // Reasoning alone is no answer.
        self.has_content |= delta.content.is_some_and(|text| !text.is_empty())
            || lists.iter().flatten().any(|list| !list.is_empty())
            || !delta.tools.is_empty();
    }
}

/// A sink that records what another one takes.
pub struct Recording<'a> {
    /// What the client's response is made by.
    pub sink: &'a mut dyn Sink,
    pub recorder: &'a mut ReplyRecorder,
}

impl Sink for Recording<'_> {
    /// Neither id nor time is recorded: a replay has its own.
    fn identity(&mut self, id: Option<&str>, created: Option<u64>) {
        self.sink.identity(id, created);
    }

    fn source(&mut self, body: &Bytes) {
        self.sink.source(body);
    }

    fn delta(&mut self, delta: &Delta<'_>) {
        self.recorder.note_delta(delta);
        self.recorder.write(|out| write_delta(delta, out));
        self.sink.delta(delta);
    }

    fn text(&mut self, index: u32, text: Str<'_>) {
        let recorder = &mut *self.recorder;
        recorder.note_choice(index, false);
        recorder.has_content |= !text.is_empty();
        recorder.write(|out| Event::Text(index, &inside(text)).write(out));
        self.sink.text(index, text);
    }

    fn tool_done(&mut self, index: u32, key: u64) {
        let event = Event::ToolDone(index, key);
        self.recorder.write(|out| event.write(out));
        self.sink.tool_done(index, key);
    }

    fn member(&mut self, key: &str, value: &str) {
        let event = Event::Member(key, value);
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

    /// Nothing unfinished is recorded: a replay has what it became.
    fn partial(&mut self, item: &[u8]) {
        self.sink.partial(item);
    }

    /// Media are not stored.
    fn media_format(&mut self, format: AudioFormat) {
        self.sink.media_format(format);
    }

    fn media(&mut self, bytes: &Bytes) {
        self.recorder.refuse();
        self.sink.media(bytes);
    }

    // What was reported is stored as the usage that was settled.

    fn searches(&mut self, count: u64) {
        self.sink.searches(count);
    }

    fn usage(&mut self, usage: Usage) {
        self.sink.usage(usage);
    }

    fn service_tier(&mut self, tier: ServiceTier) {
        self.sink.service_tier(tier);
    }
}
