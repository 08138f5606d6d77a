//! Windows count the requests of each key exactly, for any number of threads.
//!
//! A table is split into shards, each with a lock that is held for one lookup. A lock-free counter would save nothing:
//! an admission must read the window's start and its count together, and the lookup costs more than the uncontended
//! lock. Ended windows are dropped when a shard would grow, and by [`Windows::sweep`].

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::PoisonError;
#[cfg(not(all(test, model)))]
use std::sync::{Mutex, MutexGuard};

#[cfg(all(test, model))]
use loom::sync::{Mutex, MutexGuard};

use super::counter::{Counter, Fixed, Sliding};
use super::key::WindowKey;

/// So many that two threads rarely meet, so few that empty shards take little memory.
#[cfg(not(all(test, model)))]
const SHARD_COUNT: usize = 256;
/// The model checker explores every lock.
#[cfg(all(test, model))]
const SHARD_COUNT: usize = 1;

/// How a window counts. Source: docs/decisions.md 26.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Algorithm {
    /// A window starts with the first request after the last one has ended. Any other span of the same length may admit
    /// up to twice the limit.
    #[default]
    Fixed,
    /// No span of a window's length admits more than the limit. It stores the time of each admission: 16 bytes per
    /// millisecond that had one in the last window.
    Sliding,
}

/// The verdict of a window on one request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Verdict {
    /// Whether the request may pass. If so, it has been counted.
    pub is_allowed: bool,
    /// The limit.
    pub limit: u64,
    /// The number of requests left after it.
    pub remaining: u64,
    /// The time until more than `remaining` are available.
    pub reset_ms: u64,
    /// The counted unit, for [`Windows::refund`].
    pub refund_token: RefundToken,
}

/// A unit that a window counted, and the window that did.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RefundToken(pub(super) u64);

/// Marks tokens of windows in Redis. No clock in milliseconds reaches this bit.
const SHARED_BIT: u64 = 1 << 63;

impl RefundToken {
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
    window_ms: u64,
    table: Table,
}

#[derive(Debug)]
enum Table {
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
            Table::Fixed(shards) => shards.admit(key, limit, now_ms, self.window_ms),
            Table::Sliding(shards) => shards.admit(key, limit, now_ms, self.window_ms),
        }
    }

    /// Returns one unit to the window that counted it, and never below zero. Returns whether it did. Use a token at
    /// most once.
    pub fn refund(&self, key: &WindowKey, refund_token: RefundToken, now_ms: u64) -> bool {
        match &self.table {
            Table::Fixed(shards) => shards.refund(key, refund_token, now_ms, self.window_ms),
            Table::Sliding(shards) => shards.refund(key, refund_token, now_ms, self.window_ms),
        }
    }

    /// Returns the number of shards for [`sweep`](Self::sweep).
    pub fn shard_count(&self) -> usize {
        SHARD_COUNT
    }

    /// Drops the ended windows of one shard and releases their memory. Other shards stay available meanwhile.
    pub fn sweep(&self, shard: usize, now_ms: u64) {
        match &self.table {
            Table::Fixed(shards) => shards.sweep(shard, now_ms, self.window_ms),
            Table::Sliding(shards) => shards.sweep(shard, now_ms, self.window_ms),
        }
    }

    /// Returns the number of windows, including ended ones that are not dropped yet. Cost: every lock, one after
    /// another.
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

type Map<C> = HashMap<WindowKey, C>;

/// Aligned so that threads on adjacent shards do not write to one cache line.
#[derive(Debug)]
#[repr(align(128))]
struct Shard<C>(Mutex<Map<C>>);

#[derive(Debug)]
struct Shards<C>(Box<[Shard<C>]>);

impl<C: Counter> Shards<C> {
    fn new() -> Self {
        Self(
            (0..SHARD_COUNT)
                .map(|_| Shard(Mutex::new(Map::new())))
                .collect(),
        )
    }

    fn admit(&self, key: &WindowKey, limit: u64, now_ms: u64, window_ms: u64) -> Verdict {
        let Some(mut map) = self.lock(shard_index(key)) else {
            return refused_verdict(limit, window_ms);
        };
        if let Some(counter) = map.get_mut(key) {
            return counter.admit(limit, now_ms, window_ms);
        }
        ensure_capacity(&mut map, now_ms, window_ms);
        let mut counter = C::new(now_ms);
        let verdict = counter.admit(limit, now_ms, window_ms);
        map.insert(key.clone(), counter);
        verdict
    }

    fn refund(
        &self,
        key: &WindowKey,
        refund_token: RefundToken,
        now_ms: u64,
        window_ms: u64,
    ) -> bool {
        let Some(mut map) = self.lock(shard_index(key)) else {
            return false;
        };
        map.get_mut(key)
            .is_some_and(|counter| counter.refund(refund_token, now_ms, window_ms))
    }

    fn sweep(&self, shard: usize, now_ms: u64, window_ms: u64) {
        let Some(mut map) = self.lock(shard) else {
            return;
        };
        map.retain(|_, counter| !counter.has_ended(now_ms, window_ms));
        if map.len() < map.capacity() / 4 {
            let capacity = map.len() * 2;
            map.shrink_to(capacity);
        }
    }

    fn len(&self) -> usize {
        let shards = 0..self.0.len();
        shards
            .filter_map(|shard| Some(self.lock(shard)?.len()))
            .sum()
    }

    /// Locks a shard. A poisoned shard stays in use, because a counter is consistent wherever a thread can panic.
    fn lock(&self, shard: usize) -> Option<MutexGuard<'_, Map<C>>> {
        let shard = self.0.get(shard)?;
        Some(shard.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Refuses a request if [`shard_index`] is out of range, which cannot happen: refusing is the safe verdict.
fn refused_verdict(limit: u64, window_ms: u64) -> Verdict {
    Verdict {
        is_allowed: false,
        limit,
        remaining: 0,
        reset_ms: window_ms,
        refund_token: RefundToken(0),
    }
}

/// Drops ended windows before a full map would double. Each pass over a full map pays for as many insertions as it
/// freed entries. A map that stays more than half full doubles, so the cost per insertion stays constant.
fn ensure_capacity<C: Counter>(map: &mut Map<C>, now_ms: u64, window_ms: u64) {
    // Afterwards the map does not count the places of what was dropped as free.
    let capacity = map.capacity();
    if map.len() < capacity || map.is_empty() {
        return;
    }
    map.retain(|_, counter| !counter.has_ended(now_ms, window_ms));
    if map.len() > capacity / 2 {
        map.reserve(capacity);
    }
}

/// Returns the shard of a key. FNV-1a spreads keys well. It need not resist attacks, because the maps hash with their
/// own keys.
fn shard_index(key: &WindowKey) -> usize {
    let mut hasher = Fnv(0xcbf2_9ce4_8422_2325);
    key.hash(&mut hasher);
    let mixed = hasher.finish();
    ((mixed ^ (mixed >> 32)) as usize) % SHARD_COUNT
}

struct Fnv(u64);

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x0000_0100_0000_01b3);
    }

    fn finish(&self) -> u64 {
        self.0
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
