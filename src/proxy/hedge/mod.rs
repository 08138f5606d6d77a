//! A hedge: a second attempt of a request, beside the one that Pingora's loop runs.
//!
//! Pingora runs one attempt at a time. A hedge is a [`call`] of our own, and a [`Race`] holds it: the client's buffered
//! session polls the race while it waits, and calls the exchange whenever the hedge has something to tell. If the hedge is
//! to serve the request, the exchange aborts Pingora's attempt and adopts the hedge as the next one: Pingora then reads it
//! from a [`socket`] that replays what has come and goes on from there. So keepalives, timeouts, backpressure and the end
//! of the response are those of any attempt. Nothing runs on a task of its own: a hedge that is dropped is closed.

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

use self::call::Reply;
pub use self::call::{HedgeCall, HedgeConnector, Permission};
pub use self::socket::Adopted;

/// The pieces that are kept of a reply without content. Beyond it the reply is not read on, unless it is adopted.
const MAX_KEPT_BYTES: usize = 16 << 20;

/// A piece of the hedge's reply.
#[derive(Clone, Debug)]
pub enum Piece {
    /// The head, not an informational one.
    Head(Box<ResponseHeader>),
    /// Bytes of the body, never none.
    Body(Bytes),
}

/// What the exchange has to know of a hedge.
#[derive(Debug)]
pub enum News {
    /// It was not permitted, and nobody was asked.
    Refused,
    /// A piece of its reply has come.
    Piece(Piece),
    /// Its reply is complete.
    End,
    /// It broke.
    Failed(Box<Error>),
}

/// The hedge of one request, from the time before it begins. Shared by the buffered session and the exchange.
pub struct Race {
    /// How long an attempt may say nothing until the hedge begins.
    after: Duration,
    /// Whether the whole request of the hedge was sent.
    is_sent: Arc<AtomicBool>,
    phase: Mutex<Phase>,
}

enum Phase {
    /// It begins when an attempt has said nothing for too long.
    Armed,
    /// It runs beside Pingora's attempt.
    Running(Running),
    /// It runs as Pingora's attempt, was cancelled, has failed, or there is none; its error, where it broke as Pingora's.
    Over(Option<Box<Error>>),
}

struct Running {
    started: Instant,
    reply: Reply,
    kept: Vec<Piece>,
    kept_bytes: usize,
    /// What the exchange has not heard yet.
    news: Option<News>,
}

impl Race {
    /// Returns the race of a request whose attempts may say nothing for this long.
    pub fn new(after: Duration) -> Self {
        Self {
            after,
            is_sent: Arc::default(),
            phase: Mutex::new(Phase::Armed),
        }
    }

    /// Returns when the hedge is due beside an attempt that began then; `None`: it has begun, or there will be none.
    pub(super) fn due(&self, started: Instant) -> Option<Instant> {
        self.is_armed().then(|| started + self.after)
    }

    /// Returns whether the hedge may still begin.
    pub fn is_armed(&self) -> bool {
        matches!(*self.lock(), Phase::Armed)
    }

    /// Returns whether it runs beside Pingora's attempt.
    pub fn is_running(&self) -> bool {
        matches!(*self.lock(), Phase::Running(_))
    }

    /// Returns whether the whole request of the hedge was sent.
    pub fn is_sent(&self) -> bool {
        self.is_sent.load(Ordering::Relaxed)
    }

    /// Begins the hedge.
    pub fn begin(&self, call: HedgeCall, now: Instant) {
        let running = Running {
            started: now,
            reply: call.run(Arc::clone(&self.is_sent)),
            kept: Vec::new(),
            kept_bytes: 0,
            news: None,
        };
        *self.lock() = Phase::Running(running);
    }

    /// Closes the hedge, or sees to it that none begins.
    pub fn cancel(&self) {
        *self.lock() = Phase::Over(None);
    }

    /// Goes on with the hedge, and waits until there is news of it.
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

    /// Takes what the exchange has not heard of the hedge.
    pub fn take_news(&self) -> Option<News> {
        match &mut *self.lock() {
            Phase::Running(running) => running.news.take(),
            _ => None,
        }
    }

    /// Takes the hedge as Pingora's next attempt; returns when it began, too. `None`: none runs.
    pub fn adopt(self: &Arc<Self>) -> Option<(Arc<Adopted>, Instant)> {
        let mut phase = self.lock();
        let Phase::Running(running) = std::mem::replace(&mut *phase, Phase::Over(None)) else {
            return None;
        };
        let adopted = Adopted::new(running.kept, running.reply, Arc::clone(self));
        Some((Arc::new(adopted), running.started))
    }

    /// Records why the adopted hedge broke.
    fn record_error(&self, error: Box<Error>) {
        *self.lock() = Phase::Over(Some(error));
    }

    /// Takes the reason why the adopted hedge broke.
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
