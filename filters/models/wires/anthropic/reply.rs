//! Whole replies and events, read from the same blocks. Source: docs/facts/wire-formats.md 3.4, 3.5.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::FORMAT;
use super::failure::{ErrorBody, classify_error};
use super::usage::Report;
use crate::json::Str;
use crate::models::chat::delta::{Delta, Finish, ToolDelta};
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
    content: Vec<ReplyBlock<'a>>,
    #[serde(borrow)]
    stop_reason: Option<Text<'a>>,
    #[serde(borrow)]
    stop_details: Option<StopDetails<'a>>,
    usage: Report,
    error: Option<ErrorBody>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct StopDetails<'a> {
    #[serde(borrow)]
    explanation: Option<Text<'a>>,
}

/// A content block, or a delta of one.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ReplyBlock<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    thinking: Option<Text<'a>>,
    #[serde(borrow)]
    signature: Option<Text<'a>>,
    #[serde(borrow)]
    data: Option<Text<'a>>,
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    partial_json: Option<Text<'a>>,
    #[serde(borrow)]
    stop_reason: Option<Text<'a>>,
    #[serde(borrow)]
    stop_details: Option<StopDetails<'a>>,
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
    content_block: Option<ReplyBlock<'a>>,
    #[serde(borrow, default)]
    delta: Option<ReplyBlock<'a>>,
    #[serde(default)]
    usage: Option<Report>,
    #[serde(default)]
    error: Option<ErrorBody>,
}

