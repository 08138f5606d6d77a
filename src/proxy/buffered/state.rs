//! State that the exchange and the buffered session of one request share: the stage of the response, the body of the running
//! attempt ([`body`]), and the time at which to abort the attempt or to send a keepalive ([`timers`]).
//!
//! Its lock is never held across an await. Callers pass the time in as [`Instant`]s.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use filters::sse::KEEPALIVE;
use futures::future::BoxFuture;
use pingora::{Error, Result};
use tokio::time::Instant;

use super::interim::Interim;
use super::kept_stream::KeptStream;
use crate::proxy::drain::Drain;
use crate::proxy::hedge::Race;
use crate::proxy::upload::BodyPiece;

mod body;
mod timers;

pub use timers::{Timeouts, Wake};

use body::UnsentBody;

/// The stage of a response.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Stage {
    /// No content was sent; another provider may still serve the request.
    Pending,
    Committed,
    /// The whole response was sent.
    Complete,
}

/// Delays the last byte of a response. If it returns false, the response must not be completed.
pub type Gate = BoxFuture<'static, bool>;

/// The facts on which a write to the client depends.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Whether the client has disconnected and the reply is being drained.
    pub is_disconnected: bool,
    /// Whether our head was sent, with or without content.
    pub is_head_sent: bool,
}

/// Progress and timers of one request.
pub struct AttemptState {
    state: Mutex<LockedState>,
    timeouts: Timeouts,
    is_stream: bool,
    /// Whether only the request body is buffered.
    is_replay: bool,
    request_deadline: Instant,
    race: Option<Arc<Race>>,
    interim: OnceLock<Interim>,
    /// When the process ends, if it does.
    drain: OnceLock<Drain>,
    /// What is sent while the provider is silent.
    keepalive: &'static str,
}

struct LockedState {
    stage: Stage,
    is_head_sent: bool,
    attempt: RunningAttempt,
    last_write: Instant,
    /// Whether the provider bills the whole reply even if the client disconnects.
    bills_after_disconnect: bool,
    disconnected_at: Option<Instant>,
    /// The time at which a client lost its connection, if it may return.
    lost_at: Option<Instant>,
    gate: Option<Gate>,
}

/// The part of the state that each attempt begins anew.
struct RunningAttempt {
    started: Instant,
    /// How long the attempt may wait for its first event, if that is less than usual.
    patience: Option<Duration>,
    last_event: Option<Instant>,
    body: UnsentBody,
    /// Whether at least the head of a reply has arrived.
    has_reply: bool,
    /// The time at which the provider refused the request.
    refused_at: Option<Instant>,
    has_timed_out: bool,
    /// Why the reply broke, until the events before the break are sent.
    broken: Option<Box<Error>>,
}

impl RunningAttempt {
    /// Starts an attempt with this body.
    fn new(body: UnsentBody, started: Instant) -> Self {
        Self {
            started,
            patience: None,
            last_event: None,
            body,
            has_reply: false,
            refused_at: None,
            has_timed_out: false,
            broken: None,
        }
    }
}

impl AttemptState {
    /// Returns the state of a request that arrived at `now`.
    pub fn new(is_stream: bool, timeouts: Timeouts, now: Instant) -> Self {
        let state = LockedState {
            stage: Stage::Pending,
            is_head_sent: false,
            attempt: RunningAttempt::new(UnsentBody::default(), now),
            last_write: now,
            bills_after_disconnect: false,
            disconnected_at: None,
            lost_at: None,
            gate: None,
        };
        let request_deadline = now + timeouts.request;
        Self {
            state: Mutex::new(state),
            timeouts,
            is_stream,
            is_replay: false,
            request_deadline,
            race: None,
            interim: OnceLock::new(),
            drain: OnceLock::new(),
            keepalive: KEEPALIVE,
        }
    }

    /// Sets the events that may happen before the response, once.
    pub fn set_interim(&self, interim: Interim) {
        _ = self.interim.set(interim);
    }

    /// Returns the events that may happen before the response.
    pub fn interim(&self) -> Option<&Interim> {
        self.interim.get()
    }

    /// Sets the drain of the process, whose deadline counts as that of the request, once.
    pub fn set_drain(&self, drain: Drain) {
        _ = self.drain.set(drain);
    }

    /// Returns whether the client's connection closes after the response.
    pub(super) fn is_draining(&self) -> bool {
        self.drain.get().is_some_and(Drain::has_begun)
    }

    /// Returns when the time of all attempts is over.
    fn end_of_request(&self) -> Instant {
        let drained = self.drain.get().and_then(Drain::deadline);
        drained.map_or(self.request_deadline, |at| at.min(self.request_deadline))
    }

    /// Sets the hedge that may run beside an attempt.
    #[must_use]
    pub fn with_race(self, race: Option<Arc<Race>>) -> Self {
        Self { race, ..self }
    }

