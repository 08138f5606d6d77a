//! Chats, and images that a chat draws.

use super::{drawing, reply, request};
use crate::models::dialects::Dialect;
use crate::models::request::Payload;
use crate::models::routing::wire_limits::WireLimits;
use crate::models::wires::codec::OperationCodec;

pub(super) static CODEC: OperationCodec<Payload> = OperationCodec {
    limits: WireLimits {
        dialect: Some(Dialect::Responses),
        choices: 1,
        streams_choices: false,
        ..WireLimits::WIDEST
    },
    max_output: |request, _, target| request::max_output(request, target),
    draws: |request, target| Some(drawing::is_wanted(request, target)),
    ..OperationCodec::new(
        "/responses",
        |request, _, target| request::encode(request, target),
        |request, _, target, head| reply::decoder(request, target, head),
    )
};
