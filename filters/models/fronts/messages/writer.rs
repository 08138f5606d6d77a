//! Makes a response of the pieces of an answer.
//!
//! The promises, whatever the provider sends: one beginning with the prompt's tokens, blocks as [`Sequencer`] puts them, one
//! reason for the end that fits what was said, and either an end or an error, with nothing behind it.

use bytes::Bytes;

use super::citations;
use super::error::MessagesError;
use super::relay::Relay;
use super::safeguards::{self, Safeguards};
use super::shape::{Events, Shape, Whole};
use crate::fault::Fault;
use crate::json::{Object, Str};
use crate::models::chat::piece::{Finish, Piece, split_finish};
use crate::models::fronts::sequencer::{Sequencer, plain_end};
use crate::models::fronts::stop_cut::StopCut;
use crate::models::metadata::{Metadata, write_usage as write_chat_usage};
use crate::models::reply::{ReplyIdentity, Reported, ResponseKind, Sink, Writer};
use crate::models::request::ModelRequest;
use crate::models::usage::{Settlement, Usage};
use crate::money::ServiceTier;

/// Makes one response.
#[derive(Debug)]
struct MessageWriter<S> {
    sequencer: Sequencer<S>,
    /// The id of the request.
    request_id: Box<str>,
    /// The model as the client calls it.
    model: Box<str>,
    /// Bytes of text in the prompt.
    prompt_bytes: u64,
    stops: Option<StopCut>,
    /// What passes as it came; `None`: pieces make the response.
    relay: Option<Box<Relay>>,
    has_begun: bool,
    finish: Option<Box<MessageEnd>>,
    safeguards: Safeguards,
    reported: Reported,
    has_content: bool,
}

/// Why an answer ended.
#[derive(Debug)]
struct MessageEnd {
    reason: &'static str,
    /// The stop sequence, as the inside of a JSON string.
    sequence: Option<Box<str>>,
}

/// Returns the writer of a response; `stops` are the request's stop sequences.
pub(super) fn writer(
    request: &ModelRequest,
    identity: ReplyIdentity,
    stops: Vec<String>,
) -> Box<dyn Writer> {
    match request.is_stream {
        true => Box::new(MessageWriter::<Events>::new(request, identity, stops)),
        false => Box::new(MessageWriter::<Whole>::new(request, identity, stops)),
    }
}

impl<S: Shape> MessageWriter<S> {
    fn new(request: &ModelRequest, identity: ReplyIdentity, stops: Vec<String>) -> Self {
        let own_id = format!("toolu_{}_", plain_end(&identity.id));
        let safeguards = Safeguards::new(request, &identity.maker);
        Self {
            sequencer: Sequencer::new(S::default(), identity.maker, own_id)
                .behind(request.source.body.clone())
                .citing(request.needs.web_search.is_some()),
            request_id: identity.id,
            model: request.requested_model().into(),
            prompt_bytes: request.text_bytes,
            stops: StopCut::new(stops),
            relay: None,
            has_begun: false,
            finish: None,
            safeguards,
            reported: Reported::default(),
            has_content: false,
        }
    }

