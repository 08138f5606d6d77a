//! The permits of `limits.in_flight`: they limit how many model requests run at once, and divide them among
//! organizations.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use filters::fault::{Fault, FaultKind};
use filters::limits::Occupancy;
use tokio::time::Instant;

use super::concurrency_limit::ConcurrencyLimit;

/// How long an organization that was refused below its share counts as waiting. Clients retry after a second.
const WAIT: Duration = Duration::from_secs(2);

/// All permits.
pub struct Permits {
    total: AtomicUsize,
    taken: AtomicUsize,
    by_organization: Mutex<HashMap<Arc<str>, usize>>,
    /// The time until which an organization counts as waiting, in milliseconds after `started`; 0 means that none
    /// waits.
    waiting_until_ms: AtomicU64,
    /// How many more requests may wait without a permit.
    unpermitted: ConcurrencyLimit,
    started: Instant,
}

/// One permit. Dropping it frees it.
pub struct Permit {
    permits: Arc<Permits>,
    organization: Arc<str>,
}

impl Permits {
    /// Creates `total` free permits.
    pub fn new(total: usize) -> Self {
        Self {
            total: AtomicUsize::new(total),
            taken: AtomicUsize::new(0),
            by_organization: Mutex::default(),
            waiting_until_ms: AtomicU64::new(0),
            unpermitted: ConcurrencyLimit::new(total),
            started: Instant::now(),
        }
    }

    /// Sets how many permits there are. Permits that are taken stay valid; while more are taken than there are, none is
    /// free.
    pub fn set_total(&self, total: usize) {
        self.total.store(total, Ordering::Relaxed);
        self.unpermitted.set_max(total);
    }

    /// Returns the number of free permits.
    pub fn free(&self) -> usize {
        self.total()
            .saturating_sub(self.taken.load(Ordering::Relaxed))
    }

    fn total(&self) -> usize {
        self.total.load(Ordering::Relaxed)
    }

    /// Returns whether an organization would get a permit now. If it has less than its share and none is free, it counts
    /// as waiting from now on.
    pub fn admits(&self, organization: &str, now: Instant) -> bool {
        if self.is_calm(now) {
            return true;
        }
        let taken = self.lock();
        self.decide(&taken, organization, now)
    }

    /// Acquires a permit for an organization, or returns `None` if it gets none.
    pub fn acquire(self: &Arc<Self>, organization: &Arc<str>, now: Instant) -> Option<Permit> {
        let mut taken = self.lock();
        if !self.decide(&taken, organization, now) {
            return None;
        }
        *taken.entry(Arc::clone(organization)).or_default() += 1;
        // The count only changes under the lock; readers need no lock.
        self.taken.fetch_add(1, Ordering::Relaxed);
        Some(Permit {
            permits: Arc::clone(self),
            organization: Arc::clone(organization),
        })
    }

    /// Returns whether every organization gets a permit: at least half are free and none waits.
    fn is_calm(&self, now: Instant) -> bool {
        self.free() > self.total() / 2 && !self.others_wait(now)
    }

    fn others_wait(&self, now: Instant) -> bool {
        let until_ms = self.waiting_until_ms.load(Ordering::Relaxed);
        until_ms > 0 && self.elapsed_ms(now) < until_ms
    }

    fn decide(&self, taken: &HashMap<Arc<str>, usize>, organization: &str, now: Instant) -> bool {
        let occupancy = Occupancy {
            total: self.total(),
            taken: self.taken.load(Ordering::Relaxed),
            own: taken.get(organization).copied().unwrap_or_default(),
            active: taken.len(),
            others_wait: self.others_wait(now),
        };
        let admits = occupancy.is_admitted();
        if !admits && occupancy.is_below_share() {
            let wait_ms = u64::try_from(WAIT.as_millis()).unwrap_or_default();
            let until_ms = self.elapsed_ms(now) + wait_ms;
            self.waiting_until_ms.store(until_ms, Ordering::Relaxed);
        }
        admits
    }

