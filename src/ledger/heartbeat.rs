//! Tells the store that this process lives, and judges by it whether the store accepts writes.
//!
//! It is a task of its own with a connection of its own. So neither a long batch of calls nor many leases make the store
//! look unavailable, and other processes never take this one for dead.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::Ledger;
use crate::periodic::Ticks;

/// The interval between two heartbeats.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(2);
/// How soon the task notices that the store no longer knows this process.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// Work that the store may refuse. Units: a bit of [`Ledger::failing`].
#[derive(Clone, Copy)]
pub(super) enum StoreWork {
    /// Calls are stored.
    Post = 1,
    /// The registration is refreshed.
    Heartbeat = 2,
}

impl Ledger {
    /// Runs until `stop`.
    pub(super) async fn run_heartbeat(self: Arc<Self>, stop: watch::Receiver<bool>) {
        let mut last = Instant::now();
        let mut ticks = Ticks::new(CHECK_INTERVAL, stop.clone());
        while ticks.next().await {
            let is_unregistered = self.is_unregistered.load(Ordering::Relaxed);
            if is_unregistered || last.elapsed() >= HEARTBEAT_INTERVAL {
                self.send_heartbeat(&stop).await;
                last = Instant::now();
            }
        }
    }

    async fn send_heartbeat(&self, stop: &watch::Receiver<bool>) {
        let refreshed = self.store.refresh_process(&self.owner);
        match refreshed.await {
            Ok(true) => self.is_unregistered.store(false, Ordering::Relaxed),
            // The process ends and has removed itself.
            Ok(false) if *stop.borrow() => return,
            Ok(false) => {
                if let Err(error) = self.reset_leases().await {
                    log::warn!("the store does not know this process: {error}");
                    return;
                }
            }
            Err(error) => return self.mark_failed(StoreWork::Heartbeat, &error.to_string()),
        }
        self.mark_written(StoreWork::Heartbeat);
    }

    /// Records a successful write.
    pub(super) fn mark_written(&self, work: StoreWork) {
        let last_write_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_write_ms.store(last_write_ms, Ordering::Relaxed);
        let bit = work as u8;
        if self.failing.fetch_and(!bit, Ordering::Relaxed) == bit {
            log::info!("the store takes calls again");
        }
    }

    /// Records a failure. Each is counted, but only the first of an outage is logged.
    pub(super) fn mark_failed(&self, work: StoreWork, reason: &str) {
        self.metrics.ledger_failures.inc();
        if self.failing.fetch_or(work as u8, Ordering::Relaxed) == 0 {
            log::warn!("the store takes no calls, the journal keeps them: {reason}");
        }
    }

    /// Returns whether the store failed lately.
    pub(super) fn is_failing(&self) -> bool {
        self.failing.load(Ordering::Relaxed) != 0
    }
}
