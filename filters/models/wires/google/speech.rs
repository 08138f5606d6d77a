//! Speech in the words of this wire: samples in events, which become a WAV file unless the client wants samples.
//!
//! Source: docs/facts/wire-formats.md 1.6.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::json;

use super::candidate::{InlineData, Reply};
use super::reply::{error_in, unreadable};
use super::usage::UsageReport;
use crate::fault::{Fault, FaultKind};
use crate::fault_code::FaultCode;
use crate::json::{Error, Type, Walker};
use crate::models::reply::Sink;
use crate::models::request::ModelRequest;
use crate::models::routing::wire_limits::WireLimits;
use crate::models::speech::format::AudioFormat;
use crate::models::speech::{SpeechFacts, wav};
use crate::models::wires::codec::{BodySlice, OperationCodec};
use crate::models::wires::decoder::{
    Decoder, EventDecoder, EventStream, Frame, Progress, ReplyHead, WholeReply, truncated,
};
use crate::models::wires::failure::Failure;
use crate::models::wires::wire::{Target, write_body};

/// The voice of a request that names none. Source: docs/facts/wire-formats.md 1.6.
const VOICE: &str = "Kore";
/// Samples a second where a reply does not tell.
const SAMPLES_PER_S: u32 = 24_000;

pub(super) static CODEC: OperationCodec<SpeechFacts> = OperationCodec {
    limits: WireLimits {
        speech_formats: &[AudioFormat::Wav, AudioFormat::Pcm],
        ..WireLimits::WIDEST
    },
    max_output: |_, facts, _| Some(facts.max_tokens()),
    ..OperationCodec::new(
        "/models/{model}:streamGenerateContent?alt=sse",
        encode,
        |_, facts, _, head| decoder(facts, head),
    )
};

/// Errors: 400 for a speed or the id of a voice, which this wire cannot say.
fn encode(
    request: &ModelRequest,
    facts: &SpeechFacts,
    target: &Target<'_>,
) -> Result<Vec<BodySlice>, Fault> {
    if facts
        .speed
        .is_some_and(|speed| (speed - 1.0).abs() > f64::EPSILON)
    {
        let message = format!(
            "`speed` cannot be set at {}; accepted is 1, or none",
            target.provider
        );
        return Err(Fault::invalid("speed", message).with_code(FaultCode::InvalidParameters));
    }
    let voice = match member(request, "voice")? {
        Some(Said::Text(voice)) => voice,
        Some(Said::Other) => {
            let message = format!("`voice` is the name of a voice at {}", target.provider);
            return Err(Fault::invalid("voice", message).with_code(FaultCode::InvalidParameters));
        }
        None => VOICE.to_owned(),
    };
    let said = |key| match member(request, key)? {
        Some(Said::Text(text)) => Ok::<_, Fault>(Some(text)),
        _ => Ok(None),
    };
    let input = said("input")?.unwrap_or_default();
    let text = match said("instructions")? {
        Some(instructions) => format!("{instructions}\n\n{input}"),
        None => input,
    };
    let body = json!({
        "contents": [{"role": "user", "parts": [{"text": text}]}],
        "generationConfig": {
            "responseModalities": ["AUDIO"],
            "speechConfig": {"voiceConfig": {"prebuiltVoiceConfig": {"voiceName": voice}}},
        },
    });
    write_body(&body, request.source.body.len())
}

/// The value of a member.
enum Said {
    Text(String),
    Other,
}

fn member(request: &ModelRequest, key: &str) -> Result<Option<Said>, Fault> {
    let source = &request.source;
    let Some(member) = source.member(key) else {
        return Ok(None);
    };
    let read = || {
        let mut walk = Walker::new(source.value(member))?;
        Ok::<_, Error>(match walk.peek()? {
            Type::String => Said::Text(walk.string()?.unescaped().into_owned()),
            _ => Said::Other,
        })
    };
    let said = read().map_err(|error| {
        Fault::new(FaultKind::Internal, "the request could not be translated")
            .with_detail(format!("checked input does not walk: {error}"))
    })?;
    Ok(Some(said))
}

