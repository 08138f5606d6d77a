//! A list of embeddings, written item by item, or into the body of the reply that holds all of them.

use std::ops::Range;

use bytes::{Buf, Bytes, BytesMut};

use crate::fault::Fault;
use crate::json::{Object, Str};
use crate::models::metadata::Metadata;
use crate::models::reply::{Reported, Sink, Writer};
use crate::models::usage::{Settlement, Usage};

/// How a list begins.
const HEAD: &[u8] = b"{\"object\":\"list\",\"data\":[";

/// Writes the list. Nothing of it goes out before it is whole, so any provider may still fail.
///
/// The contract gives this response neither `metadata` nor `cost`. Source: docs/model-gateway.md 2.6. Only why the
/// providers were chosen stands in `metadata`, if the request asks for it.
#[derive(Debug)]
pub(super) struct ListWriter {
    model: Box<str>,
    out: Vec<u8>,
    /// The items that came as one slice of a reply, and nothing before them.
    held: Option<(Bytes, Range<usize>)>,
    whole: Option<Bytes>,
    /// The length of `out` up to the last part that has ended.
    ended_bytes: usize,
    is_complete: bool,
    usage: Option<Usage>,
}

impl ListWriter {
    pub(super) fn new(model: &str) -> Self {
        Self {
            model: model.into(),
            out: HEAD.to_vec(),
            held: None,
            whole: None,
            ended_bytes: HEAD.len(),
            is_complete: false,
            usage: None,
        }
    }

    /// Appends the items that are still in their reply.
    fn copy_held(&mut self) {
        if let Some((body, place)) = self.held.take() {
            self.append(body.get(place).unwrap_or_default());
        }
    }

    fn append(&mut self, item: &[u8]) {
        if self.out.len() > HEAD.len() {
            self.out.push(b',');
        }
        self.out.extend_from_slice(item);
    }

    /// Returns what stands behind the items.
    fn tail(&self, usage: &Usage, metadata: &Metadata<'_>) -> Vec<u8> {
        let mut tail = b"],\"model\":".to_vec();
        Str::Plain(&self.model).write(&mut tail);
        tail.extend_from_slice(b",\"usage\":");
        let mut object = Object::open(&mut tail);
        object.number("prompt_tokens", usage.prompt);
        object.number("total_tokens", usage.total());
        if usage.estimated {
            object.text("info", "estimated");
        }
        object.close();
        if metadata.route.is_some() {
            tail.extend_from_slice(b",\"metadata\":");
            let mut object = Object::open(&mut tail);
            metadata.write_route(&mut object);
            object.close();
        }
        tail.push(b'}');
        tail
    }
}

/// Makes the list of the reply that holds its items, where nobody else has its memory, and there is room before them.
fn write_around(body: Bytes, place: &Range<usize>, tail: &[u8]) -> Result<Bytes, Bytes> {
    let Some(start) = place.start.checked_sub(HEAD.len()) else {
        return Err(body);
    };
    let mut list: BytesMut = body.try_into_mut()?;
    list.truncate(place.end);
    if let Some(head) = list.get_mut(start..place.start) {
        head.copy_from_slice(HEAD);
    }
    list.advance(start);
    list.extend_from_slice(tail);
    Ok(list.freeze())
}

impl Sink for ListWriter {
    fn item(&mut self, item: &[u8]) {
        self.copy_held();
        self.append(item);
    }

    fn items(&mut self, body: &Bytes, place: Range<usize>) {
        self.copy_held();
        if self.out.len() == HEAD.len() {
            self.held = Some((body.clone(), place));
        } else {
            self.append(body.get(place).unwrap_or_default());
        }
    }

    fn usage(&mut self, usage: Usage) {
        self.usage = Some(usage);
    }
}

impl Writer for ListWriter {
    fn has_content(&self) -> bool {
        self.is_complete
    }

    fn take(&mut self) -> Bytes {
        match self.whole.take() {
            Some(whole) => whole,
            None if self.is_complete => std::mem::take(&mut self.out).into(),
            None => Bytes::new(),
        }
    }

    fn reported(&self) -> Reported {
        Reported {
            usage: self.usage,
            ..Reported::default()
        }
    }

    fn end_part(&mut self) {
        self.copy_held();
        self.ended_bytes = self.out.len();
        self.usage = None;
    }

    fn begin_part(&mut self) {
        self.held = None;
        self.out.truncate(self.ended_bytes);
        self.usage = None;
    }

    fn complete(&mut self, settlement: &Settlement, metadata: &Metadata<'_>) {
        let tail = self.tail(&settlement.usage, metadata);
        self.is_complete = true;
        if let Some((body, place)) = self.held.take() {
            match write_around(body, &place, &tail) {
                Ok(whole) => {
                    self.whole = Some(whole);
                    self.out = Vec::new();
                    return;
                }
                Err(body) => self.append(body.get(place).unwrap_or_default()),
            }
        }
        self.out.extend_from_slice(&tail);
    }

    fn fail(&mut self, _: &Fault, _: Option<&Settlement>) {}
}
