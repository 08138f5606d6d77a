//! What the hooks and the held session of one request tell each other: how far the answer is, and when to
//! give up or to show a sign of life.
//!
//! A lock of its own, never held across an await. Time comes in as [`Instant`]s.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use tokio::time::Instant;

/// How long each stage of an answer may take. Source: docs/promises.md, docs/decisions.md 12.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// Streams: until the provider's first event.
    pub first_event: Duration,
    /// Streams: between two events.
    pub idle: Duration,
    /// One attempt as a whole.
    pub attempt: Duration,
    /// All attempts together.
    pub request: Duration,
    /// Streams: how long the client hears nothing.
    pub keepalive: Duration,
}

/// How long an answer is read on that nobody waits for any more, to learn what it costs. Source: docs/promises.md.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a provider may keep its stream open behind the terminal event.
const TERMINAL_TIMEOUT: Duration = Duration::from_secs(1);

/// How far the answer is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Stage {
    /// Nothing of an answer has gone out; another provider may still answer.
    Pending,
    /// Content has gone out.
    Committed,
    /// The whole answer has gone out.
    Complete,
}

/// Delays the last byte of a response; false: the response must not be completed.
pub type Gate = BoxFuture<'static, bool>;

/// What to do next if nothing happens.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Wake {
    /// Send the client a comment.
    Keepalive,
    /// Give the attempt up.
    Abort,
    /// The answer is complete: stop waiting for the provider to close.
    Finish,
}

/// See the module.
pub struct AttemptState {
    state: Mutex<State>,
    timeouts: Timeouts,
    is_stream: bool,
    /// Whether the body is given again and nothing else is held.
    is_replay: bool,
    request_until: Instant,
}

struct State {
    stage: Stage,
    is_head_sent: bool,
    attempt_started: Instant,
    last_event: Option<Instant>,
    last_write: Instant,
    pieces: Vec<Bytes>,
    next_piece: usize,
    has_timed_out: bool,
    /// The provider bills the whole answer whoever leaves.
    bills_after_disconnect: bool,
    client_left: Option<Instant>,
    gate: Option<Gate>,
}

impl AttemptState {
    /// The state of a request that came in at `now`.
    pub fn new(is_stream: bool, timeouts: Timeouts, now: Instant) -> Self {
        let state = State {
            stage: Stage::Pending,
            is_head_sent: false,
            attempt_started: now,
            last_event: None,
            last_write: now,
            pieces: Vec::new(),
            next_piece: 0,
            has_timed_out: false,
            bills_after_disconnect: false,
            client_left: None,
            gate: None,
        };
        let request_until = now + timeouts.request;
        Self {
            state: Mutex::new(state),
            timeouts,
            is_stream,
            is_replay: false,
            request_until,
        }
    }

    /// The state of a request that is passed on as it came: its body is given again, nothing of its answer is held,
    /// and the peer's own timeouts keep time.
    pub fn replay(body: Bytes) -> Self {
        let timeouts = Timeouts {
            first_event: Duration::ZERO,
            idle: Duration::ZERO,
            attempt: Duration::ZERO,
            request: Duration::ZERO,
            keepalive: Duration::ZERO,
        };
        let state = Self::new(false, timeouts, Instant::now());
        let pieces = [body].into_iter().filter(|body| !body.is_empty());
        state.begin(pieces.collect(), Instant::now());
        state.sent_head();
        Self {
            is_replay: true,
            ..state
        }
    }

    /// Whether it is of [`replay`](Self::replay).
    pub fn is_replay(&self) -> bool {
        self.is_replay
    }

    /// Begins an attempt with this body.
    pub fn begin(&self, pieces: Vec<Bytes>, now: Instant) {
        let mut state = self.lock();
        state.attempt_started = now;
        state.last_event = None;
        state.pieces = pieces;
        state.next_piece = 0;
        state.has_timed_out = false;
    }

