//! The Messages wire.
//!
//! [`request`] and [`messages`] say a request in its words, [`reply`] reads whole replies and events with the same
//! blocks, [`failure`] its errors. Opaque thinking state rides in `reasoning_details` with the format
//! [`FORMAT`] and the provider's name, and only goes back to that provider.
//! Deliberately absent: server tools (search, tool search), batches, files by id.

mod blocks;
mod failure;
mod messages;
mod reply;
mod request;
mod usage;

#[cfg(test)]
mod tests;

use super::{Decoder, Failure, Target, UpstreamRequest, Wire};
use crate::fault::Fault;
use crate::models::reply::Sink;
use crate::models::request::{ModelRequest, Payload};

/// What marks our carriers of thinking state. Source: docs/facts/model-gateway.md 10.6.
const FORMAT: &str = "anthropic-claude-v1";

/// The family.
#[derive(Debug)]
pub struct Anthropic;

impl Wire for Anthropic {
    fn encode(
        &self,
        request: &ModelRequest,
        target: &Target<'_>,
    ) -> Result<UpstreamRequest, Fault> {
        match &request.payload {
            Payload::Chat(chat) => request::encode(request, chat, target),
        }
    }

    fn output_bound(&self, request: &ModelRequest, target: &Target<'_>) -> Option<u64> {
        Some(request::max_tokens(request, target))
    }

    fn decode(&self, body: &[u8], target: &Target<'_>, sink: &mut dyn Sink) -> Result<(), Failure> {
        reply::decode(body, target.provider, sink)
    }

    fn stream(&self, target: &Target<'_>) -> Box<dyn Decoder> {
        Box::new(reply::MessageEvents::new(target.provider))
    }

    fn refusal(&self, status: u16, body: &[u8]) -> Failure {
        failure::refusal(status, body)
    }
}
