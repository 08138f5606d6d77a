//! OpenAI's wire, which has our own shapes: OpenAI and the providers of its convention.
//!
//! A request is never parsed into a tree: the body goes out as slices of what came, with the members that have
//! to change spliced in ([`request`], [`messages`]). Events are scanned, and their strings copied as they are
//! escaped ([`stream`]). The peculiarities of a provider are data ([`Quirks`](super::quirks::Quirks)).

mod calls;
mod chat;
mod completions;
mod decisions;
mod delta;
mod drawing;
mod embeddings;
mod found;
mod media;
mod messages;
mod moderations;
mod ocr;
mod parts;
mod reply;
mod request;
mod rerank;
mod search;
mod speech;
mod stream;
mod strict;
mod template;
mod tools;
mod transcription_events;
mod transcriptions;
mod translated;
mod usage;
mod videos;

#[cfg(test)]
mod tests;

use crate::models::dialects::Dialect;
use crate::models::operation::Operation;
use crate::models::routing::providers::ProviderDefaults;
use crate::models::wires::rate_limit;
use crate::models::wires::wire::Wire;

/// The wire of base models.
pub static COMPLETIONS: Wire = Wire {
    dialect: Some(Dialect::Completions),
    codecs: &[(Operation::Chat, &completions::CODEC)],
    defaults: ProviderDefaults::plain,
    rate_limits: &rate_limit::CONVENTION,
    ..Wire::OF_ITS_OWN
};

/// The wire.
pub static OPENAI: Wire = Wire {
    dialect: Some(Dialect::Chat),
    codecs: &[
        (Operation::Chat, &chat::CODEC),
        (Operation::Images, &chat::IMAGES),
        (Operation::ImageEdits, &chat::IMAGES),
        (Operation::Embeddings, &embeddings::CODEC),
        (Operation::Rerank, &rerank::CODEC),
        (Operation::Moderations, &moderations::CODEC),
        (Operation::Speech, &speech::CODEC),
        (Operation::Ocr, &ocr::CODEC),
        (Operation::Search, &found::CODEC),
        (Operation::TypedDecisions, &decisions::CODEC),
        (Operation::Transcriptions, &transcriptions::TRANSCRIPTIONS),
        (Operation::Translations, &transcriptions::TRANSLATIONS),
        (Operation::Videos, &videos::CODEC),
    ],
    defaults: request::defaults,
    rate_limits: &rate_limit::CONVENTION,
    videos: Some(&videos::ConventionVideos),
    ..Wire::OF_ITS_OWN
};
