//! How providers speak: a folder per wire, which turns a request into theirs and their replies into ours.
//!
//! A wire encodes a checked request as head and body of an upstream request, decodes whole replies and event streams
//! alike into a [`Sink`](crate::models::reply::Sink), and classifies refusals. It knows nothing of routing, attempts or
//! clients. Wires never know each other; what several need stands in this folder itself.

use bytes::Bytes;
use http::{HeaderName, HeaderValue};

use crate::fault::Fault;
use crate::models::operation::Operation;
use crate::models::request::ModelRequest;
use crate::models::routing::capable::WireLimits;

pub mod anthropic;
pub mod data_url;
mod decoder;
#[cfg(test)]
mod embeddings_tests;
pub mod failure;
pub mod google;
mod history;
pub mod openai;
pub mod quirks;
#[cfg(test)]
#[path = "replay_tests.rs"]
mod replay;

pub use decoder::{Decoder, Progress, ReplyHead, decode_reply};
pub use failure::{Failure, FailureKind};
pub use quirks::Quirks;

/// All wires.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WireKind {
    /// OpenAI's convention: ours.
    Compatible,
    /// Anthropic's Messages.
    Messages,
    /// Google's contents.
    Contents,
}

impl WireKind {
    /// Returns the wire.
    pub fn wire(self) -> &'static dyn Wire {
        match self {
            Self::Compatible => &openai::OpenAi,
            Self::Messages => &anthropic::Anthropic,
            Self::Contents => &google::Google,
        }
    }
}

/// How the providers of one kind speak.
pub trait Wire: Send + Sync {
    /// What this wire cannot say of an operation; `None`: it does not offer the operation.
    fn limits(&self, operation: Operation) -> Option<WireLimits>;

    /// Turns a request into what this wire wants.
    ///
    /// Errors: a 400 that names the field where the request cannot be said on this wire.
    fn encode(&self, request: &ModelRequest, target: &Target<'_>)
    -> Result<UpstreamRequest, Fault>;

    /// The most tokens that each answer may have, as [`Wire::encode`] says it to this provider; `None`: it says
    /// nothing.
    fn max_output(&self, request: &ModelRequest, target: &Target<'_>) -> Option<u64>;

    /// Returns the decoder of a reply of status 200.
    fn decoder(
        &self,
        request: &ModelRequest,
        target: &Target<'_>,
        head: &ReplyHead,
    ) -> Box<dyn Decoder>;

    /// Returns the meaning of a reply of another status.
    ///
    /// `body` may be cut short or empty.
    fn classify(&self, status: u16, body: &[u8]) -> Failure;
}

/// What one attempt goes to.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// The provider's name in the configuration: the tag of its opaque state.
    pub provider: &'a str,
    /// The upstream's own model id.
    pub model: &'a str,
    /// The region, where one was chosen.
    pub region: Option<&'a str>,
    /// The most tokens the model may answer, where the catalogue tells.
    pub max_output: Option<u64>,
    /// Reasoning efforts the mapping accepts; empty: the catalogue does not tell.
    pub reasoning_efforts: &'a [Box<str>],
    /// Whether the mapping reasons.
    pub reasons: bool,
    /// Whether a forced call has to be lowered to `auto`, because no mapping of the model honours it.
    pub lower_tool_choice: bool,
    /// What is special about this provider.
    pub quirks: &'a Quirks,
    /// The id of the caller's API key.
    pub key_id: Option<&'a str>,
    /// The credential; only ever put into a header.
    pub secret: Option<&'a str>,
}

/// An upstream request without scheme and authority.
#[derive(Debug, Default)]
pub struct UpstreamRequest {
    /// Path and query, to be appended to the path of the provider's base URL.
    pub path: String,
    /// Headers beside `host`, `content-length`, `content-type` and the configured ones; the credential among
    /// them, marked sensitive.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The body, as slices of the client's body where nothing changed.
    pub body: Vec<Bytes>,
}

impl UpstreamRequest {
    /// The length of the body in bytes.
    pub fn body_bytes(&self) -> usize {
        self.body.iter().map(Bytes::len).sum()
    }
}

/// A header for a credential: marked sensitive, so that no log prints it.
///
/// Errors: an internal fault where the credential cannot stand in a header.
pub fn credential(name: HeaderName, value: &str) -> Result<(HeaderName, HeaderValue), Fault> {
    let mut value = HeaderValue::from_str(value).map_err(|_| {
        Fault::new(
            crate::fault::FaultKind::Internal,
            "the provider's credential is not usable",
        )
        .with_detail("a credential holds bytes that cannot stand in a header")
    })?;
    value.set_sensitive(true);
    Ok((name, value))
}
