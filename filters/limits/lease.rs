//! Leases: a process takes several units of a hot window in one step, and admits requests from memory with them.
//!
//! The shared window counts units when they are leased, so all processes together never admit more than the limit. A
//! process spends a unit in the window that counted it, within [`lease_ms`], and then gives the rest back to that
//! window. Only windows with many requests have leases; others count each request on its own.
//!
//! Our choice: leases may admit less than the limit. A unit that one process holds and does not need is refused to
//! the others until the process gives it back.

use super::key::WindowKey;
use super::shards::{SHARD_COUNT, Shards};
use super::window::{Algorithm, RefundToken, Verdict};

/// The longest time for which a process holds units. Source: docs/interface.md, `limits.shared_exact`.
const MAX_LEASE_MS: u64 = 100;
/// A window is hot if one process sends this many requests in the time of a lease. Below, a lease would save little.
const HOT_REQUESTS: u64 = 4;
/// The largest lease. Redis serves no other call while it counts the units of one.
const MAX_UNITS: u64 = 1_000;
/// A key without requests is remembered for this many times the length of a lease.
const REMEMBERED_SLOTS: u64 = 10;

/// Returns how long units of a window of this length may be held: 100 ms, or a tenth of a short window.
pub fn lease_ms(window_ms: u64) -> u64 {
    (window_ms / 10).clamp(1, MAX_LEASE_MS)
}

/// Returns the divisor of the rest of a window: one lease gets at most this part. The part is half of a process's
/// fair share, so leases become smaller near the limit and end as single units.
pub fn lease_parts(processes: u64) -> u64 {
    processes.max(1).saturating_mul(2)
}

/// The reply of a shared window.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SharedCount {
    /// The units counted for this call, or 0 if the window is full.
    pub units: u64,
    pub count: u64,
    /// The time until more units are available.
    pub reset_ms: u64,
    /// The time in the token of these units.
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

/// The way in which a request is admitted or refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LeaseStep {
    /// The table decides from memory.
    Decided(Verdict),
    /// Ask the shared window to count one unit, then call [`Leases::record_count`].
    AskForOne,
    /// Ask the shared window to count up to this many units, one of them for the request; then call
    /// [`Leases::record_lease`] or [`Leases::record_failed_lease`].
    AskForLease(u64),
}

/// Units that go back to the window that counted them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Leftover {
    pub units: u64,
    /// The time in the token of these units.
    pub at_ms: u64,
}

/// The leases and the recent requests of this process, by window.
///
/// Times are those of a monotonic clock of this process.
#[derive(Debug)]
pub struct Leases {
    algorithm: Algorithm,
    lease_ms: u64,
    shards: Shards<KnownWindow>,
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

    /// Decides a request, or says what to ask of the shared window. Cost: one lock of one shard, one lookup; a new
    /// key is cloned.
    pub fn admit(&self, key: &WindowKey, limit: u64, now_ms: u64) -> LeaseStep {
        let slot = now_ms / self.lease_ms;
        let step = self.shards.with(
            key,
            || KnownWindow::new(slot),
            |known| known.has_ended(slot),
            |known| known.admit(limit, now_ms, slot),
        );
        step.unwrap_or(LeaseStep::AskForOne)
    }

    /// Records the reply to a call for one unit that was sent at `sent_ms`. After a refusal, the process does not ask
    /// the full window again for a moment.
    pub fn record_count(&self, key: &WindowKey, limit: u64, count: &SharedCount, sent_ms: u64) {
        if count.units == 0 {
            let refusal = self.refusal(limit, count, sent_ms);
            self.shards
                .with_existing(key, |known| known.refusal = Some(refusal));
        }
    }

    /// Records the reply to a call for a lease that was sent at `sent_ms`. Returns the units left of the previous
    /// lease, and the time at which the new lease ends, if it has units.
    pub fn record_lease(
        &self,
        key: &WindowKey,
        limit: u64,
        count: &SharedCount,
        (sent_ms, now_ms): (u64, u64),
    ) -> (Option<Leftover>, Option<u64>) {
        self.record_count(key, limit, count, sent_ms);
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
        let record_count = |known: &mut KnownWindow| {
            known.is_asking = false;
            ends_ms.and_then(|_| known.lease.replace(lease)?.into_leftover())
        };
        let slot = now_ms / self.lease_ms;
        // A sweep may have dropped the key meanwhile.
        let has_ended = |known: &KnownWindow| known.has_ended(slot);
        let leftover = self
            .shards
            .with(key, || KnownWindow::new(slot), has_ended, record_count)
            .flatten();
        (leftover, ends_ms)
    }

