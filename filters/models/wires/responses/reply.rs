//! Whole replies, and the events of a stream. Source: docs/facts/wire-formats.md 2.3, 2.4.

use bytes::Bytes;

use super::item::{Item, Response, members, some};
use super::output::{Output, PartKind, PartPlace};
use super::splice;
use super::usage::{Report, count_searches};
use crate::json::{Error, Str, Walker};
use crate::models::chat::piece::{Finish, Piece};
use crate::models::reply::Sink;
use crate::models::request::ModelRequest;
use crate::models::wires::decoder::{Decoder, Progress, ReplyHead};
use crate::models::wires::decoder::{EventDecoder, EventStream, Frame, WholeReply, truncated};
use crate::models::wires::drawn;
use crate::models::wires::error_body::classify_error;
use crate::models::wires::failure::Failure;
use crate::models::wires::relay;
use crate::models::wires::scan::{malformed, text};
use crate::models::wires::wire::Target;
use crate::money::ServiceTier;

/// Returns the decoder of a chat's reply.
pub(super) fn decoder(
    request: &ModelRequest,
    target: &Target<'_>,
    head: &ReplyHead,
) -> Box<dyn Decoder> {
    let is_own = splice::facts(request, target.is_vendor).is_some();
    let events = ResponseEvents {
        output: Output::new(is_own),
    };
    let whole =
        move |body: &Bytes, sink: &mut dyn Sink| read_whole(body, Output::new(is_own), sink);
    let passes = is_own && head.events.is_some() == request.is_stream;
    match head.events {
        Some(framing) if passes => relay::events(events, framing),
        Some(framing) => Box::new(EventStream::new(events, framing)),
        None if passes => relay::whole(whole),
        None => Box::new(WholeReply::new(whole)),
    }
}

fn read_whole(body: &Bytes, mut output: Output, sink: &mut dyn Sink) -> Result<(), Failure> {
    sink.source(body);
    let mut walk = Walker::new(body).map_err(malformed)?;
    let response = Response::read(&mut walk).map_err(malformed)?;
    walk.end().map_err(malformed)?;
    let status = response.status.map(Str::unescaped).unwrap_or_default();
    end(&status, &response, &mut output, sink)
}

/// Ends an answer with the response that holds its status and usage.
fn end(
    status: &str,
    response: &Response<'_>,
    output: &mut Output,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    if let Some(error) = response.error {
        return Err(classify_error(error));
    }
    let finish = match status {
        "completed" => Finish::Stop,
        "incomplete" => incomplete(response.reason),
        "failed" | "cancelled" => {
            return Err(Failure::refused(502, "the provider gave up its answer"));
        }
        _ => return Err(no_answer()),
    };
    sink.identity(None, response.created);
    if output.is_empty() {
        read_items(response.output, output, sink).map_err(malformed)?;
    }
    // An answer without items is not an answer, unless its limit was reached before the first.
    if output.is_empty() && finish == Finish::Stop {
        return Err(no_answer());
    }
    if let Some(tier) = response.service_tier {
        sink.member("service_tier", tier);
        if let Some(tier) = ServiceTier::from_reply(tier.trim_matches('"')) {
            sink.service_tier(tier);
        }
    }
    let report = response.usage.map(serde_json::from_str::<Report>);
    let report = report
        .transpose()
        .map_err(|_| Failure::malformed("the provider's report of usage cannot be read"))?;
    sink.pieces(0, &[Piece::Finish(finish)]);
    // Where the provider counts the searches itself, that is what it bills.
    if let Some(count) = response.tool_usage.and_then(count_searches) {
        sink.searches(count);
    }
    if let Some(report) = report {
        // The tokens that the drawing tool made are not among those of the model.
        sink.usage(report.usage().with_drawn_apart(output.images()));
    }
    Ok(())
}

fn no_answer() -> Failure {
    Failure::malformed("the provider's reply holds no whole answer")
}

/// Every reason but a filter is a limit: of tokens, of messages, or of the caller.
fn incomplete(reason: Option<Str<'_>>) -> Finish<'static> {
    match reason.map(Str::unescaped).as_deref() {
        Some("content_filter") => Finish::Filtered,
        _ => Finish::Length,
    }
}

fn read_items(list: Option<&str>, output: &mut Output, sink: &mut dyn Sink) -> Result<(), Error> {
    let Some(list) = list else { return Ok(()) };
    Walker::over(list).array(|walk, number| {
        let json = walk.skip()?;
        output.done(number as u64, &Item::read(json)?, sink)
    })
}

/// Reads events.
#[derive(Debug, Default)]
pub(super) struct ResponseEvents {
    output: Output,
}

/// An event; which members are set depends on its type.
#[derive(Debug, Default)]
struct Event<'a> {
    kind: Option<Str<'a>>,
    /// The item's number.
    item_number: u64,
    part: u64,
    delta: Option<Str<'a>>,
    arguments: Option<Str<'a>>,
    /// An unfinished image as base64, and its number.
    image: Option<Str<'a>>,
    image_number: u64,
    item: Option<&'a str>,
    response: Option<&'a str>,
    error: Option<&'a str>,
}

