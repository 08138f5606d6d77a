//! Windows that several processes share, exactly or with leases.
//!
//! With leases a process takes several units of a hot window in one call to Redis, and admits requests with them from
//! memory. `filters::limits::Leases` decides; here are the calls, and the task that gives back what was not needed.

use std::sync::Arc;
use std::time::Duration;

use filters::fault::Fault;
use filters::limits::{Algorithm, LeaseStep, Leases, Leftover, SharedCount, Verdict, WindowKey};
use prometheus::IntCounterVec;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::counters::to_ms;
use super::redis_windows::RedisWindows;
use crate::config::OnOutage;
use crate::redis::{Redis, Unavailable};
use crate::shared_wait;

/// How windows are shared.
#[derive(Clone)]
pub struct Sharing {
    pub redis: Redis,
    /// How limits behave while Redis is unavailable.
    pub on_outage: OnOutage,
    /// Whether each request is counted in Redis on its own.
    pub is_exact: bool,
    /// Units of leases, by what became of them: `taken`, `returned`.
    pub leased_units: IntCounterVec,
}

/// The windows of one length.
#[derive(Clone)]
pub(super) struct SharedWindows {
    windows: Arc<RedisWindows>,
    leases: Option<Arc<Leases>>,
    leased_units: IntCounterVec,
    started: Instant,
}

impl SharedWindows {
    /// `previous` are the windows of the same algorithm and length in a previous configuration, whose leases go on.
    pub(super) fn new(
        sharing: &Sharing,
        algorithm: Algorithm,
        window: Duration,
        previous: Option<&Self>,
    ) -> Self {
        let redis = sharing.redis.clone();
        let held = previous.and_then(|it| it.leases.clone());
        let leases = || held.unwrap_or_else(|| Arc::new(Leases::new(algorithm, to_ms(window))));
        Self {
            windows: Arc::new(RedisWindows::new(
                redis,
                sharing.on_outage,
                algorithm,
                window,
            )),
            leases: (!sharing.is_exact).then(leases),
            leased_units: sharing.leased_units.clone(),
            started: previous.map_or_else(Instant::now, |it| it.started),
        }
    }

    /// Counts one request if its limit allows it, over all processes.
    pub(super) async fn admit(&self, key: &WindowKey, limit: u64) -> Result<Verdict, Unavailable> {
        let Some(leases) = &self.leases else {
            return Ok(self.windows.take(key, limit, 1).await?.verdict(limit));
        };
        let sent_ms = self.now_ms();
        match leases.admit(key, limit, sent_ms) {
            LeaseStep::Decided(verdict) => Ok(verdict),
            LeaseStep::AskForOne => {
                let count = self.windows.take(key, limit, 1).await?;
                leases.record_count(key, limit, &count, sent_ms);
                Ok(count.verdict(limit))
            }
            LeaseStep::AskForLease(wanted) => {
                let (answer, answered) = oneshot::channel();
                let lease = Lease {
                    shared: self.clone(),
                    leases: Arc::clone(leases),
                    key: key.clone(),
                };
                // A request that is dropped must not drop units that Redis has counted.
                self.windows.spawn(lease.run(limit, wanted, answer));
                let _wait = shared_wait::begin();
                answered.await.unwrap_or(Err(Unavailable))
            }
        }
    }

    /// Returns how many units count now, over all processes.
    pub(super) async fn count(&self, key: &WindowKey) -> Result<u64, Unavailable> {
        Ok(self.usage(key).await?.count)
    }

    /// Returns how many units of a key count now and when there are more, over all processes.
    pub(super) async fn usage(&self, key: &WindowKey) -> Result<SharedCount, Unavailable> {
        // A limit of 0 admits nothing, and the script tells the count all the same.
        self.windows.take(key, 0, 1).await
    }

    /// Returns the windows that this process has asked for lately, those with the most requests first. Without leases it
    /// knows of none.
    pub(super) fn busiest(&self, max: usize) -> Vec<WindowKey> {
        let leases = self.leases.as_ref();
        leases.map_or_else(Vec::new, |leases| leases.busiest(max, self.now_ms()))
    }

    /// Returns a unit that was counted at this time. Returns whether it did, which fails while Redis is unavailable.
    pub(super) async fn refund(&self, key: &WindowKey, at_ms: u64) -> bool {
        let leases = self.leases.as_ref();
        if leases.is_some_and(|leases| leases.refund(key, at_ms, self.now_ms())) {
            return true;
        }
        let unit = Leftover { units: 1, at_ms };
        self.windows.refund(key, unit).await == 1
    }

    /// Returns the limit of this process while Redis is unavailable. Errors: 503.
    pub(super) fn outage_limit(&self, limit: u64) -> Result<u64, Fault> {
        self.windows.outage_limit(limit)
    }

    /// Forgets the keys of a shard that have no requests any more.
    pub(super) fn sweep(&self, shard: usize) {
        if let Some(leases) = &self.leases {
            leases.sweep(shard, self.now_ms());
        }
    }

    fn count_units(&self, state: &str, units: u64) {
        self.leased_units.with_label_values(&[state]).inc_by(units);
    }

    /// Returns the time of a monotonic clock.
    fn now_ms(&self) -> u64 {
        to_ms(self.started.elapsed())
    }
}

/// One lease of one window, from the call that takes it until its units are spent or given back.
struct Lease {
    shared: SharedWindows,
    leases: Arc<Leases>,
    key: WindowKey,
}

impl Lease {
    /// Takes a lease, of which the request that asked gets one unit.
    async fn run(
        self,
        limit: u64,
        wanted: u64,
        answer: oneshot::Sender<Result<Verdict, Unavailable>>,
    ) {
        let (shared, key) = (&self.shared, &self.key);
        let sent_ms = shared.now_ms();
        let count = match shared.windows.take(key, limit, wanted).await {
            Ok(count) => count,
            Err(error) => {
                self.leases.record_failed_lease(key);
                _ = answer.send(Err(error));
                return;
            }
        };
        let times = (sent_ms, shared.now_ms());
        let (before, ends_ms) = self.leases.record_lease(key, limit, &count, times);
        if answer.send(Ok(count.verdict(limit))).is_err() && count.units > 0 {
            shared.refund(key, count.at_ms).await;
        }
        self.refund(before).await;
        let Some(ends_ms) = ends_ms else {
            return;
        };
        shared.count_units("taken", count.units);
        tokio::time::sleep_until(shared.started + Duration::from_millis(ends_ms)).await;
        self.refund(self.leases.end_lease(key, shared.now_ms().max(ends_ms)))
            .await;
    }

    async fn refund(&self, leftover: Option<Leftover>) {
        if let Some(leftover) = leftover {
            let units = self.shared.windows.refund(&self.key, leftover).await;
            self.shared.count_units("returned", units);
        }
    }
}
