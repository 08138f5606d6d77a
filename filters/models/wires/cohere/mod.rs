//! Cohere's wire, version 2 of its API: embeddings, rerank.

mod embeddings;
mod failure;
mod rerank;

use bytes::Bytes;

use crate::fault::Fault;
use crate::models::embeddings::batch::BatchLimits;
use crate::models::operation::Operation;
use crate::models::request::{ModelRequest, Payload};
use crate::models::routing::parameters::Parameters;
use crate::models::routing::providers::ProviderDefaults;
use crate::models::routing::wire_limits::WireLimits;
use crate::models::wires::decoder::{Decoder, ReplyHead, no_decoder, not_offered};
use crate::models::wires::failure::Failure;
use crate::models::wires::quirks::Quirks;
use crate::models::wires::ranking;
use crate::models::wires::wire::{Target, Wire, WireHead};

/// The wire. Its providers tell no limits in the heads of their replies.
#[derive(Debug)]
pub struct Cohere;

impl Wire for Cohere {
    fn limits(&self, operation: Operation) -> Option<WireLimits> {
        match operation {
            Operation::Embeddings => Some(embeddings::LIMITS),
            Operation::Rerank => Some(WireLimits::WIDEST),
            _ => None,
        }
    }

    fn defaults(&self) -> ProviderDefaults {
        ProviderDefaults {
            parameters: Parameters::of_another_convention(),
            ..ProviderDefaults::plain()
        }
    }

    fn head(&self, operation: Operation, _: bool, _: &str, _: &Quirks) -> Option<WireHead> {
        let path = match operation {
            Operation::Embeddings => "/v2/embed",
            Operation::Rerank => "/v2/rerank",
            _ => return None,
        };
        Some(WireHead::at(path))
    }

    fn list_head(&self) -> Option<WireHead> {
        Some(WireHead::at("/v1/models?page_size=1000"))
    }

    fn encode(&self, request: &ModelRequest, target: &Target<'_>) -> Result<Vec<Bytes>, Fault> {
        match &request.payload {
            Payload::Embeddings(facts) => embeddings::encode(request, facts, target),
            Payload::Rerank(facts) => rerank::encode(request, facts, target),
            _ => Err(not_offered()),
        }
    }

    fn embeddings_at_once(&self) -> BatchLimits {
        embeddings::AT_ONCE
    }

    fn decoder(
        &self,
        request: &ModelRequest,
        target: &Target<'_>,
        _: &ReplyHead,
    ) -> Box<dyn Decoder> {
        match &request.payload {
            Payload::Embeddings(facts) => embeddings::decoder(facts, target),
            Payload::Rerank(facts) => ranking::decoder(request, facts),
            _ => no_decoder(),
        }
    }

    fn classify(&self, status: u16, body: &[u8]) -> Failure {
        failure::classify(status, body)
    }
}
