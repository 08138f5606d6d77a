//! The wire of providers that make vectors and rank documents, each in words of its own.

use bytes::Bytes;

use super::decoder::{Decoder, ReplyHead, no_decoder, not_offered};
use super::failure::Failure;
use super::quirks::Quirks;
use super::ranking::{self, Words};
use super::wire::{Target, Wire, WireHead};
use crate::fault::Fault;
use crate::models::embeddings::EmbeddingFacts;
use crate::models::embeddings::batch::BatchLimits;
use crate::models::operation::Operation;
use crate::models::request::{ModelRequest, Payload};
use crate::models::routing::parameters::Parameters;
use crate::models::routing::providers::ProviderDefaults;
use crate::models::routing::wire_limits::WireLimits;

/// The API of such providers. They tell no limits in the heads of their replies.
pub(super) struct VectorApi {
    pub(super) embeddings: EmbeddingsCodec,
    pub(super) rerank_path: &'static str,
    pub(super) rerank_words: Words,
    /// The member of a ranking beyond the convention that goes out.
    pub(super) rerank_passes: &'static str,
    pub(super) list_path: Option<&'static str>,
    pub(super) classify: fn(u16, &[u8]) -> Failure,
}

/// How such a provider makes embeddings.
pub(super) struct EmbeddingsCodec {
    pub(super) path: &'static str,
    pub(super) limits: WireLimits,
    pub(super) at_once: BatchLimits,
    pub(super) encode: fn(&ModelRequest, &EmbeddingFacts, &Target<'_>) -> Result<Vec<Bytes>, Fault>,
    pub(super) decoder: fn(&EmbeddingFacts, &Target<'_>) -> Box<dyn Decoder>,
}

impl Wire for VectorApi {
    fn limits(&self, operation: Operation) -> Option<WireLimits> {
        match operation {
            Operation::Embeddings => Some(self.embeddings.limits),
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
        match operation {
            Operation::Embeddings => Some(WireHead::at(self.embeddings.path)),
            Operation::Rerank => Some(WireHead::at(self.rerank_path)),
            _ => None,
        }
    }

    fn list_head(&self) -> Option<WireHead> {
        self.list_path.map(WireHead::at)
    }

    fn encode(&self, request: &ModelRequest, target: &Target<'_>) -> Result<Vec<Bytes>, Fault> {
        match &request.payload {
            Payload::Embeddings(facts) => (self.embeddings.encode)(request, facts, target),
            Payload::Rerank(facts) => {
                let passes = |key: &str| key == self.rerank_passes;
                ranking::encode(request, facts, target, &self.rerank_words, passes)
            }
            _ => Err(not_offered()),
        }
    }

    fn embeddings_at_once(&self) -> BatchLimits {
        self.embeddings.at_once
    }

    fn decoder(
        &self,
        request: &ModelRequest,
        target: &Target<'_>,
        _: &ReplyHead,
    ) -> Box<dyn Decoder> {
        match &request.payload {
            Payload::Embeddings(facts) => (self.embeddings.decoder)(facts, target),
            Payload::Rerank(facts) => ranking::decoder(request, facts),
            _ => no_decoder(),
        }
    }

    fn classify(&self, status: u16, body: &[u8]) -> Failure {
        (self.classify)(status, body)
    }
}
