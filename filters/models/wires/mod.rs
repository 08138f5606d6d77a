//! The APIs of providers: a folder per wire, which translates requests and replies.
//!
//! A wire encodes a checked request as head and body of an upstream request, decodes whole replies and event streams
//! alike into a [`Sink`](crate::models::reply::Sink), and classifies refusals. It knows nothing of attempts or clients.
//! Wires never know each other; this folder itself holds the code that several need.

pub mod anthropic;
mod blame;
mod body_form;
mod closed_schema;
pub mod codec;
mod cohere;
mod converse;
mod count;
mod decided;
pub mod decoder;
mod drawn;
mod embedding_list;
mod error_body;
mod exa;
mod exception;
pub mod failure;
mod form;
mod found_pages;
pub mod google;
mod history;
pub mod images;
mod media_reply;
mod near_place;
pub mod opaque;
mod open_calls;
pub mod openai;
pub mod quirks;
mod ranking;
pub mod rate_limit;
mod relay;
pub mod responses;
mod scan;
mod scrub;
mod splice;
mod tavily;
#[cfg(test)]
mod tests;
mod tier_word;
mod titan;
mod voyage;
pub mod wire;

pub use body_form::BodyForm;
pub use codec::{BodySlice, Codec, Parts};
pub use decoder::{Decoder, EventFraming, Progress, ReplyHead, decode_reply};
pub use exception::names_quota;
pub use failure::{Failure, FailureKind};
pub use quirks::Quirks;
pub use scrub::scrub;
pub use wire::{Counting, Target, VideoWire, Wire, WireHead};

/// All wires.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WireKind {
    /// OpenAI's convention: ours.
    Compatible,
    /// OpenAI's older API, by which base models complete texts.
    Completions,
    /// OpenAI's Responses.
    Responses,
    /// Anthropic's Messages.
    Messages,
    /// Google's contents.
    Contents,
    /// The same as Google's cloud serves them.
    CloudContents,
    /// Predictions of Google's cloud.
    Predictions,
    /// Bedrock's Converse.
    Converse,
    /// Cohere's own API.
    Cohere,
    /// The same as a cloud invokes its models.
    InvokedCohere,
    /// Amazon's embeddings.
    Titan,
    /// Voyage's own API.
    Voyage,
    /// Tavily's own API.
    Tavily,
    /// Exa's own API.
    Exa,
    /// OpenAI's API for images.
    Images,
    /// An API for images that draws by ratios.
    ImagesByRatio,
}

impl WireKind {
    /// Returns the wire.
    pub fn wire(self) -> &'static Wire {
        match self {
            Self::Compatible => &openai::OPENAI,
            Self::Completions => &openai::COMPLETIONS,
            Self::Responses => &responses::RESPONSES,
            Self::Messages => &anthropic::ANTHROPIC,
            Self::Contents => &google::GOOGLE,
            Self::CloudContents => &google::GOOGLE_CLOUD,
            Self::Predictions => &google::PREDICTIONS,
            Self::Converse => &converse::CONVERSE,
            Self::Cohere => &cohere::COHERE,
            Self::InvokedCohere => &cohere::INVOKED_COHERE,
            Self::Titan => &titan::TITAN,
            Self::Voyage => &voyage::VOYAGE,
            Self::Tavily => &tavily::TAVILY,
            Self::Exa => &exa::EXA,
            Self::Images => &images::IMAGES,
            Self::ImagesByRatio => &images::IMAGES_BY_RATIO,
        }
    }
}