    /// Records that the call for a lease got no reply.
    pub fn record_failed_lease(&self, key: &WindowKey) {
        self.shards
            .with_existing(key, |known| known.is_asking = false);
    }

    /// Ends the lease of a key if its time is over at `now_ms`. Returns the units to give back to its window.
    pub fn end_lease(&self, key: &WindowKey, now_ms: u64) -> Option<Leftover> {
        let end = |known: &mut KnownWindow| {
            let lease = known.lease.take_if(|lease| lease.ends_ms <= now_ms);
            lease?.into_leftover()
        };
        self.shards.with_existing(key, end)?
    }

    /// Puts one unit of this token back into the lease of its window. Returns false if there is no such lease; the
    /// caller then gives the unit back to the shared window.
    pub fn refund(&self, key: &WindowKey, at_ms: u64, now_ms: u64) -> bool {
        let refund = |known: &mut KnownWindow| {
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

    /// Returns at most `max` keys that had requests lately, those with the most requests first. Cost: every lock, one at a
    /// time.
    pub fn busiest(&self, max: usize, now_ms: u64) -> Vec<WindowKey> {
        let slot = now_ms / self.lease_ms;
        let mut found: Vec<(u64, WindowKey)> = Vec::new();
        for shard in 0..SHARD_COUNT {
            let Some(map) = self.shards.lock(shard) else {
                continue;
            };
            let known = map.iter().filter(|(_, known)| !known.has_ended(slot));
            let known = known.map(|(key, known)| (known.recent_requests(), key.clone()));
            found.extend(known);
            drop(map);
            found.sort_by_key(|(requests, _)| std::cmp::Reverse(*requests));
            found.truncate(max);
        }
        found.into_iter().map(|(_, key)| key).collect()
    }

    /// Returns for how long after its call units may be spent. The clocks are read in milliseconds, so they may
    /// differ by one millisecond, which is taken off.
    fn spendable_ms(&self, count: &SharedCount) -> u64 {
        let window_ms = match self.algorithm {
            Algorithm::Fixed => count.reset_ms,
            Algorithm::Sliding => u64::MAX,
        };
        self.lease_ms.min(window_ms).saturating_sub(1)
    }

    fn refusal(&self, limit: u64, count: &SharedCount, sent_ms: u64) -> CachedRefusal {
        let lasts_ms = (self.lease_ms / 10).min(count.reset_ms.saturating_sub(1));
        CachedRefusal {
            limit,
            at_ms: count.at_ms,
            ends_ms: sent_ms + lasts_ms,
            resets_ms: sent_ms + count.reset_ms,
        }
    }
}

/// The lease and the recent requests of this process in one window.
#[derive(Debug)]
struct KnownWindow {
    /// The number of the lease-long interval in which `requests` are counted.
    slot: u64,
    requests: u64,
    requests_before: u64,
    /// Whether a call for a lease awaits its reply.
    is_asking: bool,
    lease: Option<Lease>,
    refusal: Option<CachedRefusal>,
}

/// Units that this process holds.
#[derive(Clone, Copy, Debug)]
struct Lease {
    limit: u64,
    units: u64,
    /// The units that the window had left beside these.
    rest: u64,
    at_ms: u64,
    /// The time from which the units may be spent. A request that read its clock earlier may belong to an earlier
    /// window, or to a unit that this process has given back.
    since_ms: u64,
    ends_ms: u64,
    resets_ms: u64,
}

/// The refusal of a full window. It is repeated from memory for some milliseconds.
#[derive(Clone, Copy, Debug)]
struct CachedRefusal {
    limit: u64,
    at_ms: u64,
    ends_ms: u64,
    resets_ms: u64,
}

impl KnownWindow {
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

    fn admit(&mut self, limit: u64, now_ms: u64, slot: u64) -> LeaseStep {
        self.observe(slot);
        let needed = self.recent_requests();
        if let Some(verdict) = self.spend(limit, now_ms) {
            return LeaseStep::Decided(verdict);
        }
        if needed < HOT_REQUESTS {
            return LeaseStep::AskForOne;
        }
        if let Some(verdict) = self.refuse(limit, now_ms) {
            return LeaseStep::Decided(verdict);
        }
        if self.is_asking {
            return LeaseStep::AskForOne;
        }
        self.is_asking = true;
        LeaseStep::AskForLease(needed.min(MAX_UNITS))
    }

    /// Counts a request. A request that read its clock before the slot began counts in the slot.
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

    fn recent_requests(&self) -> u64 {
        self.requests.max(self.requests_before)
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
