//! The events of a transcript: those of the convention, and the same under the names of one provider.

use serde_json::{Map, Value};

use super::transcriptions::{Estimate, read_usage};
use crate::models::reply::Sink;
use crate::models::wires::decoder::{EventDecoder, Frame, Progress, truncated};
use crate::models::wires::error_body::classify_error;
use crate::models::wires::failure::Failure;

/// Reads events.
#[derive(Debug)]
pub(super) struct TranscriptEvents {
    estimate: Estimate,
    text_bytes: usize,
}

type Event = Map<String, Value>;

impl TranscriptEvents {
    pub(super) fn new(estimate: Estimate) -> Self {
        Self {
            estimate,
            text_bytes: 0,
        }
    }

    /// Passes a piece of text on, under the name of the convention. Its text may be named `text`.
    fn piece(&mut self, kind: &str, text: &str, mut event: Event, sink: &mut dyn Sink) {
        event.insert("type".to_owned(), kind.into());
        if !event.contains_key(text)
            && let Some(value) = event.remove("text")
        {
            event.insert(text.to_owned(), value);
        }
        let piece = event.get(text).and_then(Value::as_str).unwrap_or_default();
        if !piece.is_empty() {
            self.text_bytes += piece.len();
            sink.item(Value::Object(event).to_string().as_bytes());
        }
    }

    fn end_with(&self, event: Event, sink: &mut dyn Sink) -> Result<Progress, Failure> {
        let text = event.get("text").and_then(Value::as_str);
        let text_bytes = text.map(str::len).ok_or_else(unreadable)?;
        let usage = event.get("usage");
        let usage = usage.and_then(|usage| read_usage(&usage.to_string()));
        let usage = usage.unwrap_or_else(|| self.estimate.usage(None, text_bytes));
        for (key, value) in event {
            if !matches!(key.as_str(), "type" | "usage" | "model") {
                sink.member(&key, &value.to_string());
            }
        }
        sink.usage(usage);
        Ok(Progress::Complete)
    }
}

fn unreadable() -> Failure {
    Failure::malformed("an event of the provider cannot be read")
}

impl EventDecoder for TranscriptEvents {
    fn event(&mut self, event: Frame<'_>, sink: &mut dyn Sink) -> Result<Progress, Failure> {
        let data = event.data.trim_ascii();
        if data.is_empty() || data == b"[DONE]" {
            return Ok(Progress::Open);
        }
        let event: Event = serde_json::from_slice(data).map_err(|_| unreadable())?;
        if let Some(error) = event.get("error").filter(|error| !error.is_null()) {
            return Err(classify_error(&error.to_string()));
        }
        let kind = event.get("type").and_then(Value::as_str);
        match kind.unwrap_or_default() {
            "transcript.text.delta" | "transcription.text.delta" => {
                self.piece("transcript.text.delta", "delta", event, sink);
            }
            "transcript.text.segment" | "transcription.segment" => {
                self.piece("transcript.text.segment", "text", event, sink);
            }
            "transcript.text.done" | "transcription.done" => return self.end_with(event, sink),
            "error" => return Err(classify_error(&Value::Object(event).to_string())),
            _ => {}
        }
        Ok(Progress::Open)
    }

    fn end(&mut self, _: &mut dyn Sink) -> Result<Progress, Failure> {
        Err(truncated())
    }
}
