//! Chats, and images that a chat draws.

use super::{drawing, reply, request};
use crate::models::chat::facts::ChatFacts;
use crate::models::images::ImageFacts;
use crate::models::routing::wire_limits::WireLimits;
use crate::models::wires::codec::OperationCodec;

pub(super) static CODEC: OperationCodec<ChatFacts> = OperationCodec {
    limits: LIMITS,
    max_output: |request, _, target| target.max_tokens(request),
    ..OperationCodec::new(PATH, request::encode, |request, _, target, head| {
        reply::decoder(request, target, head)
    })
};

pub(super) static IMAGES: OperationCodec<ImageFacts> = OperationCodec {
    limits: LIMITS,
    max_output: |request, _, target| target.max_tokens(request),
    ..OperationCodec::new(
        PATH,
        |request, _, target| drawing::encode(request, target),
        |request, _, target, head| reply::decoder(request, target, head),
    )
};

const PATH: &str = "chat/completions";

const LIMITS: WireLimits = WireLimits {
    reasoning_modes: false,
    // Only a mapping's dialect has words for it.
    web_search: false,
    ..WireLimits::WIDEST
};
