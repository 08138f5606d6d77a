//! OpenAI's second API, Responses: the same models with items in place of messages.
//!
//! [`request`] and [`history`] say a request in its words, [`reply`] reads whole replies and events into [`output`], which
//! both share. Nothing is stored at the provider: reasoning comes encrypted, rides in `reasoning_details` ([`reasoning`]),
//! and goes back to its provider before the message or the call that followed it ([`turn`] keeps their order).
//! Searches are counted and their citations handed out; their items stay behind.
//! Deliberately absent: other hosted tools (search among functions too), stored responses, background, probabilities of tokens.

mod annotations;
mod drawing;
mod history;
mod input;
mod item;
mod output;
mod reasoning;
mod reply;
mod request;
mod tools;
mod turn;
mod usage;

#[cfg(test)]
mod tests;

use bytes::Bytes;

use crate::fault::Fault;
use crate::models::operation::Operation;
use crate::models::request::{ModelRequest, Payload};
use crate::models::routing::providers::ProviderDefaults;
use crate::models::routing::wire_limits::WireLimits;
use crate::models::wires::decoder::{Decoder, ReplyHead};
use crate::models::wires::decoder::{no_decoder, not_offered};
use crate::models::wires::error_body;
use crate::models::wires::failure::Failure;
use crate::models::wires::quirks::Quirks;
use crate::models::wires::rate_limit::{self, LimitHeaders};
use crate::models::wires::wire::{Target, Wire, WireHead};

/// The wire.
#[derive(Debug)]
pub struct Responses;

/// Returns whether it is a chat, or stands for one.
fn is_chat(operation: Operation) -> bool {
    operation == Operation::Chat || operation.draws()
}

impl Wire for Responses {
    fn limits(&self, operation: Operation) -> Option<WireLimits> {
        is_chat(operation).then_some(WireLimits {
            choices: 1,
            streams_choices: false,
            ..WireLimits::WIDEST
        })
    }

    fn defaults(&self) -> ProviderDefaults {
        request::defaults()
    }

    fn head(&self, operation: Operation, _: bool, _: &str, _: &Quirks) -> Option<WireHead> {
        is_chat(operation).then(|| WireHead::at("/responses"))
    }

    fn encode(&self, request: &ModelRequest, target: &Target<'_>) -> Result<Vec<Bytes>, Fault> {
        match &request.payload {
            Payload::Chat(chat) | Payload::Images(chat, _) => {
                request::encode(request, chat, target)
            }
            _ => Err(not_offered()),
        }
    }

    fn max_output(&self, request: &ModelRequest, target: &Target<'_>) -> Option<u64> {
        request::max_output(request, target)
    }

    fn draws(&self, request: &ModelRequest, target: &Target<'_>) -> Option<bool> {
        Some(drawing::is_wanted(request, target))
    }

    fn decoder(
        &self,
        request: &ModelRequest,
        target: &Target<'_>,
        head: &ReplyHead,
    ) -> Box<dyn Decoder> {
        match &request.payload {
            Payload::Chat(_) | Payload::Images(..) => reply::decoder(target, head),
            _ => no_decoder(),
        }
    }

    fn rate_limits(&self) -> &'static [LimitHeaders] {
        &rate_limit::CONVENTION
    }

    fn classify(&self, status: u16, body: &[u8]) -> Failure {
        error_body::classify(status, body)
    }
}
