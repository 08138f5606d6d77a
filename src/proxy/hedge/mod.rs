//! A hedge: a second attempt of a request, beside the one that Pingora's loop runs.
//!
//! Pingora runs one attempt at a time. A hedge is a [`call`] of our own, and a [`Race`] holds it: the client's
//! buffered session polls the race while it waits, and calls the exchange whenever the hedge has news. If the hedge
//! is to serve the request, the exchange aborts Pingora's attempt and adopts the hedge as the next one: Pingora then
//! reads it from a [`socket`] that first replays the received bytes. So keepalives, timeouts, backpressure and the
//! end of the response are those of any attempt. A hedge has no task of its own, so dropping it closes it.

mod call;
mod socket;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use pingora::Error;
use pingora::http::ResponseHeader;
use tokio::time::Instant;

use self::call::HedgeReply;
pub use self::call::{HedgeCall, HedgeConnector, Permission};
pub use self::socket::Adopted;

/// The maximum bytes of a reply without content that are kept. Beyond them the reply is not read, unless it is
/// adopted.
const MAX_KEPT_BYTES: usize = 16 << 20;

/// A piece of the hedge's reply.
#[derive(Clone, Debug)]
pub enum Piece {
    /// The head of the final response.
    Head(Box<ResponseHeader>),
    /// Bytes of the body, at least one.
    Body(Bytes),
}

/// An event of a hedge, for the exchange.
#[derive(Debug)]
pub enum News {
    /// The hedge was not permitted, and no provider was asked.
    Refused,
    /// A piece of the reply has arrived.
    Piece(Piece),
    /// The reply is complete.
    End,
    /// The hedge broke.
    Failed(Box<Error>),
}

/// The hedge of one request, also before it begins. The buffered session and the exchange share it.
pub struct Race {
    /// An attempt may be silent for this long before the hedge begins.
    after: Duration,
    /// Whether the whole request of the hedge was sent.
    is_sent: Arc<AtomicBool>,
    phase: Mutex<Phase>,
}

enum Phase {
    /// The hedge begins when an attempt is silent for too long.
    Armed,
    /// The hedge runs beside Pingora's attempt.
    Running(RunningHedge),
    /// The hedge became Pingora's attempt, was cancelled, has failed, or never was. The error is set if it broke as
    /// Pingora's attempt.
    Over(Option<Box<Error>>),
}

struct RunningHedge {
    started: Instant,
    reply: HedgeReply,
    kept: Vec<Piece>,
    kept_bytes: usize,
    /// The newest event that the exchange has not taken.
    news: Option<News>,
}

impl Race {
    /// Returns the race of a request whose attempts may be silent for this long.
    pub fn new(after: Duration) -> Self {
        Self {
            after,
            is_sent: Arc::default(),
            phase: Mutex::new(Phase::Armed),
        }
    }

    /// Returns when the hedge is due beside an attempt that began at `started`. Returns `None` if it has begun or
    /// never will.
    pub(super) fn due(&self, started: Instant) -> Option<Instant> {
        self.is_armed().then(|| started + self.after)
    }

    /// Returns whether the hedge may still begin.
    pub fn is_armed(&self) -> bool {
        matches!(*self.lock(), Phase::Armed)
    }

    /// Returns whether the hedge runs beside Pingora's attempt.
    pub fn is_running(&self) -> bool {
        matches!(*self.lock(), Phase::Running(_))
    }

    /// Returns whether the whole request of the hedge was sent.
    pub fn is_sent(&self) -> bool {
        self.is_sent.load(Ordering::Relaxed)
    }

    /// Begins the hedge.
    pub fn begin(&self, call: HedgeCall, now: Instant) {
        let running = RunningHedge {
            started: now,
            reply: call.run(Arc::clone(&self.is_sent)),
            kept: Vec::new(),
            kept_bytes: 0,
            news: None,
        };
        *self.lock() = Phase::Running(running);
    }

    /// Closes the hedge, or prevents that one begins.
    pub fn cancel(&self) {
        *self.lock() = Phase::Over(None);
    }

    /// Continues the hedge until it has news.
    pub(super) fn poll_news(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut phase = self.lock();
        let Phase::Running(running) = &mut *phase else {
            return Poll::Pending;
        };
        if running.news.is_some() {
            return Poll::Ready(());
        }
        if running.kept_bytes > MAX_KEPT_BYTES {
            return Poll::Pending;
        }
        let news = match std::task::ready!(running.reply.poll_next_unpin(context)) {
            Some(Ok(Some(piece))) => {
                if let Piece::Body(bytes) = &piece {
                    running.kept_bytes += bytes.len();
                }
                running.kept.push(piece.clone());
                News::Piece(piece)
            }
            Some(Ok(None)) => News::Refused,
            Some(Err(error)) => News::Failed(error),
            None => News::End,
        };
        running.news = Some(news);
        Poll::Ready(())
    }

    /// Takes the news of the hedge for the exchange.
    pub fn take_news(&self) -> Option<News> {
        match &mut *self.lock() {
            Phase::Running(running) => running.news.take(),
            _ => None,
        }
    }

    /// Takes the hedge as Pingora's next attempt. Returns it with its start, or `None` if no hedge runs.
    pub fn adopt(self: &Arc<Self>) -> Option<(Arc<Adopted>, Instant)> {
        let mut phase = self.lock();
        let Phase::Running(running) = std::mem::replace(&mut *phase, Phase::Over(None)) else {
            return None;
        };
        let adopted = Adopted::new(running.kept, running.reply, Arc::clone(self));
        Some((Arc::new(adopted), running.started))
    }

    /// Records the reason for which the adopted hedge broke.
    fn record_error(&self, error: Box<Error>) {
        *self.lock() = Phase::Over(Some(error));
    }

    /// Takes the reason for which the adopted hedge broke.
    pub fn take_error(&self) -> Option<Box<Error>> {
        match &mut *self.lock() {
            Phase::Over(error) => error.take(),
            _ => None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
