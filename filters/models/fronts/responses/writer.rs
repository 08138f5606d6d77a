//! Makes a response of the pieces of an answer.
//!
//! The promises, whatever the provider sends: the response begins once, its items come in pairs of beginning and end, as
//! [`Sequencer`] puts them, and exactly one event ends it: `completed`, `incomplete` or `failed`. Nothing stands behind that. Where the
//! history is to be summarized, its one item is the summary, which the client cannot go on without: an answer without it is none.

use bytes::Bytes;

use super::citations::annotations;
use super::error::ResponsesError;
use super::head::ResponseHead;
use super::output::Output;
use super::relay::{Relay, sealed_item};
use super::tools;
use crate::fault::Fault;
use crate::json::members::find_text;
use crate::json::{Object, Str};
use crate::models::chat::piece::{Finish, Piece, split_finish};
use crate::models::dialects::Dialect;
use crate::models::dialects::compaction::{self, Compaction};
use crate::models::fronts::sequencer::{BlockWriter, Sequencer, plain_end};
use crate::models::metadata::{Metadata, write_usage as write_chat_usage};
use crate::models::reply::{ReplyIdentity, Reported, ResponseKind, Sink, Writer};
use crate::models::request::ModelRequest;
use crate::models::usage::{Settlement, Usage};
use crate::money::ServiceTier;

/// Makes one response.
#[derive(Debug)]
struct ResponseWriter {
    sequencer: Sequencer<Output>,
    head: ResponseHead,
    is_stream: bool,
    /// What passes as it came; `None`: pieces make the response.
    relay: Option<Box<Relay>>,
    /// The summary that is made; `None`: the history is answered.
    summary: Option<Summary>,
    has_begun: bool,
    finish: Option<ResponseEnd>,
    reported: Reported,
    has_content: bool,
    /// The response that has ended, where it is to be kept.
    kept: Option<Bytes>,
    /// Whether its end was written.
    has_ended: bool,
    /// The number of the first event that has not gone out before its end.
    unsent: u64,
}