    /// Sets what is sent while the provider is silent.
    #[must_use]
    pub fn with_keepalive(self, keepalive: &'static str) -> Self {
        Self { keepalive, ..self }
    }

    /// Returns what is sent while the provider is silent.
    pub(super) fn keepalive(&self) -> Bytes {
        Bytes::from_static(self.keepalive.as_bytes())
    }

    /// Returns the hedge, if there may be one.
    pub(super) fn race(&self) -> Option<&Race> {
        self.race.as_deref()
    }

    /// Returns the state of a request that is forwarded unchanged: its body is replayed, its response is not buffered, and
    /// only the timeouts of the connection apply.
    pub fn replay(body: Bytes) -> Self {
        let timeouts = Timeouts {
            first_event: Duration::ZERO,
            idle: Duration::ZERO,
            attempt: Duration::ZERO,
            request: Duration::ZERO,
            keepalive: Duration::ZERO,
        };
        let now = Instant::now();
        let state = Self::new(false, timeouts, now);
        let pieces = [body].into_iter().filter(|body| !body.is_empty());
        state.begin_attempt(pieces.map(BodyPiece::Bytes).collect(), now);
        state.mark_head_sent();
        Self {
            is_replay: true,
            ..state
        }
    }

    /// Returns whether [`replay`](Self::replay) made the state.
    pub fn is_replay(&self) -> bool {
        self.is_replay
    }

    /// Starts an attempt with this body, whose first piece is in memory.
    pub fn begin_attempt(&self, pieces: Vec<BodyPiece>, now: Instant) {
        self.lock().attempt = RunningAttempt::new(UnsentBody::new(pieces), now);
    }

    /// Starts the attempt that was a hedge since `started`. Its request was sent.
    pub fn begin_hedge(&self, started: Instant) {
        self.lock().attempt = RunningAttempt::new(UnsentBody::sent(), started);
    }

    /// Lets the session call the exchange. The body counts as unfinished until [`record_sent`](Self::record_sent).
    pub(super) fn call_exchange(&self) {
        self.lock().attempt.body.call_exchange();
    }

    /// Records that the pieces read so far are sent. Returns false if this was the session's call and nothing is
    /// sent.
    pub fn record_sent(&self) -> bool {
        self.lock().attempt.body.record_sent()
    }

    /// Returns whether the whole request of the running attempt was sent and the attempt has not failed.
    pub fn is_sent(&self) -> bool {
        self.lock().attempt.body.is_sent()
    }

    /// Ends a reply that broke behind its first content once the events before the break are sent.
    ///
    /// Errors: the given one, if the client gets none of these events, so that the attempt ends at once. Pingora drops the
    /// events that it passes on together with one that returns an error.
    pub fn break_off(&self, error: Box<Error>) -> Result<()> {
        let mut state = self.lock();
        let is_lost = state.lost_at.is_some() || state.disconnected_at.is_some();
        if state.stage != Stage::Committed || is_lost {
            return Err(error);
        }
        state.attempt.broken = Some(error);
        Ok(())
    }

    /// Ends an attempt that has said its part of the response, once the events of it are sent. Its error begins the next attempt.
    ///
    /// Errors: the given one, if there is no client to send events to, so that the attempt ends at once.
    pub fn end_part(&self, error: Box<Error>) -> Result<()> {
        let mut state = self.lock();
        if state.lost_at.is_some() || state.disconnected_at.is_some() {
            return Err(error);
        }
        state.attempt.broken = Some(error);
        Ok(())
    }

    /// Takes the error of [`break_off`](Self::break_off) or [`end_part`](Self::end_part).
    pub(super) fn take_break(&self) -> Option<Box<Error>> {
        self.lock().attempt.broken.take()
    }

    /// Records that the provider's status has refused the running attempt. Only the reason of the refusal is still
    /// read.
    pub fn record_refusal(&self, now: Instant) {
        let attempt = &mut self.lock().attempt;
        attempt.body.record_failure();
        attempt.refused_at = Some(now);
    }

    /// Records that the running attempt has failed.
    pub fn record_failure(&self) {
        self.lock().attempt.body.record_failure();
    }

    /// Records that the provider has replied to the running attempt.
    pub fn record_reply(&self) {
        self.lock().attempt.has_reply = true;
    }

    /// Returns whether at least the head of a reply to the running attempt has arrived.
    pub fn has_reply(&self) -> bool {
        self.lock().attempt.has_reply
    }

    /// Returns the first piece of the body.
    pub fn first_piece(&self) -> Option<Bytes> {
        self.lock().attempt.body.first_piece()
    }

    /// Returns whether all pieces after the first were read.
    pub fn is_body_done(&self) -> bool {
        self.lock().attempt.body.is_done()
    }

    /// Returns the length of the whole body.
    pub fn body_bytes(&self) -> usize {
        self.lock().attempt.body.len()
    }