impl<'a> Event<'a> {
    fn read(data: &'a [u8]) -> Result<Self, Error> {
        let mut walk = Walker::new(data)?;
        let mut read = Self::default();
        let number = |walk: &mut Walker<'a>| walk.skip().map(|text| text.parse().unwrap_or(0));
        members(&mut walk, |walk, key| {
            match key {
                "type" => read.kind = text(walk)?,
                "output_index" => read.item_number = number(walk)?,
                "content_index" | "summary_index" => read.part = number(walk)?,
                "delta" => read.delta = text(walk)?,
                "arguments" => read.arguments = text(walk)?,
                "partial_image_b64" => read.image = text(walk)?,
                "partial_image_index" => read.image_number = number(walk)?,
                "item" => read.item = some(walk)?,
                "response" => read.response = some(walk)?,
                "error" => read.error = some(walk)?,
                _ => _ = walk.skip()?,
            }
            Ok(())
        })?;
        walk.end()?;
        Ok(read)
    }

    fn show_image(&self, sink: &mut dyn Sink) {
        if let Some(image) = self.image {
            sink.partial(&drawn::partial(image, self.image_number));
        }
    }

    fn item(&self) -> Result<Item<'a>, Error> {
        Item::read(self.item.unwrap_or("null"))
    }

    fn response(&self) -> Result<Response<'a>, Error> {
        Response::read(&mut Walker::over(self.response.unwrap_or("null")))
    }
}

impl EventDecoder for ResponseEvents {
    fn event(&mut self, event: Frame<'_>, sink: &mut dyn Sink) -> Result<Progress, Failure> {
        let data = event.data.trim_ascii();
        if data.is_empty() {
            return Ok(Progress::Open);
        }
        // Some hosts end with the mark of the other API; it does not replace the terminal event.
        if data.starts_with(b"[DONE]") {
            return Err(truncated());
        }
        let read = Event::read(data).map_err(malformed)?;
        let kind = read.kind.map(Str::unescaped);
        let kind = kind.as_deref().unwrap_or(event.name);
        let output = &mut self.output;
        match kind {
            "response.created" | "response.in_progress" => {
                let response = read.response().map_err(malformed)?;
                sink.identity(None, response.created);
            }
            "response.output_item.added" => {
                let item = read.item().map_err(malformed)?;
                output.begin(read.item_number, &item, sink);
            }
            "response.output_item.done" => {
                let item = read.item().map_err(malformed)?;
                let done = output.done(read.item_number, &item, sink);
                done.map_err(malformed)?;
            }
            "response.function_call_arguments.delta" => {
                output.arguments(read.item_number, read.delta, sink);
            }
            "response.function_call_arguments.done" => {
                output.whole_arguments(read.item_number, read.arguments, sink);
            }
            "response.image_generation_call.partial_image" => read.show_image(sink),
            "response.completed" | "response.incomplete" | "response.failed" => {
                let response = read.response().map_err(malformed)?;
                let status = kind.trim_start_matches("response.");
                end(status, &response, output, sink)?;
                return Ok(Progress::Complete);
            }
            "error" => {
                let whole = std::str::from_utf8(data).unwrap_or_default();
                return Err(classify_error(read.error.unwrap_or(whole)));
            }
            kind => {
                if let Some((kind, text)) = part_of(kind).zip(read.delta) {
                    let place = PartPlace {
                        item: read.item_number,
                        kind,
                        part: read.part,
                    };
                    output.piece(place, text, sink);
                }
            }
        }
        Ok(Progress::Open)
    }

    fn end(&mut self, _sink: &mut dyn Sink) -> Result<Progress, Failure> {
        Err(truncated())
    }
}

/// Returns which text an event is a piece of; `None`: none, or an event that says nothing to a client.
fn part_of(kind: &str) -> Option<PartKind> {
    match kind {
        "response.output_text.delta" => Some(PartKind::Text),
        "response.refusal.delta" => Some(PartKind::Refusal),
        "response.reasoning_summary_text.delta" => Some(PartKind::Summary),
        "response.reasoning_text.delta" => Some(PartKind::Reasoning),
        _ => None,
    }
}
