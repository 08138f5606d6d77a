//! The APIs of providers: a folder per wire, which translates requests and replies.
//!
//! A wire encodes a checked request as head and body of an upstream request, decodes whole replies and event streams
//! alike into a [`Sink`](crate::models::reply::Sink), and classifies refusals. It knows nothing of attempts or clients.
//! Wires never know each other; this folder itself holds the code that several need.

pub mod anthropic;
mod blame;
#[cfg(test)]
mod choices_tests;
mod closed_schema;
pub mod codec;
mod cohere;
mod count;
mod decided;
#[cfg(test)]
mod decided_tests;
pub mod decoder;
mod drawn;
mod embedding_list;
#[cfg(test)]
mod embedding_parts_tests;
#[cfg(test)]
mod embeddings_tests;
mod error_body;
mod exa;
pub mod failure;
mod form;
mod found_pages;
#[cfg(test)]
mod found_pages_tests;
pub mod google;
mod history;
pub mod images;
#[cfg(test)]
mod item_tests;
mod media_reply;
#[cfg(test)]
#[path = "media_tests.rs"]
mod media_tests;
#[cfg(test)]
mod moderation_tests;
mod near_place;
#[cfg(test)]
mod ocr_tests;
pub mod opaque;
pub mod openai;
pub mod quirks;
mod ranking;
#[cfg(test)]
mod ranking_tests;
pub mod rate_limit;
#[cfg(test)]
#[path = "replay_tests.rs"]
mod replay;
pub mod responses;
mod scan;
mod scrub;
#[cfg(test)]
mod search_reply_tests;
#[cfg(test)]
mod search_tests;
#[cfg(test)]
mod speech_tests;
mod splice;
mod tavily;
#[cfg(test)]
mod tier_tests;
mod tier_word;
#[cfg(test)]
mod transcription_tests;
#[cfg(test)]
mod video_tests;
mod voyage;
pub mod wire;
#[cfg(test)]
mod wire_tests;

pub use codec::{BodySlice, Codec, Parts};
pub use decoder::{Decoder, Progress, ReplyHead, decode_reply};
pub use failure::{Failure, FailureKind};
pub use quirks::Quirks;
pub use wire::{Target, VideoWire, Wire, WireHead};

/// All wires.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WireKind {
    /// OpenAI's convention: ours.
    Compatible,
    /// OpenAI's Responses.
    Responses,
    /// Anthropic's Messages.
    Messages,
    /// Google's contents.
    Contents,
    /// Cohere's own API.
    Cohere,
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
            Self::Responses => &responses::RESPONSES,
            Self::Messages => &anthropic::ANTHROPIC,
            Self::Contents => &google::GOOGLE,
            Self::Cohere => &cohere::COHERE,
            Self::Voyage => &voyage::VOYAGE,
            Self::Tavily => &tavily::TAVILY,
            Self::Exa => &exa::EXA,
            Self::Images => &images::IMAGES,
            Self::ImagesByRatio => &images::IMAGES_BY_RATIO,
        }
    }
}
