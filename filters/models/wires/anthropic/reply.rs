//! Whole replies and events, read from the same blocks. Source: docs/facts/wire-formats.md 3.4, 3.5.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::called_form;
use super::failure::{ErrorBody, classify_error};
use super::open_block::{OpenBlock, ReplyBlock, SaidBlocks, StopDetails};
use super::usage::Report;
use crate::json::Str;
use crate::models::chat::piece::{Finish, Piece};
use crate::models::chat::text::Text;
use crate::models::dialects::Dialect;
use crate::models::reply::Sink;
use crate::models::request::ModelRequest;
use crate::models::wires::decoder::{Decoder, Progress, ReplyHead};
use crate::models::wires::decoder::{EventDecoder, EventStream, Frame, WholeReply, truncated};
use crate::models::wires::failure::Failure;
use crate::models::wires::relay;
use crate::models::wires::wire::Target;

/// A message: the body of a reply, or what `message_start` holds.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ReplyMessage<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow)]
    id: Text<'a>,
    #[serde(borrow)]
    content: Vec<&'a RawValue>,
    #[serde(borrow)]
    stop_reason: Option<Text<'a>>,
    #[serde(borrow)]
    stop_sequence: Option<&'a RawValue>,
    #[serde(borrow)]
    stop_details: Option<StopDetails<'a>>,
    #[serde(borrow)]
    safeguard_results: Option<&'a RawValue>,
    usage: Report,
    error: Option<ErrorBody>,
}

/// An event; which members are set depends on its type.
#[derive(Debug, Deserialize)]
struct Data<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Text<'a>,
    #[serde(default)]
    index: u64,
    #[serde(borrow, default)]
    message: Option<ReplyMessage<'a>>,
    #[serde(borrow, default)]
    content_block: Option<&'a RawValue>,
    #[serde(borrow, default)]
    delta: Option<ReplyBlock<'a>>,
    #[serde(borrow, default)]
    safeguard_results: Option<&'a RawValue>,
    #[serde(default)]
    usage: Option<Report>,
    #[serde(default)]
    error: Option<ErrorBody>,
}

/// Returns the decoder of a chat's reply.
pub(super) fn decoder(
    request: &ModelRequest,
    target: &Target<'_>,
    head: &ReplyHead,
) -> Box<dyn Decoder> {
    let is_as_asked = head.events.is_some() == request.is_stream;
    let passes = is_as_asked && request.front.row().dialect == Some(Dialect::Messages);
    let is_called = called_form::is_called(request, target);
    let events = MessageEvents {
        said: SaidBlocks::of_answer(is_called),
        ..MessageEvents::default()
    };
    match head.events {
        Some(framing) if passes => relay::events(events, framing),
        Some(framing) => Box::new(EventStream::new(events, framing)),
        None if passes => relay::whole(|body, sink| read_whole(body, false, sink)),
        None => Box::new(WholeReply::new(move |body, sink| {
            read_whole(body, is_called, sink)
        })),
    }
}

/// Reads a whole reply; `is_called`: the input of its call is the answer.
fn read_whole(body: &[u8], is_called: bool, sink: &mut dyn Sink) -> Result<(), Failure> {
    let message: ReplyMessage<'_> = serde_json::from_slice(body).map_err(malformed)?;
    if let Some(error) = &message.error {
        return Err(classify_error(error));
    }
    let Some(reason) = message.stop_reason.filter(|_| &*message.kind == "message") else {
        return Err(Failure::malformed(
            "the provider's reply holds no whole answer",
        ));
    };
    let mut said = SaidBlocks::of_answer(is_called);
    for (index, block) in message.content.iter().enumerate() {
        let open = OpenBlock::begin(index as u64, block, &mut said, sink);
        open.map_err(malformed)?.finish(&mut said, sink);
    }
    explain(message.stop_details.as_ref(), sink);
    let results = message.safeguard_results.map(RawValue::get);
    let sequence = message.stop_sequence.map(RawValue::get);
    end(
        said.finish_of(parse_finish(&reason, sequence)),
        results,
        sink,
    );
    message.usage.tell(sink);
    Ok(())
}

/// Reads events.
#[derive(Debug, Default)]
pub(super) struct MessageEvents {
    said: SaidBlocks,
    id: Option<Box<str>>,
    open: BTreeMap<u64, OpenBlock>,
    usage: Report,
    /// The stop reason, and the stop sequence as JSON.
    stop: Option<(Box<str>, Option<Box<str>>)>,
    safeguard_results: Option<Box<str>>,
}

impl MessageEvents {
    fn start(&mut self, message: ReplyMessage<'_>) -> Result<(), Failure> {
        let id: &str = &message.id;
        match &self.id {
            // A relay repeats the start of the same message; another message means that it began anew.
            Some(known) if **known == *id => return Ok(()),
            Some(_) => {
                return Err(Failure::malformed(
                    "the provider began a second answer in one stream",
                ));
            }
            None => self.id = Some(id.into()),
        }
        self.usage.update(message.usage);
        Ok(())
    }

