//! Requests that a provider takes in parts, such as more inputs than it takes at once: the parts of an attempt follow each
//! other in Pingora's loop, and one response is made of all their replies.
//!
//! A part that fails is asked for again with another key or at another endpoint of the provider. If the attempt fails, the
//! next one begins with the first part, because answers of two providers do not go together.

use filters::models::wires::{Failure, FailureKind};
use pingora::{Error, Result};

use super::ModelExchange;
use crate::models::providers::endpoints::TriedEndpoints;
use crate::proxy::buffered::error_types::ATTEMPT_ABORTED;
use crate::proxy::context::RequestInfo;

impl ModelExchange {
    /// Ends the part whose reply is complete, if another follows. The call goes on in [`next_part`](Self::next_part).
    ///
    /// Errors: the one that makes Pingora ask again.
    pub(super) fn end_part(&mut self) -> Result<()> {
        let (call, running) = (&mut self.call, &mut self.running);
        if !running.cursor.parts.has_next() {
            return Ok(());
        }
        let (part, _) = running.measure_reply(call, true, 0);
        call.billing.end_part(part);
        running.reader.end_part();
        running.cursor.parts.has_ended = true;
        Err(Error::explain(ATTEMPT_ABORTED, "the next part follows").into_up())
    }

    /// Goes on to the next part, if the last one has ended; returns whether it follows. `None`: none has ended.
    pub(super) fn next_part(&mut self, info: &RequestInfo) -> Option<bool> {
        let cursor = &mut self.running.cursor;
        if !std::mem::take(&mut cursor.parts.has_ended) {
            return None;
        }
        if self.state.is_disconnected() {
            return Some(false);
        }
        if self.state.is_expired(info.now) {
            return Some(self.fail(info, Failure::new(FailureKind::Timeout)));
        }
        cursor.parts.part += 1;
        cursor.keeps_key = true;
        cursor.was_repeated = false;
        cursor.endpoint_retries = 0;
        cursor.tried_endpoints = TriedEndpoints::default();
        Some(true)
    }
}