/// Returns the decoder of a chat's reply.
pub(super) fn decoder(target: &Target<'_>, head: &ReplyHead) -> Box<dyn Decoder> {
    let origin = target.origin();
    if head.is_event_stream {
        return Box::new(EventStream::new(MessageEvents::new(origin)));
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
    for (index, block) in message.content.iter().enumerate() {
        let mut open = Open::begin(index as u64, block, sink);
        open.finish(origin, sink);
    }
    end(&reason, message.stop_details.as_ref(), sink);
    message.usage.tell(sink);
    Ok(())
}

/// Reads events.
#[derive(Debug)]
struct MessageEvents {
    origin: Box<str>,
    id: Option<Box<str>>,
    open: Vec<Open>,
    usage: Report,
    reason: Option<Finish>,
}

impl MessageEvents {
    fn new(origin: Box<str>) -> Self {
        Self {
            origin,
            id: None,
            open: Vec::new(),
            usage: Report::default(),
            reason: None,
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

    fn block(&mut self, index: u64) -> Option<&mut Open> {
        self.open.iter_mut().find(|open| open.index == index)
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
                let block = data.content_block.unwrap_or_default();
                self.open.push(Open::begin(data.index, &block, sink));
            }
            "content_block_delta" => {
                let delta = data.delta.unwrap_or_default();
                if let Some(open) = self.block(data.index) {
                    open.delta(&delta, sink);
                }
            }
            "content_block_stop" => {
                if let Some(at) = self.open.iter().position(|open| open.index == data.index) {
                    self.open.remove(at).finish(&self.origin, sink);
                }
            }
            "message_delta" => {
                let delta = data.delta.unwrap_or_default();
                self.usage.update(data.usage.unwrap_or_default());
                self.usage.tell(sink);
                if let Some(reason) = &delta.stop_reason {
                    self.reason = Some(parse_finish(reason));
                    explain(delta.stop_details.as_ref(), sink);
                }
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
        for mut open in std::mem::take(&mut self.open) {
            open.finish(&self.origin, sink);
        }
        sink.delta(&Delta {
            finish: Some(finish),
            ..Delta::default()
        });
        self.usage.tell(sink);
        Ok(Progress::Complete)
    }
}

/// A content block that is being read.
#[derive(Debug)]
struct Open {
    index: u64,
    kind: BlockKind,
    thinking: String,
    signature: String,
    /// The input that came with the start, as JSON; only counts where no pieces follow.
    input: Option<String>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum BlockKind {
    Text,
    Thinking,
    Redacted,
    Tool,
    /// Run by the provider, or unknown: nothing for the client.
    Other,
}

impl Open {
    fn begin(index: u64, block: &ReplyBlock<'_>, sink: &mut dyn Sink) -> Self {
        let kind = match &*block.kind {
            "text" => BlockKind::Text,
            "thinking" => BlockKind::Thinking,
            "redacted_thinking" => BlockKind::Redacted,
            "tool_use" => BlockKind::Tool,
            _ => BlockKind::Other,
        };
        let mut open = Self {
            index,
            kind,
            thinking: String::new(),
            signature: String::new(),
            input: None,
        };
        if kind == BlockKind::Tool {
            let empty = |raw: &&RawValue| raw.get().trim() != "{}" && raw.get() != "null";
            open.input = block.input.filter(empty).map(|raw| raw.get().to_owned());
            let tool = ToolDelta {
                key: index,
                id: block.id.as_deref().map(Str::Plain),
                name: block.name.as_deref().map(Str::Plain),
                ..ToolDelta::default()
            };
            sink.delta(&Delta {
                tools: &[tool],
                ..Delta::default()
            });
        }
        open.delta(block, sink);
        open
    }

    fn delta(&mut self, delta: &ReplyBlock<'_>, sink: &mut dyn Sink) {
        match self.kind {
            BlockKind::Text => {
                let content = delta
                    .text
                    .as_deref()
                    .filter(|text| !text.is_empty())
                    .map(Str::Plain);
                if content.is_some() {
                    sink.delta(&Delta {
                        content,
                        ..Delta::default()
                    });
                }
            }
            BlockKind::Thinking => {
                self.signature
                    .push_str(delta.signature.as_deref().unwrap_or_default());
                let thinking = delta.thinking.as_deref().unwrap_or_default();
                if !thinking.is_empty() {
                    self.thinking.push_str(thinking);
                    sink.delta(&Delta {
                        reasoning: Some(Str::Plain(thinking)),
                        ..Delta::default()
                    });
                }
            }
            BlockKind::Redacted => self
                .signature
                .push_str(delta.data.as_deref().unwrap_or_default()),
            BlockKind::Tool => {
                let piece = delta.partial_json.as_deref().unwrap_or_default();
                if !piece.is_empty() {
                    self.input = None;
                    self.arguments(piece, sink);
                }
            }
            BlockKind::Other => {}
        }
    }

    fn finish(&mut self, origin: &str, sink: &mut dyn Sink) {
        let details = match self.kind {
            BlockKind::Tool => {
                if let Some(input) = self.input.take() {
                    self.arguments(&input, sink);
                }
                sink.tool_done(0, self.index);
                return;
            }
            BlockKind::Thinking if !self.signature.is_empty() => serde_json::json!({
                "type": "reasoning.text", "format": FORMAT, "model": origin, "index": self.index,
                "text": self.thinking, "signature": self.signature,
            }),
            BlockKind::Redacted => serde_json::json!({
                "type": "reasoning.encrypted", "format": FORMAT, "model": origin, "index": self.index,
                "data": self.signature,
            }),
            _ => return,
        };
        sink.delta(&Delta {
            reasoning_details: Some(&details.to_string()),
            ..Delta::default()
        });
    }

    fn arguments(&self, piece: &str, sink: &mut dyn Sink) {
        let arguments = Some(Str::Plain(piece));
        let tool = ToolDelta {
            key: self.index,
            arguments,
            ..ToolDelta::default()
        };
        sink.delta(&Delta {
            tools: &[tool],
            ..Delta::default()
        });
    }
}

fn end(reason: &str, details: Option<&StopDetails<'_>>, sink: &mut dyn Sink) {
    explain(details, sink);
    sink.delta(&Delta {
        finish: Some(parse_finish(reason)),
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
        "max_tokens" | "model_context_window_exceeded" => Finish::Length,
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
