//! A reply between a provider's decoder and the client: decoders put pieces into a [`Sink`], a [`Writer`] is a sink
//! that makes the client's response of them.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::chat::piece::Piece;
use super::dialects::state::OwnedMaker;
use super::healing::Outcome;
use super::metadata::Metadata;
use super::speech::format::AudioFormat;
use super::usage::{Settlement, Usage};
use crate::fault::Fault;
use crate::json::Str;
use crate::money::ServiceTier;

/// Takes the pieces that decoders read. A writer overrides the methods of its operation; the defaults pass their pieces on to
/// [`Self::inner`].
pub trait Sink {
    /// Returns the sink that gets what this one does not take; `None`: the rest is dropped.
    fn inner(&mut self) -> Option<&mut dyn Sink> {
        None
    }

    /// The provider's own identity of the reply; the first one counts. `created` is unix seconds.
    fn identity(&mut self, id: Option<&str>, created: Option<u64>) {
        if let Some(inner) = self.inner() {
            inner.identity(id, created);
        }
    }

    /// The body that the texts of the following calls may be slices of, so that a sink need not copy them.
    fn source(&mut self, body: &Bytes) {
        if let Some(inner) = self.inner() {
            inner.source(body);
        }
    }

    /// Pieces of a choice of a chat that are said together. An empty slice begins the choice.
    fn pieces(&mut self, choice: u32, pieces: &[Piece<'_>]) {
        if let Some(inner) = self.inner() {
            inner.pieces(choice, pieces);
        }
    }

    /// A piece of the answer's text: [`Self::pieces`] of it alone.
    fn text(&mut self, choice: u32, text: Str<'_>) {
        self.pieces(choice, &[Piece::Text(text)]);
    }

    /// An unknown member of the reply itself, as `(key, JSON value)`; the last one of a key counts.
    fn member(&mut self, key: &str, value: &str) {
        if let Some(inner) = self.inner() {
            inner.member(key, value);
        }
    }

    /// The next item of a list, as JSON in the public shape.
    fn item(&mut self, item: &[u8]) {
        if let Some(inner) = self.inner() {
            inner.item(item);
        }
    }

    /// The next items of a list, as JSON in the public shape with commas between them: a slice of `body`.
    fn items(&mut self, body: &Bytes, place: Range<usize>) {
        self.item(body.get(place).unwrap_or_default());
    }

    /// An item of a list that is not finished yet, as JSON in the public shape.
    fn partial(&mut self, item: &[u8]) {
        if let Some(inner) = self.inner() {
            inner.partial(item);
        }
    }

    /// The format of the media that come, where the provider's reply tells it before the first of them.
    fn media_format(&mut self, format: AudioFormat) {
        if let Some(inner) = self.inner() {
            inner.media_format(format);
        }
    }

    /// The next bytes of a file.
    fn media(&mut self, bytes: &Bytes) {
        if let Some(inner) = self.inner() {
            inner.media(bytes);
        }
    }

    /// How many searches the answer has taken so far, also if its end never comes; the last count counts.
    fn searches(&mut self, count: u64) {
        if let Some(inner) = self.inner() {
            inner.searches(count);
        }
    }

    /// The reply is in the words of the client, and what follows of it passes as it came, by [`Self::relay`]. The other calls
    /// tell what it says.
    fn begin_relay(&mut self) {
        if let Some(inner) = self.inner() {
            inner.begin_relay();
        }
    }

    /// An event as it came, or, without a name, the whole reply.
    fn relay(&mut self, name: &str, data: &[u8]) {
        if let Some(inner) = self.inner() {
            inner.relay(name, data);
        }
    }

    /// A report of usage; the last one counts, never the sum.
    fn usage(&mut self, usage: Usage) {
        if let Some(inner) = self.inner() {
            inner.usage(usage);
        }
    }

    /// A report of the tier that serves the request; the last one counts.
    fn service_tier(&mut self, tier: ServiceTier) {
        if let Some(inner) = self.inner() {
            inner.service_tier(tier);
        }
    }
}

/// The identity of one reply.
#[derive(Clone, Debug)]
pub struct ReplyIdentity {
    /// The request's id, from which a front makes its own. The provider's id replaces it where its wire has our form.
    pub id: Box<str>,
    /// Unix seconds.
    pub created: u64,
    /// `provider/model`, with `:region` where one was used. Source: docs/decisions.md 3.
    pub model: Arc<str>,
    /// Who makes the state.
    pub maker: OwnedMaker,
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

/// The provider's reports so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reported {
    /// The last report of usage.
    pub usage: Option<Usage>,
    /// The tier that served the request, where the provider says.
    pub service_tier: Option<ServiceTier>,
    /// Bytes of text that have come, for estimates.
    pub output_bytes: u64,
    /// Images that have come.
    pub images: u64,
    /// Searches that were seen, for answers whose report does not count them or never comes.
    pub searches: u64,
    /// Whether text of the reasoning has come, so that it is no secret of the provider.
    pub tells_reasoning: bool,
    /// Whether the provider has ended its answer, so that the report is final.
    pub has_finished: bool,
}

impl Reported {
    /// Returns the usage as reported, else estimated from bytes; `is_complete`: the whole reply has been read.
    /// Source: docs/decisions.md 14.
    pub fn to_usage(self, prompt_bytes: u64, is_complete: bool) -> Usage {
        let usage = match self.usage {
            Some(usage) if self.has_finished || is_complete => {
                usage.read(prompt_bytes, self.output_bytes, self.images)
            }
            Some(usage) => usage.unfinished(prompt_bytes, self.output_bytes, self.images),
            None => Usage::estimate(prompt_bytes, self.output_bytes, self.images),
        };
        Usage {
            images: self.images,
            web_searches: usage.web_searches.max(self.searches),
            ..usage.with_drawn(self.images)
        }
    }
}

/// An answer that should be JSON, as it went out.
#[derive(Clone, Copy, Debug)]
pub struct StructuredAnswer<'a> {
    /// Its text.
    pub text: &'a str,
    /// What became of it.
    pub outcome: Outcome,
}

