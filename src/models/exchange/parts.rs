//! Requests that a provider takes in parts, such as more inputs than it takes at once: the parts of an attempt follow each
//! other in Pingora's loop, and one response is made of all their replies.
//!
//! A part that fails is asked for again with another key or at another endpoint of the provider. If the attempt fails, the
//! next one begins with the first part, because answers of two providers do not go together.

use filters::models::wires::{Failure, FailureKind};
use pingora::{Error, Result};

use super::{ModelExchange, billing, failure};
use crate::models::providers::endpoints::TriedEndpoints;
use crate::proxy::buffered::error_types::ATTEMPT_ABORTED;
use crate::proxy::context::RequestInfo;

/// How far the running attempt has come.
#[derive(Default)]
pub(super) struct PartProgress {
    /// The part that it asks for, from 0.
    pub(super) part: u32,
    /// How many parts there are.
    pub(super) count: u32,
    /// Bytes of text of this part, for estimates.
    pub(super) text_bytes: u64,
    /// The part has ended, and the next follows.
    has_ended: bool,
}

impl PartProgress {
    /// Returns whether another part follows this one.
    fn has_next(&self) -> bool {
        self.part + 1 < self.count
    }
}

/// Returns whether another part follows the one at hand.
pub(super) fn is_followed(exchange: &ModelExchange) -> bool {
    exchange.cursor.parts.has_next()
}

/// Ends the part whose reply is complete, if another follows. The exchange goes on in [`next`].
///
/// Errors: the one that makes Pingora ask again.
pub(super) fn end(exchange: &mut ModelExchange) -> Result<()> {
    if !exchange.cursor.parts.has_next() {
        return Ok(());
    }
    billing::end_part(exchange);
    exchange.reader.end_part();
    exchange.cursor.parts.has_ended = true;
    Err(Error::explain(ATTEMPT_ABORTED, "the next part follows").into_up())
}

/// Goes on to the next part, if the last one has ended; returns whether it follows. `None`: none has ended.
pub(super) fn next(exchange: &mut ModelExchange, info: &RequestInfo) -> Option<bool> {
    if !std::mem::take(&mut exchange.cursor.parts.has_ended) {
        return None;
    }
    if exchange.state.is_disconnected() {
        return Some(false);
    }
    if exchange.state.is_expired(info.now) {
        return Some(failure::next(
            exchange,
            info,
            Failure::new(FailureKind::Timeout),
        ));
    }
    let cursor = &mut exchange.cursor;
    cursor.parts.part += 1;
    cursor.keeps_key = true;
    cursor.was_repeated = false;
    cursor.endpoint_retries = 0;
    cursor.tried_endpoints = TriedEndpoints::default();
    Some(true)
}
