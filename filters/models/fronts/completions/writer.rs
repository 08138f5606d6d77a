//! Makes a response of the pieces of an answer: events of its texts, or one whole response.
//!
//! The promises, whatever the provider sends: one id, time and model; one reason for the end of each text and nothing behind it;
//! usage and metadata once, last; `[DONE]` only after a whole answer. Source: docs/completions.md.

use bytes::Bytes;

use super::logprobs::KeptLogprobs;
use crate::fault::Fault;
use crate::json::{Object, Str};
use crate::models::chat::piece::{Finish, Piece, split_finish};
use crate::models::dialects::Dialect;
use crate::models::fronts::head::write_head;
use crate::models::fronts::stop_cut::StopCut;
use crate::models::metadata::{Metadata, USAGE_CAPACITY, write_usage};
use crate::models::numbering::Numbering;
use crate::models::parameter::Parameter;
use crate::models::reply::{ReplyIdentity, Reported, ResponseKind, Sink, Writer};
use crate::models::request::{ModelRequest, Payload};
use crate::models::usage::{Settlement, Usage};
use crate::money::ServiceTier;
use crate::sse::join_lines;

const OBJECT: &str = "text_completion";
/// Members of a response, and of a text, that are this front's to write.
const OWN: [&str; 7] = [
    "id", "object", "created", "model", "choices", "usage", "metadata",
];
const OWN_OF_CHOICE: [&str; 4] = ["text", "index", "logprobs", "finish_reason"];

/// Makes one response.
#[derive(Debug)]
pub(super) struct TextWriter {
    identity: ReplyIdentity,
    is_stream: bool,
    /// Whether the client asked for a usage event.
    includes_usage: bool,
    /// Whether the client asked for probabilities.
    wants_logprobs: bool,
    /// What looks for the stop sequences, of a text that has not begun.
    stops: Option<StopCut>,
    /// How many texts are asked for. A provider that says more of them is not heard.
    most_choices: u64,
    choices: Vec<TextChoice>,
    /// Where the choice of an index is.
    numbers: Numbering<u32>,
    /// Unknown members of the reply.
    top_level: Vec<(Box<str>, Box<str>)>,
    /// What all events begin with, once the first was written.
    head: Vec<u8>,
    out: Vec<u8>,
    reported: Reported,
    has_content: bool,
}

/// One text.
#[derive(Debug)]
struct TextChoice {
    index: u32,
    stops: Option<StopCut>,
    /// The text so far, as the inside of a JSON string; empty in streams.
    text: Vec<u8>,
    logprobs: KeptLogprobs,
    /// Members that only the provider knows.
    more: Vec<(Box<str>, Box<str>)>,
    finish: Option<&'static str>,
}

/// What pieces that are said together add to a text.
#[derive(Debug, Default)]
struct TextPart<'a> {
    /// The inside of a JSON string.
    text: Vec<u8>,
    logprobs: Option<&'a str>,
    more: Vec<(&'a str, &'a str)>,
    finish: Option<&'static str>,
}

impl TextWriter {
    pub(super) fn new(
        request: &ModelRequest,
        identity: ReplyIdentity,
        stops: Option<StopCut>,
    ) -> Self {
        let chat = match &request.payload {
            Payload::Chat(chat) => Some(chat),
            _ => None,
        };
        let id = ["cmpl-", &identity.id].concat().into();
        Self {
            identity: ReplyIdentity { id, ..identity },
            is_stream: request.is_stream,
            includes_usage: chat.is_some_and(|chat| chat.includes_usage),
            wants_logprobs: request.asked.set.contains(Parameter::Logprobs),
            stops,
            most_choices: request.cost_inputs.choices,
            choices: Vec::new(),
            numbers: Numbering::default(),
            top_level: Vec::new(),
            head: Vec::new(),
            out: Vec::new(),
            reported: Reported::default(),
            has_content: false,
        }
    }

    /// Returns the place of a choice, which it makes at its first piece.
    fn choice(&mut self, index: u32) -> usize {
        let (at, is_new) = self.numbers.see(index);
        if is_new {
            self.choices.push(TextChoice {
                index,
                stops: self.stops.clone(),
                text: Vec::new(),
                logprobs: KeptLogprobs::default(),
                more: Vec::new(),
                finish: None,
            });
        }
        at
    }

    /// Returns whether the provider has ended a text; earlier reports of usage are not final.
    fn has_finished(&self) -> bool {
        self.choices.iter().any(|choice| choice.finish.is_some())
    }

    /// Notes the bytes that the provider has said. Reasoning and calls have no place in a text, but were made.
    fn note(&mut self, piece: &Piece<'_>) {
        let bytes = match piece {
            Piece::Text(text) | Piece::Reasoning(text) | Piece::Refusal(text) => text.len(),
            Piece::Arguments { json, .. } => json.len(),
            _ => 0,
        };
        self.reported.output_bytes += bytes as u64;
        self.reported.tells_reasoning |= bytes > 0 && matches!(piece, Piece::Reasoning(_));
        if let Piece::Image(image) = piece {
            self.reported.images += image.count();
        }
    }

