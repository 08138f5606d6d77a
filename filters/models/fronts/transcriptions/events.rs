//! A transcript as events: its pieces as they come, then the whole text with the usage.

use std::borrow::Cow;

use bytes::Bytes;
use serde::Deserialize;

use super::usage;
use crate::fault::Fault;
use crate::json::Object;
use crate::models::metadata::Metadata;
use crate::models::reply::{Reported, ResponseKind, Sink, Writer};
use crate::models::usage::{Settlement, Usage};

/// Writes the events. The first text commits.
#[derive(Debug, Default)]
pub(super) struct EventWriter {
    out: Vec<u8>,
    /// Members of the last event: keys and JSON values.
    members: Vec<(Box<str>, Box<str>)>,
    usage: Option<Usage>,
    text_bytes: u64,
    is_complete: bool,
}

/// The text of an event.
#[derive(Default, Deserialize)]
#[serde(default)]
struct EventText<'a> {
    #[serde(borrow)]
    delta: Cow<'a, str>,
    #[serde(borrow)]
    text: Cow<'a, str>,
}

impl EventWriter {
    fn event(&mut self, write: impl FnOnce(&mut Object<'_>)) {
        self.out.extend_from_slice(b"data: ");
        let mut event = Object::open(&mut self.out);
        write(&mut event);
        event.close();
        self.out.extend_from_slice(b"\n\n");
    }
}

impl Sink for EventWriter {
    fn item(&mut self, item: &[u8]) {
        let text: EventText<'_> = serde_json::from_slice(item).unwrap_or_default();
        let bytes = text.delta.len().max(text.text.len());
        self.text_bytes = self.text_bytes.saturating_add(bytes as u64);
        self.out.extend_from_slice(b"data: ");
        self.out.extend_from_slice(item);
        self.out.extend_from_slice(b"\n\n");
    }

    fn member(&mut self, key: &str, value: &str) {
        self.members.push((key.into(), value.into()));
    }

    fn usage(&mut self, usage: Usage) {
        self.usage = Some(usage);
    }
}

impl Writer for EventWriter {
    fn has_content(&self) -> bool {
        self.text_bytes > 0 || self.is_complete
    }

    fn kind(&self) -> ResponseKind {
        ResponseKind::Events
    }

    fn take(&mut self) -> Bytes {
        std::mem::take(&mut self.out).into()
    }

    fn reported(&self) -> Reported {
        Reported {
            usage: self.usage,
            output_bytes: self.text_bytes,
            ..Reported::default()
        }
    }

    fn lack(&self) -> Option<&'static str> {
        let has_text = self.members.iter().any(|(key, _)| &**key == "text");
        (!has_text).then_some("the provider's reply has no text")
    }

    fn complete(&mut self, settlement: &Settlement, _: &Metadata<'_>) {
        let members = std::mem::take(&mut self.members);
        let text = members.iter().find(|(key, _)| &**key == "text");
        // A provider that does not stream tells all at once.
        if let Some((_, text)) = text.filter(|(_, text)| self.text_bytes == 0 && &**text != "\"\"")
        {
            self.event(|event| {
                event.text("type", "transcript.text.delta");
                event.raw("delta", text);
            });
        }
        self.event(|event| {
            event.text("type", "transcript.text.done");
            for (key, value) in &members {
                event.foreign(key, value);
            }
            event.object("usage", |out| usage::write(settlement, out));
        });
        self.is_complete = true;
    }

    fn fail(&mut self, fault: &Fault, settlement: Option<&Settlement>) {
        let usage = settlement.map(usage::object);
        let event = fault.error_event(usage.as_deref());
        self.out.extend_from_slice(&event);
    }
}
