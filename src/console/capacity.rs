//! How much the console does at once, so that it takes neither the connections of the listener nor the memory of the process.

use super::reply::ConsoleReply;
use crate::proxy::concurrency_limit::{ConcurrencyLimit, ConcurrencyPermit};

/// The requests that are answered at the same time, without the time in which an answer is sent. A store that does not answer holds
/// one for ten seconds.
const MAX_REQUESTS: usize = 32;
/// The streams that are sent at the same time: the pages that follow calls, and the answers of the playground. Those that nobody reads
/// any more are among them, until that is noticed.
const MAX_STREAMS: usize = 48;
/// The answers of the playground that are made at the same time.
const MAX_ANSWERS: usize = 8;

/// The limits of what runs at once.
pub(super) struct Capacity {
    pub(super) requests: ConsoleLimit,
    pub(super) streams: ConsoleLimit,
    pub(super) answers: ConsoleLimit,
}

/// How many of one kind there may be at once.
pub(super) struct ConsoleLimit {
    limit: ConcurrencyLimit,
    most: usize,
    /// What they do, behind their number.
    what: &'static str,
    /// After how many seconds another one is probably possible.
    retry_after_s: u64,
}

/// There are as many as there may be.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct AtCapacity {
    most: usize,
    what: &'static str,
    pub(super) retry_after_s: u64,
}

impl std::fmt::Display for AtCapacity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { most, what, .. } = self;
        write!(f, "{most} {what} already, and that is the most at once")
    }
}

impl std::error::Error for AtCapacity {}

impl From<AtCapacity> for ConsoleReply {
    fn from(full: AtCapacity) -> Self {
        Self::Busy {
            why: full.to_string(),
            retry_after_s: full.retry_after_s,
        }
    }
}

impl Default for Capacity {
    fn default() -> Self {
        Self {
            requests: ConsoleLimit::new(MAX_REQUESTS, "requests to the console are answered", 1),
            streams: ConsoleLimit::new(MAX_STREAMS, "streams of the console are sent", 30),
            answers: ConsoleLimit::new(MAX_ANSWERS, "answers of the playground are made", 10),
        }
    }
}

impl ConsoleLimit {
    fn new(most: usize, what: &'static str, retry_after_s: u64) -> Self {
        Self {
            limit: ConcurrencyLimit::new(most),
            most,
            what,
            retry_after_s,
        }
    }

    /// Counts another one, until the return value is dropped.
    ///
    /// Errors: there are as many as there may be.
    pub(super) fn enter(&self) -> Result<ConcurrencyPermit, AtCapacity> {
        self.limit.try_acquire().ok_or(AtCapacity {
            most: self.most,
            what: self.what,
            retry_after_s: self.retry_after_s,
        })
    }
}