/// A summary of the history.
#[derive(Debug, Default)]
struct Summary {
    /// The inside of a JSON string.
    text: Vec<u8>,
    /// The item of a host that summarizes by itself: JSON.
    item: Option<String>,
    /// Whether it is all that the response says.
    stands_alone: bool,
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ResponseEnd {
    Completed,
    /// For this reason.
    Incomplete(&'static str),
}

/// Returns the writer of a response.
pub(super) fn writer(request: &ModelRequest, identity: ReplyIdentity) -> Box<dyn Writer> {
    let kept = request.promise.as_ref().and_then(|it| it.id.as_deref());
    // So the id of an item tells which response has it.
    let id = kept.map_or_else(|| plain_end(&identity.id), str::to_owned);
    let body = simdutf8::basic::from_utf8(&request.source.body).unwrap_or_default();
    let names = tools::read(body, &request.source).names;
    let head = ResponseHead::new(request, (&identity.id, identity.created));
    let output = Output::new(request.is_stream, &id, names, head.includes_sources());
    let sequencer = Sequencer::new(output, identity.maker, format!("call_{id}_"))
        .behind(request.source.body.clone());
    let compaction = request.compaction();
    Box::new(ResponseWriter {
        sequencer,
        head,
        is_stream: request.is_stream,
        relay: None,
        summary: (compaction != Compaction::No).then(|| Summary {
            text: Vec::new(),
            item: None,
            stands_alone: compaction == Compaction::Path,
        }),
        has_begun: false,
        finish: None,
        reported: Reported::default(),
        has_content: false,
        kept: None,
        has_ended: false,
        unsent: 0,
    })
}

impl ResponseWriter {
    /// Writes the beginning, once.
    fn begin(&mut self) {
        if std::mem::replace(&mut self.has_begun, true) {
            return;
        }
        for name in ["response.created", "response.in_progress"] {
            let head = &self.head;
            self.sequencer.writer.event(name, |event| {
                event.object("response", |response| head.write_begun(response));
            });
        }
    }

    /// Notes what a piece adds to the reports.
    fn note(&mut self, piece: &Piece<'_>) {
        let bytes = match piece {
            Piece::Text(text) | Piece::Reasoning(text) | Piece::Refusal(text) => text.len(),
            Piece::Arguments { json, .. } => json.len(),
            _ => 0,
        };
        self.reported.output_bytes += bytes as u64;
        self.reported.tells_reasoning |= bytes > 0 && matches!(piece, Piece::Reasoning(_));
        self.reported.images += images(piece);
        self.has_content |= starts_item(piece);
    }

    /// Adds to the summary what a model says. Its reasoning, and calls that it makes all the same, are not part of it.
    fn summarize(&mut self, pieces: &[Piece<'_>]) {
        for piece in pieces {
            self.note(piece);
            if starts_item(piece) {
                self.begin();
            }
            match (piece, &mut self.summary) {
                (Piece::Text(text), Some(summary)) => text.write_contents(&mut summary.text),
                (Piece::Native { dialect, json, .. }, Some(summary))
                    if *dialect == Dialect::Responses
                        && find_text(json, "type").as_deref() == Some("compaction") =>
                {
                    let sealed = sealed_item(self.sequencer.maker(), json);
                    summary.item = Some(sealed.unwrap_or_else(|_| (*json).to_owned()));
                }
                (Piece::Finish(finish), _) => return self.finish(*finish),
                _ => {}
            }
        }
    }

    /// Ends a summary with its item.
    fn end_summary(&mut self) {
        let Some(summary) = self.summary.take() else {
            return;
        };
        let output = &mut self.sequencer.writer;
        if let Some(item) = &summary.item {
            output.whole(0, item);
        } else {
            let text = std::str::from_utf8(&summary.text).unwrap_or_default();
            let sealed = compaction::seal(&Str::Raw(text).unescaped());
            let mut item = Vec::with_capacity(sealed.len() + 128);
            let mut object = Object::open(&mut item);
            object.text("id", &output.own_id("cmp", 0));
            object.text("type", "compaction");
            object.text("encrypted_content", &sealed);
            object.close();
            output.whole(0, std::str::from_utf8(&item).unwrap_or_default());
        }
        self.summary = Some(summary);
    }

    /// Notes what passes as it came.
    fn note_passed(&mut self, pieces: &[Piece<'_>]) {
        for piece in pieces {
            self.note(piece);
            if let Piece::Finish(_) = piece {
                self.has_content = true;
                // What the client reads stands in the provider's own words.
                self.finish = Some(ResponseEnd::Completed);
            }
        }
    }

    fn finish(&mut self, finish: Finish<'_>) {
        if self.finish.is_some() {
            return;
        }
        let end = match finish {
            Finish::Stop | Finish::Sequence(_) | Finish::ToolCalls | Finish::Paused => {
                ResponseEnd::Completed
            }
            Finish::Length | Finish::ContextFull => ResponseEnd::Incomplete("max_output_tokens"),
            Finish::Filtered => ResponseEnd::Incomplete("content_filter"),
        };
        if end != ResponseEnd::Completed {
            self.sequencer.writer.status = "incomplete";
        }
        self.finish = Some(end);
        self.has_content = true;
        self.begin();
    }
}

impl Sink for ResponseWriter {
    fn pieces(&mut self, choice: u32, pieces: &[Piece<'_>]) {
        // The dialect has one choice.
        if choice > 0 || self.finish.is_some() {
            return;
        }
        if self.relay.is_some() {
            return self.note_passed(pieces);
        }
        if self.summary.is_some() {
            return self.summarize(pieces);
        }
        let (said, finish) = split_finish(pieces);
        // What is said together is in no order, and an answer follows the reasoning that led to it.
        let is_reasoning = |piece: &&Piece<'_>| matches!(piece, Piece::Reasoning(_));
        let reasoning = said.iter().filter(is_reasoning);
        let others = said.iter().filter(|piece| !is_reasoning(piece));
        for piece in reasoning.chain(others) {
            if starts_item(piece) {
                self.begin();
            }
            self.reported.images += images(piece);
            match piece {
                Piece::Citation(citation) => {
                    for annotation in annotations(citation) {
                        self.sequencer.cite(annotation);
                    }
                }
                Piece::Native {
                    dialect: Dialect::Responses,
                    number,
                    json,
                } => {
                    let sealed = sealed_item(self.sequencer.maker(), json);
                    let native = Piece::Native {
                        dialect: Dialect::Responses,
                        number: *number,
                        json: sealed.as_deref().unwrap_or(json),
                    };
                    self.sequencer.take(&native, said);
                }
                piece => self.sequencer.take(piece, said),
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
        let relay = Relay::new(self.sequencer.maker(), &self.head);
        self.relay = Some(Box::new(relay));
    }

    fn relay(&mut self, name: &str, data: &[u8]) {
        let Some(relay) = &mut self.relay else { return };
        // It was read before, so it is text.
        let data = std::str::from_utf8(data).unwrap_or_default();
        match self.is_stream {
            true => self.has_content |= relay.event(name, data, &mut self.sequencer.writer),
            false => relay.whole(data),
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

impl Writer for ResponseWriter {
    fn has_content(&self) -> bool {
        match self.is_stream {
            true => self.has_content,
            false => !self.sequencer.writer.out.is_empty(),
        }
    }

    fn kind(&self) -> ResponseKind {
        match self.is_stream {
            true => ResponseKind::Events,
            false => ResponseKind::Json,
        }
    }

    fn take(&mut self) -> Bytes {
        let output = &mut self.sequencer.writer;
        if !self.has_ended {
            self.unsent = output.number();
        }
        std::mem::take(&mut output.out).into()
    }

    fn reported(&self) -> Reported {
        Reported {
            has_finished: self.finish.is_some(),
            ..self.reported
        }
    }

    fn lack(&self) -> Option<&'static str> {
        let summary = self.summary.as_ref().filter(|_| self.relay.is_none())?;
        if summary.item.is_some() {
            return None;
        }
        if summary.text.is_empty() {
            return Some("the model has written no summary");
        }
        let is_cut = !matches!(self.finish, None | Some(ResponseEnd::Completed));
        // There is no word for it where nothing else is said.
        (is_cut && summary.stands_alone).then_some("the summary broke off")
    }

    fn complete(&mut self, settlement: &Settlement, metadata: &Metadata<'_>) {
        self.has_ended = true;
        let cost = |response: &mut Object<'_>| {
            response.object("weirgate", |own| {
                own.value("usage", |out| write_chat_usage(settlement, out));
                own.value("metadata", |out| metadata.write(out));
            });
        };
        let stands_alone = self.summary.as_ref().is_some_and(|it| it.stands_alone);
        if let Some(relay) = &mut self.relay {
            let output = &mut self.sequencer.writer;
            if stands_alone {
                return relay.complete_compacted(cost, output);
            }
            let told = relay.complete(self.is_stream, cost, output);
            self.kept = self.head.is_kept().then(|| told.into());
            return;
        }
        self.finish(Finish::Stop);
        self.sequencer.end();
        self.end_summary();
        let end = self.finish.unwrap_or(ResponseEnd::Completed);
        let items = std::mem::take(&mut self.sequencer.writer.items);
        let (head, tier) = (&self.head, self.reported.service_tier);
        let write = |response: &mut Object<'_>| {
            match stands_alone {
                false => head.write_ended(response, (end, tier), &items, &settlement.usage),
                true => head.write_compacted(response, &items, &settlement.usage),
            }
            cost(response);
        };
        let output = &mut self.sequencer.writer;
        let start = output.out.len();
        if !self.is_stream {
            output.out.reserve(items.len() + 1024);
            let mut response = Object::open(&mut output.out);
            write(&mut response);
            response.close();
            if head.is_kept() {
                let response = output.out.get(start..).unwrap_or_default();
                self.kept = Some(Bytes::copy_from_slice(response));
            }
        } else if head.is_kept() {
            let mut json = Vec::with_capacity(items.len() + 1024);
            let mut response = Object::open(&mut json);
            write(&mut response);
            response.close();
            output.event(end.event(), |event| {
                event.value("response", |out| out.extend_from_slice(&json));
            });
            self.kept = Some(json.into());
        } else {
            output.event(end.event(), |event| event.object("response", write));
        }
    }

    fn take_kept(&mut self) -> Option<Bytes> {
        self.kept.take()
    }

    /// Writes that the response failed, behind what was said.
    fn fail(&mut self, fault: &Fault, _: Option<&Settlement>) {
        let error = ResponsesError::new(fault).of_response();
        if let Some(relay) = &self.relay {
            let id = relay.id().to_owned();
            self.head.identify(&id);
        } else {
            self.begin();
        }
        let head = &self.head;
        let output = &mut self.sequencer.writer;
        if self.has_ended {
            // What goes out together with the end waits for the same, and did not.
            output.go_back(self.unsent);
        }
        let items = std::mem::take(&mut output.items);
        output.event("response.failed", |event| {
            event.object("response", |response| {
                head.write_failed(response, &error, &items);
            });
        });
    }
}

impl ResponseEnd {
    /// Returns the event that says it.
    fn event(self) -> &'static str {
        match self {
            Self::Completed => "response.completed",
            Self::Incomplete(_) => "response.incomplete",
        }
    }
}

/// Returns whether a piece begins an item, or adds to one.
fn starts_item(piece: &Piece<'_>) -> bool {
    match piece {
        Piece::Text(text) | Piece::Reasoning(text) | Piece::Refusal(text) => !text.is_empty(),
        Piece::Native { dialect, .. } => *dialect == Dialect::Responses,
        Piece::State(_) | Piece::Call { .. } | Piece::Search(_) | Piece::Image(_) => true,
        _ => false,
    }
}

fn images(piece: &Piece<'_>) -> u64 {
    match piece {
        Piece::Image(image) => image.count(),
        _ => 0,
    }
}

/// Writes the tokens of a response.
pub(super) fn write_usage(usage: &Usage, out: &mut Vec<u8>) {
    let mut object = Object::open(out);
    object.number("input_tokens", usage.prompt);
    object.object("input_tokens_details", |details| {
        details.number("cached_tokens", usage.cached);
        details.number("cache_write_tokens", usage.cache_write);
    });
    object.number("output_tokens", usage.completion);
    object.object("output_tokens_details", |details| {
        details.number("reasoning_tokens", usage.reasoning.unwrap_or(0));
    });
    object.number("total_tokens", usage.total());
    object.close();
}