/// Returns the decoder of a reply.
fn decoder(facts: &SpeechFacts, head: &ReplyHead) -> Box<dyn Decoder> {
    let format = facts.format.unwrap_or(AudioFormat::Wav);
    let samples = Samples {
        format,
        ..Samples::default()
    };
    if let Some(framing) = head.events {
        Box::new(SpeechStream {
            format,
            events: EventStream::new(samples, framing),
        })
    } else {
        Box::new(WholeReply::new(move |body, sink| {
            let mut samples = Samples {
                format,
                ..Samples::default()
            };
            samples.read(body, sink)?;
            samples.end(sink).map(|_| ())
        }))
    }
}

/// An event stream whose media have a known format.
struct SpeechStream {
    format: AudioFormat,
    events: EventStream<Samples>,
}

impl Decoder for SpeechStream {
    fn feed(&mut self, bytes: &Bytes, sink: &mut dyn Sink) -> Result<Progress, Failure> {
        self.events.feed(bytes, sink)
    }

    fn end(&mut self, sink: &mut dyn Sink) -> Result<Progress, Failure> {
        self.events.end(sink)
    }

    fn media_format(&self) -> Option<AudioFormat> {
        Some(self.format)
    }
}

/// Reads samples.
#[derive(Debug, Default)]
struct Samples {
    format: AudioFormat,
    has_audio: bool,
    has_ended: bool,
    usage: UsageReport,
}

impl EventDecoder for Samples {
    fn event(&mut self, event: Frame<'_>, sink: &mut dyn Sink) -> Result<Progress, Failure> {
        let data = event.data.trim_ascii();
        if !data.is_empty() && !data.starts_with(b"[DONE]") {
            self.read(data, sink)?;
        }
        Ok(Progress::Open)
    }

    fn end(&mut self, _: &mut dyn Sink) -> Result<Progress, Failure> {
        match (self.has_ended, self.has_audio) {
            (true, true) => Ok(Progress::Complete),
            (true, false) => Err(Failure::malformed("the provider's reply holds no audio")),
            (false, _) => Err(truncated()),
        }
    }
}

impl Samples {
    fn read(&mut self, data: &[u8], sink: &mut dyn Sink) -> Result<(), Failure> {
        let Ok(reply) = serde_json::from_slice::<Reply<'_>>(data) else {
            return Err(unreadable(data));
        };
        if reply.candidates.is_empty()
            && reply.usage_metadata.is_none()
            && let Some(failure) = error_in(data)
        {
            return Err(failure);
        }
        if let Some(report) = reply.usage_metadata {
            self.usage.update(report);
            self.usage.tell(sink);
        }
        for candidate in &reply.candidates {
            let parts = candidate.content.iter().flat_map(|content| &content.parts);
            for data in parts.filter_map(|part| part.inline_data.as_ref()) {
                self.audio(data, sink)?;
            }
            self.has_ended |= candidate.finish_reason.is_some();
        }
        Ok(())
    }

    fn audio(&mut self, data: &InlineData<'_>, sink: &mut dyn Sink) -> Result<(), Failure> {
        let bytes = STANDARD
            .decode(data.data.as_bytes())
            .map_err(|_| Failure::malformed("the provider's audio cannot be read"))?;
        if bytes.is_empty() {
            return Ok(());
        }
        let is_first = !std::mem::replace(&mut self.has_audio, true);
        if is_first && self.format == AudioFormat::Wav {
            let head = wav::head(samples_per_s(&data.mime_type));
            sink.media(&Bytes::copy_from_slice(&head));
        }
        sink.media(&bytes.into());
        Ok(())
    }
}

/// Returns the rate in a media type such as `audio/L16;codec=pcm;rate=24000`.
fn samples_per_s(media_type: &str) -> u32 {
    let mut parameters = media_type.split(';').filter_map(|it| it.split_once('='));
    let rate = parameters.find(|(key, _)| key.trim().eq_ignore_ascii_case("rate"));
    rate.and_then(|(_, rate)| rate.trim().parse().ok())
        .unwrap_or(SAMPLES_PER_S)
}
