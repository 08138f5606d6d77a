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

use super::{Decoder, Encoded, Failure, Provider, Target};
use crate::fault::Fault;
use crate::models::chat::delta::Sink;
use crate::models::request::Request;

/// The family.
#[derive(Debug)]
pub struct Google;

impl Provider for Google {
    fn encode(&self, request: &Request, target: &Target<'_>) -> Result<Encoded, Fault> {
        request::encode(request, target)
    }

    fn output_bound(&self, request: &Request, _target: &Target<'_>) -> Option<u64> {
        request.max_tokens
    }

    fn decode(&self, body: &[u8], _: &Target<'_>, sink: &mut dyn Sink) -> Result<(), Failure> {
        reply::decode(body, sink)
    }

    fn stream(&self, _: &Target<'_>) -> Box<dyn Decoder> {
        Box::new(reply::Events::default())
    }

    fn refusal(&self, status: u16, body: &[u8]) -> Failure {
        failure::refusal(status, body)
    }
}