    /// Returns the next bytes after the first piece, or `None` if there are none.
    ///
    /// Errors: an upload cannot be read.
    pub fn next_bytes(&self) -> io::Result<Option<Bytes>> {
        self.lock().attempt.body.next_bytes()
    }

    /// Sets whether the provider of this attempt bills the whole reply even if the client disconnects.
    pub fn set_bills_after_disconnect(&self, bills_after_disconnect: bool) {
        self.lock().bills_after_disconnect = bills_after_disconnect;
    }

    /// Limits how long the running attempt waits for its first event, in addition to the timeouts.
    pub fn set_patience(&self, patience: Duration) {
        self.lock().attempt.patience = Some(patience);
    }

    /// Records that the client disconnected. Returns whether the reply is drained: a request that was not sent has no
    /// reply. The hedge is closed, because its reply has no reader.
    pub fn disconnect(&self, now: Instant) -> bool {
        if let Some(race) = self.race() {
            race.cancel();
        }
        let mut state = self.lock();
        let is_billed = state.bills_after_disconnect && state.attempt.body.is_sent();
        let is_drained = is_billed && state.stage != Stage::Complete;
        if is_drained {
            state.disconnected_at.get_or_insert(now);
        }
        is_drained
    }

    /// Records that the connection to the client is lost. Returns whether the reply is still read. A client that
    /// knows an event id may return for its answer; for any other client this is [`disconnect`](Self::disconnect).
    pub fn lose_client(&self, now: Instant) -> bool {
        if self.kept().is_some_and(KeptStream::has_begun) {
            let mut state = self.lock();
            if state.is_head_sent && state.disconnected_at.is_none() {
                state.lost_at.get_or_insert(now);
                return true;
            }
        }
        self.disconnect(now)
    }

    /// Returns whether nothing more can be sent to the client, because it disconnected or its connection is lost.
    pub fn is_lost(&self) -> bool {
        let state = self.lock();
        state.lost_at.is_some() || state.disconnected_at.is_some()
    }

    fn kept(&self) -> Option<&KeptStream> {
        self.interim()?.kept.as_deref()
    }

    /// Lets clients that have returned get a complete answer.
    pub(super) fn release_kept(&self) {
        if let (Some(kept), Stage::Complete) = (self.kept(), self.stage()) {
            kept.release();
        }
    }

    /// Returns the facts on which a write to the client depends.
    pub fn progress(&self) -> Progress {
        let state = self.lock();
        Progress {
            is_disconnected: state.disconnected_at.is_some(),
            is_head_sent: state.is_head_sent,
        }
    }

    /// Records that head and content are sent at `now`. Returns the gate for which they wait.
    pub fn commit(&self, now: Instant) -> Option<Gate> {
        let mut state = self.lock();
        if state.stage == Stage::Pending {
            state.stage = Stage::Committed;
        }
        state.is_head_sent = true;
        state.last_write = now;
        state.gate.take()
    }

    /// Returns whether the client has disconnected and the reply is being drained.
    pub fn is_disconnected(&self) -> bool {
        self.lock().disconnected_at.is_some()
    }

    /// Delays the last byte of the response until the gate is open.
    pub fn set_gate(&self, gate: Gate) {
        self.lock().gate = Some(gate);
    }

    /// Records that the provider sent an event.
    pub fn record_event(&self, now: Instant) {
        let attempt = &mut self.lock().attempt;
        attempt.last_event = Some(now);
        attempt.has_reply = true;
    }

    /// Records that bytes were sent to the client.
    pub fn record_write(&self, now: Instant) {
        self.lock().last_write = now;
    }

    /// Returns the stage of the response.
    pub fn stage(&self) -> Stage {
        self.lock().stage
    }

    /// Sets the stage of the response.
    pub fn set_stage(&self, stage: Stage) {
        self.lock().stage = stage;
    }

    /// Returns whether our head was sent, with or without content.
    pub fn is_head_sent(&self) -> bool {
        self.lock().is_head_sent
    }

    /// Records that our head was sent.
    pub fn mark_head_sent(&self) {
        self.lock().is_head_sent = true;
    }

    /// Records that a timer ended the attempt.
    pub fn record_timeout(&self) {
        self.lock().attempt.has_timed_out = true;
    }

    /// Returns whether a timer ended the attempt, once.
    pub fn take_timeout(&self) -> bool {
        std::mem::take(&mut self.lock().attempt.has_timed_out)
    }

    /// Returns whether the response is an event stream.
    pub fn is_stream(&self) -> bool {
        self.is_stream
    }

    /// Returns whether the time of all attempts is over.
    pub fn is_expired(&self, now: Instant) -> bool {
        now >= self.end_of_request()
    }

    /// Returns whether the provider of the running attempt bills the whole reply even if the client disconnects.
    pub fn bills_after_disconnect(&self) -> bool {
        self.lock().bills_after_disconnect
    }

    fn lock(&self) -> MutexGuard<'_, LockedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