    fn elapsed_ms(&self, now: Instant) -> u64 {
        let elapsed = now.saturating_duration_since(self.started);
        u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Arc<str>, usize>> {
        let locked = self.by_organization.lock();
        locked.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Permit {
    /// Does the work. If the work has to wait, it waits without the permit, so that other requests run. As many may
    /// wait as may run.
    ///
    /// Errors: 529 if too many wait, or if there is no permit when the work is done.
    pub async fn free_while<T>(
        held: &mut Option<Self>,
        work: impl Future<Output = T>,
    ) -> Result<T, Fault> {
        let mut work = pin!(work);
        let first = poll_fn(|context| Poll::Ready(work.as_mut().poll(context)));
        if let Poll::Ready(done) = first.await {
            return Ok(done);
        }
        let Some(permit) = held.take() else {
            return Ok(work.await);
        };
        let (permits, organization) = (Arc::clone(&permit.permits), permit.organization.clone());
        let _waiting = permits.unpermitted.try_acquire().ok_or_else(no_permit)?;
        drop(permit);
        let done = work.await;
        *held = permits.acquire(&organization, Instant::now());
        held.as_ref().map(|_| done).ok_or_else(no_permit)
    }
}

/// Returns the refusal of a request that gets no permit.
pub fn no_permit() -> Fault {
    let message = "more requests run at once than the gateway takes: try again in a second";
    Fault::new(FaultKind::Overloaded, message).with_retry_after_s(1)
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut taken = self.permits.lock();
        if let Some(own) = taken.get_mut(&self.organization) {
            *own = own.saturating_sub(1);
            if *own == 0 {
                taken.remove(&self.organization);
            }
        }
        self.permits.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[tokio::test]
    async fn who_waits_holds_no_permit_and_as_many_wait_as_run() {
        let permits = Arc::new(Permits::new(1));
        let organization: Arc<str> = "acme".into();
        let now = Instant::now();
        let mut held = permits.acquire(&organization, now);
        let at_once = Permit::free_while(&mut held, async { 1 }).await;
        assert_eq!((at_once.ok(), permits.free()), (Some(1), 0));
        let (done, waits) = tokio::sync::oneshot::channel();
        let waiting = tokio::spawn(async move {
            let worked = Permit::free_while(&mut held, waits).await;
            (worked.is_ok(), held)
        });
        while permits.free() == 0 {
            tokio::task::yield_now().await;
        }
        let mut other = permits.acquire(&organization, now);
        // One waits already, and no more than one may.
        let refused = Permit::free_while(&mut other, std::future::pending::<()>()).await;
        assert!(refused.is_err());
        assert_eq!(permits.free(), 1);
        let other = permits.acquire(&organization, now);
        done.send(()).unwrap();
        let (has_worked, held) = waiting.await.unwrap();
        assert!(!has_worked && held.is_none(), "another one runs");
        drop(other);
        assert_eq!(permits.free(), 1);
    }

    #[test]
    fn a_smaller_total_lets_permits_run_and_admits_none_until_enough_have_ended() {
        let permits = Arc::new(Permits::new(4));
        let (one, other): (Arc<str>, Arc<str>) = ("one".into(), "other".into());
        let now = Instant::now();
        let mut held: Vec<Permit> = (0..3)
            .map(|_| permits.acquire(&one, now).unwrap())
            .collect();
        permits.set_total(2);
        assert_eq!(permits.free(), 0);
        held.pop();
        assert!(permits.acquire(&other, now).is_none(), "two of two run");
        held.pop();
        let others = permits.acquire(&other, now).unwrap();
        permits.set_total(5);
        assert_eq!(permits.free(), 3);
        drop((held, others));
        assert_eq!(permits.free(), 5);
    }

    #[test]
    fn an_organization_that_waits_gets_what_becomes_free() {
        let permits = Arc::new(Permits::new(4));
        let (loud, quiet): (Arc<str>, Arc<str>) = ("loud".into(), "quiet".into());
        let now = Instant::now();
        let mut held: Vec<Permit> = (0..4)
            .map(|_| permits.acquire(&loud, now).unwrap())
            .collect();
        // Who is over its share does not count as waiting.
        assert!(!permits.admits(&loud, now));
        assert!(!permits.others_wait(now));
        assert!(!permits.admits(&quiet, now));
        assert!(permits.others_wait(now));
        held.pop();
        assert!(permits.acquire(&loud, now).is_none());
        let quiets = permits.acquire(&quiet, now).unwrap();
        held.pop();
        assert!(permits.acquire(&loud, now).is_none());
        // No organization was refused below its share for a while.
        let later = now + WAIT;
        assert!(permits.acquire(&loud, later).is_some());
        drop((held, quiets));
        assert_eq!(permits.free(), 4);
        assert!(permits.lock().is_empty());
    }
}
