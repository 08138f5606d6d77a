//! Chats.

use super::{reply, request};
use crate::models::chat::facts::ChatFacts;
use crate::models::dialects::Dialect;
use crate::models::routing::wire_limits::{MediaLimits, NO_AUDIO, WireLimits};
use crate::models::wires::codec::OperationCodec;

pub(super) static CODEC: OperationCodec<ChatFacts> = OperationCodec {
    limits: WireLimits {
        dialect: Some(Dialect::ChatV2),
        choices: 1,
        streams_choices: false,
        media: MediaLimits {
            images: &["image/jpeg", "image/png", "image/gif", "image/webp"],
            http_images: false,
            fetches: true,
            other_images: false,
            audio: NO_AUDIO,
            // They become documents.
            files: &["text/*"],
            file_ids: false,
            ..MediaLimits::WIDEST
        },
        service_tiers: false,
        reasoning_modes: false,
        image_output: false,
        web_search: false,
        ..WireLimits::WIDEST
    },
    max_output: |request, _, target| target.max_tokens(request),
    draws: |_, _| Some(false),
    ..OperationCodec::new(
        "/chat",
        |request, _, target| request::encode(request, target),
        |_, _, _, head| reply::decoder(head),
    )
};