    /// Writes the beginning, once. What the prompt has taken is the provider's report, or an estimate.
    fn begin(&mut self) {
        if std::mem::replace(&mut self.has_begun, true) {
            return;
        }
        let usage = self.reported.usage.filter(|usage| usage.prompt > 0);
        let usage = usage.unwrap_or_else(|| Usage::estimate(self.prompt_bytes.max(1), 0, 0));
        let started = Usage {
            completion: usage.completion.max(1),
            ..usage
        };
        let (id, model) = (&self.request_id, &self.model);
        let tier = self.reported.service_tier;
        self.sequencer
            .writer
            .begin(&|message| head(message, id, model), &|out| {
                write_usage(&started, tier, out);
            });
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

    /// Notes what passes as it came.
    fn note(&mut self, pieces: &[Piece<'_>]) {
        for piece in pieces {
            self.safeguards.note(piece);
            let bytes = match piece {
                Piece::Text(text) | Piece::Reasoning(text) | Piece::Refusal(text) => text.len(),
                Piece::Arguments { json, .. } => json.len(),
                _ => 0,
            };
            self.reported.output_bytes += bytes as u64;
            self.reported.tells_reasoning |= bytes > 0 && matches!(piece, Piece::Reasoning(_));
            self.has_content |= starts_block(piece);
            if let Piece::Finish(_) = piece {
                self.has_content = true;
                // What the client reads stands in the provider's own words.
                let (reason, sequence) = ("", None);
                self.finish = Some(Box::new(MessageEnd { reason, sequence }));
            }
        }
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
        let has_calls = self.sequencer.has_calls();
        let cut = self.cut_at().map(|stop| Str::Plain(stop).contents().into());
        let natural = if has_calls { "tool_use" } else { "end_turn" };
        let (reason, sequence) = match finish {
            _ if cut.is_some() => ("stop_sequence", cut),
            Finish::Sequence(_) if has_calls => (natural, None),
            Finish::Sequence(said) if said.is_empty() => ("end_turn", None),
            Finish::Sequence(said) => ("stop_sequence", Some(said.contents().into())),
            Finish::Stop | Finish::ToolCalls => (natural, None),
            Finish::Length => ("max_tokens", None),
            Finish::ContextFull => ("model_context_window_exceeded", None),
            Finish::Paused => ("pause_turn", None),
            Finish::Filtered => ("refusal", None),
        };
        self.finish = Some(Box::new(MessageEnd { reason, sequence }));
        self.has_content = true;
        self.begin();
    }
}

impl<S: Shape> Sink for MessageWriter<S> {
    fn pieces(&mut self, choice: u32, pieces: &[Piece<'_>]) {
        if let [verdicts @ Piece::Verdicts(_)] = pieces {
            return self.safeguards.note(verdicts);
        }
        // The dialect has one choice.
        if choice > 0 || self.finish.is_some() {
            return;
        }
        if self.relay.is_some() {
            return self.note(pieces);
        }
        let (said, finish) = split_finish(pieces);
        // What is said together is in no order, and an answer follows the reasoning that led to it.
        let is_reasoning = |piece: &&Piece<'_>| matches!(piece, Piece::Reasoning(_));
        let reasoning = said.iter().filter(is_reasoning);
        let others = said.iter().filter(|piece| !is_reasoning(piece));
        for piece in reasoning.chain(others) {
            self.safeguards.note(piece);
            if self.cut_at().is_some() {
                continue;
            }
            if starts_block(piece) {
                self.begin();
            }
            match piece {
                Piece::Text(text) => self.say(*text),
                Piece::Citation(citation) => citations::cite(citation, &mut self.sequencer),
                Piece::State(_) | Piece::CallEnd { .. } | Piece::Safeguards(_) => {
                    self.sequencer.take(piece, said);
                }
                piece => {
                    self.release();
                    self.sequencer.take(piece, said);
                }
            }
        }
        self.has_content |= self.sequencer.has_blocks();
        self.reported.output_bytes = self.sequencer.bytes;
        self.reported.tells_reasoning = self.sequencer.tells_reasoning;
        if let Some(finish) = finish {
            self.finish(finish);
        }
    }

    fn begin_relay(&mut self) {
        let relay = Relay::new(self.sequencer.maker(), &self.model);
        self.relay = Some(Box::new(relay));
    }

    fn relay(&mut self, name: &str, data: &[u8]) {
        match &mut self.relay {
            Some(relay) if S::IS_STREAM => relay.event(name, data, self.sequencer.writer.out()),
            Some(relay) => relay.whole(data),
            None => {}
        }
    }

    fn service_tier(&mut self, tier: ServiceTier) {
        self.reported.service_tier = Some(tier);
    }

    fn searches(&mut self, count: u64) {
        self.reported.searches = count;
    }

    fn usage(&mut self, usage: Usage) {
        if !usage.is_zero() || self.finish.is_some() {
            self.reported.usage = Some(usage);
        }
    }
}

impl<S: Shape> Writer for MessageWriter<S> {
    fn has_content(&self) -> bool {
        match S::IS_STREAM {
            true => self.has_content,
            false => !self.sequencer.writer.is_empty(),
        }
    }

    fn kind(&self) -> ResponseKind {
        match S::IS_STREAM {
            true => ResponseKind::Events,
            false => ResponseKind::Json,
        }
    }

    fn take(&mut self) -> Bytes {
        std::mem::take(self.sequencer.writer.out()).into()
    }

    fn reported(&self) -> Reported {
        Reported {
            has_finished: self.finish.is_some(),
            ..self.reported
        }
    }

    fn complete(&mut self, settlement: &Settlement, metadata: &Metadata<'_>) {
        let cost = |message: &mut Object<'_>| {
            message.object("weirgate", |own| {
                own.value("usage", |out| write_chat_usage(settlement, out));
                own.value("metadata", |out| metadata.write(out));
            });
        };
        if let Some(relay) = &mut self.relay {
            let results = self.safeguards.own();
            let out = self.sequencer.writer.out();
            return relay.complete(S::IS_STREAM, results, cost, out);
        }
        self.finish(Finish::Stop);
        self.sequencer.end();
        let (id, model) = (&self.request_id, &self.model);
        let tier = self.reported.service_tier;
        let (ended, results) = (self.finish.as_deref(), self.safeguards.results());
        self.sequencer.writer.end(
            &|message| head(message, id, model),
            &|delta| {
                let reason = ended.map_or("end_turn", |ended| ended.reason);
                delta.text("stop_reason", reason);
                let sequence = ended.and_then(|ended| ended.sequence.as_deref());
                delta.value("stop_sequence", |out| match sequence {
                    Some(sequence) => Str::Raw(sequence).write(out),
                    None => out.extend_from_slice(b"null"),
                });
                if let Some(results) = results {
                    delta.raw(safeguards::RESULTS, results);
                }
            },
            &|out| write_usage(&settlement.usage, tier, out),
            &cost,
        );
    }

    /// Writes an error event, behind what was said.
    fn fail(&mut self, fault: &Fault, _: Option<&Settlement>) {
        self.release();
        let error = MessagesError::new(fault, &self.request_id);
        self.sequencer.writer.fail(&error.body);
    }
}

/// Returns whether a piece begins a block, or adds to one.
fn starts_block(piece: &Piece<'_>) -> bool {
    match piece {
        Piece::Text(text) | Piece::Reasoning(text) | Piece::Refusal(text) => !text.is_empty(),
        Piece::State(_) | Piece::Call { .. } | Piece::Native { .. } | Piece::Search(_) => true,
        _ => false,
    }
}

fn head(message: &mut Object<'_>, request_id: &str, model: &str) {
    message.text("id", &["msg_", request_id].concat());
    message.text("type", "message");
    message.text("role", "assistant");
    message.text("model", model);
}

/// Writes `usage`. Tokens of the prompt that were read from a cache or written to one stand apart.
fn write_usage(usage: &Usage, tier: Option<ServiceTier>, out: &mut Vec<u8>) {
    let (written_5m, written_1h) = (usage.cache_write_5m, usage.cache_write_1h.unwrap_or(0));
    let written_5m = written_5m.unwrap_or_else(|| usage.cache_write.saturating_sub(written_1h));
    let apart = usage.cached.saturating_add(usage.cache_write);
    let mut object = Object::open(out);
    object.number("input_tokens", usage.prompt.saturating_sub(apart));
    object.number("cache_creation_input_tokens", usage.cache_write);
    object.number("cache_read_input_tokens", usage.cached);
    object.object("cache_creation", |written| {
        written.number("ephemeral_5m_input_tokens", written_5m);
        written.number("ephemeral_1h_input_tokens", written_1h);
    });
    object.number("output_tokens", usage.completion);
    if usage.web_searches > 0 {
        object.object("server_tool_use", |used| {
            used.number("web_search_requests", usage.web_searches);
        });
    }
    object.text(
        "service_tier",
        match tier {
            Some(ServiceTier::Priority) => "priority",
            _ => "standard",
        },
    );
    object.close();
}
