//! Whole replies and events, read from the same blocks. Source: docs/facts/wire-formats.md 5.2.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::names::ToolNames;
use super::open_block::{OpenBlock, ReplyBlock, Said};
use super::usage::Report;
use crate::json::Str;
use crate::models::chat::piece::{Finish, Piece};
use crate::models::chat::text::Text;
use crate::models::reply::Sink;
use crate::models::request::ModelRequest;
use crate::models::wires::decoder::{Decoder, Progress, ReplyHead};
use crate::models::wires::decoder::{EventDecoder, EventStream, Frame, WholeReply, truncated};
use crate::models::wires::exception;
use crate::models::wires::failure::Failure;
use crate::models::wires::tier_word::TierWord;

/// The body of a reply.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Reply<'a> {
    #[serde(borrow)]
    output: Option<Output<'a>>,
    #[serde(borrow)]
    stop_reason: Option<Text<'a>>,
    #[serde(borrow)]
    additional_model_response_fields: ModelFields<'a>,
    #[serde(borrow)]
    usage: Option<Report<'a>>,
    service_tier: Option<Tier>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Output<'a> {
    #[serde(borrow)]
    message: ReplyMessage<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ReplyMessage<'a> {
    #[serde(borrow)]
    content: Vec<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
struct Tier {
    #[serde(rename = "type")]
    word: TierWord,
}

/// What the model says in its maker's words.
#[derive(Debug, Default)]
struct ModelFields<'a> {
    stop_sequence: Option<Text<'a>>,
}

impl<'de: 'a, 'a> Deserialize<'de> for ModelFields<'a> {
    /// Reads both places of the stop sequence; values of other shapes say nothing.
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Fields<'a> {
            #[serde(borrow)]
            stop_sequence: Option<Text<'a>>,
            #[serde(borrow)]
            delta: Option<Delta<'a>>,
        }
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Delta<'a> {
            #[serde(borrow)]
            stop_sequence: Option<Text<'a>>,
        }
        let raw: &RawValue = Deserialize::deserialize(from)?;
        let fields: Fields<'a> = serde_json::from_str(raw.get()).unwrap_or_default();
        let delta = fields.delta.unwrap_or_default();
        Ok(Self {
            stop_sequence: fields.stop_sequence.or(delta.stop_sequence),
        })
    }
}

/// An event; which members are set depends on its type.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Event<'a> {
    content_block_index: u64,
    #[serde(borrow)]
    start: Option<ReplyBlock<'a>>,
    #[serde(borrow)]
    delta: Option<ReplyBlock<'a>>,
    #[serde(borrow)]
    stop_reason: Option<Text<'a>>,
    #[serde(borrow)]
    additional_model_response_fields: ModelFields<'a>,
    #[serde(borrow)]
    usage: Option<Report<'a>>,
    service_tier: Option<Tier>,
}

/// Returns the decoder of a chat's reply.
pub(super) fn decoder(request: &ModelRequest, head: &ReplyHead) -> Box<dyn Decoder> {
    let chat = request.front.conversation(request).ok();
    let names = chat.map(|chat| ToolNames::read(&chat).reversed());
    let names = names.unwrap_or_default();
    match head.events {
        Some(framing) => Box::new(EventStream::new(ConverseEvents::new(names), framing)),
        None => Box::new(WholeReply::new(move |body: &Bytes, sink: &mut dyn Sink| {
            read_whole(body, names.clone(), sink)
        })),
    }
}

fn read_whole(
    body: &[u8],
    names: HashMap<String, String>,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let read = serde_json::from_slice::<Reply<'_>>(body);
    let is_answer = read.as_ref().is_ok_and(|reply| reply.stop_reason.is_some());
    if !is_answer && let Some(failure) = exception::in_success(body) {
        return Err(failure);
    }
    let reply = read.map_err(malformed)?;
    let (Some(output), Some(reason)) = (reply.output, reply.stop_reason) else {
        return Err(Failure::malformed(
            "the provider's reply holds no whole answer",
        ));
    };
    let mut said = Said::new(names);
    for (index, block) in output.message.content.iter().enumerate() {
        let block: ReplyBlock<'_> = serde_json::from_str(block.get()).map_err(malformed)?;
        let mut open = OpenBlock::new(index as u64, &said);
        open.take(&block, &mut said, sink);
        open.finish(&said, sink);
    }
    let sequence = reply.additional_model_response_fields.stop_sequence;
    let finish = parse_finish(&reason, sequence.as_deref())?;
    sink.pieces(0, &[Piece::Finish(finish)]);
    tell(reply.usage.as_ref(), reply.service_tier.as_ref(), sink);
    Ok(())
}