/// The kind of a response.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ResponseKind {
    /// One JSON text.
    Json,
    /// An event stream.
    Events,
    /// Bytes of this media type, which go out as they come.
    Media(&'static str),
}

/// Makes the client's response of the pieces that a decoder reads.
pub trait Writer: Sink + Send + Sync {
    /// Returns whether bytes may go to the client; from then on no other provider is tried.
    fn has_content(&self) -> bool;

    /// Returns the kind of the response, once the head of the reply has come.
    fn kind(&self) -> ResponseKind {
        ResponseKind::Json
    }

    /// Returns the bytes written since the last call.
    fn take(&mut self) -> Bytes;

    /// Returns the provider's reports so far.
    fn reported(&self) -> Reported;

    /// Returns whether text has come that is held back, so that none of it is content yet.
    fn holds_text(&self) -> bool {
        false
    }

    /// Writes the text that is held back until its end, before it is settled what the answer took. `is_whole`: it has come to
    /// its end, and did not break off.
    fn end_text(&mut self, _is_whole: bool) {}

    /// Returns the answer, where it was held back to be repaired.
    fn structured(&self) -> Option<StructuredAnswer<'_>> {
        None
    }

    /// Ends a part of a response that several replies make: what came of it stays, and the next report of usage is that of
    /// the next part.
    fn end_part(&mut self) {}

    /// Drops what came since the last part ended, because its reply is asked for again.
    fn begin_part(&mut self) {}

    /// Returns the provider's id of the job that the reply says it has begun.
    fn job(&self) -> Option<&str> {
        None
    }

    /// Returns why a reply that has come to its end is not an answer; `None`: it is one.
    fn lack(&self) -> Option<&'static str> {
        None
    }

    /// Writes the end of a whole response.
    fn complete(&mut self, settlement: &Settlement, metadata: &Metadata<'_>);

    /// Takes the whole response, as JSON, where it has ended and is to be kept.
    fn take_kept(&mut self) -> Option<Bytes> {
        None
    }

    /// Writes the end of a broken response, where the head has gone out; `settlement` where content has, too. A response
    /// that cannot say that it broke gets no end: its connection is cut off.
    fn fail(&mut self, fault: &Fault, settlement: Option<&Settlement>);
}
