//! Leases: a process takes several units of a hot window in one step, and admits requests from memory with them.
//!
//! The shared window counts units when they are leased, so all processes together never admit more than it counts. A unit
//! is spent in the window that counted it, within [`lease_ms`]; what is left then goes back to that window. Only a window
//! that gets many requests has leases; others count each request on their own.
//!
//! Our choice: what a lease gives up is exactness on the short side. Until it goes back, a unit that one process holds and
//! does not need is refused to the others.

use super::key::WindowKey;
use super::shards::{SHARD_COUNT, Shards};
use super::window::{Algorithm, RefundToken, Verdict};

/// How long a process may hold units at most. Source: docs/interface.md, `limits.shared_exact`.
const MAX_LEASE_MS: u64 = 100;
/// The requests of one process in the time of a lease from which a window is hot. Below, a lease would save little.
const HOT_REQUESTS: u64 = 4;
/// The most units of one lease, because Redis serves nobody else while it counts them.
const MAX_UNITS: u64 = 1_000;
/// For how many times of a lease a key without requests is remembered.
const REMEMBERED_SLOTS: u64 = 10;

/// Returns how long units of a window of this length may be held: 100 ms, or a tenth of a short window.
pub fn lease_ms(window_ms: u64) -> u64 {
    (window_ms / 10).clamp(1, MAX_LEASE_MS)
}

/// Returns into how many parts the rest of a window is divided, of which one lease gets one at most. It is half of the
/// fair part of a process, so leases become smaller near the limit, and end as single units.
pub fn lease_parts(processes: u64) -> u64 {
    processes.max(1).saturating_mul(2)
}

/// The answer of a shared window.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SharedCount {
    /// How many units it has counted for this call: none if it is full.
    pub units: u64,
    pub count: u64,
    /// The time until more are available.
    pub reset_ms: u64,
    /// The time for the token of these units.
    pub at_ms: u64,
}

impl SharedCount {
    /// Returns the verdict on a request that asked for one unit.
    pub fn verdict(&self, limit: u64) -> Verdict {
        Verdict {
            is_allowed: self.units > 0,
            limit,
            remaining: limit.saturating_sub(self.count) + self.units.saturating_sub(1),
            reset_ms: self.reset_ms,
            refund_token: RefundToken::from_shared_ms(self.at_ms),
        }
    }
}

/// How a request finds out whether it is admitted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Step {
    /// It is decided, from memory.
    Decided(Verdict),
    /// The shared window has to count one unit: call it, then [`Leases::learn`].
    AskForOne,
    /// The shared window is to count up to this many units, of which the request gets one: call it, then
    /// [`Leases::learn_lease`] or [`Leases::fail_lease`].
    AskForLease(u64),
}

/// Units that go back to the window that counted them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Leftover {
    pub units: u64,
    /// The time of their token.
    pub at_ms: u64,
}

/// What this process knows of shared windows: the units that it holds, and the requests that it gets.
///
/// Times are those of a monotonic clock of this process.
#[derive(Debug)]
pub struct Leases {
    algorithm: Algorithm,
    lease_ms: u64,
    shards: Shards<Known>,
}

impl Leases {
    /// Makes an empty table for windows of this algorithm and length.
    pub fn new(algorithm: Algorithm, window_ms: u64) -> Self {
        Self {
            algorithm,
            lease_ms: lease_ms(window_ms),
            shards: Shards::new(),
        }
    }

    /// Decides a request, or says what to ask the shared window. Cost: one lock of one shard, one lookup; a new key is
    /// cloned.
    pub fn admit(&self, key: &WindowKey, limit: u64, now_ms: u64) -> Step {
        let slot = now_ms / self.lease_ms;
        let step = self.shards.with(
            key,
            || Known::new(slot),
            |known| known.has_ended(slot),
            |known| known.admit(limit, now_ms, slot),
        );
        step.unwrap_or(Step::AskForOne)
    }

