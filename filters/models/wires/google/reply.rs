//! Replies and events: the same shape, whole or in pieces. Source: docs/facts/wire-formats.md 4.4, 4.5.

use bytes::Bytes;
use serde_json::value::RawValue;

use super::candidate::{FunctionCall, Reply, ReplyCandidate, ReplyPart};
use super::failure::{classify_error, find_error};
use super::grounding::Grounds;
use super::usage::UsageReport;
use crate::json::{Object, Str};
use crate::models::chat::piece::{Finish, Image, Piece, StateOf, StatePiece};
use crate::models::dialects::Dialect;
use crate::models::numbering::Numbering;
use crate::models::reply::Sink;
use crate::models::request::{ModelRequest, Payload};
use crate::models::wires::decoder::{Decoder, Progress, ReplyHead};
use crate::models::wires::decoder::{EventDecoder, EventStream, Frame, WholeReply, truncated};
use crate::models::wires::failure::{Failure, FailureKind};
use crate::models::wires::relay;
use crate::models::wires::wire::Target;

/// Returns the decoder of a chat's reply.
pub(super) fn decoder(
    request: &ModelRequest,
    _: &Target<'_>,
    head: &ReplyHead,
) -> Box<dyn Decoder> {
    let row = request.front.row();
    let is_own =
        row.dialect == Some(Dialect::Contents) && matches!(request.payload, Payload::Chat(_));
    let passes = is_own && head.events.is_some() == request.is_stream;
    let searches = !passes && request.needs.web_search.is_some();
    let events = ContentEvents::new(searches);
    let whole = move |body: &Bytes, sink: &mut dyn Sink| {
        read_whole(body, ContentEvents::new(searches), sink)
    };
    match head.events {
        Some(framing) if passes => relay::events(events, framing),
        Some(framing) => Box::new(EventStream::new(events, framing)),
        None if passes => relay::whole(whole),
        None => Box::new(WholeReply::new(whole)),
    }
}

fn read_whole(body: &[u8], mut events: ContentEvents, sink: &mut dyn Sink) -> Result<(), Failure> {
    events.read(body, sink)?;
    events
        .end(sink)
        .map(|_| ())
        .map_err(|failure| match failure.kind {
            FailureKind::Truncated => {
                Failure::malformed("the provider's reply holds no whole answer")
            }
            _ => failure,
        })
}

/// A candidate of which something has come.
#[derive(Debug, Default)]
struct SeenCandidate {
    has_ended: bool,
    grounds: Grounds,
}

/// Reads events.
#[derive(Debug, Default)]
pub(super) struct ContentEvents {
    usage: UsageReport,
    /// Whether the answer may rest on searches.
    may_search: bool,
    searches: u64,
    candidates: Vec<SeenCandidate>,
    numbers: Numbering<u32>,
    calls: u64,
    /// Parts of tools that the provider ran.
    native: u64,
    id: String,
}

impl EventDecoder for ContentEvents {
    fn event(&mut self, event: Frame<'_>, sink: &mut dyn Sink) -> Result<Progress, Failure> {
        let data = event.data.trim_ascii();
        if data.is_empty() || data.starts_with(b"[DONE]") {
            return Ok(Progress::Open);
        }
        self.read(data, sink)?;
        Ok(Progress::Open)
    }

    /// This wire has no terminal event: the answer is whole when every candidate has its reason.
    fn end(&mut self, sink: &mut dyn Sink) -> Result<Progress, Failure> {
        if self.candidates.is_empty() || self.candidates.iter().any(|seen| !seen.has_ended) {
            return Err(truncated());
        }
        self.usage.tell(sink);
        Ok(Progress::Complete)
    }
}

impl ContentEvents {
    fn new(may_search: bool) -> Self {
        Self {
            may_search,
            ..Self::default()
        }
    }

