//! Windows: how many requests one key has been admitted, exactly, however many threads ask.
//!
//! A table is cut into shards, each behind a lock that is held for one look-up. A lock-free counter would save
//! nothing: an admission has to read the window's start and its count as one, and the look-up costs more than the
//! uncontended lock. Expired windows are dropped when a shard would grow, and by [`Windows::sweep`].

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::PoisonError;
#[cfg(not(all(test, model)))]
use std::sync::{Mutex, MutexGuard};

#[cfg(all(test, model))]
use loom::sync::{Mutex, MutexGuard};

use super::counter::{Counter, Fixed, Sliding};
use super::key::WindowKey;

/// Enough that two threads seldom meet, few enough that empty shards weigh nothing.
#[cfg(not(all(test, model)))]
const SHARDS: usize = 256;
/// A model checker follows every lock.
#[cfg(all(test, model))]
const SHARDS: usize = 1;

/// How windows are counted. Source: docs/decisions.md 26.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Algorithm {
    /// A window begins with the first request after the last one ended. Over any other span of the same length up
    /// to twice the limit passes.
    #[default]
    Fixed,
    /// Never more than the limit in any span of a window's length. It remembers when each request was admitted:
    /// 16 bytes for each millisecond with an admission in the last window.
    Sliding,
}

/// What a window says to one request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Verdict {
    /// Whether it may pass. If so it has been counted.
    pub is_allowed: bool,
    /// The limit it was held against.
    pub limit: u64,
    /// What is left after it.
    pub remaining: u64,
    /// Until there is more than `remaining` to be had.
    pub reset_ms: u64,
    /// What was counted, for [`Windows::refund`].
    pub ticket: RefundToken,
}

/// A unit of a window: proof that it was counted, and where.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RefundToken(pub(super) u64);

/// Marks tickets of windows that processes share: no clock gets there in milliseconds.
const SHARED: u64 = 1 << 63;

impl RefundToken {
    /// A unit that was counted at this moment in a window that processes share.
    pub fn shared(at_ms: u64) -> Self {
        Self(at_ms | SHARED)
    }

