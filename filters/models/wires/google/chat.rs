//! Chats, and images that a chat draws.

use super::{reply, request};
use crate::models::dialects::Dialect;
use crate::models::request::Payload;
use crate::models::routing::wire_limits::{MediaLimits, WireLimits};
use crate::models::wires::codec::OperationCodec;

pub(super) static CODEC: OperationCodec<Payload> = OperationCodec {
    // Source: docs/model-gateway.md 2.1.
    limits: WireLimits {
        dialect: Some(Dialect::Contents),
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
    },
    stream_endpoint: "/models/{model}:streamGenerateContent?alt=sse",
    max_output: |request, _, target| target.max_tokens(request),
    ..OperationCodec::new(
        "/models/{model}:generateContent",
        |request, _, target| request::encode(request, target),
        |request, _, target, head| reply::decoder(request, target, head),
    )
};
