//! Chats.

use super::{media, reply, request};
use crate::models::chat::facts::ChatFacts;
use crate::models::dialects::Dialect;
use crate::models::routing::wire_limits::{MediaLimits, NO_AUDIO, WireLimits};
use crate::models::wires::codec::OperationCodec;

pub(super) static CODEC: OperationCodec<ChatFacts> = OperationCodec {
    limits: WireLimits {
        dialect: Some(Dialect::Converse),
        choices: 1,
        streams_choices: false,
        media: MediaLimits {
            images: &media::IMAGES,
            remote_images: false,
            http_images: false,
            fetches: true,
            other_images: false,
            audio: NO_AUDIO,
            files: &media::FILES,
            file_ids: false,
        },
        assistant_first: false,
        reasoning_modes: false,
        blank_stops: false,
        image_output: false,
        web_search: false,
        ..WireLimits::WIDEST
    },
    stream_endpoint: "/model/{model}/converse-stream",
    fixed_headers: &[(
        "accept",
        "application/json, application/vnd.amazon.eventstream",
    )],
    max_output: |request, _, target| request::max_tokens(request, target),
    draws: |_, _| Some(false),
    ..OperationCodec::new(
        "/model/{model}/converse",
        |request, _, target| request::encode(request, target),
        |request, _, _, head| reply::decoder(request, head),
    )
};
