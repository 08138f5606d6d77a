//! Whole replies and events, read from the same parts. Source: docs/facts/wire-formats.md 5.6.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::usage::Report;
use crate::json::Str;
use crate::models::chat::piece::{Citation, Finish, Piece};
use crate::models::chat::text::Text;
use crate::models::reply::Sink;
use crate::models::wires::decoder::{Decoder, Progress, ReplyHead};
use crate::models::wires::decoder::{EventDecoder, EventStream, Frame, WholeReply, truncated};
use crate::models::wires::error_body;
use crate::models::wires::failure::Failure;

/// The body of a reply.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Reply<'a> {
    /// An object; of an error a text.
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    finish_reason: Option<Text<'a>>,
    usage: Option<Report>,
}

/// What an answer says.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ReplyMessage<'a> {
    #[serde(borrow)]
    content: Option<Vec<ReplyPart<'a>>>,
    #[serde(borrow)]
    tool_plan: Option<Text<'a>>,
    #[serde(borrow)]
    tool_calls: Option<Vec<ReplyCall<'a>>>,
    #[serde(borrow)]
    citations: Option<Vec<Cited<'a>>>,
}

/// A part of an answer, or a piece of one.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ReplyPart<'a> {
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    thinking: Option<Text<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ReplyCall<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    function: Option<CalledFunction<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CalledFunction<'a> {
    #[serde(borrow)]
    name: Option<Text<'a>>,
    /// JSON text.
    #[serde(borrow)]
    arguments: Option<Text<'a>>,
}

/// A place of the answer that rests on sources.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Cited<'a> {
    start: u64,
    end: u64,
    /// The part that `start` and `end` count in.
    content_index: u64,
    #[serde(borrow, rename = "type")]
    kind: Option<Text<'a>>,
    #[serde(borrow)]
    sources: Vec<Source<'a>>,
}

/// A document of the request, or what a tool has said.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Source<'a> {
    #[serde(borrow)]
    document: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_output: Option<&'a RawValue>,
}

/// The members of a source that say a page.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Page<'a> {
    #[serde(borrow)]
    url: Option<Text<'a>>,
    #[serde(borrow)]
    title: Option<Text<'a>>,
}

/// An event; which members are set depends on its type.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Event<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Text<'a>>,
    index: u64,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    /// What an error says.
    #[serde(borrow)]
    message: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Delta<'a> {
    /// Its members are objects here, and empty lists at the start of an answer.
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    finish_reason: Option<Text<'a>>,
    usage: Option<Report>,
    #[serde(borrow)]
    error: Option<Text<'a>>,
}

/// A piece of a message.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct MessagePiece<'a> {
    #[serde(borrow)]
    content: Option<ReplyPart<'a>>,
    #[serde(borrow)]
    tool_plan: Option<Text<'a>>,
    #[serde(borrow)]
    tool_calls: Option<ReplyCall<'a>>,
    #[serde(borrow)]
    citations: Option<Cited<'a>>,
}

/// Returns the decoder of a chat's reply.
pub(super) fn decoder(head: &ReplyHead) -> Box<dyn Decoder> {
    match head.events {
        Some(framing) => Box::new(EventStream::new(ChatEvents::default(), framing)),
        None => Box::new(WholeReply::new(|body, sink| read_whole(body, sink))),
    }
}

fn read_whole(body: &[u8], sink: &mut dyn Sink) -> Result<(), Failure> {
    let reply: Reply<'_> = serde_json::from_slice(body).map_err(malformed)?;
    let (Some(message), Some(reason)) = (reply.message, reply.finish_reason) else {
        return Err(match reply.message {
            Some(message) if message.get().starts_with('"') => told(message),
            _ => Failure::malformed("the provider's reply holds no whole answer"),
        });
    };
    let message: ReplyMessage<'_> = serde_json::from_str(message.get()).map_err(malformed)?;
    let mut said = SaidParts::default();
    said.plan(message.tool_plan.as_ref(), sink);
    for (index, part) in message.content.iter().flatten().enumerate() {
        said.part(index as u64, part, sink);
    }
    for cited in message.citations.iter().flatten() {
        said.cite(cited, sink);
    }
    for (key, call) in message.tool_calls.iter().flatten().enumerate() {
        let key = key as u64;
        said_call(key, call, sink);
        sink.pieces(0, &[Piece::CallEnd { key }]);
    }
    let finish = parse_finish(&reason, None)?;
    sink.pieces(0, &[Piece::Finish(finish)]);
    if let Some(usage) = &reply.usage {
        usage.tell(sink);
    }
    Ok(())
}

/// The parts of an answer so far.
#[derive(Debug, Default)]
struct SaidParts {
    /// Characters of text.
    chars: u64,
    /// The parts, each with the characters of text before it.
    offsets: Vec<(u64, u64)>,
}

impl SaidParts {
    fn part(&mut self, index: u64, part: &ReplyPart<'_>, sink: &mut dyn Sink) {
        if self.offsets.last().is_none_or(|(last, _)| *last != index) {
            self.offsets.push((index, self.chars));
        }
        if let Some(text) = part.text.as_deref().filter(|text| !text.is_empty()) {
            self.chars += text.chars().count() as u64;
            sink.text(0, Str::Plain(text));
        }
        reason(part.thinking.as_ref(), sink);
    }

    fn plan(&self, plan: Option<&Text<'_>>, sink: &mut dyn Sink) {
        reason(plan, sink);
    }

