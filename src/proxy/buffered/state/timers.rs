//! What happens if no event comes, and when.

use std::time::Duration;

use tokio::time::Instant;

use super::{AttemptState, LockedState, Stage};

/// How long each stage of a response may take. Source: docs/promises-tests.md, docs/decisions.md 12.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// Streams: the time until the provider's first event.
    pub first_event: Duration,
    /// Streams: the time between two events.
    pub idle: Duration,
    pub attempt: Duration,
    /// The time of all attempts together.
    pub request: Duration,
    /// Streams: the time without a byte to the client after which a comment is sent.
    pub keepalive: Duration,
}

/// How long a reply is drained after the client disconnects, to learn its cost. Source: docs/promises-tests.md.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);

/// How long to wait for the reason of a refusal, after its head. Meanwhile no other provider is asked.
const REFUSAL_TIMEOUT: Duration = Duration::from_millis(250);

/// How long a provider may keep its stream open after the terminal event.
const TERMINAL_TIMEOUT: Duration = Duration::from_secs(1);

/// The next step if no event comes before the step's time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Wake {
    /// Send a comment or a notice to the client.
    Keepalive,
    /// Abort the attempt.
    Abort,
    /// The reply is complete: stop waiting for the provider to close.
    Finish,
    /// Begin a hedge beside the attempt.
    Hedge,
    /// Give up a kept stream to which no client has returned.
    GiveUp,
}

impl AttemptState {
    /// Returns the next step if no event comes, and its time.
    pub fn next_wake(&self) -> (Instant, Wake) {
        let state = self.lock();
        let next = self.next_of_attempt(&state);
        match self.hedge_due(&state) {
            Some(due) if due < next.0 => (due, Wake::Hedge),
            _ => next,
        }
    }

    /// Returns when a hedge is due. The running attempt's request must be sent, and its reply must have no content.
    fn hedge_due(&self, state: &LockedState) -> Option<Instant> {
        let race = self.race()?;
        let is_asked = state.attempt.body.is_sent() && state.attempt.refused_at.is_none();
        let is_waiting = state.stage == Stage::Pending && state.disconnected_at.is_none();
        if is_asked && is_waiting {
            race.due(state.attempt.started)
        } else {
            None
        }
    }

    fn next_of_attempt(&self, state: &LockedState) -> (Instant, Wake) {
        if state.stage == Stage::Complete {
            return (state.last_write + TERMINAL_TIMEOUT, Wake::Finish);
        }
        let attempt_deadline = state.attempt.started + self.timeouts.attempt;
        let mut deadline = attempt_deadline.min(self.end_of_request());
        if let Some(at) = state.attempt.refused_at {
            return (deadline.min(at + REFUSAL_TIMEOUT), Wake::Abort);
        }
        if let Some(at) = state.disconnected_at {
            return (deadline.min(at + DRAIN_TIMEOUT), Wake::Abort);
        }
        if let Some(patience) = state
            .attempt
            .patience
            .filter(|_| state.attempt.last_event.is_none())
        {
            deadline = deadline.min(state.attempt.started + patience);
        }
        if self.is_stream {
            deadline = deadline.min(match state.attempt.last_event {
                None => state.attempt.started + self.timeouts.first_event,
                Some(at) => at + self.timeouts.idle,
            });
        }
        if let (Some(lost), Some(kept)) = (state.lost_at, self.kept()) {
            let given_up = kept.give_up_time(lost, Instant::now());
            return if given_up < deadline {
                (given_up, Wake::GiveUp)
            } else {
                (deadline, Wake::Abort)
            };
        }
        let comment = self
            .is_stream
            .then(|| state.last_write + self.timeouts.keepalive);
        let notice = self.interim().and_then(|it| it.due(state.last_write));
        match comment.into_iter().chain(notice).min() {
            Some(at) if at < deadline => (at, Wake::Keepalive),
            _ => (deadline, Wake::Abort),
        }
    }
}
