//! Makes a response of the pieces of an answer.
//!
//! The promises, whatever the provider sends: parts stand in their order and calls are whole, the last chunk has the reason of the end
//! of each candidate, the tokens and the cost, and nothing follows it. A stream that breaks ends with an error.

use bytes::Bytes;

use super::check::top::ARRAY;
use super::error::ContentsError;
use super::grounding;
use super::output::Parts;
use super::relay::Relay;
use crate::fault::Fault;
use crate::json::{Object, Str, Walker};
use crate::models::chat::piece::{Finish, Piece, split_finish};
use crate::models::dialects::contents::{canonical, last_key};
use crate::models::dialects::state::OwnedMaker;
use crate::models::fronts::sequencer::{Sequencer, plain_end};
use crate::models::fronts::stop_cut::StopCut;
use crate::models::metadata::{Metadata, write_usage as write_chat_usage};
use crate::models::numbering::Numbering;
use crate::models::reply::{ReplyIdentity, Reported, ResponseKind, Sink, Writer};
use crate::models::request::{ModelRequest, Source};
use crate::models::usage::{Settlement, Usage};
use crate::money::ServiceTier;

/// The form of a response.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Form {
    Whole,
    /// An event for each chunk.
    Events,
    /// One array of all chunks.
    Array,
}

/// Makes one response.
#[derive(Debug)]
struct ContentsWriter {
    form: Form,
    /// The id of the request.
    id: Box<str>,
    /// The model as the client calls it.
    model: Box<str>,
    maker: OwnedMaker,
    /// The request, whose calls have ids, too.
    history: Bytes,
    /// What looks for the stop sequences, of an answer that has not begun.
    stops: Option<StopCut>,
    tells_thoughts: bool,
    cites: bool,
    /// How many candidates are asked for. A provider that says more of them is not heard.
    most: u64,
    candidates: Vec<Candidate>,
    numbers: Numbering<u32>,
    relay: Option<Box<Relay>>,
    out: Vec<u8>,
    /// Chunks have been written.
    has_chunks: bool,
    reported: Reported,
    has_content: bool,
}

#[derive(Debug)]
struct Candidate {
    index: u32,
    sequencer: Sequencer<Parts>,
    stops: Option<StopCut>,
    finish: Option<&'static str>,
}

/// Returns the writer of a response.
pub(super) fn writer(request: &ModelRequest, identity: ReplyIdentity) -> Box<dyn Writer> {
    let source = &request.source;
    let form = match request.is_stream {
        false => Form::Whole,
        true if is_array(source) => Form::Array,
        true => Form::Events,
    };
    let wishes = Wishes::read(source);
    Box::new(ContentsWriter {
        form,
        model: request.requested_model().into(),
        maker: identity.maker,
        id: identity.id,
        history: source.body.clone(),
        stops: StopCut::new(wishes.stops),
        tells_thoughts: wishes.tells_thoughts,
        cites: request.needs.web_search.is_some(),
        most: request.cost_inputs.choices.max(1),
        candidates: Vec::new(),
        numbers: Numbering::default(),
        relay: None,
        out: Vec::new(),
        has_chunks: false,
        reported: Reported::default(),
        has_content: false,
    })
}

/// Returns whether the chunks of an answer are the items of one array.
pub(super) fn is_array(source: &Source) -> bool {
    let form = source.member("stream").map(|it| source.value(it));
    form.is_some_and(|it| it.trim_ascii() == [b"\"", ARRAY.as_bytes(), b"\""].concat())
}

/// What of `generationConfig` shapes the answer.
#[derive(Default)]
struct Wishes {
    stops: Vec<String>,
    tells_thoughts: bool,
}

impl Wishes {
    fn read(source: &Source) -> Self {
        let mut wishes = Self::default();
        let config = source.member("generationConfig").map(|it| source.value(it));
        let config = config.and_then(|it| std::str::from_utf8(it).ok());
        for_members(config.unwrap_or("{}"), |key, value| match key {
            "stopSequences" => wishes.stops = serde_json::from_str(value).unwrap_or_default(),
            "thinkingConfig" => for_members(value, |key, value| {
                wishes.tells_thoughts |= key == "includeThoughts" && value == "true";
            }),
            _ => {}
        });
        wishes
    }
}

