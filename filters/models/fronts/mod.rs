//! The public shapes, a folder per API that clients speak. No front knows a wire.

pub mod chat_completions;
mod checked_body;
mod cited_pages;
pub mod completions;
pub mod content_embeddings;
pub mod contents;
pub mod counted;
pub mod embeddings;
mod head;
pub mod images;
mod item_list;
mod items_in_chat;
pub mod messages;
pub mod moderations;
pub mod ocr;
mod plain_front;
pub mod rerank;
pub mod responses;
mod said_text;
pub mod search;
mod sequencer;
mod signed_blocks;
pub mod speech;
mod stop_cut;
pub mod systemone;
mod too_long;
pub mod transcriptions;
pub mod videos;

#[cfg(test)]
mod nullable_tests;
#[cfg(test)]
mod tests;

use http::HeaderName;
pub use plain_front::PlainFront;

use super::front::Front;

/// The header by which a client names the version of an API whose errors have the alternative style.
///
/// Source: docs/model-gateway.md 7.
pub const ALTERNATIVE_STYLE: HeaderName = HeaderName::from_static("anthropic-version");

/// All fronts.
pub static FRONTS: [&dyn Front; 21] = [
    &items_in_chat::ChatPath,
    &messages::Messages,
    &responses::Responses,
    &responses::Compact,
    &completions::Completions,
    &contents::GENERATE,
    &contents::STREAM_GENERATE,
    &embeddings::EMBEDDINGS,
    &content_embeddings::EMBED,
    &content_embeddings::BATCH_EMBED,
    &images::ImageGenerations,
    &images::ImageEdits,
    &rerank::RERANK,
    &moderations::MODERATIONS,
    &speech::SPEECH,
    &ocr::Ocr,
    &search::SEARCH,
    &systemone::SYSTEM_ONE,
    &transcriptions::Transcriptions,
    &transcriptions::Translations,
    &videos::Videos,
];
