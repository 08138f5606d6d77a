//! The state of a client connection's task: the deadline of its next head, and the result of checking its raw bytes.
//!
//! An HTTP/1 request runs on the task of its connection, so Pingora's hooks and the socket below Pingora share this
//! state.

use std::cell::Cell;
use std::time::Duration;

use filters::fault::{Fault, FaultKind};
use filters::proxy::{ChunkError, HeadError};
use tokio::time::Instant;

/// How long a client connection may idle between requests. After that, an HTTP/1 connection still has the timeout of a
/// head.
pub const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(75);

tokio::task_local! {
    /// The state of the connection that this task serves.
    pub(super) static CONNECTION: ConnectionState;
}

/// The state of a connection.
pub(super) struct ConnectionState {
    /// The deadline of the next head or of the handshake; `None` while neither is expected.
    due: Cell<Option<Instant>>,
    /// How long a head may take.
    timeout: Duration,
    /// Whether the connection speaks HTTP/2.
    is_http2: bool,
    /// Whether the handshake of HTTP/2 is running.
    is_in_handshake: Cell<bool>,
    /// Whether the previous request has ended, so that the next one may begin.
    is_turn_over: Cell<bool>,
    /// The result of checking the raw head, until the request takes it.
    head: Cell<Option<Result<(), HeadError>>>,
    /// The reason for which the raw body of the request was refused.
    body: Cell<Option<ChunkError>>,
}

impl ConnectionState {
    pub(super) fn new(is_http2: bool, timeout: Duration) -> Self {
        Self {
            due: Cell::new(Some(Instant::now() + timeout)),
            timeout,
            is_http2,
            is_in_handshake: Cell::new(false),
            is_turn_over: Cell::new(false),
            head: Cell::new(None),
            body: Cell::new(None),
        }
    }
}

/// Clears the deadline of this task's connection, because a head has arrived.
pub fn clear_head_deadline() {
    // An HTTP/2 stream starts with its head, and runs on its own task without a deadline.
    _ = CONNECTION.try_with(|connection| connection.due.set(None));
}

/// Lets the next request on this task's connection begin after one ended at `now`, and sets the deadline of its head.
pub fn expect_next_head(now: Instant) {
    // The streams of an HTTP/2 connection have no deadline. The connection may idle before its next request.
    _ = CONNECTION.try_with(|connection| {
        if !connection.is_http2 {
            let due = now + connection.timeout + KEEPALIVE_TIMEOUT;
            connection.due.set(Some(due));
            connection.is_turn_over.set(true);
        }
    });
}

/// Returns whether the next request may begin. Each ended request allows one.
pub(super) fn take_turn() -> bool {
    let taken = CONNECTION.try_with(|connection| connection.is_turn_over.take());
    taken.unwrap_or(false)
}

/// Records the result of checking the raw head of a request.
pub(super) fn judge_head(verdict: Result<(), HeadError>) {
    _ = CONNECTION.try_with(|connection| connection.head.set(Some(verdict)));
}

/// Records the reason for which the raw body of a request was refused.
pub(super) fn refuse_body(error: ChunkError) {
    _ = CONNECTION.try_with(|connection| connection.body.set(Some(error)));
}

/// Returns the result of checking the raw head of an HTTP/1 request, once per request.
///
/// Errors: 400, 414, 431; 500 for a head that was not checked.
pub fn take_head_verdict() -> Result<(), Fault> {
    let verdict = CONNECTION.try_with(|connection| connection.head.take());
    match verdict.ok().flatten() {
        Some(verdict) => verdict.map_err(Fault::from),
        None => Err(Fault::new(
            FaultKind::Internal,
            "nobody judged the request's head",
        )),
    }
}

/// Returns the fault of the body of this task's request, if its raw bytes were refused.
pub fn body_fault() -> Option<Fault> {
    let refused = CONNECTION.try_with(|connection| connection.body.get());
    refused.ok().flatten().map(Fault::from)
}

/// Returns whether this task's connection speaks HTTP/2, or `None` on the task of a stream. Pingora asks after the
/// handshake, so this ends the handshake's deadline.
pub(super) fn is_http2() -> Option<bool> {
    let is_http2 = CONNECTION.try_with(|connection| {
        if connection.is_in_handshake.take() {
            connection.due.set(None);
        }
        connection.is_http2
    });
    is_http2.ok()
}

/// Sets the deadline of the handshake of HTTP/2, which begins now.
pub(super) fn begin_handshake() {
    _ = CONNECTION.try_with(|connection| {
        connection.is_in_handshake.set(true);
        connection
            .due
            .set(Some(Instant::now() + connection.timeout));
    });
}

/// Returns once the deadline of this task's connection has passed.
///
/// It reads the deadline only when one may be due, so that a request costs no timer: every deadline is at least
/// `timeout` after the moment at which it was set.
pub(super) async fn head_expired(timeout: Duration) {
    let mut next_check = Instant::now() + timeout;
    loop {
        tokio::time::sleep_until(next_check).await;
        let now = Instant::now();
        next_check = match CONNECTION.with(|connection| connection.due.get()) {
            Some(due) if due <= now => return,
            Some(due) => due,
            None => now + timeout,
        };
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;

    use super::*;

    const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

    /// Returns the seconds after which a connection that does this has expired.
    async fn expires_after(connection: impl Future<Output = ()>) -> u64 {
        let started = Instant::now();
        let serves = async {
            connection.await;
            std::future::pending::<()>().await;
        };
        let timed = async {
            tokio::select! {
                () = serves => {}
                () = head_expired(HEAD_TIMEOUT) => {}
            }
        };
        let state = ConnectionState::new(false, HEAD_TIMEOUT);
        CONNECTION.scope(state, timed).await;
        started.elapsed().as_secs()
    }

    /// Waits, then sets a deadline in this many seconds from then.
    async fn set_due_after(seconds: u64, due: Option<u64>) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        let due = due.map(|seconds| Instant::now() + Duration::from_secs(seconds));
        CONNECTION.with(|connection| connection.due.set(due));
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_connection_expires() {
        assert_eq!(expires_after(async {}).await, 10);
    }

    #[tokio::test(start_paused = true)]
    async fn a_second_head_expires_at_its_own_deadline() {
        let connection = async {
            set_due_after(3, None).await;
            set_due_after(2, Some(85)).await;
        };
        assert_eq!(expires_after(connection).await, 90);
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_that_moves_between_checks_counts() {
        let connection = async {
            set_due_after(9, None).await;
            set_due_after(0, Some(20)).await;
            set_due_after(18, None).await;
            set_due_after(0, Some(12)).await;
        };
        assert_eq!(expires_after(connection).await, 39);
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_after_a_long_response_expires_too() {
        let connection = async {
            set_due_after(1, None).await;
            set_due_after(3600, Some(10)).await;
        };
        assert_eq!(expires_after(connection).await, 3611);
    }
}