/// Hands out the members of an object with their canonical keys.
fn for_members(json: &str, mut take: impl FnMut(&str, &str)) {
    if json.starts_with('{') {
        _ = Walker::over(json).object(|walk, key| {
            let value = walk.skip()?;
            take(last_key(&canonical(&key)), value);
            Ok::<(), crate::json::Error>(())
        });
    }
}

impl ContentsWriter {
    /// Returns the place of a candidate, which it makes at its first piece.
    fn candidate(&mut self, index: u32) -> Option<&mut Candidate> {
        if u64::from(index) >= self.most {
            return None;
        }
        let (at, is_new) = self.numbers.see(index);
        if is_new {
            let own_id = match index {
                0 => format!("call_{}_", plain_end(&self.id)),
                index => format!("call_{}_{index}_", plain_end(&self.id)),
            };
            let parts = Parts::new(self.form != Form::Whole, self.tells_thoughts);
            let sequencer = Sequencer::new(parts, self.maker.clone(), own_id)
                .behind(self.history.clone())
                .citing(self.cites);
            self.candidates.push(Candidate {
                index,
                sequencer,
                stops: self.stops.clone(),
                finish: None,
            });
        }
        self.candidates.get_mut(at)
    }

    fn has_finished(&self) -> bool {
        let mut candidates = self.candidates.iter();
        candidates.any(|candidate| candidate.finish.is_some())
    }

