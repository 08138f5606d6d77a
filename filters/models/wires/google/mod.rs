//! The Gemini API's wire.
//!
//! [`request`] and [`contents`] say a request in its words, [`schema`] cleans schemas down to what it knows,
//! [`reply`] reads whole replies and events alike, because an event is a reply with partial parts.
//! Thought signatures of calls are state of these calls, and go back with them; those of
//! texts are state of the text that they sign.
//! Deliberately absent: cached contents.

mod candidate;
mod chat;
mod contents;
mod decisions;
mod drawing;
mod embeddings;
mod failure;
mod grounding;
mod parts;
mod reply;
mod request;
mod schema;
mod speech;
mod usage;
mod videos;

#[cfg(test)]
mod tests;

use crate::models::dialects::Dialect;
use crate::models::operation::Operation;
use crate::models::wires::wire::Wire;

/// The wire.
pub static GOOGLE: Wire = Wire {
    dialect: Some(Dialect::Contents),
    codecs: &[
        (Operation::Chat, &chat::CODEC),
        (Operation::Images, &chat::CODEC),
        (Operation::ImageEdits, &chat::CODEC),
        (Operation::Embeddings, &embeddings::CODEC),
        (Operation::Speech, &speech::CODEC),
        (Operation::TypedDecisions, &decisions::CODEC),
        (Operation::Videos, &videos::CODEC),
    ],
    defaults: request::defaults,
    tier_header: Some("x-gemini-service-tier"),
    videos: Some(&videos::Operations),
    classify: failure::classify,
    ..Wire::OF_ITS_OWN
};
