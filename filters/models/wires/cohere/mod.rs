//! Cohere's wire, version 2 of its API: chats, embeddings, rerank.
//!
//! [`request`] and [`messages`] say a chat in its words, [`reply`] reads whole replies and events with the same parts. The plan
//! before calls and thinking are reasoning; it has no signature, and goes back to its maker as a plan. Files of texts are
//! [`documents`] beside the messages.
//! Deliberately absent: connectors, safety modes, documents of other shapes.

mod chat;
mod documents;
mod embeddings;
mod failure;
mod messages;
mod reply;
mod request;
mod rerank;
mod usage;

#[cfg(test)]
mod tests;

use crate::models::dialects::Dialect;
use crate::models::operation::Operation;
use crate::models::wires::exception;
use crate::models::wires::wire::Wire;

/// The wire.
pub(super) static COHERE: Wire = Wire {
    dialect: Some(Dialect::ChatV2),
    codecs: &[
        (Operation::Chat, &chat::CODEC),
        (Operation::Embeddings, &embeddings::CODEC),
        (Operation::Rerank, &rerank::CODEC),
    ],
    defaults: request::defaults,
    classify: failure::classify,
    ..Wire::OF_ITS_OWN
};

/// The wire as a cloud invokes these models, which has no chats: its Converse has them. Source: docs/facts/clouds.md 1.6.
pub(super) static INVOKED_COHERE: Wire = Wire {
    codecs: &[
        (Operation::Embeddings, &embeddings::INVOKED_CODEC),
        (Operation::Rerank, &rerank::INVOKED_CODEC),
    ],
    classify: exception::classify,
    ..Wire::OF_ITS_OWN
};