    /// The first piece of the body.
    pub fn first_piece(&self) -> Option<Bytes> {
        self.lock().pieces.first().cloned()
    }

    /// Whether all pieces but the first have been handed out.
    pub fn is_body_done(&self) -> bool {
        let state = self.lock();
        state.next_piece + 1 >= state.pieces.len()
    }

    /// The length of the whole body.
    pub fn body_bytes(&self) -> usize {
        self.lock().pieces.iter().map(Bytes::len).sum()
    }

    /// The next piece behind the first.
    pub fn next_piece(&self) -> Option<Bytes> {
        let mut state = self.lock();
        let piece = state.pieces.get(state.next_piece + 1).cloned();
        state.next_piece += usize::from(piece.is_some());
        piece
    }

    /// Whether the running attempt's provider bills the whole answer whoever leaves.
    pub fn bills_after_disconnect(&self, is_so: bool) {
        self.lock().bills_after_disconnect = is_so;
    }

    /// The client has left; answers whether the answer is read on all the same.
    pub fn leave(&self, now: Instant) -> bool {
        let mut state = self.lock();
        let reads_on = state.bills_after_disconnect && state.stage != Stage::Complete;
        if reads_on {
            state.client_left.get_or_insert(now);
        }
        reads_on
    }

    /// Whether the client has left, and the answer is read on.
    pub fn is_disconnected(&self) -> bool {
        self.lock().client_left.is_some()
    }

    /// Delays the last byte of the response until the gate is open.
    pub fn set_gate(&self, gate: Gate) {
        self.lock().gate = Some(gate);
    }

    /// Takes what the last byte waits for.
    pub fn take_gate(&self) -> Option<Gate> {
        self.lock().gate.take()
    }

    /// The provider sent something.
    pub fn saw_event(&self, now: Instant) {
        self.lock().last_event = Some(now);
    }

    /// The client was sent something.
    pub fn wrote(&self, now: Instant) {
        self.lock().last_write = now;
    }

    /// How far the answer is.
    pub fn stage(&self) -> Stage {
        self.lock().stage
    }

    /// The answer has come this far.
    pub fn advance(&self, stage: Stage) {
        self.lock().stage = stage;
    }

    /// Whether a head of ours has gone out, with or without content behind it.
    pub fn is_head_sent(&self) -> bool {
        self.lock().is_head_sent
    }

    /// A head of ours has gone out.
    pub fn sent_head(&self) {
        self.lock().is_head_sent = true;
    }

    /// Records that a timer ended the attempt.
    pub fn time_out(&self) {
        self.lock().has_timed_out = true;
    }

    /// Returns whether a timer ended the attempt, once.
    pub fn take_timeout(&self) -> bool {
        std::mem::take(&mut self.lock().has_timed_out)
    }

    /// Whether the response is an event stream.
    pub fn is_stream(&self) -> bool {
        self.is_stream
    }

    /// Whether the time for all attempts is over.
    pub fn is_over(&self, now: Instant) -> bool {
        now >= self.request_until
    }

    /// When to wake up if nothing happens, and what for.
    pub fn next_wake(&self) -> (Instant, Wake) {
        let state = self.lock();
        if state.stage == Stage::Complete {
            return (state.last_write + TERMINAL_TIMEOUT, Wake::Finish);
        }
        let attempt_until = state.attempt_started + self.timeouts.attempt;
        let mut until = attempt_until.min(self.request_until);
        if let Some(left) = state.client_left {
            return (until.min(left + DRAIN_TIMEOUT), Wake::Abort);
        }
        if self.is_stream {
            until = until.min(match state.last_event {
                None => state.attempt_started + self.timeouts.first_event,
                Some(at) => at + self.timeouts.idle,
            });
            let keepalive = state.last_write + self.timeouts.keepalive;
            if keepalive < until {
                return (keepalive, Wake::Keepalive);
            }
        }
        (until, Wake::Abort)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
