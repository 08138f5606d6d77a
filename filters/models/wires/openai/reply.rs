//! A choice of a reply or of a chunk, read by scanning; and whole replies.

use bytes::Bytes;

use super::calls::Calls;
use super::delta::{Choice, Message};
use super::search::Sources;
use super::stream::ChunkEvents;
use super::template::Plain;
use super::usage;
use crate::json::{Error, Str, Type, Walker};
use crate::models::chat::piece::Finish;
use crate::models::reply::Sink;
use crate::models::request::ModelRequest;
use crate::models::usage::Usage;
use crate::models::wires::decoder::{Decoder, ReplyHead};
use crate::models::wires::decoder::{EventStream, WholeReply};
use crate::models::wires::error_body::classify_error;
use crate::models::wires::failure::Failure;
use crate::models::wires::quirks::ReasoningReplay;
use crate::models::wires::scan::{malformed, seconds, text};
use crate::models::wires::wire::Target;
use crate::money::ServiceTier;

/// Returns the decoder of a chat's reply.
pub(super) fn decoder(
    request: &ModelRequest,
    target: &Target<'_>,
    head: &ReplyHead,
) -> Box<dyn Decoder> {
    let quirks = target.quirks;
    let reading = Reading {
        adds_reasoning: quirks.reasoning_excluded_from_completion,
        said_in: match head.events.is_some() {
            true => SaidIn::Delta,
            false => SaidIn::Message,
        },
        takes_details: quirks.reasoning_replay == ReasoningReplay::ReasoningDetails,
        sources: Sources::new(request, target),
    };
    decoder_of(reading, head)
}

/// Returns the decoder of a reply that is read so.
pub(super) fn decoder_of(reading: Reading, head: &ReplyHead) -> Box<dyn Decoder> {
    if let Some(framing) = head.events {
        return Box::new(EventStream::new(ChunkEvents::new(reading), framing));
    }
    Box::new(WholeReply::new(move |body, sink| {
        read_whole(body, &reading, sink)
    }))
}

fn read_whole(body: &Bytes, reading: &Reading, sink: &mut dyn Sink) -> Result<(), Failure> {
    sink.source(body);
    let mut calls = Calls::default();
    let read = reading.object(body, &mut calls, sink)?;
    if read.choices == 0 || read.finishes < read.choices {
        return Err(Failure::malformed(
            "the provider's reply holds no whole answer",
        ));
    }
    Ok(())
}

/// How an object of this convention is read: as a whole reply or as a chunk.
#[derive(Clone, Debug, Default)]
pub(super) struct Reading {
    /// Reported completion tokens leave reasoning out.
    pub(super) adds_reasoning: bool,
    pub(super) said_in: SaidIn,
    /// It takes its `reasoning_details` back.
    pub(super) takes_details: bool,
    /// How the answer shows its searches.
    pub(super) sources: Sources,
}

/// Where a choice has what it says.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum SaidIn {
    /// In `delta`, a piece of a message.
    #[default]
    Delta,
    /// In `message`.
    Message,
    /// In `text`, beside which stand its other members.
    Text,
}

/// What an object held.
#[derive(Debug, Default)]
pub(super) struct ReadReply<'a> {
    pub(super) choices: u32,
    pub(super) finishes: u32,
    /// The text, where the event holds one text of one choice and no other news.
    pub(super) plain: Option<Plain<'a>>,
    pub(super) has_sources: bool,
    usage: Option<Usage>,
}

/// Members of a reply that are ours to write, padding, or say nothing to a client.
const NOT_PASSED: [&str; 9] = [
    "object",
    "model",
    "obfuscation",
    "prompt_filter_results",
    "cost",
    "provider",
    "num_sources_used",
    "metadata",
    "timings",
];

