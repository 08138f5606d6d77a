//! The events of a stream of this convention.

use super::calls::Calls;
use super::reply::Reading;
use super::template::EventTemplate;
use crate::models::reply::Sink;
use crate::models::wires::decoder::Progress;
use crate::models::wires::decoder::{EventDecoder, Frame, truncated};
use crate::models::wires::error_body::classify_error;
use crate::models::wires::failure::Failure;

/// A decoder.
#[derive(Debug)]
pub(super) struct ChunkEvents {
    reading: Reading,
    calls: Calls,
    has_choices: bool,
    has_finish: bool,
    /// The event before, where it held nothing but a text.
    template: Option<EventTemplate>,
}

impl ChunkEvents {
    /// Events that are read in this way.
    pub(super) fn new(reading: Reading) -> Self {
        Self {
            reading,
            calls: Calls::default(),
            has_choices: false,
            has_finish: false,
            template: None,
        }
    }
}

impl EventDecoder for ChunkEvents {
    fn event(&mut self, event: Frame<'_>, sink: &mut dyn Sink) -> Result<Progress, Failure> {
        let data = event.data.trim_ascii();
        if data.starts_with(b"[DONE]") {
            // The terminal event: complete also where the provider left the finish reason out.
            return if self.has_choices {
                Ok(Progress::Complete)
            } else {
                self.end(sink)
            };
        }
        if data.is_empty() || event.name == "ping" {
            return Ok(Progress::Open);
        }
        if event.name == "error" {
            return Err(classify_error(
                std::str::from_utf8(data).unwrap_or_default(),
            ));
        }
        let template = self.template.as_ref();
        if template.is_some_and(|template| template.read(data, sink)) {
            return Ok(Progress::Open);
        }
        let read = self.reading.object(data, &mut self.calls, sink)?;
        if read.has_sources {
            // Later chunks repeat them.
            self.reading.sources.member = None;
        }
        self.template = read
            .plain
            .and_then(|plain| EventTemplate::from_event(data, &plain));
        self.has_choices |= read.choices > 0;
        self.has_finish |= read.finishes > 0;
        Ok(Progress::Open)
    }

    fn end(&mut self, _sink: &mut dyn Sink) -> Result<Progress, Failure> {
        if self.has_finish {
            return Ok(Progress::Complete);
        }
        Err(truncated())
    }
}
