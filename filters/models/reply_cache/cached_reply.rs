//! A stored reply: its bytes, and its replay.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::models::metadata::AnswerMembers;
use crate::models::reply::Sink;
use crate::models::sink_event::SinkEvent;
use crate::models::usage::{Settlement, Usage};
use crate::money::Cost;

/// The version of the stored form. Another version is not a reply.
pub const FORM_VERSION: u8 = 4;

/// A stored reply.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CachedReply {
    head: Head,
    events: Bytes,
}

/// What is stored beside the pieces.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
struct Head {
    stored_ms: u64,
    usage: Usage,
    used_model: Box<str>,
    maker: Box<str>,
    log: Box<str>,
    metadata: Box<str>,
}

impl CachedReply {
    /// Stores a reply whose pieces are `events`. `members` are those of its metadata. `used_model`, `maker` and `log` name
    /// the model that answered: in responses, in the state that it made and as members of a log line. `stored_ms` is unix time.
    pub fn new(
        events: Bytes,
        usage: Usage,
        (used_model, maker, log): (&str, &str, &str),
        members: &AnswerMembers<'_>,
        stored_ms: u64,
    ) -> Self {
        let head = Head {
            stored_ms,
            usage,
            used_model: used_model.into(),
            maker: maker.into(),
            log: log.into(),
            metadata: members.to_json(),
        };
        Self { head, events }
    }

    /// Returns how long ago it was stored, in milliseconds of the wall clock.
    pub fn age_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.head.stored_ms)
    }

    /// Returns the bytes of memory that it takes, about.
    pub fn size(&self) -> usize {
        let head = &self.head;
        let texts = head.used_model.len() + head.maker.len() + head.log.len() + head.metadata.len();
        size_of::<Self>() + texts + self.events.len()
    }

    /// Returns `provider/model`, with `:region` where one was used.
    pub fn used_model(&self) -> &str {
        &self.head.used_model
    }

    /// Returns the name of who made its state.
    pub fn maker(&self) -> &str {
        &self.head.maker
    }

    /// Returns the members of a log line that name the model that answered.
    pub fn log(&self) -> &str {
        &self.head.log
    }

    /// Returns the members of its metadata.
    pub fn members(&self) -> AnswerMembers<'_> {
        AnswerMembers::Replayed(&self.head.metadata)
    }

    /// Returns what a replay takes: the tokens of the reply, which cost nothing again.
    pub fn settlement(&self) -> Settlement {
        Settlement {
            usage: self.head.usage,
            cost: Some(Cost::default()),
        }
    }

    /// Puts all pieces into a sink; `None`: they are damaged, and some may be missing.
    ///
    /// Cost: a whole response takes long texts as slices of the stored bytes.
    pub fn replay(&self, sink: &mut dyn Sink) -> Option<()> {
        sink.source(&self.events);
        let mut rest: &[u8] = &self.events;
        while !rest.is_empty() {
            SinkEvent::take(&mut rest)?.put_into(sink);
        }
        Some(())
    }

    /// Returns it as bytes: the head, then the pieces.
    pub fn to_bytes(&self) -> Option<Vec<u8>> {
        let head = Vec::with_capacity(self.size());
        let mut bytes = postcard::to_extend(&self.head, head).ok()?;
        bytes.extend_from_slice(&self.events);
        Some(bytes)
    }

    /// Reads what [`Self::to_bytes`] wrote; `None`: it is something else.
    pub fn from_bytes(bytes: &Bytes) -> Option<Self> {
        let (head, events) = postcard::take_from_bytes(bytes).ok()?;
        let reply = Self {
            head,
            events: bytes.slice_ref(events),
        };
        reply.replay(&mut Nowhere).map(|()| reply)
    }
}

/// Takes the pieces of a reply that is only checked.
struct Nowhere;

impl Sink for Nowhere {}