impl Reading {
    /// Reads a reply or a chunk into `sink`.
    pub(super) fn object<'a>(
        &self,
        data: &'a [u8],
        calls: &mut Calls,
        sink: &mut dyn Sink,
    ) -> Result<ReadReply<'a>, Failure> {
        let mut walk = Walker::new(data).map_err(malformed)?;
        // Identity stands in front in every known reply, but nothing says that it must.
        let mut read = ReadReply::default();
        let mut failure = None;
        self.hand_out_sources(data, &mut read, sink);
        let walked = walk.object(|walk, key| {
            match &*key {
                "id" => identity(walk, sink)?,
                "created" => created(walk, sink)?,
                "error" if walk.peek()? != Type::Null => {
                    failure = Some(classify_error(walk.skip()?))
                }
                "choices" if walk.peek()? == Type::Array => walk.array(|walk, position| {
                    self.choice(walk, position as u32, calls, sink, &mut read, &mut failure)
                })?,
                "usage" => read.usage = usage::read(walk, self.adds_reasoning)?.or(read.usage),
                "service_tier" => served_tier(walk.skip()?, sink),
                "x_groq" => self.usage_inside(walk, &mut read)?,
                key if NOT_PASSED.contains(&key) => _ = walk.skip()?,
                key => {
                    let value = walk.skip()?;
                    if value != "null" {
                        sink.member(key, value);
                    }
                }
            }
            Ok::<(), Error>(())
        });
        walked.and_then(|()| walk.end()).map_err(malformed)?;
        if let Some(failure) = failure {
            return Err(failure);
        }
        if let Some(usage) = read.usage {
            sink.usage(usage);
        }
        if read.choices != 1 || read.finishes > 0 || read.usage.is_some() {
            read.plain = None;
        }
        Ok(read)
    }

    /// The sources go out before the choices, because nothing follows a choice's end.
    fn hand_out_sources(&self, data: &[u8], read: &mut ReadReply<'_>, sink: &mut dyn Sink) {
        let found = self.sources.read(data);
        let searches = found.as_ref().map_or(0, |(_, searches)| *searches);
        let searches = self.sources.searches.max(searches);
        if searches > 0 {
            sink.searches(searches);
        }
        if let Some((sources, _)) = found {
            read.has_sources = true;
            sink.pieces(0, &sources);
        }
    }

    /// A `usage` one level down counts only where there is none at the top.
    fn usage_inside(&self, walk: &mut Walker<'_>, read: &mut ReadReply<'_>) -> Result<(), Error> {
        if walk.peek()? != Type::Object {
            return walk.skip().map(|_| ());
        }
        walk.object(|walk, key| {
            if key == "usage" {
                let found = usage::read(walk, self.adds_reasoning)?;
                read.usage = read.usage.or(found);
                Ok(())
            } else {
                walk.skip().map(|_| ())
            }
        })
    }

    fn choice<'a>(
        &self,
        walk: &mut Walker<'a>,
        position: u32,
        calls: &mut Calls,
        sink: &mut dyn Sink,
        read: &mut ReadReply<'a>,
        failure: &mut Option<Failure>,
    ) -> Result<(), Error> {
        let mut index = position;
        let mut message = Message::default();
        let mut logprobs = None;
        let mut finish = None;
        let wanted = match self.said_in {
            SaidIn::Delta => "delta",
            SaidIn::Message => "message",
            SaidIn::Text => "text",
        };
        walk.object(|walk, key| {
            match &*key {
                "index" => index = walk.skip()?.parse().unwrap_or(position),
                "finish_reason" => finish = text(walk)?,
                "logprobs" => logprobs = Some(walk.skip()?).filter(|value| *value != "null"),
                "usage" => read.usage = usage::read(walk, self.adds_reasoning)?.or(read.usage),
                "error" if walk.peek()? != Type::Null => {
                    *failure = Some(classify_error(walk.skip()?))
                }
                _ if self.said_in == SaidIn::Text => message.text_member(walk, key, wanted)?,
                key if key == wanted => message = Message::read(walk)?,
                _ => _ = walk.skip()?,
            }
            Ok::<(), Error>(())
        })?;
        let word = finish.map(Str::unescaped).filter(|word| !word.is_empty());
        let finish = word.as_deref().map(parse_finish);
        if finish == Some(None) {
            failure.get_or_insert_with(|| {
                Failure::refused(502, "the provider ended its answer with an error")
            });
        }
        let choice = Choice {
            index,
            logprobs,
            finish: finish.flatten(),
            takes_details: self.takes_details,
        };
        read.choices += 1;
        read.finishes += u32::from(choice.finish.is_some());
        read.plain = message.hand_out(choice, calls, sink)?;
        Ok(())
    }
}

/// The finish reason of a word; `None` where the word says that the answer failed.
///
/// Source: docs/facts/wire-formats.md 5.3, 5.4.
fn parse_finish(word: &str) -> Option<Finish<'static>> {
    match word {
        "length" | "max_tokens" => Some(Finish::Length),
        "model_length" => Some(Finish::ContextFull),
        "tool_calls" | "function_call" | "tool_use" => Some(Finish::ToolCalls),
        "content_filter" | "sensitive" => Some(Finish::Filtered),
        "error" | "abort" | "network_error" | "insufficient_system_resource" => None,
        _ => Some(Finish::Stop),
    }
}

/// Hands on the tier that served the request, as JSON: to the client as it is, and as what it costs.
fn served_tier(value: &str, sink: &mut dyn Sink) {
    if value == "null" {
        return;
    }
    sink.member("service_tier", value);
    if let Some(tier) = ServiceTier::from_reply(value.trim_matches('"')) {
        sink.service_tier(tier);
    }
}

fn identity(walk: &mut Walker<'_>, sink: &mut dyn Sink) -> Result<(), Error> {
    if let Some(id) = text(walk)? {
        sink.identity(Some(&id.unescaped()), None);
    }
    Ok(())
}

fn created(walk: &mut Walker<'_>, sink: &mut dyn Sink) -> Result<(), Error> {
    sink.identity(None, seconds(walk)?);
    Ok(())
}