    /// Hands out the pages that a place of the text rests on. Other sources have no address, and plans no place.
    fn cite(&self, cited: &Cited<'_>, sink: &mut dyn Sink) {
        let kind = cited.kind.as_deref();
        if kind.is_some_and(|kind| kind != "TEXT_CONTENT") {
            return;
        }
        let mut offsets = self.offsets.iter();
        let part = offsets.rfind(|(index, _)| *index == cited.content_index);
        let offset = part.map_or(0, |(_, offset)| *offset);
        let place = |at: u64| offset.saturating_add(at).min(self.chars);
        let (start, end) = (place(cited.start), place(cited.end));
        for source in &cited.sources {
            let raw = source.document.or(source.tool_output);
            let page = raw.map(|raw| serde_json::from_str::<Page<'_>>(raw.get()));
            let Some(Ok(page)) = page else { continue };
            let Some(url) = page.url.as_deref().filter(|url| !url.is_empty()) else {
                continue;
            };
            let page = Citation::Page {
                url: Str::Plain(url),
                title: page.title.as_deref().map(Str::Plain),
                start,
                end,
            };
            sink.pieces(0, &[Piece::Citation(page)]);
        }
    }
}

fn reason(text: Option<&Text<'_>>, sink: &mut dyn Sink) {
    if let Some(text) = text.filter(|text| !text.is_empty()) {
        sink.pieces(0, &[Piece::Reasoning(Str::Plain(text))]);
    }
}

/// A call, or a piece of one. One without arguments says `null` whole, and nothing in pieces.
fn said_call(key: u64, call: &ReplyCall<'_>, sink: &mut dyn Sink) {
    let function = call.function.as_ref();
    let name = function.and_then(|function| function.name.as_deref());
    if call.id.is_some() || name.is_some() {
        let begin = Piece::Call {
            key,
            id: call.id.as_deref().map(Str::Plain),
            name: name.map(Str::Plain),
        };
        sink.pieces(0, &[begin]);
    }
    let arguments = function.and_then(|function| function.arguments.as_deref());
    let is_said = |arguments: &&str| !arguments.is_empty() && *arguments != "null";
    if let Some(arguments) = arguments.filter(is_said) {
        let json = Str::Plain(arguments);
        sink.pieces(0, &[Piece::Arguments { key, json }]);
    }
}

/// Reads events.
#[derive(Debug, Default)]
struct ChatEvents {
    said: SaidParts,
}

impl EventDecoder for ChatEvents {
    fn event(&mut self, event: Frame<'_>, sink: &mut dyn Sink) -> Result<Progress, Failure> {
        if event.data.trim_ascii().is_empty() {
            return Ok(Progress::Open);
        }
        let data: Event<'_> = serde_json::from_slice(event.data).map_err(malformed)?;
        let kind = data.kind.as_deref().unwrap_or(event.name);
        let delta = data.delta.unwrap_or_default();
        match kind {
            "content-start" | "content-delta" | "tool-plan-delta" | "tool-call-start"
            | "tool-call-delta" | "citation-start" => {
                let message = delta.message.map(RawValue::get).unwrap_or("{}");
                let piece = serde_json::from_str(message).map_err(malformed)?;
                self.piece(data.index, &piece, sink);
            }
            "tool-call-end" => sink.pieces(0, &[Piece::CallEnd { key: data.index }]),
            "message-end" => return end(&delta, sink),
            _ => {
                // Only an error has a text there.
                if let Some(message) = data.message.filter(|it| it.get().starts_with('"')) {
                    return Err(told(message));
                }
            }
        }
        Ok(Progress::Open)
    }

    fn end(&mut self, _sink: &mut dyn Sink) -> Result<Progress, Failure> {
        Err(truncated())
    }
}

impl ChatEvents {
    fn piece(&mut self, index: u64, piece: &MessagePiece<'_>, sink: &mut dyn Sink) {
        self.said.plan(piece.tool_plan.as_ref(), sink);
        if let Some(part) = &piece.content {
            self.said.part(index, part, sink);
        }
        if let Some(call) = &piece.tool_calls {
            said_call(index, call, sink);
        }
        if let Some(cited) = &piece.citations {
            self.said.cite(cited, sink);
        }
    }
}

/// Ends an answer.
fn end(delta: &Delta<'_>, sink: &mut dyn Sink) -> Result<Progress, Failure> {
    let reason = delta.finish_reason.as_deref();
    let reason =
        reason.ok_or_else(|| Failure::malformed("the provider's answer has no finish reason"))?;
    let finish = parse_finish(reason, delta.error.as_deref())?;
    if let Some(usage) = &delta.usage {
        usage.tell(sink);
    }
    sink.pieces(0, &[Piece::Finish(finish)]);
    Ok(Progress::Complete)
}

/// The finish of a reason. Errors: the answer has failed.
fn parse_finish(reason: &str, error: Option<&str>) -> Result<Finish<'static>, Failure> {
    Ok(match reason {
        "MAX_TOKENS" => Finish::Length,
        "TOOL_CALL" => Finish::ToolCalls,
        "ERROR_TOXIC" => Finish::Filtered,
        "ERROR" => return Err(Failure::refused(500, error.unwrap_or_default())),
        "TIMEOUT" => return Err(Failure::refused(504, error.unwrap_or_default())),
        // The stop sequence that the model came to is not named.
        _ => Finish::Stop,
    })
}

/// The failure of a 200 that is an error; `message` is a JSON string.
fn told(message: &RawValue) -> Failure {
    error_body::classify_error(message.get())
}

fn malformed(error: serde_json::Error) -> Failure {
    Failure::malformed(format!(
        "the provider's reply cannot be read: line {}",
        error.line()
    ))
}