    /// The moment of a unit of a window that processes share; of one of this process nothing.
    pub fn shared_ms(self) -> Option<u64> {
        (self.0 & SHARED != 0).then_some(self.0 & !SHARED)
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
    /// No windows yet. `window_ms` of 0 counts as 1.
    pub fn new(algorithm: Algorithm, window_ms: u64) -> Self {
        let table = match algorithm {
            Algorithm::Fixed => Table::Fixed(Shards::new()),
            Algorithm::Sliding => Table::Sliding(Shards::new()),
        };
        let window_ms = window_ms.max(1);
        Self { window_ms, table }
    }

    /// The length of its windows.
    pub fn window_ms(&self) -> u64 {
        self.window_ms
    }

    /// Counts one request if the limit has room for it.
    ///
    /// `now_ms` is any monotonic clock; a thread that read it early and comes late is counted in the window that
    /// runs. Cost: one lock of one shard, one look-up; a key seen for the first time is cloned.
    pub fn admit(&self, key: &WindowKey, limit: u64, now_ms: u64) -> Verdict {
        match &self.table {
            Table::Fixed(shards) => shards.admit(key, limit, now_ms, self.window_ms),
            Table::Sliding(shards) => shards.admit(key, limit, now_ms, self.window_ms),
        }
    }

    /// Gives one unit back, and answers whether it did: never into another window than it came from, never below
    /// zero. A ticket is to be given back at most once.
    pub fn refund(&self, key: &WindowKey, ticket: RefundToken, now_ms: u64) -> bool {
        match &self.table {
            Table::Fixed(shards) => shards.refund(key, ticket, now_ms, self.window_ms),
            Table::Sliding(shards) => shards.refund(key, ticket, now_ms, self.window_ms),
        }
    }

    /// How many parts there are to [`sweep`](Self::sweep).
    pub fn parts(&self) -> usize {
        SHARDS
    }

    /// Drops the windows of one part that have ended, and the memory they took. Other parts stay open meanwhile.
    pub fn sweep(&self, part: usize, now_ms: u64) {
        match &self.table {
            Table::Fixed(shards) => shards.sweep(part, now_ms, self.window_ms),
            Table::Sliding(shards) => shards.sweep(part, now_ms, self.window_ms),
        }
    }

    /// How many windows are held, ended ones not yet dropped among them. Cost: every lock, one after another.
    pub fn len(&self) -> usize {
        match &self.table {
            Table::Fixed(shards) => shards.len(),
            Table::Sliding(shards) => shards.len(),
        }
    }

    /// Whether none is held.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

type Map<C> = HashMap<WindowKey, C>;

/// Aligned so that threads on neighbouring shards do not write to one cache line.
#[derive(Debug)]
#[repr(align(128))]
struct Shard<C>(Mutex<Map<C>>);

#[derive(Debug)]
struct Shards<C>(Box<[Shard<C>]>);

impl<C: Counter> Shards<C> {
    fn new() -> Self {
        Self((0..SHARDS).map(|_| Shard(Mutex::new(Map::new()))).collect())
    }

    fn admit(&self, key: &WindowKey, limit: u64, now_ms: u64, window_ms: u64) -> Verdict {
        let Some(mut map) = self.lock(place(key)) else {
            return refused(limit, window_ms);
        };
        if let Some(counter) = map.get_mut(key) {
            return counter.admit(limit, now_ms, window_ms);
        }
        make_room(&mut map, now_ms, window_ms);
        let mut counter = C::new(now_ms);
        let verdict = counter.admit(limit, now_ms, window_ms);
        map.insert(key.clone(), counter);
        verdict
    }

    fn refund(&self, key: &WindowKey, ticket: RefundToken, now_ms: u64, window_ms: u64) -> bool {
        let Some(mut map) = self.lock(place(key)) else {
            return false;
        };
        map.get_mut(key)
            .is_some_and(|counter| counter.refund(ticket, now_ms, window_ms))
    }

    fn sweep(&self, part: usize, now_ms: u64, window_ms: u64) {
        let Some(mut map) = self.lock(part) else {
            return;
        };
        map.retain(|_, counter| !counter.is_over(now_ms, window_ms));
        if map.len() < map.capacity() / 4 {
            let kept = map.len() * 2;
            map.shrink_to(kept);
        }
    }

    fn len(&self) -> usize {
        let parts = 0..self.0.len();
        parts.filter_map(|part| Some(self.lock(part)?.len())).sum()
    }

    /// A poisoned shard is used on: a counter is whole at every point where a thread could have died.
    fn lock(&self, part: usize) -> Option<MutexGuard<'_, Map<C>>> {
        let shard = self.0.get(part)?;
        Some(shard.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Only reached if [`place`] pointed beyond the shards, which it cannot: refusing is the safe answer.
fn refused(limit: u64, window_ms: u64) -> Verdict {
    Verdict {
        is_allowed: false,
        limit,
        remaining: 0,
        reset_ms: window_ms,
        ticket: RefundToken(0),
    }
}

/// Before a full map would double: drops what has ended. Each drop of a full map pays for as many insertions as it
/// freed places, and a map that stays more than half full doubles, so the cost per insertion stays constant.
fn make_room<C: Counter>(map: &mut Map<C>, now_ms: u64, window_ms: u64) {
    if map.len() < map.capacity() || map.is_empty() {
        return;
    }
    map.retain(|_, counter| !counter.is_over(now_ms, window_ms));
    if map.len() > map.capacity() / 2 {
        map.reserve(map.capacity());
    }
}

/// The shard of a key. FNV-1a: it spreads and need not withstand anybody, since the maps hash with keys of their
/// own.
fn place(key: &WindowKey) -> usize {
    let mut hasher = Fnv(0xcbf2_9ce4_8422_2325);
    key.hash(&mut hasher);
    let mixed = hasher.finish();
    ((mixed ^ (mixed >> 32)) as usize) % SHARDS
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
