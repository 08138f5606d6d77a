//! The Gemini API's wire.
//!
//! [`request`] and [`contents`] say a request in its words, [`schema`] cleans schemas down to what it knows,
//! [`reply`] reads whole replies and events alike, because an event is a reply with partial parts.
//! Thought signatures ride on tool calls as `extra_content.google.thought_signature` and go back from there.
//! Deliberately absent: cached contents, search, files by reference, fetching of images by address.

mod contents;
mod failure;
mod reply;
mod request;
mod schema;

#[cfg(test)]
mod tests;

use super::{Decoder, Failure, Target, UpstreamRequest, Wire};
use crate::fault::Fault;
use crate::models::reply::Sink;
use crate::models::request::{ModelRequest, Payload};

/// The family.
#[derive(Debug)]
pub struct Google;

impl Wire for Google {
    fn encode(
        &self,
        request: &ModelRequest,
        target: &Target<'_>,
    ) -> Result<UpstreamRequest, Fault> {
        match &request.payload {
            Payload::Chat(chat) => request::encode(request, chat, target),
        }
    }

    fn output_bound(&self, request: &ModelRequest, _target: &Target<'_>) -> Option<u64> {
        request.needs.max_tokens
    }

    fn decode(&self, body: &[u8], _: &Target<'_>, sink: &mut dyn Sink) -> Result<(), Failure> {
        reply::decode(body, sink)
    }

    fn stream(&self, _: &Target<'_>) -> Box<dyn Decoder> {
        Box::new(reply::ContentEvents::default())
    }

    fn refusal(&self, status: u16, body: &[u8]) -> Failure {
        failure::refusal(status, body)
    }
}
