//! Speech on the wire that has our shapes: the request passes as slices, and so do the bytes of the reply.
//!
//! A provider that is listed as streaming is asked for events, whatever the client wants: only they tell the tokens.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::request::new_member;
use crate::fault::Fault;
use crate::json::quoted;
use crate::models::chat::text::Text;
use crate::models::reply::Sink;
use crate::models::request::ModelRequest;
use crate::models::speech::SpeechFacts;
use crate::models::speech::format::AudioFormat;
use crate::models::usage::Usage;
use crate::models::wires::codec::{BodySlice, OperationCodec};
use crate::models::wires::decoder::{
    Decoder, EventDecoder, EventStream, FileKind, Frame, Progress, ReplyHead, WholeReply, truncated,
};
use crate::models::wires::error_body::classify_error;
use crate::models::wires::failure::Failure;
use crate::models::wires::media_reply::MediaReply;
use crate::models::wires::splice::Splice;
use crate::models::wires::wire::Target;

/// Members of the convention; a strict provider gets no others.
const KNOWN: [&str; 7] = [
    "model",
    "input",
    "voice",
    "instructions",
    "response_format",
    "speed",
    "stream_format",
];
/// The voice of a request that names none: the convention requires one. Our choice.
const VOICE: &[u8] = b"\"alloy\"";

pub(super) static CODEC: OperationCodec<SpeechFacts> = OperationCodec {
    fixed_headers: &[("accept", "*/*")],
    max_output: |_, facts, _| Some(facts.max_tokens()),
    ..OperationCodec::new("audio/speech", encode, |_, facts, _, head| {
        decoder(facts.format, head)
    })
};

fn encode(
    request: &ModelRequest,
    _: &SpeechFacts,
    target: &Target<'_>,
) -> Result<Vec<BodySlice>, Fault> {
    let quirks = target.quirks;
    let is_dropped = |key: &str| !quirks.passes(key, &KNOWN);
    let source = &request.source;
    let mut splice = Splice::new(&source.body);
    splice.new_bytes(b"{");
    new_member(&mut splice, "model", quoted(target.model).as_bytes());
    for member in &source.members {
        if matches!(&*member.key, "model" | "stream_format") || is_dropped(&member.key) {
            continue;
        }
        splice.new_bytes(b",");
        splice.slice(member.whole.clone());
    }
    if source.member("voice").is_none() {
        splice.new_bytes(b",");
        new_member(&mut splice, "voice", VOICE);
    }
    if target.streams {
        splice.new_bytes(b",");
        new_member(&mut splice, "stream_format", b"\"sse\"");
    }
    splice.new_bytes(b"}");
    Ok(splice.finish())
}

/// Returns the decoder of a reply: events, a file, or a JSON text that says what went wrong.
fn decoder(format: Option<AudioFormat>, head: &ReplyHead) -> Box<dyn Decoder> {
    if let Some(framing) = head.events {
        return Box::new(EventStream::new(SpeechEvents::default(), framing));
    }
    match head.file {
        Some(FileKind::Audio(known)) => Box::new(MediaReply::new(Some(known))),
        Some(FileKind::Other) => Box::new(MediaReply::new(format)),
        None => Box::new(WholeReply::new(|body, _| Err(no_audio(body)))),
    }
}

/// Returns the failure of a 200 that is a text.
fn no_audio(body: &[u8]) -> Failure {
    let text = std::str::from_utf8(body).unwrap_or_default();
    match serde_json::from_str::<&RawValue>(text) {
        Ok(_) if text.contains("\"error\"") => classify_error(text),
        _ => Failure::malformed("the provider's reply holds no audio"),
    }
}

/// Reads events.
#[derive(Debug, Default)]
struct SpeechEvents {
    has_audio: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SpeechEvent<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Text<'a>>,
    #[serde(borrow)]
    audio: Option<Text<'a>>,
    /// The name of the same at one provider.
    #[serde(borrow)]
    audio_data: Option<Text<'a>>,
    usage: Option<SpeechUsage>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
struct SpeechUsage {
    input_tokens: u64,
    output_tokens: u64,
}

impl EventDecoder for SpeechEvents {
    fn event(&mut self, event: Frame<'_>, sink: &mut dyn Sink) -> Result<Progress, Failure> {
        let data = event.data.trim_ascii();
        if data.is_empty() || data == b"[DONE]" {
            return Ok(Progress::Open);
        }
        let unreadable = || Failure::malformed("an event of the provider cannot be read");
        let event: SpeechEvent<'_> = serde_json::from_slice(data).map_err(|_| unreadable())?;
        if let Some(error) = event.error.filter(|error| error.get() != "null") {
            return Err(classify_error(error.get()));
        }
        if let Some(audio) = event.audio.or(event.audio_data) {
            let bytes = STANDARD
                .decode(audio.as_bytes())
                .map_err(|_| unreadable())?;
            if !bytes.is_empty() {
                self.has_audio = true;
                sink.media(&bytes.into());
            }
        }
        if let Some(usage) = event.usage {
            sink.usage(Usage {
                prompt: usage.input_tokens,
                completion: usage.output_tokens,
                ..Usage::default()
            });
        }
        let is_done = event.kind.as_deref() == Some("speech.audio.done");
        match (is_done, self.has_audio) {
            (true, true) => Ok(Progress::Complete),
            (true, false) => Err(Failure::malformed("the provider's reply holds no audio")),
            (false, _) => Ok(Progress::Open),
        }
    }

    fn end(&mut self, _: &mut dyn Sink) -> Result<Progress, Failure> {
        Err(truncated())
    }
}