    /// Notes what passes as it came.
    fn note(&mut self, pieces: &[Piece<'_>]) {
        for piece in pieces {
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
            self.has_content |= bytes > 0 || says_something(piece);
        }
    }

    /// Writes what stands around a chunk, which `write` writes.
    fn chunk(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let before: &[u8] = match (self.form, self.has_chunks) {
            (Form::Events, _) => b"data: ",
            (Form::Array, false) => b"[",
            (Form::Array, true) => b",\n",
            (Form::Whole, _) => b"",
        };
        self.has_chunks = true;
        self.out.extend_from_slice(before);
        let start = self.out.len();
        write(&mut self.out);
        if self.form == Form::Events {
            // Values come as the provider wrote them. Between the tokens of JSON a line end is white space, and would end the
            // event's data.
            for byte in self.out.get_mut(start..).unwrap_or_default() {
                if matches!(byte, b'\n' | b'\r') {
                    *byte = b' ';
                }
            }
            self.out.extend_from_slice(b"\n\n");
        }
    }

    /// Writes what a candidate has said since the last chunk.
    fn told(&mut self, index: u32) {
        if self.form == Form::Whole {
            return;
        }
        let at = self.numbers.get(&index);
        let candidate = at.and_then(|at| self.candidates.get_mut(at));
        let parts = candidate.map(|it| std::mem::take(&mut it.sequencer.writer.out));
        let Some(parts) = parts.filter(|parts| !parts.is_empty()) else {
            return;
        };
        let (id, model) = (self.id.clone(), self.model.clone());
        self.chunk(|out| {
            let mut chunk = Object::open(out);
            chunk.array("candidates", [()], |(), out| {
                let mut candidate = Object::open(out);
                write_content(&mut candidate, &parts);
                candidate.number("index", index.into());
                candidate.close();
            });
            head(&mut chunk, &id, &model);
            chunk.close();
        });
    }

    /// Writes the last chunk, or the whole response.
    fn end(&mut self, usage: &Usage, more: impl FnOnce(&mut Object<'_>)) {
        let tier = self.reported.service_tier;
        let (id, model) = (self.id.clone(), self.model.clone());
        let mut candidates = std::mem::take(&mut self.candidates);
        candidates.sort_by_key(|candidate| candidate.index);
        let is_blocked = !self.has_chunks && candidates.iter().all(Candidate::is_blocked);
        self.chunk(|out| {
            let mut chunk = Object::open(out);
            chunk.array("candidates", &candidates, Candidate::write_end);
            if is_blocked {
                chunk.object("promptFeedback", |feedback| {
                    feedback.text("blockReason", "SAFETY");
                });
            }
            chunk.value("usageMetadata", |out| write_usage(usage, tier, out));
            head(&mut chunk, &id, &model);
            more(&mut chunk);
            chunk.close();
        });
        self.candidates = candidates;
        self.close();
    }

    /// Ends an array.
    fn close(&mut self) {
        if self.form == Form::Array {
            self.out.extend_from_slice(b"]");
        }
    }
}

impl Candidate {
    /// Takes what is said together, but for the end.
    fn take(&mut self, said: &[Piece<'_>]) {
        // What is said together is in no order, and an answer follows the reasoning that led to it.
        let is_reasoning = |piece: &&Piece<'_>| matches!(piece, Piece::Reasoning(_));
        let reasoning = said.iter().filter(is_reasoning);
        let others = said.iter().filter(|piece| !is_reasoning(piece));
        for piece in reasoning.chain(others) {
            if self.cut_at().is_some() {
                continue;
            }
            match piece {
                Piece::Text(text) => self.say(*text),
                Piece::Citation(citation) => self.sequencer.writer.grounds.cite(citation),
                Piece::State(_) | Piece::CallEnd { .. } => self.sequencer.take(piece, said),
                piece => {
                    self.release();
                    self.sequencer.take(piece, said);
                }
            }
        }
    }

    /// Takes a text, up to the first stop sequence.
    fn say(&mut self, text: Str<'_>) {
        let Some(stops) = &mut self.stops else {
            return self.sequencer.text(text);
        };
        let passed = stops.take(&text.unescaped());
        self.sequencer.text(Str::Plain(&passed));
    }

    /// Writes the text that was held back because it might have begun a stop sequence.
    fn release(&mut self) {
        let rest = self.stops.as_mut().map(StopCut::rest).unwrap_or_default();
        self.sequencer.text(Str::Plain(&rest));
    }

    /// Returns the sequence at which the text was cut. What follows it does not go out.
    fn cut_at(&self) -> Option<&str> {
        self.stops.as_ref()?.found()
    }

    fn finish(&mut self, finish: Finish<'_>) {
        if self.finish.is_some() {
            return;
        }
        self.release();
        self.finish = Some(match finish {
            _ if self.cut_at().is_some() => "STOP",
            Finish::Length | Finish::ContextFull => "MAX_TOKENS",
            Finish::Filtered => "SAFETY",
            Finish::Stop | Finish::Sequence(_) | Finish::ToolCalls | Finish::Paused => "STOP",
        });
        self.sequencer.end();
        self.sequencer.writer.finish();
    }

    /// Returns whether it was filtered before it said anything.
    fn is_blocked(&self) -> bool {
        self.finish == Some("SAFETY") && self.sequencer.writer.out.is_empty()
    }

    /// Writes it with the parts that have not gone out.
    fn write_end(&self, out: &mut Vec<u8>) {
        let mut candidate = Object::open(out);
        write_content(&mut candidate, &self.sequencer.writer.out);
        candidate.text("finishReason", self.finish.unwrap_or("STOP"));
        candidate.number("index", self.index.into());
        grounding::write(&self.sequencer, &mut candidate);
        candidate.close();
    }
}

impl Sink for ContentsWriter {
    fn pieces(&mut self, choice: u32, pieces: &[Piece<'_>]) {
        if self.relay.is_some() {
            let has_ended = matches!(pieces.last(), Some(Piece::Finish(_)));
            self.note(pieces);
            if has_ended && let Some(candidate) = self.candidate(choice) {
                // What the client reads stands in the provider's own words.
                candidate.finish = Some("");
                self.has_content = true;
            }
            return;
        }
        let (said, finish) = split_finish(pieces);
        let images = said.iter().map(|piece| match piece {
            Piece::Image(image) => image.count(),
            _ => 0,
        });
        let images: u64 = images.sum();
        let Some(candidate) = self.candidate(choice) else {
            return;
        };
        if candidate.finish.is_some() {
            return;
        }
        let before = candidate.sequencer.bytes;
        candidate.take(said);
        if let Some(finish) = finish {
            candidate.finish(finish);
        }
        let (bytes, tells) = (
            candidate.sequencer.bytes - before,
            candidate.sequencer.tells_reasoning,
        );
        let says = candidate.sequencer.has_blocks() || candidate.finish.is_some();
        self.reported.images += images;
        self.reported.output_bytes += bytes;
        self.reported.tells_reasoning |= tells;
        self.has_content |= says;
        self.told(choice);
    }

    fn begin_relay(&mut self) {
        let relay = Relay::new(&self.maker, &self.model);
        self.relay = Some(Box::new(relay));
    }

    fn relay(&mut self, _: &str, data: &[u8]) {
        // It was read before, so it is text.
        let data = std::str::from_utf8(data).unwrap_or_default().trim();
        let is_end = self.form == Form::Whole || self.has_finished();
        let Some(relay) = &mut self.relay else { return };
        if !data.starts_with('{') {
            return;
        }
        if let Some(told) = relay.take(data, is_end) {
            self.chunk(|out| out.extend_from_slice(told.as_bytes()));
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

impl Writer for ContentsWriter {
    fn has_content(&self) -> bool {
        match self.form {
            Form::Whole => !self.out.is_empty(),
            Form::Events | Form::Array => self.has_content,
        }
    }

    fn kind(&self) -> ResponseKind {
        match self.form {
            Form::Whole => ResponseKind::Json,
            Form::Events => ResponseKind::Events,
            Form::Array => ResponseKind::Media("application/json"),
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
        let cost = |response: &mut Object<'_>| {
            response.object("weirgate", |own| {
                own.value("usage", |out| write_chat_usage(settlement, out));
                own.value("metadata", |out| metadata.write(out));
            });
        };
        if let Some(relay) = &mut self.relay {
            let end = relay.complete(cost);
            self.chunk(|out| out.extend_from_slice(end.as_bytes()));
            self.close();
            return;
        }
        self.candidate(0);
        for candidate in &mut self.candidates {
            candidate.finish(Finish::Stop);
        }
        self.end(&settlement.usage, cost);
    }

    /// Writes an error behind what was said, where the form has a place for one.
    fn fail(&mut self, fault: &Fault, _: Option<&Settlement>) {
        if self.form == Form::Whole {
            return;
        }
        let indexes: Vec<u32> = self.candidates.iter().map(|it| it.index).collect();
        for index in indexes {
            if let Some(candidate) = self.candidate(index) {
                candidate.release();
            }
            self.told(index);
        }
        let error = ContentsError::new(fault);
        self.chunk(|out| out.extend_from_slice(&error.body));
        self.close();
    }
}

/// Returns whether a piece says something that has no length.
fn says_something(piece: &Piece<'_>) -> bool {
    matches!(
        piece,
        Piece::Call { .. } | Piece::Native { .. } | Piece::Image(_) | Piece::State(_)
    )
}

/// Writes the content of a candidate: these parts, with commas between them. Clients read at least one.
fn write_content(candidate: &mut Object<'_>, parts: &[u8]) {
    candidate.object("content", |content| {
        content.value("parts", |out| {
            out.push(b'[');
            out.extend_from_slice(if parts.is_empty() {
                br#"{"text":""}"#
            } else {
                parts
            });
            out.push(b']');
        });
        content.text("role", "model");
    });
}

fn head(chunk: &mut Object<'_>, id: &str, model: &str) {
    chunk.text("modelVersion", model);
    chunk.text("responseId", id);
}

/// Writes `usageMetadata`. What is thought stands apart.
fn write_usage(usage: &Usage, tier: Option<ServiceTier>, out: &mut Vec<u8>) {
    let thoughts = usage.reasoning.unwrap_or(0).min(usage.completion);
    let mut object = Object::open(out);
    object.number("promptTokenCount", usage.prompt);
    if usage.cached > 0 {
        object.number("cachedContentTokenCount", usage.cached);
    }
    object.number("candidatesTokenCount", usage.completion - thoughts);
    if thoughts > 0 {
        object.number("thoughtsTokenCount", thoughts);
    }
    object.number("totalTokenCount", usage.total());
    if let Some(word) = tier.and_then(ServiceTier::wire_word) {
        object.text("serviceTier", word);
    }
    object.close();
}
