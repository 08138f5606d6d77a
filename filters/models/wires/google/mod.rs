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
mod splice;
mod usage;
mod videos;

#[cfg(test)]
mod splice_tests;
#[cfg(test)]
mod tests;

use crate::json::quoted;
use crate::models::dialects::Dialect;
use crate::models::operation::Operation;
use crate::models::wires::scan;
use crate::models::wires::wire::{Counting, Wire};

/// How tokens are counted: of a whole request, which names its model again.
static COUNTING: Counting = Counting {
    path: |chat| chat.replace(":generateContent", ":countTokens"),
    body: |chat, model| {
        let model = quoted(&["models/", model].concat());
        let inside = chat.strip_prefix(b"{").unwrap_or_default();
        let head = format!("{{\"generateContentRequest\":{{\"model\":{model}");
        let mut body = head.into_bytes();
        body.extend_from_slice(if inside.starts_with(b"}") { b"" } else { b"," });
        body.extend_from_slice(inside);
        body.push(b'}');
        body
    },
    tokens: |reply| {
        let [tokens] = scan::object(std::str::from_utf8(reply).ok()?, ["totalTokens"])?;
        tokens.parse().ok()
    },
};

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
    counting: Some(&COUNTING),
    classify: failure::classify,
    ..Wire::OF_ITS_OWN
};
