//! Windows count the requests of each key exactly, for any number of threads.
//!
//! A window changes under the lock of its shard. A lock-free counter would save nothing: an admission must read the
//! window's start and its count together, and the lookup costs more than the uncontended lock.

use super::counter::{Counter, Fixed, Sliding};
use super::key::WindowKey;
use super::shards::{SHARD_COUNT, Shards};

/// How a window counts. Source: docs/decisions.md 26.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Algorithm {
    /// A window starts with the first request after the previous window ended. Any other span of the same length may
    /// admit up to twice the limit.
    #[default]
    Fixed,
    /// No span of a window's length admits more than the limit. The table stores the time of each admission: 16 bytes
    /// per millisecond with an admission.
    Sliding,
}

/// The verdict of a window on one request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Verdict {
    /// Whether the request may pass. A request that may pass has been counted.
    pub is_allowed: bool,
    pub limit: u64,
    /// The number of requests left after this one.
    pub remaining: u64,
    /// The time until more than `remaining` requests are available.
    pub reset_ms: u64,
    /// The counted unit, for [`Windows::refund`].
    pub refund_token: RefundToken,
}

/// A counted unit and the window that counted it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RefundToken(pub(super) u64);

/// This bit marks tokens of windows in Redis. No clock in milliseconds reaches it.
const SHARED_BIT: u64 = 1 << 63;

impl RefundToken {
    /// The token of a request that counted no unit.
    pub const NONE: Self = Self(0);

    /// Returns the token of a unit that a window in Redis counted at this time.
    pub fn from_shared_ms(at_ms: u64) -> Self {
        Self(at_ms | SHARED_BIT)
    }

    /// Returns the time of a unit that a window in Redis counted, or `None` for a window of this process.
    pub fn shared_ms(self) -> Option<u64> {
        (self.0 & SHARED_BIT != 0).then_some(self.0 & !SHARED_BIT)
    }
}

/// All windows of one length.
#[derive(Debug)]
pub struct Windows {
    pub(super) window_ms: u64,
    pub(super) table: Table,
}

#[derive(Debug)]
pub(super) enum Table {
    Fixed(Shards<Fixed>),
    Sliding(Shards<Sliding>),
}

impl Windows {
    /// Makes an empty table. A `window_ms` of 0 counts as 1.
    pub fn new(algorithm: Algorithm, window_ms: u64) -> Self {
        let table = match algorithm {
            Algorithm::Fixed => Table::Fixed(Shards::new()),
            Algorithm::Sliding => Table::Sliding(Shards::new()),
        };
        let window_ms = window_ms.max(1);
        Self { window_ms, table }
    }

    /// Returns the length of the windows.
    pub fn window_ms(&self) -> u64 {
        self.window_ms
    }

    /// Counts one request if the limit allows it.
    ///
    /// `now_ms` is any monotonic clock. A request with an older time than its window counts in that window. Cost: one
    /// lock of one shard, one lookup; a new key is cloned.
    pub fn admit(&self, key: &WindowKey, limit: u64, now_ms: u64) -> Verdict {
        match &self.table {
            Table::Fixed(shards) => admit(shards, key, limit, (now_ms, self.window_ms)),
            Table::Sliding(shards) => admit(shards, key, limit, (now_ms, self.window_ms)),
        }
    }

    /// Gives one unit back to the window that counted it, never below zero. Returns whether the window took it. Use a
    /// token at most once.
    pub fn refund(&self, key: &WindowKey, refund_token: RefundToken, now_ms: u64) -> bool {
        match &self.table {
            Table::Fixed(shards) => refund(shards, key, refund_token, (now_ms, self.window_ms)),
            Table::Sliding(shards) => refund(shards, key, refund_token, (now_ms, self.window_ms)),
        }
    }

    /// Returns how many requests of a key count now, without counting one or starting a window. Cost: one lock of one
    /// shard, and for sliding windows one step for each millisecond that had a request.
    pub fn count(&self, key: &WindowKey, now_ms: u64) -> u64 {
        let times = (now_ms, self.window_ms);
        let count = match &self.table {
            Table::Fixed(shards) => shards.with_existing(key, |it| it.count(times.0, times.1)),
            Table::Sliding(shards) => shards.with_existing(key, |it| it.count(times.0, times.1)),
        };
        count.unwrap_or(0)
    }

    /// Returns the number of shards for [`sweep`](Self::sweep).
    pub fn shard_count(&self) -> usize {
        SHARD_COUNT
    }

    /// Drops the ended windows of one shard and releases their memory. Other shards stay available meanwhile.
    pub fn sweep(&self, shard: usize, now_ms: u64) {
        match &self.table {
            Table::Fixed(shards) => {
                shards.sweep(shard, |counter| counter.has_ended(now_ms, self.window_ms));
            }
            Table::Sliding(shards) => {
                shards.sweep(shard, |counter| counter.has_ended(now_ms, self.window_ms));
            }
        }
    }

    /// Returns the number of windows, including ended ones that are not dropped yet. Cost: every lock, one at a time.
    pub fn len(&self) -> usize {
        match &self.table {
            Table::Fixed(shards) => shards.len(),
            Table::Sliding(shards) => shards.len(),
        }
    }

    /// Returns whether there is no window.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn admit<C: Counter>(
    shards: &Shards<C>,
    key: &WindowKey,
    limit: u64,
    (now_ms, window_ms): (u64, u64),
) -> Verdict {
    let verdict = shards.with(
        key,
        || C::new(now_ms),
        |counter| counter.has_ended(now_ms, window_ms),
        |counter| counter.admit(limit, now_ms, window_ms),
    );
    verdict.unwrap_or_else(|| refused_verdict(limit, window_ms))
}

fn refund<C: Counter>(
    shards: &Shards<C>,
    key: &WindowKey,
    refund_token: RefundToken,
    (now_ms, window_ms): (u64, u64),
) -> bool {
    let refunded = shards.with_existing(key, |counter| {
        counter.refund(refund_token, now_ms, window_ms)
    });
    refunded.unwrap_or(false)
}

/// Refuses a request whose key has no shard. This cannot happen, and refusing is the safe verdict.
fn refused_verdict(limit: u64, window_ms: u64) -> Verdict {
    Verdict {
        is_allowed: false,
        limit,
        remaining: 0,
        reset_ms: window_ms,
        refund_token: RefundToken(0),
    }
}

#[cfg(test)]
#[cfg(not(model))]
#[path = "window_tests.rs"]
mod tests;

#[cfg(test)]
#[cfg(not(model))]
#[path = "exact_tests.rs"]
mod exact_tests;

#[cfg(test)]
#[cfg(model)]
#[path = "window_models_tests.rs"]
mod models;
