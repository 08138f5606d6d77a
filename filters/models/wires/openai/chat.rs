//! Chats, and images that a chat draws.

use super::{reply, request};
use crate::models::chat::facts::ChatFacts;
use crate::models::routing::wire_limits::WireLimits;
use crate::models::wires::codec::OperationCodec;

pub(super) static CODEC: OperationCodec<ChatFacts> = OperationCodec {
    limits: WireLimits {
        reasoning_modes: false,
        // Only a mapping's dialect has words for it.
        web_search: false,
        ..WireLimits::WIDEST
    },
    max_output: |request, _, target| target.max_tokens(request),
    ..OperationCodec::new(
        "chat/completions",
        request::encode,
        |request, _, target, head| reply::decoder(request, target, head),
    )
};
