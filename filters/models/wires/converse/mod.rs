//! Bedrock's Converse wire.
//!
//! [`request`] and [`messages`] say a request in its words, [`names`] maps those of functions, [`breakpoints`] marks what it
//! shall cache, [`reply`] reads whole replies and events with the same blocks. Signatures of reasoning are state, and go back to
//! their maker alone; they are in the dialect of Messages, because the blocks that they sign are those of Claude.
//! Deliberately absent: guardrails, prompts of the provider, files in its store.

mod blocks;
mod breakpoints;
mod chat;
mod media;
mod messages;
mod names;
mod open_block;
mod reply;
mod request;
mod tools;
mod usage;

#[cfg(test)]
mod tests;

use crate::models::dialects::Dialect;
use crate::models::operation::Operation;
use crate::models::wires::exception;
use crate::models::wires::wire::Wire;

/// The wire.
pub(super) static CONVERSE: Wire = Wire {
    dialect: Some(Dialect::Converse),
    codecs: &[(Operation::Chat, &chat::CODEC)],
    defaults: request::defaults,
    classify: exception::classify,
    ..Wire::OF_ITS_OWN
};
