//! The events of a streamed response. Source: docs/facts/wire-formats.md 6.4, 7.

use bytes::Bytes;

use super::drawn::Drawn;
use super::usage::{USAGE_CAPACITY, write_usage};
use crate::fault::{Fault, FaultKind};
use crate::fault_code::FaultCode;
use crate::json::write_number;
use crate::models::chat::piece::Piece;
use crate::models::metadata::Metadata;
use crate::models::reply::{Reported, ResponseKind, Sink, Writer};
use crate::models::usage::{Settlement, Usage};
use crate::money::ServiceTier;

/// Writes an event for each image, and for each unfinished one that comes before it.
///
/// The last image waits for the end, because its event holds the usage.
#[derive(Debug)]
pub(super) struct EventWriter {
    created: u64,
    /// `image_generation` or `image_edit`.
    name: &'static str,
    out: Vec<u8>,
    /// Nothing goes out before the end: another provider may have to draw all of several images.
    is_held: bool,
    is_complete: bool,
    /// The length of `out` up to the last part that has ended.
    ended_bytes: usize,
    /// The members of the last image.
    last: Option<Vec<u8>>,
    drawn: Drawn,
}

impl EventWriter {
    pub(super) fn new(created: u64, is_edit: bool, count: u32) -> Self {
        Self {
            created,
            name: if is_edit {
                "image_edit"
            } else {
                "image_generation"
            },
            out: Vec::new(),
            is_held: count > 1,
            is_complete: false,
            ended_bytes: 0,
            last: None,
            drawn: Drawn::default(),
        }
    }

    /// Writes an event with members of its own; `more` appends others, each behind a comma.
    fn event(&mut self, kind: &str, members: &[u8], more: impl FnOnce(&Drawn, &mut Vec<u8>)) {
        let name = self.name;
        let out = &mut self.out;
        out.reserve(members.len() + USAGE_CAPACITY + 256);
        let head =
            format!("event: {name}.{kind}\ndata: {{\"type\":\"{name}.{kind}\",\"created_at\":");
        out.extend_from_slice(head.as_bytes());
        write_number(self.created, out);
        out.push(b',');
        out.extend_from_slice(members);
        more(&self.drawn, out);
        out.extend_from_slice(b"}\n\n");
    }

    /// Keeps the members of an image, and writes the event of the one before it.
    fn keep(&mut self, members: Vec<u8>) {
        if let Some(before) = self.last.replace(members) {
            self.event("completed", &before, Drawn::write_members);
        }
    }
}

/// The inside of a JSON object on one line.
fn inside(object: &[u8]) -> Vec<u8> {
    let object = object.trim_ascii();
    let inside = object
        .strip_prefix(b"{")
        .and_then(|rest| rest.strip_suffix(b"}"));
    let inside = inside.unwrap_or_default().trim_ascii();
    // A line break would end the line of the event.
    inside
        .iter()
        .copied()
        .filter(|b| !matches!(b, b'\n' | b'\r'))
        .collect()
}

impl Sink for EventWriter {
    fn identity(&mut self, _: Option<&str>, created: Option<u64>) {
        self.created = created
            .filter(|created| *created > 0)
            .unwrap_or(self.created);
    }

    fn pieces(&mut self, _: u32, pieces: &[Piece<'_>]) {
        let mut drawn = std::mem::take(&mut self.drawn);
        let mut images = Vec::new();
        drawn.pieces(pieces, |data| {
            let mut members = b"\"b64_json\":".to_vec();
            data.write(&mut members);
            images.push(members);
        });
        self.drawn = drawn;
        for members in images {
            self.keep(members);
        }
    }

    fn member(&mut self, key: &str, value: &str) {
        self.drawn.member(key, value);
    }

    fn item(&mut self, item: &[u8]) {
        self.drawn.count += 1;
        self.keep(inside(item));
    }

    fn partial(&mut self, item: &[u8]) {
        self.event("partial_image", &inside(item), Drawn::write_members);
    }

    fn usage(&mut self, usage: Usage) {
        self.drawn.usage(usage);
    }

    fn service_tier(&mut self, tier: ServiceTier) {
        self.drawn.service_tier(tier);
    }
}

impl Writer for EventWriter {
    fn kind(&self) -> ResponseKind {
        ResponseKind::Events
    }

    fn has_content(&self) -> bool {
        !self.out.is_empty() && (self.is_complete || !self.is_held)
    }

    fn take(&mut self) -> Bytes {
        std::mem::take(&mut self.out).into()
    }

    fn reported(&self) -> Reported {
        self.drawn.reported()
    }

    fn lack(&self) -> Option<&'static str> {
        self.drawn.lack()
    }

    fn end_part(&mut self) {
        if let Some(last) = self.last.take() {
            self.event("completed", &last, Drawn::write_members);
        }
        self.ended_bytes = self.out.len();
        self.drawn.end_part();
    }

    fn begin_part(&mut self) {
        self.out.truncate(self.ended_bytes);
        self.last = None;
        self.drawn.begin_part();
    }

    fn complete(&mut self, settlement: &Settlement, _: &Metadata<'_>) {
        let usage = |out: &mut Vec<u8>| {
            out.extend_from_slice(b",\"usage\":");
            write_usage(settlement, out);
        };
        self.is_complete = true;
        match self.last.take() {
            Some(members) => self.event("completed", &members, |drawn, out| {
                drawn.write_members(out);
                usage(out);
            }),
            // An event of an image cannot say that there is none.
            None => {
                let message = "a content filter of the provider stopped the image";
                let fault = Fault::new(FaultKind::Invalid, message)
                    .with_code(FaultCode::ContentPolicyViolation);
                self.fail(&fault, Some(settlement));
            }
        }
    }

    fn fail(&mut self, fault: &Fault, settlement: Option<&Settlement>) {
        if !self.has_content() {
            self.out.clear();
        }
        let usage = settlement.map(|settlement| {
            let mut usage = Vec::with_capacity(USAGE_CAPACITY);
            write_usage(settlement, &mut usage);
            usage
        });
        self.out
            .extend_from_slice(&fault.error_event(usage.as_deref()));
    }
}
