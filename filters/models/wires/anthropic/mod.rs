//! The Messages wire.
//!
//! [`request`] and [`messages`] say a request in its words, [`splice`] one that is in them already, [`breakpoints`] marks what it shall cache, [`reply`] reads whole replies and events with the same
//! blocks, [`failure`] its errors, [`deviations`] and [`called_form`] what other hosts than the vendor's refuse. Signatures of thinking are state, and blocks of tools that the provider runs are native:
//! both go back to their maker alone.
//! Deliberately absent: other server tools than the searches, batches, files by id.

mod betas;
mod blocks;
mod breakpoints;
mod called_form;
mod chat;
mod deviations;
mod failure;
mod media;
mod messages;
mod native;
mod open_block;
mod rate_limit;
mod reply;
mod request;
mod splice;
mod tools;
mod usage;

#[cfg(test)]
mod breakpoints_tests;
#[cfg(test)]
mod called_form_tests;
#[cfg(test)]
mod tests;

use crate::models::dialects::Dialect;
use crate::models::operation::Operation;
use crate::models::wires::scan;
use crate::models::wires::wire::{Counting, Wire};

/// Media types of images. Source: docs/facts/wire-formats.md 3.1.
const IMAGES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/// How tokens are counted: of the same body, at a path behind that of chats.
static COUNTING: Counting = Counting {
    path: |chat| [chat, "/count_tokens"].concat(),
    body: |chat, _| chat,
    tokens: |reply| {
        let [tokens] = scan::object(std::str::from_utf8(reply).ok()?, ["input_tokens"])?;
        tokens.parse().ok()
    },
};

/// The wire.
pub static ANTHROPIC: Wire = Wire {
    dialect: Some(Dialect::Messages),
    codecs: &[(Operation::Chat, &chat::CODEC)],
    defaults: request::defaults,
    rate_limits: &rate_limit::LIMITS,
    counting: Some(&COUNTING),
    classify: failure::classify,
    ..Wire::OF_ITS_OWN
};
