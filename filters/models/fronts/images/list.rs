//! The list of images, written image by image.

use bytes::Bytes;

use super::drawn::Drawn;
use super::usage::{USAGE_CAPACITY, write_usage};
use crate::fault::Fault;
use crate::json::{Object, write_number};
use crate::models::chat::piece::Piece;
use crate::models::metadata::Metadata;
use crate::models::reply::{Reported, Sink, Writer};
use crate::models::usage::{Settlement, Usage};
use crate::money::ServiceTier;

/// Writes the list. Nothing of it goes out before it is whole, so any provider may still fail.
///
/// The contract gives this response no `metadata`. Source: docs/model-gateway.md 2.7. Only why the providers were chosen stands
/// there, if the request asks for it.
#[derive(Debug)]
pub(super) struct ListWriter {
    created: u64,
    /// The response to an edit may say how the images are written.
    is_edit: bool,
    out: Vec<u8>,
    /// The length of `out` up to the last part that has ended.
    ended_bytes: usize,
    drawn: Drawn,
    is_complete: bool,
}

impl ListWriter {
    pub(super) fn new(created: u64, is_edit: bool) -> Self {
        Self {
            created,
            is_edit,
            out: Vec::new(),
            ended_bytes: 0,
            drawn: Drawn::default(),
            is_complete: false,
        }
    }

    /// Begins the response, or the next item of its list.
    fn next(&mut self) {
        if !self.out.is_empty() {
            return self.out.push(b',');
        }
        self.out.extend_from_slice(b"{\"created\":");
        write_number(self.created, &mut self.out);
        self.out.extend_from_slice(b",\"data\":[");
    }
}

impl Sink for ListWriter {
    fn identity(&mut self, _: Option<&str>, created: Option<u64>) {
        self.created = created
            .filter(|created| *created > 0)
            .unwrap_or(self.created);
    }

    fn pieces(&mut self, _: u32, pieces: &[Piece<'_>]) {
        let mut drawn = std::mem::take(&mut self.drawn);
        drawn.pieces(pieces, |data| {
            self.next();
            self.out.extend_from_slice(b"{\"b64_json\":");
            data.write(&mut self.out);
            self.out.push(b'}');
        });
        self.drawn = drawn;
    }

    fn member(&mut self, key: &str, value: &str) {
        self.drawn.member(key, value);
    }

    fn item(&mut self, item: &[u8]) {
        self.next();
        self.out.extend_from_slice(item);
        self.drawn.count += 1;
    }

    fn usage(&mut self, usage: Usage) {
        self.drawn.usage(usage);
    }

    fn service_tier(&mut self, tier: ServiceTier) {
        self.drawn.service_tier(tier);
    }
}

impl Writer for ListWriter {
    fn has_content(&self) -> bool {
        self.is_complete
    }

    fn take(&mut self) -> Bytes {
        if self.is_complete {
            std::mem::take(&mut self.out).into()
        } else {
            Bytes::new()
        }
    }

    fn reported(&self) -> Reported {
        self.drawn.reported()
    }

    fn lack(&self) -> Option<&'static str> {
        self.drawn.lack()
    }

    fn end_part(&mut self) {
        self.ended_bytes = self.out.len();
        self.drawn.end_part();
    }

    fn begin_part(&mut self) {
        self.out.truncate(self.ended_bytes);
        self.drawn.begin_part();
    }

    fn complete(&mut self, settlement: &Settlement, metadata: &Metadata<'_>) {
        if self.drawn.count == 0 {
            self.next();
        }
        self.out.reserve(USAGE_CAPACITY);
        self.out.push(b']');
        if self.is_edit {
            self.drawn.write_members(&mut self.out);
        }
        self.out.extend_from_slice(b",\"usage\":");
        write_usage(settlement, &mut self.out);
        if metadata.route.is_some() {
            self.out.extend_from_slice(b",\"metadata\":");
            let mut object = Object::open(&mut self.out);
            metadata.write_route(&mut object);
            object.close();
        }
        self.out.push(b'}');
        self.is_complete = true;
    }

    fn fail(&mut self, _: &Fault, _: Option<&Settlement>) {}
}
