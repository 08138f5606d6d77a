//! Audio on its way to the client: the bytes of a file as they come, or events that hold them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::{Bytes, BytesMut};

use crate::fault::Fault;
use crate::json::Object;
use crate::models::metadata::Metadata;
use crate::models::reply::{Reported, ResponseKind, Sink, Writer};
use crate::models::speech::format::AudioFormat;
use crate::models::usage::{Settlement, Usage};

/// The audio so far.
#[derive(Debug)]
struct Audio {
    format: AudioFormat,
    bytes: u64,
    usage: Option<Usage>,
}

impl Audio {
    /// Audio of the format that the client asked for, or of the usual one.
    fn new(format: Option<AudioFormat>) -> Self {
        Self {
            format: format.unwrap_or_default(),
            bytes: 0,
            usage: None,
        }
    }

    /// Estimates are made of four bytes a token, so a token of audio counts as four.
    fn reported(&self) -> Reported {
        Reported {
            usage: self.usage,
            output_bytes: self.format.estimate_tokens(self.bytes).saturating_mul(4),
            ..Reported::default()
        }
    }
}

/// Passes the bytes of a file on, without a copy.
///
/// A file cannot say that it broke off: its response is cut off.
#[derive(Debug)]
pub(super) struct FileWriter {
    audio: Audio,
    pieces: Vec<Bytes>,
}

impl FileWriter {
    pub(super) fn new(format: Option<AudioFormat>) -> Self {
        Self {
            audio: Audio::new(format),
            pieces: Vec::new(),
        }
    }
}

impl Sink for FileWriter {
    fn media_format(&mut self, format: AudioFormat) {
        self.audio.format = format;
    }

    fn media(&mut self, bytes: &Bytes) {
        self.audio.bytes = self.audio.bytes.saturating_add(bytes.len() as u64);
        self.pieces.push(bytes.clone());
    }

    fn usage(&mut self, usage: Usage) {
        self.audio.usage = Some(usage);
    }
}

impl Writer for FileWriter {
    fn kind(&self) -> ResponseKind {
        ResponseKind::Media(self.audio.format.media_type())
    }

    fn has_content(&self) -> bool {
        self.audio.bytes > 0
    }

    fn take(&mut self) -> Bytes {
        match self.pieces.len() {
            0 => Bytes::new(),
            1 => self.pieces.pop().unwrap_or_default(),
            _ => {
                let bytes = self.pieces.iter().map(Bytes::len).sum();
                let mut all = BytesMut::with_capacity(bytes);
                for piece in self.pieces.drain(..) {
                    all.extend_from_slice(&piece);
                }
                all.freeze()
            }
        }
    }

    fn reported(&self) -> Reported {
        self.audio.reported()
    }

    fn complete(&mut self, _: &Settlement, _: &Metadata<'_>) {}

    fn fail(&mut self, _: &Fault, _: Option<&Settlement>) {}
}

/// Writes events. Shape: `{"type":"speech.audio.delta","audio":<base64>}`, and at the end
/// `{"type":"speech.audio.done","usage":{…}}`.
#[derive(Debug)]
pub(super) struct EventWriter {
    audio: Audio,
    out: Vec<u8>,
}

impl EventWriter {
    pub(super) fn new(format: Option<AudioFormat>) -> Self {
        Self {
            audio: Audio::new(format),
            out: Vec::new(),
        }
    }
}

impl Sink for EventWriter {
    fn media_format(&mut self, format: AudioFormat) {
        self.audio.format = format;
    }

    fn media(&mut self, bytes: &Bytes) {
        self.audio.bytes = self.audio.bytes.saturating_add(bytes.len() as u64);
        write_event(&mut self.out, "speech.audio.delta", |event| {
            event.text("audio", &STANDARD.encode(bytes));
        });
    }

    fn usage(&mut self, usage: Usage) {
        self.audio.usage = Some(usage);
    }
}

impl Writer for EventWriter {
    fn kind(&self) -> ResponseKind {
        ResponseKind::Events
    }

    fn has_content(&self) -> bool {
        self.audio.bytes > 0
    }

    fn take(&mut self) -> Bytes {
        std::mem::take(&mut self.out).into()
    }

    fn reported(&self) -> Reported {
        self.audio.reported()
    }

    fn complete(&mut self, settlement: &Settlement, _: &Metadata<'_>) {
        write_event(&mut self.out, "speech.audio.done", |event| {
            event.object("usage", |usage| write_usage(settlement, usage));
        });
    }

    fn fail(&mut self, fault: &Fault, settlement: Option<&Settlement>) {
        let usage = settlement.map(|settlement| {
            let mut usage = Vec::new();
            let mut object = Object::open(&mut usage);
            write_usage(settlement, &mut object);
            object.close();
            usage
        });
        let event = fault.error_event(usage.as_deref());
        self.out.extend_from_slice(&event);
    }
}

fn write_event(out: &mut Vec<u8>, name: &str, members: impl FnOnce(&mut Object<'_>)) {
    out.extend_from_slice(b"data: ");
    let mut event = Object::open(out);
    event.text("type", name);
    members(&mut event);
    event.close();
    out.extend_from_slice(b"\n\n");
}

fn write_usage(settlement: &Settlement, out: &mut Object<'_>) {
    let usage = &settlement.usage;
    out.number("input_tokens", usage.prompt);
    out.number("output_tokens", usage.completion);
    out.number("total_tokens", usage.total());
    if usage.estimated {
        out.text("info", "estimated");
    }
}
