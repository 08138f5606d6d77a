//! A reply between a provider's decoder and the client: decoders put pieces into a [`Sink`], a [`Writer`] is a sink
//! that makes the client's response of them.

use super::chat::delta::Delta;
use super::metadata::Metadata;
use super::usage::{Settlement, Usage};
use crate::fault::Fault;

/// Where decoders put what they read. A writer overrides what its operation has; the rest is dropped.
pub trait Sink {
    /// The provider's own identity of the reply; the first one counts. `created` is unix seconds.
    fn identity(&mut self, _id: Option<&str>, _created: Option<u64>) {}

    /// A piece of a choice of a chat.
    fn delta(&mut self, _delta: &Delta<'_>) {}

    /// No more pieces of this tool call will come: arguments that stayed empty become `{}`. Decoders call it
    /// where their provider tells (a block's stop); the sink does it at the finish for the rest.
    fn tool_done(&mut self, _index: u32, _key: u64) {}

    /// A member of the reply itself that we do not know, as `(key, JSON value)`; the last one of a key counts.
    fn member(&mut self, _key: &str, _value: &str) {}

    /// The next item of a list, as JSON in the public shape.
    fn item(&mut self, _item: &[u8]) {}

    /// A report of usage; the last one counts, never the sum.
    fn usage(&mut self, usage: Usage);
}

/// The identity of one reply.
#[derive(Clone, Debug)]
pub struct ReplyIdentity {
    /// The request's id; a front makes its own form of it. The provider's id replaces it where its wire is ours.
    pub id: Box<str>,
    /// Unix seconds.
    pub created: u64,
    /// `provider/model`, with `:region` where one was used. Source: docs/decisions.md 3.
    pub model: Box<str>,
}

impl ReplyIdentity {
    /// Takes the provider's identity where it gives one.
    pub fn identify(&mut self, id: Option<&str>, created: Option<u64>) {
        if let Some(id) = id.filter(|id| !id.is_empty()) {
            self.id = id.into();
        }
        if let Some(created) = created.filter(|&created| created > 0) {
            self.created = created;
        }
    }
}

/// What the provider has reported so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reported {
    /// The last report of usage.
    pub usage: Option<Usage>,
    /// Bytes of text that have come, for estimates.
    pub output_bytes: u64,
    /// Whether the provider has ended its answer, so that the report is its last word.
    pub has_finished: bool,
}

impl Reported {
    /// The usage as reported, else estimated from bytes; `is_complete` where the whole reply has been read.
    /// Source: docs/decisions.md 14.
    pub fn to_usage(self, prompt_bytes: u64, is_complete: bool) -> Usage {
        match self.usage {
            Some(usage) if self.has_finished || is_complete => usage,
            Some(usage) => usage.unfinished(prompt_bytes, self.output_bytes),
            None => Usage::estimate(prompt_bytes, self.output_bytes),
        }
    }
}

/// Makes the client's response of what a decoder reads.
pub trait Writer: Sink + Send + Sync {
    /// Whether bytes may go to the client: from then on no other provider is tried.
    fn has_content(&self) -> bool;

    /// Returns what has been written since the last call.
    fn take(&mut self) -> Vec<u8>;

    /// Returns what the provider has reported so far.
    fn reported(&self) -> Reported;

    /// Writes the end of a whole response.
    fn complete(&mut self, settlement: &Settlement, metadata: &Metadata<'_>);

    /// Writes the end of a broken response, where the head has gone out; `settlement` where content has, too.
    fn fail(&mut self, fault: &Fault, settlement: Option<&Settlement>);
}
