//! Transcriptions and translations: a form goes out, an object comes back.
//!
//! Providers are asked for objects alone, because only these tell how long the audio was; the front makes texts and
//! subtitles of them.

use serde::Deserialize;

use super::transcription_events::TranscriptEvents;
use crate::fault::Fault;
use crate::json::{Type, Walker};
use crate::models::reply::Sink;
use crate::models::request::ModelRequest;
use crate::models::transcriptions::format::TranscriptFormat;
use crate::models::transcriptions::{AudioTime, TranscriptionFacts};
use crate::models::usage::Usage;
use crate::models::wires::codec::{BodySlice, OperationCodec};
use crate::models::wires::decoder::{Decoder, EventStream, ReplyHead, WholeReply};
use crate::models::wires::error_body::classify_error;
use crate::models::wires::failure::Failure;
use crate::models::wires::form::{self, FormBody};
use crate::models::wires::scan::malformed;
use crate::models::wires::wire::Target;
use crate::money::{Unit, UnitCounts};

/// Fields of the convention; a strict provider gets no others.
const KNOWN: [&str; 13] = [
    "model",
    "file",
    "language",
    "languages",
    "prompt",
    "keywords",
    "response_format",
    "temperature",
    "timestamp_granularities",
    "include",
    "chunking_strategy",
    "known_speaker_names",
    "known_speaker_references",
];

pub(super) static TRANSCRIPTIONS: OperationCodec<TranscriptionFacts> =
    codec("audio/transcriptions");
pub(super) static TRANSLATIONS: OperationCodec<TranscriptionFacts> = codec("audio/translations");

const fn codec(endpoint: &'static str) -> OperationCodec<TranscriptionFacts> {
    OperationCodec {
        headers: |_, facts, _| form::content_type(&facts.boundary).into_iter().collect(),
        max_output: |_, _, _| None,
        ..OperationCodec::new(endpoint, encode, decoder)
    }
}

/// Writes the form of a request: its fields as they came, behind the provider's own name of the model.
fn encode(
    request: &ModelRequest,
    facts: &TranscriptionFacts,
    target: &Target<'_>,
) -> Result<Vec<BodySlice>, Fault> {
    let mut form = FormBody::new(&facts.boundary);
    form.field("model", target.model.as_bytes());
    let format = facts.format.upstream();
    if format != TranscriptFormat::Json {
        form.field("response_format", format.as_str().as_bytes());
    }
    if request.is_stream {
        form.field("stream", b"true");
    }
    for (name, content) in &facts.fields {
        // Some servers read `x`, `x[]` and `x[y]` as one field.
        let base = name.split('[').next().unwrap_or_default();
        if target.quirks.passes(base, &KNOWN) {
            form.field(name, content);
        }
    }
    Ok(form.end_with("file", &facts.audio))
}

/// Returns the decoder of a reply: events, or an object.
fn decoder(
    request: &ModelRequest,
    _: &TranscriptionFacts,
    _: &Target<'_>,
    head: &ReplyHead,
) -> Box<dyn Decoder> {
    let estimate = Estimate::new(request);
    if let Some(framing) = head.events {
        return Box::new(EventStream::new(TranscriptEvents::new(estimate), framing));
    }
    Box::new(WholeReply::new(move |body, sink| {
        read(body, estimate, sink)
    }))
}

/// Estimates what a provider does not report.
#[derive(Clone, Copy, Debug)]
pub(super) struct Estimate {
    /// How long the audio is.
    ms: u64,
    /// Bytes of the prompt, where audio counts as so many as its tokens stand for.
    prompt_bytes: u64,
}

impl Estimate {
    fn new(request: &ModelRequest) -> Self {
        Self {
            ms: request.units.get(Unit::InputTime),
            prompt_bytes: request.text_bytes,
        }
    }

    /// Returns the usage of a text of so many bytes; `ms`: how long the provider says that the audio is.
    pub(super) fn usage(self, ms: Option<u64>, text_bytes: usize) -> Usage {
        let told = Usage::estimate(self.prompt_bytes, text_bytes as u64, 0);
        Usage {
            audio_prompt: AudioTime::tokens(self.ms).min(told.prompt),
            units: UnitCounts::ZERO.with(Unit::InputTime, ms.unwrap_or(self.ms)),
            ..told
        }
    }
}

/// A report of usage: in tokens, in seconds, or in both.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ReportedUsage {
    seconds: Option<f64>,
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    input_token_details: Option<InputDetails>,
    /// The names of the same at one provider.
    prompt_audio_seconds: Option<f64>,
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct InputDetails {
    audio_tokens: Option<u64>,
}

/// Reads a report of usage; `None`: it tells nothing.
pub(super) fn read_usage(json: &str) -> Option<Usage> {
    let reported: ReportedUsage = serde_json::from_str(json).ok()?;
    let seconds = reported.seconds.or(reported.prompt_audio_seconds);
    let prompt = reported.input_tokens.or(reported.prompt_tokens);
    let completion = reported.output_tokens.or(reported.completion_tokens);
    if seconds.is_none() && prompt.is_none() && completion.is_none() {
        return None;
    }
    let details = reported.input_token_details.unwrap_or_default();
    let prompt = prompt.unwrap_or(0);
    let ms = seconds.map_or(0, to_ms);
    Some(Usage {
        prompt,
        audio_prompt: details.audio_tokens.unwrap_or(0).min(prompt),
        completion: completion.unwrap_or(0),
        units: UnitCounts::ZERO.with(Unit::InputTime, ms),
        ..Usage::default()
    })
}

/// Returns seconds as milliseconds. The conversion saturates.
fn to_ms(seconds: f64) -> u64 {
    (seconds * 1000.0).round() as u64
}

/// Reads a whole reply.
fn read(body: &[u8], estimate: Estimate, sink: &mut dyn Sink) -> Result<(), Failure> {
    let mut walk = Walker::new(body).map_err(malformed)?;
    let (mut failure, mut usage, mut duration, mut text_bytes) = (None, None, None, None);
    walk.object(|walk, key| {
        let kind = walk.peek()?;
        let value = walk.skip()?;
        match (&*key, kind) {
            ("error", kind) if kind != Type::Null => failure = Some(classify_error(value)),
            ("usage", _) => usage = read_usage(value),
            // The name is the upstream's.
            ("model" | "error", _) => {}
            (name, kind) => {
                if name == "text" && kind == Type::String {
                    text_bytes = Some(value.len().saturating_sub(2));
                }
                if name == "duration" && kind == Type::Number {
                    duration = value.parse().ok().map(to_ms);
                }
                sink.member(name, value);
            }
        }
        Ok::<(), crate::json::Error>(())
    })
    .and_then(|()| walk.end())
    .map_err(malformed)?;
    if let Some(failure) = failure {
        return Err(failure);
    }
    let text_bytes =
        text_bytes.ok_or_else(|| Failure::malformed("the provider's reply has no text"))?;
    sink.usage(usage.unwrap_or_else(|| estimate.usage(duration, text_bytes)));
    Ok(())
}