    /// Notes the answer to a call for one unit that was sent at `sent_ms`: a window that is full is not asked again for a
    /// moment.
    pub fn learn(&self, key: &WindowKey, limit: u64, count: &SharedCount, sent_ms: u64) {
        if count.units == 0 {
            let refusal = self.refusal(limit, count, sent_ms);
            self.shards
                .with_existing(key, |known| known.refusal = Some(refusal));
        }
    }

    /// Notes the answer to a call for a lease that was sent at `sent_ms`. Returns what is left of the lease before, and
    /// when the units end that are now held; `None` if there are none.
    pub fn learn_lease(
        &self,
        key: &WindowKey,
        limit: u64,
        count: &SharedCount,
        (sent_ms, now_ms): (u64, u64),
    ) -> (Option<Leftover>, Option<u64>) {
        self.learn(key, limit, count, sent_ms);
        let lease = Lease {
            limit,
            units: count.units.saturating_sub(1),
            rest: limit.saturating_sub(count.count),
            at_ms: count.at_ms,
            since_ms: now_ms,
            ends_ms: sent_ms + self.spendable_ms(count),
            resets_ms: sent_ms + count.reset_ms,
        };
        let ends_ms = (lease.units > 0).then_some(lease.ends_ms);
        let learn = |known: &mut Known| {
            known.is_asking = false;
            ends_ms.and_then(|_| known.lease.replace(lease)?.into_leftover())
        };
        let slot = now_ms / self.lease_ms;
        // A sweep may have dropped the key meanwhile.
        let has_ended = |known: &Known| known.has_ended(slot);
        let leftover = self
            .shards
            .with(key, || Known::new(slot), has_ended, learn)
            .flatten();
        (leftover, ends_ms)
    }

    /// Notes that the call for a lease got no answer.
    pub fn fail_lease(&self, key: &WindowKey) {
        self.shards
            .with_existing(key, |known| known.is_asking = false);
    }

    /// Ends the lease of a key if its time is over at `now_ms`. Returns what goes back to its window.
    pub fn end_lease(&self, key: &WindowKey, now_ms: u64) -> Option<Leftover> {
        let end = |known: &mut Known| {
            let lease = known.lease.take_if(|lease| lease.ends_ms <= now_ms);
            lease?.into_leftover()
        };
        self.shards.with_existing(key, end)?
    }

    /// Puts one unit of this token back into the lease of its window. Returns whether there is one; else the unit goes
    /// back to the shared window.
    pub fn refund(&self, key: &WindowKey, at_ms: u64, now_ms: u64) -> bool {
        let refund = |known: &mut Known| {
            known.refusal = None;
            let lease = known.lease.as_mut();
            let lease = lease.filter(|lease| lease.at_ms == at_ms && lease.is_current(now_ms));
            lease.map(|lease| lease.units += 1).is_some()
        };
        self.shards.with_existing(key, refund).unwrap_or(false)
    }

    /// Returns the number of shards for [`sweep`](Self::sweep).
    pub fn shard_count(&self) -> usize {
        SHARD_COUNT
    }

    /// Forgets the keys of one shard that had no requests for a second and hold no units.
    pub fn sweep(&self, shard: usize, now_ms: u64) {
        let slot = now_ms / self.lease_ms;
        self.shards.sweep(shard, |known| known.has_ended(slot));
    }

    /// Returns for how long after its call units may be spent. A millisecond is the most that the clocks, read in
    /// milliseconds, may differ.
    fn spendable_ms(&self, count: &SharedCount) -> u64 {
        let window_ms = match self.algorithm {
            Algorithm::Fixed => count.reset_ms,
            Algorithm::Sliding => u64::MAX,
        };
        self.lease_ms.min(window_ms).saturating_sub(1)
    }

    fn refusal(&self, limit: u64, count: &SharedCount, sent_ms: u64) -> Refusal {
        let lasts_ms = (self.lease_ms / 10).min(count.reset_ms.saturating_sub(1));
        Refusal {
            limit,
            at_ms: count.at_ms,
            ends_ms: sent_ms + lasts_ms,
            resets_ms: sent_ms + count.reset_ms,
        }
    }
}

