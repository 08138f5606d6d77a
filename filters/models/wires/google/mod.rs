//! The Gemini API's wire, how Google's cloud serves it, and the predictions that this cloud makes with other models.
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
mod predicted_embeddings;
mod predicted_images;
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

use crate::json::{Error, Walker, quoted};
use crate::models::dialects::Dialect;
use crate::models::dialects::contents::canonical;
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

/// How the cloud counts them: of what it knows of a request, whose model the path names.
static CLOUD_COUNTING: Counting = Counting {
    body: |chat, _| counted(&chat).unwrap_or(chat),
    ..COUNTING
};

/// Returns the members of a request that the cloud counts; `None`: it is no object.
fn counted(chat: &[u8]) -> Option<Vec<u8>> {
    const COUNTED: [&str; 4] = ["contents", "systemInstruction", "tools", "generationConfig"];
    let mut out = vec![b'{'];
    let walked = Walker::new(chat).ok()?.object(|walk, key| {
        let value = walk.skip()?;
        let name = canonical(&key);
        if COUNTED.contains(&&*name) {
            out.extend_from_slice(if out.len() > 1 { b"," } else { b"" });
            out.extend_from_slice(quoted(&name).as_bytes());
            out.push(b':');
            out.extend_from_slice(value.as_bytes());
        }
        Ok::<(), Error>(())
    });
    out.push(b'}');
    walked.ok().map(|()| out)
}

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
    videos: Some(&videos::OPERATIONS),
    counting: Some(&COUNTING),
    classify: failure::classify,
    ..Wire::OF_ITS_OWN
};

/// The wire as the cloud serves it, which has no typed decisions and counts tokens of the same body. Source: docs/facts/clouds.md 3.
pub static GOOGLE_CLOUD: Wire = Wire {
    codecs: &[
        (Operation::Chat, &chat::CODEC),
        (Operation::Images, &chat::CODEC),
        (Operation::ImageEdits, &chat::CODEC),
        (Operation::Embeddings, &embeddings::CLOUD_CODEC),
        (Operation::Speech, &speech::CODEC),
        (Operation::Videos, &videos::CODEC),
    ],
    tier_header: None,
    videos: Some(&videos::CLOUD_OPERATIONS),
    counting: Some(&CLOUD_COUNTING),
    ..GOOGLE
};

/// Predictions of the cloud: models of embeddings and of images that do not speak the dialect.
pub static PREDICTIONS: Wire = Wire {
    codecs: &[
        (Operation::Embeddings, &predicted_embeddings::CODEC),
        (Operation::Images, &predicted_images::CODEC),
    ],
    defaults: predicted_images::defaults,
    classify: failure::classify,
    ..Wire::OF_ITS_OWN
};
