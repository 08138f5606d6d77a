//! Each provider family's wire, both ways: the one seam worth a trait.
//!
//! A folder is a family. A family turns a checked request into the head and body of an upstream request, and
//! an upstream's events and whole replies into [`Delta`](crate::models::chat::delta::Delta)s; it classifies the
//! upstream's refusals. It knows nothing of routing, attempts or clients. Families never know each other;
//! what several need stands in this folder itself.

use bytes::Bytes;
use http::{HeaderName, HeaderValue};

use crate::fault::Fault;
use crate::models::reply::Sink;
use crate::models::request::ModelRequest;
use crate::sse::SseEvent;

pub mod anthropic;
pub mod data_url;
pub mod failure;
pub mod google;
mod history;
pub mod openai;
pub mod quirks;
#[cfg(test)]
#[path = "replay_tests.rs"]
mod replay;

pub use failure::{Failure, FailureKind};
pub use quirks::Quirks;

/// All families.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WireKind {
    /// The chat-completions convention: ours.
    Compatible,
    /// Anthropic's Messages.
    Messages,
    /// Google's contents.
    Contents,
}

impl WireKind {
    /// What speaks it.
    pub fn provider(self) -> &'static dyn Wire {
        match self {
            Self::Compatible => &openai::OpenAi,
            Self::Messages => &anthropic::Anthropic,
            Self::Contents => &google::Google,
        }
    }

    /// How many choices an answer may have, and whether they may be streamed. Source: docs/model-gateway.md 2.1.
    pub fn choices(self) -> (u32, bool) {
        match self {
            Self::Compatible => (128, true),
            Self::Messages => (1, false),
            Self::Contents => (8, false),
        }
    }

    /// Whether an exact budget of reasoning can be said.
    pub fn has_reasoning_budget(self) -> bool {
        self != Self::Compatible
    }
}

/// A provider family.
pub trait Wire: Send + Sync {
    /// Turns a request into what this family's wire wants.
    ///
    /// Errors: a 400 that names the field where the request cannot be said on this wire.
    fn encode(&self, request: &ModelRequest, target: &Target<'_>)
    -> Result<UpstreamRequest, Fault>;

    /// The most tokens that each answer may have, as [`Wire::encode`] says it to this provider; `None`: it says
    /// nothing.
    fn output_bound(&self, request: &ModelRequest, target: &Target<'_>) -> Option<u64>;

    /// Reads a whole reply of status 200 into `sink`.
    ///
    /// Errors: an error inside the 200, or a body that is not a reply.
    fn decode(&self, body: &[u8], target: &Target<'_>, sink: &mut dyn Sink) -> Result<(), Failure>;

    /// A decoder for one event stream.
    fn stream(&self, target: &Target<'_>) -> Box<dyn Decoder>;

    /// What a reply of another status means.
    ///
    /// `body` may be cut short or empty.
    fn refusal(&self, status: u16, body: &[u8]) -> Failure;
}

/// Reads the events of one stream.
pub trait Decoder: Send + Sync {
    /// Reads one event into `sink`; answers whether it was the terminal one.
    ///
    /// Errors: the event is an error, or not what this wire says.
    fn event(&mut self, event: SseEvent<'_>, sink: &mut dyn Sink) -> Result<Progress, Failure>;

    /// The stream ended; answers whether it had come to its proper end.
    fn ended(&mut self, sink: &mut dyn Sink) -> Result<Progress, Failure>;
}

/// How far a stream has come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Progress {
    /// More is to come.
    Open,
    /// The answer is complete.
    Complete,
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