/// What this process knows of one window.
#[derive(Debug)]
struct Known {
    /// The time in which `requests` are counted, in lengths of a lease.
    slot: u64,
    requests: u64,
    requests_before: u64,
    /// Whether a call for a lease is on its way.
    is_asking: bool,
    lease: Option<Lease>,
    refusal: Option<Refusal>,
}

/// Units that this process holds.
#[derive(Clone, Copy, Debug)]
struct Lease {
    limit: u64,
    units: u64,
    /// What the window had left beside them.
    rest: u64,
    at_ms: u64,
    /// A request whose clock was read before may be older than its window, or younger than what has gone back.
    since_ms: u64,
    ends_ms: u64,
    resets_ms: u64,
}

/// The refusal of a full window, which holds for some milliseconds.
#[derive(Clone, Copy, Debug)]
struct Refusal {
    limit: u64,
    at_ms: u64,
    ends_ms: u64,
    resets_ms: u64,
}

impl Known {
    fn new(slot: u64) -> Self {
        Self {
            slot,
            requests: 0,
            requests_before: 0,
            is_asking: false,
            lease: None,
            refusal: None,
        }
    }

    fn admit(&mut self, limit: u64, now_ms: u64, slot: u64) -> Step {
        self.observe(slot);
        let needed = self.requests.max(self.requests_before);
        if let Some(verdict) = self.spend(limit, now_ms) {
            return Step::Decided(verdict);
        }
        if needed < HOT_REQUESTS {
            return Step::AskForOne;
        }
        if let Some(verdict) = self.refuse(limit, now_ms) {
            return Step::Decided(verdict);
        }
        if self.is_asking {
            return Step::AskForOne;
        }
        self.is_asking = true;
        Step::AskForLease(needed.min(MAX_UNITS))
    }

    /// Counts a request. A clock that was read before the slot began counts in it.
    fn observe(&mut self, slot: u64) {
        match slot.saturating_sub(self.slot) {
            0 => {}
            passed => {
                self.requests_before = if passed == 1 { self.requests } else { 0 };
                self.requests = 0;
                self.slot = slot;
            }
        }
        self.requests += 1;
    }

    fn spend(&mut self, limit: u64, now_ms: u64) -> Option<Verdict> {
        let lease = self.lease.as_mut();
        let lease = lease.filter(|lease| lease.limit == limit && lease.is_current(now_ms))?;
        lease.units = lease.units.checked_sub(1)?;
        Some(Verdict {
            is_allowed: true,
            limit,
            remaining: lease.rest + lease.units,
            reset_ms: lease.resets_ms.saturating_sub(now_ms).max(1),
            refund_token: RefundToken::from_shared_ms(lease.at_ms),
        })
    }

    fn refuse(&self, limit: u64, now_ms: u64) -> Option<Verdict> {
        let refusal = self.refusal.as_ref();
        let refusal = refusal.filter(|it| it.limit == limit && now_ms < it.ends_ms)?;
        Some(Verdict {
            is_allowed: false,
            limit,
            remaining: 0,
            reset_ms: refusal.resets_ms.saturating_sub(now_ms).max(1),
            refund_token: RefundToken::from_shared_ms(refusal.at_ms),
        })
    }

    fn has_ended(&self, slot: u64) -> bool {
        let holds_units = self.lease.as_ref().is_some_and(|lease| lease.units > 0);
        slot.saturating_sub(self.slot) > REMEMBERED_SLOTS && !self.is_asking && !holds_units
    }
}

impl Lease {
    fn is_current(&self, now_ms: u64) -> bool {
        (self.since_ms..self.ends_ms).contains(&now_ms)
    }

    fn into_leftover(self) -> Option<Leftover> {
        (self.units > 0).then_some(Leftover {
            units: self.units,
            at_ms: self.at_ms,
        })
    }
}

#[cfg(test)]
#[cfg(not(model))]
#[path = "lease_tests.rs"]
mod tests;

#[cfg(test)]
#[cfg(not(model))]
#[path = "lease_model_tests.rs"]
mod model_tests;
