//! The Gemini API's wire.
//!
//! [`request`] and [`contents`] say a request in its words, [`schema`] cleans schemas down to what it knows,
//! [`reply`] reads whole replies and events alike, because an event is a reply with partial parts.
//! Thought signatures of calls ride on them as `extra_content.google.thought_signature` and go back from there; those of
//! texts ride in `reasoning_details` with the format [`FORMAT`] and the provider's name.
//! Deliberately absent: cached contents.

mod candidate;
mod contents;
mod decisions;
mod drawing;
mod embeddings;
mod failure;
mod grounding;
mod parts;
mod reply;
mod request;
mod schema;
mod speech;
mod usage;
mod videos;

#[cfg(test)]
mod tests;

use bytes::Bytes;
use http::{HeaderName, HeaderValue};

use crate::fault::Fault;
use crate::models::embeddings::batch::BatchLimits;
use crate::models::operation::Operation;
use crate::models::request::{ModelRequest, Payload};
use crate::models::routing::providers::ProviderDefaults;
use crate::models::routing::wire_limits::{MediaLimits, WireLimits};
use crate::models::wires::decoder::{Decoder, ReplyHead, no_decoder, not_offered};
use crate::models::wires::failure::Failure;
use crate::models::wires::quirks::Quirks;
use crate::models::wires::wire::{Target, VideoWire, Wire, WireHead, credential};

/// What marks our carriers of thinking state. Source: docs/facts/model-gateway.md 10.6.
const FORMAT: &str = "google-gemini-v1";

/// The wire.
#[derive(Debug)]
pub struct Google;

impl Wire for Google {
    fn limits(&self, operation: Operation) -> Option<WireLimits> {
        match operation {
            // Source: docs/model-gateway.md 2.1.
            Operation::Chat | Operation::Images | Operation::ImageEdits => Some(WireLimits {
                choices: 8,
                streams_choices: false,
                media: MediaLimits {
                    remote_images: false,
                    http_images: false,
                    fetches: true,
                    other_images: false,
                    ..MediaLimits::WIDEST
                },
                reasoning_modes: false,
                // The model searches when it sees fit.
                demanded_search: false,
                ..WireLimits::WIDEST
            }),
            Operation::Embeddings => Some(WireLimits {
                token_inputs: false,
                ..WireLimits::WIDEST
            }),
            Operation::Speech => Some(WireLimits {
                speech_formats: &speech::FORMATS,
                ..WireLimits::WIDEST
            }),
            Operation::TypedDecisions => Some(WireLimits::WIDEST),
            Operation::Videos => Some(WireLimits::WIDEST),
            _ => None,
        }
    }

    fn defaults(&self) -> ProviderDefaults {
        request::defaults()
    }

    fn head(
        &self,
        operation: Operation,
        is_stream: bool,
        model: &str,
        _: &Quirks,
    ) -> Option<WireHead> {
        let method = match (operation, is_stream) {
            (Operation::Speech, _) => "streamGenerateContent?alt=sse",
            (Operation::Embeddings, _) => "batchEmbedContents",
            (Operation::Videos, _) => "predictLongRunning",
            (Operation::Chat | Operation::Images | Operation::ImageEdits, true) => {
                "streamGenerateContent?alt=sse"
            }
            (Operation::Chat | Operation::Images | Operation::ImageEdits, false) => {
                "generateContent"
            }
            (Operation::TypedDecisions, _) => return Some(WireHead::at("/v1beta/decisions")),
            _ => return None,
        };
        let model = request::escaped(model);
        Some(WireHead::at(format!("/v1beta/models/{model}:{method}")))
    }

    fn list_head(&self) -> Option<WireHead> {
        Some(WireHead::at("/v1beta/models?pageSize=1000"))
    }

    fn credential(&self, secret: &str, _: &Quirks) -> Result<(HeaderName, HeaderValue), Fault> {
        credential(request::KEY, secret)
    }

    fn encode(&self, request: &ModelRequest, target: &Target<'_>) -> Result<Vec<Bytes>, Fault> {
        match &request.payload {
            Payload::Chat(chat) | Payload::Images(chat, _) => {
                request::encode(request, chat, target)
            }
            Payload::Embeddings(facts) => embeddings::encode(request, facts, target),
            Payload::TypedDecisions(facts) => Ok(decisions::encode(request, facts, target)),
            Payload::Speech(facts) => speech::encode(request, facts, target),
            Payload::Videos(facts) => videos::encode(request, facts, target),
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
        head: &ReplyHead,
    ) -> Box<dyn Decoder> {
        match &request.payload {
            Payload::Chat(_) | Payload::Images(..) => reply::decoder(request, target, head),
            Payload::Embeddings(facts) => embeddings::decoder(facts, target),
            Payload::TypedDecisions(facts) => decisions::decoder(facts),
            Payload::Speech(facts) => speech::decoder(facts, head),
            Payload::Videos(_) => videos::decoder(),
            _ => no_decoder(),
        }
    }

    fn videos(&self) -> Option<&'static dyn VideoWire> {
        Some(&videos::Operations)
    }

    fn tier_header(&self) -> Option<HeaderName> {
        Some(HeaderName::from_static("x-gemini-service-tier"))
    }

    fn classify(&self, status: u16, body: &[u8]) -> Failure {
        failure::classify(status, body)
    }
}
