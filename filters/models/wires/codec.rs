//! The seam between a provider's API and one operation.

use std::ops::Range;

use bytes::Bytes;
use http::{HeaderName, HeaderValue};

use super::decoder::{Decoder, ReplyHead, WholeReply};
use super::failure::Failure;
use super::wire::Target;
use crate::fault::{Fault, FaultKind};
use crate::models::request::{ModelRequest, PayloadFacts};
use crate::models::routing::wire_limits::WireLimits;

/// How a wire does an operation.
pub trait Codec: Send + Sync {
    /// Returns what the wire can say of it, whatever the catalogue says.
    fn limits(&self) -> WireLimits;

    /// Returns the end of its path, where `{model}` stands for the upstream's model. Without a slash in front it stands
    /// beside that of chat.
    fn endpoint(&self, is_stream: bool) -> &'static str;

    /// Returns the names and values of what heads have beside `host`, `content-length`, the credential and the configured
    /// headers, or in place of the usual `accept` and `content-type`.
    fn fixed_headers(&self) -> &'static [(&'static str, &'static str)];

    /// Returns the headers that one request has beside those: `content-type` in place of the usual one, others behind what is
    /// there.
    fn headers(
        &self,
        request: &ModelRequest,
        target: &Target<'_>,
    ) -> Vec<(HeaderName, HeaderValue)>;

