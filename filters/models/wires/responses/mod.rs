//! OpenAI's second API, Responses: the same models with items in place of messages.
//!
//! [`request`] and [`history`] say a request in its words, [`reply`] reads whole replies and events into [`output`], which
//! both share. Nothing is stored at the provider: reasoning comes encrypted, rides in `reasoning_details` ([`reasoning`]),
//! and goes back to its provider before the message or the call that followed it. A client that speaks Responses itself has its
//! body spliced ([`splice`]) and the answer passed on.
//! Searches are counted and their citations handed out; their items stay behind.
//! Deliberately absent: other hosted tools (search among functions too), stored responses, background, probabilities of tokens.

mod annotations;
mod chat;
mod drawing;
mod history;
mod input;
mod item;
mod output;
mod reasoning;
mod reply;
mod request;
mod splice;
mod tools;
mod usage;

#[cfg(test)]
mod tests;

use crate::models::dialects::Dialect;
use crate::models::operation::Operation;
use crate::models::wires::rate_limit;
use crate::models::wires::wire::Wire;

/// The wire.
pub static RESPONSES: Wire = Wire {
    dialect: Some(Dialect::Responses),
    codecs: &[
        (Operation::Chat, &chat::CODEC),
        (Operation::Images, &chat::CODEC),
        (Operation::ImageEdits, &chat::CODEC),
    ],
    defaults: request::defaults,
    rate_limits: &rate_limit::CONVENTION,
    ..Wire::OF_ITS_OWN
};
