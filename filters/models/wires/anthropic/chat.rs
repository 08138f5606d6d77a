//! Chats.

use super::{reply, request};
use crate::models::chat::facts::ChatFacts;
use crate::models::dialects::Dialect;
use crate::models::routing::wire_limits::{MediaLimits, NO_AUDIO, WireLimits};
use crate::models::wires::codec::OperationCodec;

pub(super) static CODEC: OperationCodec<ChatFacts> = OperationCodec {
    limits: WireLimits {
        dialect: Some(Dialect::Messages),
        choices: 1,
        streams_choices: false,
        media: MediaLimits {
            images: &super::IMAGES,
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
    },
    headers: |request, _, target| request::own_headers(request, target),
    max_output: |request, _, target| Some(request::max_tokens(request, target)),
    draws: |_, _| Some(false),
    ..OperationCodec::new("/messages", request::encode, |request, _, target, head| {
        reply::decoder(request, target, head)
    })
};
