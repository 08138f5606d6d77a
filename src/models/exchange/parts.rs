//! Requests that a provider takes in parts, for example with more inputs than it accepts at once. The parts of an
//! attempt follow each other in Pingora's loop, and one response is made of all their replies.
//!
//! A failed part is repeated with another key or at another endpoint of the provider. If the attempt fails, the next
//! one begins with the first part, because replies of two providers cannot be mixed.

use filters::models::wires::{Failure, FailureKind};
use pingora::{Error, Result};

use super::ModelExchange;
use crate::models::providers::endpoints::TriedEndpoints;
use crate::proxy::buffered::error_types::ATTEMPT_ABORTED;
use crate::proxy::context::RequestInfo;

impl ModelExchange {
    /// Ends a part with a complete reply if another part follows. The call continues in
    /// [`next_part`](Self::next_part).
    ///
    /// Errors: the error that makes Pingora send another request.
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

    /// Moves to the next part if the last one has ended. Returns whether a part follows, or `None` if none has ended.
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