    /// Writes what all events begin with, without a closing brace.
    fn open_event(&mut self) {
        if self.head.is_empty() {
            self.head.extend_from_slice(b"data: ");
            write_head(&self.identity, OBJECT, &mut self.head);
        }
        self.out.extend_from_slice(&self.head);
    }

    fn event(&mut self, index: u32, part: &TextPart<'_>) {
        self.open_event();
        let start = self.out.len();
        self.out.extend_from_slice(b",\"choices\":[");
        write_choice(index, &part.text, part.finish, &mut self.out, |choice| {
            choice.raw("logprobs", part.logprobs.unwrap_or("null"));
            for (key, json) in &part.more {
                choice.foreign(key, json);
            }
        });
        self.out.extend_from_slice(b"]}");
        self.end_event(start);
    }

    /// Writes the text that was held back because it might have begun a stop sequence.
    fn release(&mut self, at: usize) {
        let choice = self.choices.get_mut(at);
        let Some(choice) = choice.filter(|choice| choice.finish.is_none()) else {
            return;
        };
        let (index, mut part) = (choice.index, TextPart::default());
        choice.rest(&mut part);
        if part.says_something() {
            self.event(index, &part);
        }
    }

    /// Ends an event of which `start` begins what may come from the provider.
    fn end_event(&mut self, start: usize) {
        join_lines(self.out.get_mut(start..).unwrap_or_default());
        self.out.extend_from_slice(b"\n\n");
    }

    /// Writes the last event: usage and metadata, beside which `choices` is empty if the client asked for usage.
    fn last_event(&mut self, settlement: &Settlement, metadata: &Metadata<'_>) {
        self.open_event();
        let start = self.out.len();
        self.out.extend_from_slice(b",\"choices\":[");
        if !self.includes_usage {
            write_choice(0, b"", None, &mut self.out, |choice| {
                choice.raw("logprobs", "null");
            });
        }
        self.out.push(b']');
        self.write_end(settlement, metadata);
        self.end_event(start);
        self.out.extend_from_slice(b"data: [DONE]\n\n");
    }

    /// Writes the whole response.
    fn whole(&mut self, settlement: &Settlement, metadata: &Metadata<'_>) {
        let mut out = std::mem::take(&mut self.out);
        write_head(&self.identity, OBJECT, &mut out);
        self.choices.sort_by_key(|choice| choice.index);
        out.extend_from_slice(b",\"choices\":[");
        for (at, choice) in self.choices.iter().enumerate() {
            out.extend_from_slice(if at > 0 { b"," } else { b"" });
            write_choice(
                choice.index,
                &choice.text,
                choice.finish,
                &mut out,
                |object| {
                    object.value("logprobs", |out| choice.logprobs.write(out));
                    for (key, json) in &choice.more {
                        object.foreign(key, json);
                    }
                },
            );
        }
        out.push(b']');
        self.out = out;
        self.write_end(settlement, metadata);
    }

    /// Writes the members behind the texts, and the closing brace.
    fn write_end(&mut self, settlement: &Settlement, metadata: &Metadata<'_>) {
        self.out.reserve(USAGE_CAPACITY + metadata.capacity());
        let mut end = Vec::new();
        let mut object = Object::open(&mut end);
        for (key, json) in &self.top_level {
            object.foreign(key, json);
        }
        object.value("usage", |out| write_usage(settlement, out));
        object.value("metadata", |out| metadata.write(out));
        object.close();
        self.out.push(b',');
        self.out.extend_from_slice(end.get(1..).unwrap_or_default());
    }
}

/// Writes a text with the members that `more` writes between it and the reason of its end.
fn write_choice(
    index: u32,
    text: &[u8],
    finish: Option<&str>,
    out: &mut Vec<u8>,
    more: impl FnOnce(&mut Object<'_>),
) {
    let mut choice = Object::open(out);
    choice.value("text", |out| {
        out.push(b'"');
        out.extend_from_slice(text);
        out.push(b'"');
    });
    choice.number("index", index.into());
    more(&mut choice);
    choice.text_or_null("finish_reason", finish);
    choice.close();
}

impl TextChoice {
    /// Takes pieces, and returns what they add to the text.
    fn take<'a>(&mut self, pieces: &[Piece<'a>], wants_logprobs: bool) -> TextPart<'a> {
        let mut part = TextPart::default();
        let (said, finish) = split_finish(pieces);
        for piece in said {
            match piece {
                Piece::Text(text) | Piece::Refusal(text) => self.say(*text, &mut part.text),
                Piece::Logprobs(json) if wants_logprobs => part.logprobs = Some(json),
                Piece::Other { key, json } if !OWN_OF_CHOICE.contains(key) => {
                    part.more.push((*key, *json));
                }
                _ => {}
            }
        }
        if let Some(finish) = finish {
            self.finish(finish, &mut part);
        }
        part
    }

    /// Adds a text, up to the first stop sequence.
    fn say(&mut self, text: Str<'_>, out: &mut Vec<u8>) {
        match &mut self.stops {
            None => text.write_contents(out),
            Some(stops) => {
                let passed = stops.take(&text.unescaped());
                Str::Plain(&passed).write_contents(out);
            }
        }
    }

    /// Adds what was held back.
    fn rest(&mut self, part: &mut TextPart<'_>) {
        let rest = self.stops.as_mut().map(StopCut::rest).unwrap_or_default();
        Str::Plain(&rest).write_contents(&mut part.text);
    }

    fn finish(&mut self, finish: Finish<'_>, part: &mut TextPart<'_>) {
        self.rest(part);
        let is_cut = self
            .stops
            .as_ref()
            .is_some_and(|stops| stops.found().is_some());
        let reason = match finish {
            _ if is_cut => "stop",
            Finish::Stop | Finish::Sequence(_) | Finish::ToolCalls => "stop",
            Finish::Length | Finish::ContextFull | Finish::Paused => "length",
            Finish::Filtered => "content_filter",
        };
        self.finish = Some(reason);
        part.finish = self.finish;
    }

    /// Keeps what a whole response has of a part.
    fn keep(&mut self, part: TextPart<'_>) {
        self.text.extend_from_slice(&part.text);
        if let Some(logprobs) = part.logprobs {
            self.logprobs.add(logprobs);
        }
        for (key, json) in part.more {
            set(&mut self.more, key, json);
        }
    }
}

