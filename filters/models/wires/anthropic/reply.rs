//! Whole replies and events, read from the same blocks. Source: docs/facts/wire-formats.md 3.4, 3.5.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::failure::{ErrorBody, classify_error};
use super::open_block::{OpenBlock, ReplyBlock, StopDetails, Turn};
use super::usage::Report;
use crate::json::Str;
use crate::models::chat::delta::{Delta, Finish};
use crate::models::chat::tree::Text;
use crate::models::reply::Sink;
use crate::models::wires::decoder::{Decoder, Progress, ReplyHead};
use crate::models::wires::decoder::{EventDecoder, EventStream, WholeReply, truncated};
use crate::models::wires::failure::Failure;
use crate::models::wires::wire::Target;
use crate::sse::SseEvent;

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
    stop_details: Option<StopDetails<'a>>,
    #[serde(borrow)]
    safeguard_results: Option<&'a RawValue>,
    usage: Report,
    error: Option<ErrorBody>,
}

/// An event; which members are set depends on its type.
#[derive(Debug, Deserialize)]
struct Data<'a> {
    #[serde(borrow, rename = "type")]
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
pub(super) fn decoder(target: &Target<'_>, head: &ReplyHead) -> Box<dyn Decoder> {
    let origin = target.origin();
    if head.is_event_stream {
        return Box::new(EventStream::new(MessageEvents::new(&origin)));
    }
    Box::new(WholeReply::new(move |body, sink| {
        read_whole(body, &origin, sink)
    }))
}

fn read_whole(body: &[u8], origin: &str, sink: &mut dyn Sink) -> Result<(), Failure> {
    let message: ReplyMessage<'_> = serde_json::from_slice(body).map_err(malformed)?;
    if let Some(error) = &message.error {
        return Err(classify_error(error));
    }
    let Some(reason) = message.stop_reason.filter(|_| &*message.kind == "message") else {
        return Err(Failure::malformed(
            "the provider's reply holds no whole answer",
        ));
    };
    let mut turn = Turn::new(origin);
    for (index, block) in message.content.iter().enumerate() {
        let open = OpenBlock::begin(index as u64, block, &mut turn, sink);
        open.map_err(malformed)?.finish(&turn, sink);
    }
    explain(message.stop_details.as_ref(), sink);
    let results = message.safeguard_results.map(RawValue::get);
    end(parse_finish(&reason), results, sink);
    message.usage.tell(sink);
    Ok(())
}

/// Reads events.
#[derive(Debug)]
struct MessageEvents {
    turn: Turn,
    id: Option<Box<str>>,
    open: BTreeMap<u64, OpenBlock>,
    usage: Report,
    reason: Option<Finish>,
    safeguard_results: Option<Box<str>>,
}

impl MessageEvents {
    fn new(origin: &str) -> Self {
        Self {
            turn: Turn::new(origin),
            id: None,
            open: BTreeMap::new(),
            usage: Report::default(),
            reason: None,
            safeguard_results: None,
        }
    }

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
            self.reason = Some(parse_finish(reason));
            explain(delta.stop_details.as_ref(), sink);
        }
        if let Some(results) = delta.safeguard_results {
            self.safeguard_results = Some(results.get().into());
        }
    }
}

impl EventDecoder for MessageEvents {
    fn event(&mut self, event: SseEvent<'_>, sink: &mut dyn Sink) -> Result<Progress, Failure> {
        if event.data.trim_ascii().is_empty() {
            return Ok(Progress::Open);
        }
        let data: Data<'_> = serde_json::from_slice(event.data).map_err(malformed)?;
        match &*data.kind {
            "error" => return Err(classify_error(&data.error.unwrap_or_default())),
            "message_start" => {
                self.start(data.message.unwrap_or_default())?;
                // The prompt counts also where the stream does not come to its end.
                self.usage.tell(sink);
            }
            "content_block_start" => {
                let block = data.content_block.unwrap_or(RawValue::NULL);
                let open = OpenBlock::begin(data.index, block, &mut self.turn, sink);
                let open = open.map_err(malformed)?;
                if let Some(mut unfinished) = self.open.insert(data.index, open) {
                    unfinished.finish(&self.turn, sink);
                }
            }
            "content_block_delta" => {
                let delta = data.delta.unwrap_or_default();
                if let Some(open) = self.open.get_mut(&data.index) {
                    open.delta(&delta, &mut self.turn, sink);
                }
            }
            "content_block_stop" => {
                if let Some(mut open) = self.open.remove(&data.index) {
                    open.finish(&self.turn, sink);
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
        let Some(finish) = self.reason else {
            return Err(Failure::malformed(
                "the provider's answer has no stop reason",
            ));
        };
        for mut open in std::mem::take(&mut self.open).into_values() {
            open.finish(&self.turn, sink);
        }
        end(finish, self.safeguard_results.as_deref(), sink);
        self.usage.tell(sink);
        Ok(Progress::Complete)
    }
}

/// Ends the answer, with what the safeguards found in it.
fn end(finish: Finish, safeguard_results: Option<&str>, sink: &mut dyn Sink) {
    let results = safeguard_results.filter(|results| *results != "null");
    let results = results.map(|results| ("vendor_safeguard_results", results));
    sink.delta(&Delta {
        extra: results.as_slice(),
        finish: Some(finish),
        ..Delta::default()
    });
}

fn explain(details: Option<&StopDetails<'_>>, sink: &mut dyn Sink) {
    if let Some(text) = details.and_then(|details| details.explanation.as_deref()) {
        sink.delta(&Delta {
            refusal: Some(Str::Plain(text)),
            ..Delta::default()
        });
    }
}

/// Source: docs/facts/wire-formats.md 3.4, docs/facts/model-gateway.md 9.5.
fn parse_finish(reason: &str) -> Finish {
    match reason {
        // A paused turn goes on where the client sends it back: the provider's own limit has cut it.
        "max_tokens" | "model_context_window_exceeded" | "pause_turn" => Finish::Length,
        "tool_use" => Finish::ToolCalls,
        "refusal" => Finish::ContentFilter,
        _ => Finish::Stop,
    }
}

fn malformed(error: serde_json::Error) -> Failure {
    Failure::malformed(format!(
        "the provider's reply cannot be read: line {}",
        error.line()
    ))
}