    fn end_of_message(&mut self, delta: &ReplyBlock<'_>, sink: &mut dyn Sink) {
        if let Some(reason) = &delta.stop_reason {
            let sequence = delta.stop_sequence.map(|sequence| sequence.get().into());
            self.stop = Some((reason.0.as_ref().into(), sequence));
            explain(delta.stop_details.as_ref(), sink);
        }
        if let Some(results) = delta.safeguard_results {
            self.safeguard_results = Some(results.get().into());
        }
    }
}

impl EventDecoder for MessageEvents {
    fn event(&mut self, event: Frame<'_>, sink: &mut dyn Sink) -> Result<Progress, Failure> {
        if event.data.trim_ascii().is_empty() {
            return Ok(Progress::Open);
        }
        let data: Data<'_> = serde_json::from_slice(event.data).map_err(malformed)?;
        match &*data.kind {
            "error" => return Err(classify_error(&data.error.unwrap_or_default())),
            // An error of a cloud.
            "" => {
                let untyped = || Failure::malformed("an event of the provider has no type");
                return Err(data.error.as_ref().map_or_else(untyped, classify_error));
            }
            "message_start" => {
                self.start(data.message.unwrap_or_default())?;
                // The prompt counts also where the stream does not come to its end.
                self.usage.tell(sink);
            }
            "content_block_start" => {
                let block = data.content_block.unwrap_or(RawValue::NULL);
                let open = OpenBlock::begin(data.index, block, &mut self.said, sink);
                let open = open.map_err(malformed)?;
                if let Some(mut unfinished) = self.open.insert(data.index, open) {
                    unfinished.finish(&mut self.said, sink);
                }
            }
            "content_block_delta" => {
                let delta = data.delta.unwrap_or_default();
                if let Some(open) = self.open.get_mut(&data.index) {
                    open.delta(&delta, &mut self.said, sink);
                }
            }
            "content_block_stop" => {
                if let Some(mut open) = self.open.remove(&data.index) {
                    open.finish(&mut self.said, sink);
                }
            }
            "message_delta" => {
                let mut delta = data.delta.unwrap_or_default();
                delta.safeguard_results = delta.safeguard_results.or(data.safeguard_results);
                self.usage.update(data.usage.unwrap_or_default());
                self.usage.tell(sink);
                self.end_of_message(&delta, sink);
            }
            "message_stop" => return self.ended_properly(sink),
            _ => {}
        }
        Ok(Progress::Open)
    }

    fn end(&mut self, _sink: &mut dyn Sink) -> Result<Progress, Failure> {
        Err(truncated())
    }
}

impl MessageEvents {
    fn ended_properly(&mut self, sink: &mut dyn Sink) -> Result<Progress, Failure> {
        let Some((reason, sequence)) = &self.stop else {
            return Err(Failure::malformed(
                "the provider's answer has no stop reason",
            ));
        };
        for mut open in std::mem::take(&mut self.open).into_values() {
            open.finish(&mut self.said, sink);
        }
        let finish = self
            .said
            .finish_of(parse_finish(reason, sequence.as_deref()));
        end(finish, self.safeguard_results.as_deref(), sink);
        self.usage.tell(sink);
        Ok(Progress::Complete)
    }
}

/// Ends the answer, with what the safeguards found in it.
fn end(finish: Finish<'_>, safeguard_results: Option<&str>, sink: &mut dyn Sink) {
    let finish = Piece::Finish(finish);
    match safeguard_results.filter(|results| *results != "null") {
        Some(results) => sink.pieces(0, &[Piece::Safeguards(results), finish]),
        None => sink.pieces(0, &[finish]),
    }
}

fn explain(details: Option<&StopDetails<'_>>, sink: &mut dyn Sink) {
    if let Some(text) = details.and_then(|details| details.explanation.as_deref()) {
        sink.pieces(0, &[Piece::Refusal(Str::Plain(text))]);
    }
}

/// The finish of a stop reason; `sequence` is JSON. Source: docs/facts/wire-formats.md 3.4, docs/facts/model-gateway.md 9.5.
fn parse_finish<'a>(reason: &str, sequence: Option<&'a str>) -> Finish<'a> {
    match reason {
        "max_tokens" => Finish::Length,
        "model_context_window_exceeded" => Finish::ContextFull,
        "pause_turn" => Finish::Paused,
        "tool_use" => Finish::ToolCalls,
        "refusal" => Finish::Filtered,
        "stop_sequence" => {
            let quoted = sequence.unwrap_or_default().strip_prefix('"');
            let said = quoted.and_then(|text| text.strip_suffix('"'));
            Finish::Sequence(Str::Raw(said.unwrap_or_default()))
        }
        _ => Finish::Stop,
    }
}

fn malformed(error: serde_json::Error) -> Failure {
    Failure::malformed(format!(
        "the provider's reply cannot be read: line {}",
        error.line()
    ))
}
