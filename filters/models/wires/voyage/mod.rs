//! Voyage's wire: embeddings. Its replies have the shapes of OpenAI's convention, its requests have words of their own.

mod embeddings;

use bytes::Bytes;
use http::{HeaderName, HeaderValue};

use crate::fault::Fault;
use crate::models::operation::Operation;
use crate::models::request::{ModelRequest, Payload};
use crate::models::routing::capable::WireLimits;
use crate::models::routing::parameters::Parameters;
use crate::models::routing::providers::ProviderDefaults;
use crate::models::wires::decoder::{Decoder, ReplyHead, no_decoder, not_offered};
use crate::models::wires::embedding_list;
use crate::models::wires::error_body;
use crate::models::wires::failure::Failure;
use crate::models::wires::quirks::Quirks;
use crate::models::wires::wire::{Parts, Target, Wire, WireHead, convention_credential};

/// The wire. Its providers tell no limits in the heads of their replies.
#[derive(Debug)]
pub struct Voyage;

impl Wire for Voyage {
    fn limits(&self, operation: Operation) -> Option<WireLimits> {
        match operation {
            Operation::Embeddings => Some(embeddings::LIMITS),
            Operation::Chat | Operation::Speech => None,
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
            Operation::Embeddings => "/embeddings",
            Operation::Chat | Operation::Speech => return None,
        };
        Some(WireHead {
            path: path.to_owned(),
            headers: Vec::new(),
        })
    }

    fn list_head(&self) -> Option<WireHead> {
        None
    }

    fn credential(
        &self,
        secret: &str,
        quirks: &Quirks,
    ) -> Result<(HeaderName, HeaderValue), Fault> {
        convention_credential(secret, quirks)
    }

    fn encode(&self, request: &ModelRequest, target: &Target<'_>) -> Result<Vec<Bytes>, Fault> {
        match &request.payload {
            Payload::Embeddings(facts) => embeddings::encode(request, facts, target),
            Payload::Chat(_) | Payload::Speech(_) => Err(not_offered()),
        }
    }

    fn parts(&self, request: &ModelRequest, target: &Target<'_>) -> Parts {
        match &request.payload {
            Payload::Embeddings(facts) => embedding_list::parts(facts, target, embeddings::AT_ONCE),
            _ => Parts::one(request),
        }
    }

    fn max_output(&self, _: &ModelRequest, _: &Target<'_>) -> Option<u64> {
        // What it answers is no text: only the prompt costs.
        Some(0)
    }

    fn decoder(
        &self,
        request: &ModelRequest,
        target: &Target<'_>,
        _: &ReplyHead,
    ) -> Box<dyn Decoder> {
        match &request.payload {
            Payload::Embeddings(facts) => embeddings::decoder(facts, target),
            Payload::Chat(_) | Payload::Speech(_) => no_decoder(),
        }
    }

    fn classify(&self, status: u16, body: &[u8]) -> Failure {
        error_body::classify(status, body)
    }
}