/// Sets a member; the last one of a key counts.
fn set(members: &mut Vec<(Box<str>, Box<str>)>, key: &str, json: &str) {
    match members.iter_mut().find(|(known, _)| **known == *key) {
        Some((_, value)) => *value = json.into(),
        None => members.push((key.into(), json.into())),
    }
}

impl Sink for TextWriter {
    fn identity(&mut self, id: Option<&str>, created: Option<u64>) {
        let is_own = self.identity.maker.dialect == Some(Dialect::Completions);
        if self.choices.is_empty() && is_own {
            self.identity.identify(id, created);
        }
    }

    fn pieces(&mut self, index: u32, pieces: &[Piece<'_>]) {
        if u64::from(index) >= self.most_choices {
            return;
        }
        let at = self.choice(index);
        let wants_logprobs = self.wants_logprobs;
        let choice = self.choices.get_mut(at);
        let Some(choice) = choice.filter(|choice| choice.finish.is_none()) else {
            return;
        };
        let part = choice.take(pieces, wants_logprobs);
        if !self.is_stream {
            choice.keep(part);
        } else if part.says_something() {
            self.has_content = true;
            self.event(index, &part);
        }
        pieces.iter().for_each(|piece| self.note(piece));
    }

    fn member(&mut self, key: &str, value: &str) {
        if !OWN.contains(&key) {
            set(&mut self.top_level, key, value);
        }
    }

    fn service_tier(&mut self, tier: ServiceTier) {
        self.reported.service_tier = Some(tier);
    }

    fn searches(&mut self, count: u64) {
        self.reported.searches = count;
    }

    fn usage(&mut self, usage: Usage) {
        let is_first = !self.is_stream && self.reported.usage.is_none();
        if !usage.is_zero() || self.has_finished() || is_first {
            self.reported.usage = Some(usage);
        }
    }
}

impl TextPart<'_> {
    fn says_something(&self) -> bool {
        let has_more = self.logprobs.is_some() || !self.more.is_empty();
        has_more || !self.text.is_empty() || self.finish.is_some()
    }
}

impl Writer for TextWriter {
    /// Nothing of a whole response goes out before it is whole.
    fn has_content(&self) -> bool {
        match self.is_stream {
            true => self.has_content,
            false => !self.out.is_empty(),
        }
    }

    fn kind(&self) -> ResponseKind {
        match self.is_stream {
            true => ResponseKind::Events,
            false => ResponseKind::Json,
        }
    }

    fn take(&mut self) -> Bytes {
        std::mem::take(&mut self.out).into()
    }

    fn reported(&self) -> Reported {
        Reported {
            has_finished: self.has_finished(),
            ..self.reported
        }
    }

    fn complete(&mut self, settlement: &Settlement, metadata: &Metadata<'_>) {
        let open = self.choices.iter().filter(|choice| choice.finish.is_none());
        let open: Vec<u32> = open.map(|choice| choice.index).collect();
        for index in open {
            self.pieces(index, &[Piece::Finish(Finish::Stop)]);
        }
        match self.is_stream {
            true => self.last_event(settlement, metadata),
            false => self.whole(settlement, metadata),
        }
    }

    /// Writes an error event with the usage so far. Of a whole response nothing has gone out, so the error becomes a response of
    /// its own.
    fn fail(&mut self, fault: &Fault, settlement: Option<&Settlement>) {
        if !self.is_stream {
            return;
        }
        for at in 0..self.choices.len() {
            self.release(at);
        }
        let usage = settlement.map(|settlement| {
            let mut usage = Vec::with_capacity(USAGE_CAPACITY);
            write_usage(settlement, &mut usage);
            usage
        });
        let event = fault.error_event(usage.as_deref());
        self.out.extend_from_slice(&event);
    }
}
