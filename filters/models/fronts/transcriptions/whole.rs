//! A transcript as one response: an object with the members that the provider tells, or a text made of them.

use bytes::Bytes;

use super::{subtitles, usage};
use crate::fault::Fault;
use crate::json::Object;
use crate::models::metadata::Metadata;
use crate::models::reply::{Reported, ResponseKind, Sink, Writer};
use crate::models::transcriptions::format::TranscriptFormat;
use crate::models::usage::{Settlement, Usage};

/// Writes the response. Nothing of it goes out before it is whole, so any provider may still fail.
#[derive(Debug)]
pub(super) struct TranscriptWriter {
    format: TranscriptFormat,
    /// Keys and JSON values, in order.
    members: Vec<(Box<str>, Box<str>)>,
    usage: Option<Usage>,
    out: Vec<u8>,
    is_complete: bool,
}

impl TranscriptWriter {
    pub(super) fn new(format: TranscriptFormat) -> Self {
        Self {
            format,
            members: Vec::new(),
            usage: None,
            out: Vec::new(),
            is_complete: false,
        }
    }

    fn value(&self, key: &str) -> Option<&str> {
        let mut members = self.members.iter();
        let (_, value) = members.find(|(known, _)| &**known == key)?;
        Some(value)
    }

    fn transcript(&self) -> Option<String> {
        serde_json::from_str(self.value("text")?).ok()
    }
}

impl Sink for TranscriptWriter {
    fn member(&mut self, key: &str, value: &str) {
        let mut members = self.members.iter_mut();
        match members.find(|(known, _)| &**known == key) {
            Some((_, known)) => *known = value.into(),
            None => self.members.push((key.into(), value.into())),
        }
    }

    fn usage(&mut self, usage: Usage) {
        self.usage = Some(usage);
    }
}

impl Writer for TranscriptWriter {
    fn has_content(&self) -> bool {
        self.is_complete
    }

    fn kind(&self) -> ResponseKind {
        let media_type = self.format.media_type();
        media_type.map_or(ResponseKind::Json, ResponseKind::Media)
    }

    fn take(&mut self) -> Bytes {
        match self.is_complete {
            true => std::mem::take(&mut self.out).into(),
            false => Bytes::new(),
        }
    }

    fn reported(&self) -> Reported {
        Reported {
            usage: self.usage,
            output_bytes: self.value("text").map_or(0, |text| text.len() as u64),
            ..Reported::default()
        }
    }

    fn lack(&self) -> Option<&'static str> {
        if self.transcript().is_none() {
            return Some("the provider's reply has no text");
        }
        let has = |key| self.value(key).is_some();
        let is_timed = || {
            let segments = self.value("segments").and_then(subtitles::read);
            segments.is_some_and(|segments| {
                !segments.is_empty() || self.transcript().is_some_and(|text| text.trim().is_empty())
            })
        };
        let is_good = match self.format {
            TranscriptFormat::Json | TranscriptFormat::Text => true,
            TranscriptFormat::Srt | TranscriptFormat::Vtt => is_timed(),
            TranscriptFormat::VerboseJson => has("segments") || has("words"),
            TranscriptFormat::DiarizedJson => has("segments"),
        };
        (!is_good).then_some("the provider's reply does not tell the times of its text")
    }

    fn complete(&mut self, settlement: &Settlement, _: &Metadata<'_>) {
        let segments = self.value("segments").and_then(subtitles::read);
        let segments = segments.unwrap_or_default();
        let mut text = String::new();
        match self.format {
            TranscriptFormat::Text => {
                text = self.transcript().unwrap_or_default();
                text.push('\n');
            }
            TranscriptFormat::Srt => subtitles::write_srt(&segments, &mut text),
            TranscriptFormat::Vtt => subtitles::write_vtt(&segments, &mut text),
            _ => {}
        }
        self.out = text.into();
        if self.format.media_type().is_none() {
            let mut object = Object::open(&mut self.out);
            for (key, value) in &self.members {
                object.foreign(key, value);
            }
            object.object("usage", |out| usage::write(settlement, out));
            object.close();
        }
        self.is_complete = true;
    }

    fn fail(&mut self, _: &Fault, _: Option<&Settlement>) {}
}
