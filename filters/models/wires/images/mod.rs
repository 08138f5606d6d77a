//! The wire of an API for images: OpenAI's, and the one of providers that draw by ratios.
//!
//! [`request`] says a request as JSON, [`form`] an edit as a form with files, [`reply`] reads whole replies and the events
//! of a stream.

mod form;
mod reply;
mod request;

#[cfg(test)]
mod tests;

use self::request::ImagesDialect;
use crate::models::images::ImageFacts;
use crate::models::operation::Operation;
use crate::models::parameter::Parameter;
use crate::models::routing::parameters::Parameters;
use crate::models::routing::providers::ProviderDefaults;
use crate::models::routing::wire_limits::{MediaLimits, NO_AUDIO, WireLimits};
use crate::models::wires::codec::{Encode, OperationCodec};
use crate::models::wires::rate_limit;
use crate::models::wires::wire::Wire;

/// OpenAI's, which draws by sizes in pixels.
pub static IMAGES: Wire = Wire {
    codecs: &[
        (Operation::Images, &BY_SIZE),
        (Operation::ImageEdits, &EDITS_BY_SIZE),
    ],
    defaults: || {
        defaults(
            &[
                Parameter::ImageSeed,
                Parameter::ImageStyle,
                Parameter::ResponseFormat,
            ],
            &[],
        )
    },
    rate_limits: &rate_limit::CONVENTION,
    ..Wire::OF_ITS_OWN
};

/// The one of providers that draw by ratios.
pub static IMAGES_BY_RATIO: Wire = Wire {
    codecs: &[
        (Operation::Images, &BY_RATIO),
        (Operation::ImageEdits, &EDITS_BY_RATIO),
    ],
    defaults: || {
        defaults(
            &[
                Parameter::ImageSeed,
                Parameter::ImageStyle,
                Parameter::ImageModeration,
            ],
            &[
                Parameter::ImageBackground,
                Parameter::InputFidelity,
                Parameter::OutputFormat,
                Parameter::OutputCompression,
            ],
        )
    },
    ..IMAGES
};

static BY_SIZE: OperationCodec<ImageFacts> = by_size("/images/generations");
static EDITS_BY_SIZE: OperationCodec<ImageFacts> = OperationCodec {
    fixed_headers: &[("content-type", form::MEDIA_TYPE)],
    ..by_size("/images/edits")
};
static BY_RATIO: OperationCodec<ImageFacts> = by_ratio("/images/generations");
static EDITS_BY_RATIO: OperationCodec<ImageFacts> = by_ratio("/images/edits");

/// Images that are edited are files of a form.
const fn by_size(endpoint: &'static str) -> OperationCodec<ImageFacts> {
    let encode: Encode<ImageFacts> =
        |request, images, target| request::encode(ImagesDialect::Sizes, images, request, target);
    codec(
        endpoint,
        encode,
        MediaLimits {
            images: &["image/png", "image/jpeg", "image/webp"],
            remote_images: false,
            ..MEDIA
        },
    )
}

/// Images that are edited are addresses or data URLs in JSON.
const fn by_ratio(endpoint: &'static str) -> OperationCodec<ImageFacts> {
    let encode: Encode<ImageFacts> =
        |request, images, target| request::encode(ImagesDialect::Ratios, images, request, target);
    codec(endpoint, encode, MEDIA)
}

const MEDIA: MediaLimits = MediaLimits {
    http_images: false,
    fetches: true,
    other_images: false,
    audio: NO_AUDIO,
    ..MediaLimits::WIDEST
};

const fn codec(
    endpoint: &'static str,
    encode: Encode<ImageFacts>,
    media: MediaLimits,
) -> OperationCodec<ImageFacts> {
    OperationCodec {
        limits: WireLimits {
            media,
            ..WireLimits::WIDEST
        },
        max_output: |_, _, _| None,
        ..OperationCodec::new(endpoint, encode, |request, _, target, head| {
            let count = target.images_of_part(request);
            reply::decoder(count.into(), head)
        })
    }
}

/// Its models draw in a format of their own choice where nothing is said.
fn defaults(dropped: &[Parameter], refused: &[Parameter]) -> ProviderDefaults {
    ProviderDefaults {
        parameters: Parameters::plain().without(dropped, refused),
        ..ProviderDefaults::plain()
    }
}
