//! The wire of an API for images: OpenAI's, and the one of providers that draw by ratios.
//!
//! [`request`] says a request as JSON, [`form`] an edit as a form with files, [`reply`] reads whole replies and the events
//! of a stream.

mod form;
mod reply;
mod request;

#[cfg(test)]
mod tests;

use bytes::Bytes;
use http::{HeaderValue, header};

use crate::fault::Fault;
use crate::models::operation::Operation;
use crate::models::parameter::Parameter;
use crate::models::request::{ModelRequest, Payload};
use crate::models::routing::parameters::Parameters;
use crate::models::routing::providers::ProviderDefaults;
use crate::models::routing::wire_limits::{MediaLimits, NO_AUDIO, WireLimits};
use crate::models::wires::decoder::{Decoder, ReplyHead, no_decoder, not_offered};
use crate::models::wires::error_body;
use crate::models::wires::failure::Failure;
use crate::models::wires::quirks::Quirks;
use crate::models::wires::rate_limit::{self, LimitHeaders};
use crate::models::wires::wire::{Target, Wire, WireHead};

/// How an API for images says what is drawn.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ImagesDialect {
    /// By sizes in pixels; images that are edited are files of a form. OpenAI's.
    Sizes,
    /// By ratio and resolution; images that are edited are addresses or data URLs in JSON.
    Ratios,
}

/// The wire.
#[derive(Debug)]
pub struct Images {
    pub dialect: ImagesDialect,
}

impl Wire for Images {
    fn limits(&self, operation: Operation) -> Option<WireLimits> {
        let by_sizes = self.dialect == ImagesDialect::Sizes;
        operation.draws().then_some(WireLimits {
            media: MediaLimits {
                images: match self.dialect {
                    ImagesDialect::Sizes => &["image/png", "image/jpeg", "image/webp"],
                    ImagesDialect::Ratios => &[],
                },
                remote_images: !by_sizes,
                http_images: false,
                fetches: true,
                other_images: false,
                audio: NO_AUDIO,
                ..MediaLimits::WIDEST
            },
            ..WireLimits::WIDEST
        })
    }

    fn defaults(&self) -> ProviderDefaults {
        // Its models draw in a format of their own choice where nothing is said.
        let mut refused = Vec::new();
        let mut dropped = vec![
            Parameter::ImageSeed,
            Parameter::ImageStyle,
            Parameter::ResponseFormat,
        ];
        if self.dialect == ImagesDialect::Ratios {
            dropped = vec![
                Parameter::ImageSeed,
                Parameter::ImageStyle,
                Parameter::ImageModeration,
            ];
            refused.extend([
                Parameter::ImageBackground,
                Parameter::InputFidelity,
                Parameter::OutputFormat,
                Parameter::OutputCompression,
            ]);
        }
        ProviderDefaults {
            parameters: Parameters::plain().without(&dropped, &refused),
            ..ProviderDefaults::plain()
        }
    }

    fn head(&self, operation: Operation, _: bool, _: &str, _: &Quirks) -> Option<WireHead> {
        let form = HeaderValue::from_static(form::MEDIA_TYPE);
        match (operation, self.dialect) {
            (Operation::Images, _) => Some(WireHead::at("/images/generations")),
            (Operation::ImageEdits, dialect) => Some(WireHead {
                path: "/images/edits".to_owned(),
                headers: match dialect {
                    ImagesDialect::Sizes => vec![(header::CONTENT_TYPE, form)],
                    ImagesDialect::Ratios => Vec::new(),
                },
            }),
            _ => None,
        }
    }

    fn encode(&self, request: &ModelRequest, target: &Target<'_>) -> Result<Vec<Bytes>, Fault> {
        match &request.payload {
            Payload::Images(_, images) => request::encode(self.dialect, images, request, target),
            _ => Err(not_offered()),
        }
    }

    fn max_output(&self, _: &ModelRequest, _: &Target<'_>) -> Option<u64> {
        None
    }

    fn decoder(
        &self,
        request: &ModelRequest,
        target: &Target<'_>,
        head: &ReplyHead,
    ) -> Box<dyn Decoder> {
        match &request.payload {
            Payload::Images(..) => {
                let count = target.images_of_part(request);
                reply::decoder(count.into(), head)
            }
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