/// Hands on what a reply says of its cost.
fn tell(usage: Option<&Report<'_>>, tier: Option<&Tier>, sink: &mut dyn Sink) {
    if let Some(usage) = usage {
        usage.tell(sink);
    }
    if let Some(tier) = tier.and_then(|tier| tier.word.0) {
        sink.service_tier(tier);
    }
}

/// Reads events.
#[derive(Debug, Default)]
struct ConverseEvents {
    said: Said,
    open: BTreeMap<u64, OpenBlock>,
    /// The stop reason, and the stop sequence.
    stop: Option<(Box<str>, Option<Box<str>>)>,
    has_usage: bool,
}

impl ConverseEvents {
    fn new(names: HashMap<String, String>) -> Self {
        Self {
            said: Said::new(names),
            ..Self::default()
        }
    }

    /// Takes the start of a block, or a piece. Blocks of text and of reasoning often have no start.
    fn take(&mut self, index: u64, block: &ReplyBlock<'_>, sink: &mut dyn Sink) {
        let Self { open, said, .. } = self;
        let open = open
            .entry(index)
            .or_insert_with(|| OpenBlock::new(index, said));
        open.take(block, said, sink);
    }

    fn finish_block(&mut self, index: u64, sink: &mut dyn Sink) {
        if let Some(open) = self.open.remove(&index) {
            open.finish(&self.said, sink);
        }
    }

    /// Ends the answer, if its end has come. The report of usage comes before or behind it.
    fn ended_properly(&mut self, sink: &mut dyn Sink) -> Result<Progress, Failure> {
        let Some((reason, sequence)) = &self.stop else {
            return Ok(Progress::Open);
        };
        for open in std::mem::take(&mut self.open).into_values() {
            open.finish(&self.said, sink);
        }
        let finish = parse_finish(reason, sequence.as_deref())?;
        sink.pieces(0, &[Piece::Finish(finish)]);
        Ok(Progress::Complete)
    }
}

impl EventDecoder for ConverseEvents {
    fn event(&mut self, event: Frame<'_>, sink: &mut dyn Sink) -> Result<Progress, Failure> {
        let name = event.name;
        let data: Event<'_> = match name {
            "contentBlockStart" | "contentBlockDelta" | "contentBlockStop" | "messageStop"
            | "metadata" => serde_json::from_slice(event.data).map_err(malformed)?,
            _ => return Ok(Progress::Open),
        };
        let index = data.content_block_index;
        match name {
            "contentBlockStart" => self.take(index, &data.start.unwrap_or_default(), sink),
            "contentBlockDelta" => self.take(index, &data.delta.unwrap_or_default(), sink),
            "contentBlockStop" => self.finish_block(index, sink),
            "messageStop" => {
                let reason = data.stop_reason.as_deref().ok_or_else(|| {
                    Failure::malformed("the provider's answer has no stop reason")
                })?;
                let sequence = data.additional_model_response_fields.stop_sequence;
                let sequence = sequence.as_deref().map(Into::into);
                parse_finish(reason, None)?;
                self.stop = Some((reason.into(), sequence));
            }
            _ => {
                tell(data.usage.as_ref(), data.service_tier.as_ref(), sink);
                self.has_usage = true;
            }
        }
        match self.has_usage {
            true => self.ended_properly(sink),
            false => Ok(Progress::Open),
        }
    }

    /// The answer is whole where its reason has come, also if its usage never does.
    fn end(&mut self, sink: &mut dyn Sink) -> Result<Progress, Failure> {
        match self.ended_properly(sink)? {
            Progress::Open => Err(truncated()),
            Progress::Complete => Ok(Progress::Complete),
        }
    }
}

/// The finish of a stop reason. Errors: there is no valid answer, and nothing to wait for.
fn parse_finish<'a>(reason: &str, sequence: Option<&'a str>) -> Result<Finish<'a>, Failure> {
    Ok(match reason {
        "max_tokens" => Finish::Length,
        "model_context_window_exceeded" => Finish::ContextFull,
        "tool_use" => Finish::ToolCalls,
        "content_filtered" | "guardrail_intervened" | "refusal" => Finish::Filtered,
        "malformed_model_output" | "malformed_tool_use" => {
            return Err(Failure::refused(
                502,
                "the provider could not form a valid answer",
            ));
        }
        "stop_sequence" => match sequence {
            Some(sequence) => Finish::Sequence(Str::Plain(sequence)),
            None => Finish::Stop,
        },
        _ => Finish::Stop,
    })
}

fn malformed(error: serde_json::Error) -> Failure {
    Failure::malformed(format!(
        "the provider's reply cannot be read: line {}",
        error.line()
    ))
}