    /// Returns how many requests to this provider ask for what a request wants; [`Codec::encode`] and [`Codec::decoder`] have
    /// the part that `target` names. All of them say one request where nothing is divided.
    fn parts(&self, request: &ModelRequest, target: &Target<'_>) -> Parts;

    /// Returns the maximum tokens of each answer that [`Codec::encode`] allows this provider; `None`: it sets no bound.
    fn max_output(&self, request: &ModelRequest, target: &Target<'_>) -> Option<u64>;

    /// Returns whether the answer that [`Codec::encode`] asks for may hold images; `None`: nothing tells.
    fn draws(&self, request: &ModelRequest, target: &Target<'_>) -> Option<bool>;

    /// Encodes the body of a request for an upstream, as slices of the client's body where nothing changed. The first is in
    /// memory.
    ///
    /// Errors: a 400 that names the field that this wire cannot express.
    fn encode(&self, request: &ModelRequest, target: &Target<'_>) -> Result<Vec<BodySlice>, Fault>;

    /// Returns the decoder of a reply of status 200.
    fn decoder(
        &self,
        request: &ModelRequest,
        target: &Target<'_>,
        head: &ReplyHead,
    ) -> Box<dyn Decoder>;
}

/// A slice of the body of an upstream request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum BodySlice {
    /// These bytes.
    Bytes(Bytes),
    /// A range of what the client has uploaded.
    Upload(Range<u64>),
}

impl<B: Into<Bytes>> From<B> for BodySlice {
    fn from(bytes: B) -> Self {
        Self::Bytes(bytes.into())
    }
}

/// How a request is divided among requests to one provider, which are made one after the other.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Parts {
    /// How many there are; at least 1.
    pub count: u32,
    /// Bytes of text of the part at hand, for estimates.
    pub text_bytes: u64,
}

impl Parts {
    /// Returns how often a provider is asked that draws fewer images at once than a request wants; other requests are not
    /// divided.
    pub fn of_images(request: &ModelRequest, target: &Target<'_>) -> Self {
        let wanted = request.image_count().unwrap_or(1).max(1);
        let at_once = target.images_at_once(request);
        Self {
            count: wanted.div_ceil(at_once),
            text_bytes: request.text_bytes,
        }
    }
}

/// A [`Codec`] of an operation with the facts `F`. Shape: the table that a wire's file for the operation holds.
pub(super) struct OperationCodec<F: 'static> {
    pub(super) limits: WireLimits,
    pub(super) endpoint: &'static str,
    pub(super) stream_endpoint: &'static str,
    pub(super) fixed_headers: &'static [(&'static str, &'static str)],
    pub(super) headers: Headers<F>,
    pub(super) parts: fn(&ModelRequest, &F, &Target<'_>) -> Parts,
    pub(super) max_output: fn(&ModelRequest, &F, &Target<'_>) -> Option<u64>,
    pub(super) draws: fn(&ModelRequest, &Target<'_>) -> Option<bool>,
    pub(super) encode: Encode<F>,
    pub(super) decoder: MakeDecoder<F>,
}

pub(super) type Headers<F> = fn(&ModelRequest, &F, &Target<'_>) -> Vec<(HeaderName, HeaderValue)>;
pub(super) type Encode<F> = fn(&ModelRequest, &F, &Target<'_>) -> Result<Vec<BodySlice>, Fault>;
type MakeDecoder<F> = fn(&ModelRequest, &F, &Target<'_>, &ReplyHead) -> Box<dyn Decoder>;

impl<F> OperationCodec<F> {
    /// Creates the codec of an operation that makes no text, so that only the prompt costs.
    pub(super) const fn new(
        endpoint: &'static str,
        encode: Encode<F>,
        decoder: MakeDecoder<F>,
    ) -> Self {
        Self {
            limits: WireLimits::WIDEST,
            endpoint,
            stream_endpoint: endpoint,
            fixed_headers: &[],
            headers: |_, _, _| Vec::new(),
            parts: |request, _, target| Parts::of_images(request, target),
            max_output: |_, _, _| Some(0),
            draws: |request, target| target.may_draw(request),
            encode,
            decoder,
        }
    }
}

impl<F: PayloadFacts> Codec for OperationCodec<F> {
    fn limits(&self) -> WireLimits {
        self.limits
    }

    fn endpoint(&self, is_stream: bool) -> &'static str {
        match is_stream {
            true => self.stream_endpoint,
            false => self.endpoint,
        }
    }

    fn fixed_headers(&self) -> &'static [(&'static str, &'static str)] {
        self.fixed_headers
    }

    fn headers(
        &self,
        request: &ModelRequest,
        target: &Target<'_>,
    ) -> Vec<(HeaderName, HeaderValue)> {
        let facts = F::find(&request.payload);
        let own = facts.map_or_else(Vec::new, |facts| (self.headers)(request, facts, target));
        let of_tier = target.body.headers_of(request.needs.service_tier);
        own.into_iter().chain(of_tier).collect()
    }

    fn parts(&self, request: &ModelRequest, target: &Target<'_>) -> Parts {
        match F::find(&request.payload) {
            Some(facts) => (self.parts)(request, facts, target),
            None => Parts::of_images(request, target),
        }
    }

    fn max_output(&self, request: &ModelRequest, target: &Target<'_>) -> Option<u64> {
        let facts = F::find(&request.payload)?;
        (self.max_output)(request, facts, target)
    }

    fn draws(&self, request: &ModelRequest, target: &Target<'_>) -> Option<bool> {
        (self.draws)(request, target)
    }

    fn encode(&self, request: &ModelRequest, target: &Target<'_>) -> Result<Vec<BodySlice>, Fault> {
        let facts = F::find(&request.payload)
            .ok_or_else(|| Fault::new(FaultKind::Internal, OTHER_OPERATION))?;
        (self.encode)(request, facts, target)
    }

    fn decoder(
        &self,
        request: &ModelRequest,
        target: &Target<'_>,
        head: &ReplyHead,
    ) -> Box<dyn Decoder> {
        match F::find(&request.payload) {
            Some(facts) => (self.decoder)(request, facts, target, head),
            None => Box::new(WholeReply::new(|_, _| {
                Err(Failure::malformed(OTHER_OPERATION))
            })),
        }
    }
}

/// A wire finds a codec by the operation of the request, so no caller reads this.
const OTHER_OPERATION: &str = "the request is of another operation";
