//! The Messages wire.
//!
//! [`request`] and [`messages`] say a request in its words, [`breakpoints`] marks what it shall cache, [`reply`] reads whole replies and events with the same
//! blocks, [`failure`] its errors. Opaque thinking state rides in `reasoning_details` with the format
//! [`FORMAT`] and the provider's name, and only goes back to that provider.
//! Blocks of tools that the provider runs ride in `vendor_native_blocks`.
//! Deliberately absent: other server tools than the searches, batches, files by id.

mod blocks;
mod breakpoints;
mod earlier;
mod failure;
mod media;
mod messages;
mod open_block;
mod rate_limit;
mod reply;
mod request;
mod tools;
mod usage;

#[cfg(test)]
mod breakpoints_tests;
#[cfg(test)]
mod tests;

use bytes::Bytes;
use http::{HeaderName, HeaderValue};

use crate::fault::Fault;
use crate::models::operation::Operation;
use crate::models::request::{ModelRequest, Payload};
use crate::models::routing::providers::ProviderDefaults;
use crate::models::routing::wire_limits::{MediaLimits, NO_AUDIO, WireLimits};
use crate::models::wires::decoder::{Decoder, ReplyHead};
use crate::models::wires::decoder::{no_decoder, not_offered};
use crate::models::wires::failure::Failure;
use crate::models::wires::quirks::Quirks;
use crate::models::wires::rate_limit::LimitHeaders;
use crate::models::wires::wire::{Target, Wire, WireHead, credential};

/// What marks our carriers of thinking state. Source: docs/facts/model-gateway.md 10.6.
const FORMAT: &str = "anthropic-claude-v1";

/// Media types of images. Source: docs/facts/wire-formats.md 3.1.
const IMAGES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/// The wire.
#[derive(Debug)]
pub struct Anthropic;

impl Wire for Anthropic {
    fn limits(&self, operation: Operation) -> Option<WireLimits> {
        (operation == Operation::Chat).then_some(WireLimits {
            choices: 1,
            streams_choices: false,
            media: MediaLimits {
                images: &IMAGES,
                http_images: false,
                fetches: true,
                other_images: false,
                audio: NO_AUDIO,
                files: &["application/pdf", "text/*", "application/json"],
                file_ids: false,
                ..MediaLimits::WIDEST
            },
            assistant_first: false,
            service_tiers: false,
            reasoning_modes: false,
            blank_stops: false,
            image_output: false,
            ..WireLimits::WIDEST
        })
    }

    fn defaults(&self) -> ProviderDefaults {
        request::defaults()
    }

    fn head(&self, operation: Operation, _: bool, _: &str, _: &Quirks) -> Option<WireHead> {
        (operation == Operation::Chat).then(request::head)
    }

    fn list_head(&self) -> Option<WireHead> {
        Some(WireHead {
            path: "/v1/models?limit=1000".to_owned(),
            ..request::head()
        })
    }

    fn request_headers(&self, request: &ModelRequest) -> Vec<(HeaderName, HeaderValue)> {
        request::own_headers(request)
    }

    fn credential(&self, secret: &str, _: &Quirks) -> Result<(HeaderName, HeaderValue), Fault> {
        credential(request::KEY, secret)
    }

    fn encode(&self, request: &ModelRequest, target: &Target<'_>) -> Result<Vec<Bytes>, Fault> {
        match &request.payload {
            Payload::Chat(chat) => request::encode(request, chat, target),
            _ => Err(not_offered()),
        }
    }

    fn max_output(&self, request: &ModelRequest, target: &Target<'_>) -> Option<u64> {
        Some(request::max_tokens(request, target))
    }

    fn draws(&self, _: &ModelRequest, _: &Target<'_>) -> Option<bool> {
        Some(false)
    }

    fn decoder(
        &self,
        request: &ModelRequest,
        target: &Target<'_>,
        head: &ReplyHead,
    ) -> Box<dyn Decoder> {
        match &request.payload {
            Payload::Chat(_) => reply::decoder(target, head),
            _ => no_decoder(),
        }
    }

    fn rate_limits(&self) -> &'static [LimitHeaders] {
        &rate_limit::LIMITS
    }

    fn classify(&self, status: u16, body: &[u8]) -> Failure {
        failure::classify(status, body)
    }
}