    fn read(&mut self, data: &[u8], sink: &mut dyn Sink) -> Result<(), Failure> {
        let Ok(reply) = serde_json::from_slice::<Reply<'_>>(data) else {
            return Err(unreadable(data));
        };
        let is_empty = reply.candidates.is_empty() && reply.usage_metadata.is_none();
        if is_empty && let Some(failure) = error_in(data) {
            return Err(failure);
        }
        if let Some(id) = &reply.response_id {
            self.id = id.chars().filter(char::is_ascii_alphanumeric).collect();
        }
        if let Some(report) = reply.usage_metadata {
            self.usage.update(report);
            self.usage.tell(sink);
        }
        let block = reply
            .prompt_feedback
            .and_then(|feedback| feedback.block_reason);
        if block.is_some() && reply.candidates.is_empty() {
            self.finish(0, Finish::Filtered, sink);
        }
        for candidate in &reply.candidates {
            self.candidate(candidate, sink)?;
        }
        Ok(())
    }

    fn candidate(
        &mut self,
        candidate: &ReplyCandidate<'_>,
        sink: &mut dyn Sink,
    ) -> Result<(), Failure> {
        let index = candidate.index;
        if let Some(raw) = candidate.grounding_metadata
            && let Some(seen) = self.seen(index)
        {
            let found = seen.grounds.report(raw);
            self.searches = self.searches.max(found);
            sink.searches(self.searches);
        }
        self.seen(index);
        for part in candidate.content.iter().flat_map(|content| &content.parts) {
            self.part(index, part, sink);
        }
        let Some(reason) = candidate.finish_reason.as_deref() else {
            return Ok(());
        };
        match parse_finish(reason) {
            Some(finish) => self.finish(index, finish, sink),
            None => {
                return Err(Failure::refused(
                    502,
                    "the provider could not form a valid call",
                ));
            }
        }
        Ok(())
    }

    /// The candidate of this index, from its first sight on.
    fn seen(&mut self, index: u32) -> Option<&mut SeenCandidate> {
        let (at, is_new) = self.numbers.see(index);
        if is_new {
            self.candidates.push(SeenCandidate::default());
        }
        self.candidates.get_mut(at)
    }

    fn finish(&mut self, index: u32, finish: Finish<'_>, sink: &mut dyn Sink) {
        if let Some(seen) = self.seen(index)
            && !std::mem::replace(&mut seen.has_ended, true)
        {
            seen.grounds.cite(index, sink);
        }
        sink.pieces(index, &[Piece::Finish(finish)]);
    }

    fn part(&mut self, index: u32, part: &ReplyPart<'_>, sink: &mut dyn Sink) {
        if part.tool_call.is_some() || part.tool_response.is_some() {
            return self.native(index, part, sink);
        }
        if self.may_search {
            let said = part.text.as_deref().filter(|_| !part.thought);
            let said = said.unwrap_or_default();
            if let Some(seen) = self.seen(index) {
                seen.grounds.part(said);
            }
        }
        if let Some(call) = &part.function_call {
            return self.call(index, call, part, sink);
        }
        if let Some(text) = part.text.as_deref().filter(|text| !text.is_empty()) {
            let text = Str::Plain(text);
            match part.thought {
                true => sink.pieces(index, &[Piece::Reasoning(text)]),
                false => sink.text(index, text),
            }
        }
        let image = part.image();
        if let Some(image) = image {
            sink.pieces(index, &[Piece::Image(image)]);
        }
        let of = image.map_or(StateOf::Text, |_| StateOf::Image);
        if let Some(state) = part.state(of) {
            sink.pieces(index, &[state]);
        }
    }

    /// What the provider's own tools did goes back as it is.
    fn native(&mut self, index: u32, part: &ReplyPart<'_>, sink: &mut dyn Sink) {
        let (kind, raw) = match (part.tool_call, part.tool_response) {
            (Some(call), _) => ("toolCall", call),
            (None, Some(response)) => ("toolResponse", response),
            (None, None) => return,
        };
        let mut block = Vec::new();
        let mut object = Object::open(&mut block);
        object.text("type", kind);
        object.raw(kind, raw.get());
        object.optional_text("thoughtSignature", part.thought_signature.as_deref());
        object.close();
        let block = Piece::Native {
            dialect: Dialect::Contents,
            number: self.native,
            json: &String::from_utf8(block).unwrap_or_default(),
        };
        self.native += 1;
        sink.pieces(index, &[block]);
    }

    /// A call comes whole. Its id is the provider's, else made of the reply's, so that it is unique across turns.
    fn call(
        &mut self,
        index: u32,
        call: &FunctionCall<'_>,
        part: &ReplyPart<'_>,
        sink: &mut dyn Sink,
    ) {
        let key = self.calls;
        self.calls += 1;
        let made = format!("call_{}_{key}", self.id);
        let id = call
            .id
            .as_deref()
            .filter(|id| !id.is_empty())
            .or((!self.id.is_empty()).then_some(&made));
        let begin = Piece::Call {
            key,
            id: id.map(Str::Plain),
            name: call.name.as_deref().map(Str::Plain),
        };
        let json = Str::Plain(call.args.map_or("{}", RawValue::get));
        let arguments = Piece::Arguments { key, json };
        let end = Piece::CallEnd { key };
        match part.state(StateOf::Call(key)) {
            Some(state) => sink.pieces(index, &[begin, arguments, state, end]),
            None => sink.pieces(index, &[begin, arguments, end]),
        }
    }
}

impl ReplyPart<'_> {
    /// The image that it is. Sketches of a thought are not shown.
    fn image(&self) -> Option<Image<'_>> {
        let drawn = self.inline_data.as_ref()?;
        let is_shown = !self.thought && drawn.mime_type.starts_with("image/");
        is_shown.then_some(Image::Data {
            media_type: &drawn.mime_type,
            data: Str::Plain(&drawn.data),
        })
    }

    /// Its signature, which is state.
    fn state<'a>(&'a self, of: StateOf<'a>) -> Option<Piece<'a>> {
        let signature = self.thought_signature.as_deref();
        let signature = signature.filter(|signature| !signature.is_empty())?;
        Some(Piece::State(StatePiece {
            of,
            dialect: Dialect::Contents,
            number: 0,
            data: Str::Plain(signature),
        }))
    }
}

/// Source: docs/facts/wire-formats.md 4.4. `None`: there is no valid call, and nothing to wait for.
fn parse_finish(reason: &str) -> Option<Finish<'static>> {
    match reason {
        "MAX_TOKENS" => Some(Finish::Length),
        "MALFORMED_FUNCTION_CALL"
        | "UNEXPECTED_TOOL_CALL"
        | "TOO_MANY_TOOL_CALLS"
        | "MALFORMED_RESPONSE"
        | "MISSING_THOUGHT_SIGNATURE" => None,
        "SAFETY"
        | "RECITATION"
        | "LANGUAGE"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "OTHER"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION"
        | "IMAGE_OTHER"
        | "NO_IMAGE"
        | "MODEL_ARMOR" => Some(Finish::Filtered),
        _ => Some(Finish::Stop),
    }
}

pub(super) fn error_in(data: &[u8]) -> Option<Failure> {
    find_error(data).map(|error| classify_error(&error))
}

/// Not the shape of a reply: an error in an array, or nothing that can be read.
pub(super) fn unreadable(data: &[u8]) -> Failure {
    error_in(data).unwrap_or_else(|| Failure::malformed("the provider's reply cannot be read"))
}
