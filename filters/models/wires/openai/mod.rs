//! The wire that is ours already: providers of the chat-completions convention, OpenAI first among them.
//!
//! A request is never parsed into a tree: the body goes out as slices of what came, with the members that have
//! to change spliced in ([`request`], [`messages`]). Events are scanned, and their strings copied as they are
//! escaped ([`stream`]). What is special about one provider is data ([`Quirks`](super::Quirks)).

mod alike;
mod calls;
mod failure;
mod messages;
mod reply;
mod request;
mod splice;
mod stream;
mod usage;

#[cfg(test)]
mod tests;

use super::{Decoder, Failure, Target, UpstreamRequest, Wire};
use crate::fault::Fault;
use crate::models::reply::Sink;
use crate::models::request::{ModelRequest, Payload};

/// The family.
#[derive(Debug)]
pub struct OpenAi;

impl Wire for OpenAi {
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

    fn decode(&self, body: &[u8], target: &Target<'_>, sink: &mut dyn Sink) -> Result<(), Failure> {
        reply::decode(body, target, sink)
    }

    fn stream(&self, target: &Target<'_>) -> Box<dyn Decoder> {
        Box::new(stream::ChunkEvents::new(target.quirks))
    }

    fn refusal(&self, status: u16, body: &[u8]) -> Failure {
        failure::refusal(status, body)
    }
}
