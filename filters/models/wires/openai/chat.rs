//! Chats, and images that a chat draws.

use super::{drawing, reply, request, translated};
use crate::fault::Fault;
use crate::models::chat::facts::ChatFacts;
use crate::models::dialects::Dialect;
use crate::models::images::ImageFacts;
use crate::models::request::ModelRequest;
use crate::models::routing::wire_limits::WireLimits;
use crate::models::wires::codec::{BodySlice, OperationCodec};
use crate::models::wires::wire::Target;

pub(super) static CODEC: OperationCodec<ChatFacts> = OperationCodec {
    limits: LIMITS,
    max_output: |request, _, target| target.max_tokens(request),
    ..OperationCodec::new(PATH, encode, |request, _, target, head| {
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

fn encode(
    request: &ModelRequest,
    facts: &ChatFacts,
    target: &Target<'_>,
) -> Result<Vec<BodySlice>, Fault> {
    match request.is_said_in(Dialect::Chat) {
        true => request::encode(request, facts, target),
        false => translated::encode(request, target),
    }
}

const PATH: &str = "chat/completions";

const LIMITS: WireLimits = WireLimits {
    dialect: Some(Dialect::Chat),
    reasoning_modes: false,
    // Only a mapping's dialect has words for it.
    web_search: false,
    ..WireLimits::WIDEST
};
