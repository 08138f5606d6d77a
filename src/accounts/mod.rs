//! The snapshot of accounts, swapped while requests are served, and the rows of BYOK keys, published beside it.
//!
//! A request loads the current snapshot without a lock and never waits for the store. While the store does not respond,
//! the last snapshot stays in force.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use tokio::sync::watch;

use crate::periodic::Ticks;
use crate::store::{ByokKeyRow, Store, StoreError};

/// The interval between two checks of the store's revision. With the reads and the swap, a change is in force well
/// within a second.
const REFRESH_INTERVAL: Duration = Duration::from_millis(250);
/// The time limit of one check.
const QUERY_TIMEOUT: Duration = Duration::from_secs(3);

/// The accounts in force. Clones share the snapshot.
#[derive(Clone)]
pub struct AccountsHandle {
    shared: Arc<SharedSnapshot>,
}

type BoxedSubscriber = Box<dyn Fn(Vec<ByokKeyRow>) + Send + Sync>;

struct SharedSnapshot {
    current: ArcSwap<filters::accounts::AccountsSnapshot>,
    /// Gets the BYOK rows of each revision before its accounts come into force.
    publish_byok: BoxedSubscriber,
    failures: AtomicU64,
    started: Instant,
    confirmed_ms: AtomicU64,
}

impl AccountsHandle {
    /// Reads the first snapshot.
    ///
    /// `publish_byok` gets all BYOK rows of a revision, here and at each later one, before the accounts of that
    /// revision come into force: a request never sees a caller without the caller's keys. Errors: the store failed.
    pub async fn load(
        store: &Store,
        publish_byok: impl Fn(Vec<ByokKeyRow>) + Send + Sync + 'static,
    ) -> Result<Self, StoreError> {
        let accounts = store.accounts().await?;
        publish_byok(store.byok_keys().await?);
        Ok(Self::new(accounts, Box::new(publish_byok)))
    }

    /// Makes a handle that nothing refreshes, for tests and benches.
    pub fn fixed(accounts: filters::accounts::AccountsSnapshot) -> Self {
        Self::new(accounts, Box::new(|_| {}))
    }

    fn new(accounts: filters::accounts::AccountsSnapshot, publish_byok: BoxedSubscriber) -> Self {
        let shared = SharedSnapshot {
            current: ArcSwap::from_pointee(accounts),
            publish_byok,
            failures: AtomicU64::new(0),
            started: Instant::now(),
            confirmed_ms: AtomicU64::new(0),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Returns the snapshot in force. Cost: no lock, no allocation.
    pub fn current(&self) -> arc_swap::Guard<Arc<filters::accounts::AccountsSnapshot>> {
        self.shared.current.load()
    }

    /// Returns how often the store has failed to respond.
    pub fn failures(&self) -> u64 {
        self.shared.failures.load(Ordering::Relaxed)
    }

    /// Returns how long ago the store last confirmed the snapshot.
    pub fn age(&self) -> Duration {
        let confirmed_ms = self.shared.confirmed_ms.load(Ordering::Relaxed);
        let confirmed = Duration::from_millis(confirmed_ms);
        self.shared.started.elapsed().saturating_sub(confirmed)
    }

    /// Checks the store's revision and swaps in a new snapshot if it has changed. Returns whether it has.
    ///
    /// Errors: the store failed; the snapshot stays.
    pub async fn refresh(&self, store: &Store) -> Result<bool, StoreError> {
        let revision = store.revision().await?;
        let has_changed = revision != self.current().revision();
        if has_changed {
            let accounts = store.accounts().await?;
            // Before the swap: a caller's keys are there once the caller is, and `accounts` carries the revision, so
            // a failure here repeats both.
            (self.shared.publish_byok)(store.byok_keys().await?);
            self.shared.current.store(Arc::new(accounts));
        }
        self.mark_confirmed();
        Ok(has_changed)
    }

    /// Refreshes at intervals until `stop` becomes true or its sender is dropped.
    pub async fn run_refresh(self, store: Store, stop: watch::Receiver<bool>) {
        let mut is_failing = false;
        let mut ticks = Ticks::new(REFRESH_INTERVAL, stop);
        while ticks.next().await {
            let outcome = tokio::time::timeout(QUERY_TIMEOUT, self.refresh(&store)).await;
            let failure = match outcome {
                Ok(Ok(_)) => None,
                Ok(Err(error)) => Some(error.to_string()),
                Err(_) => Some("the store does not answer".to_owned()),
            };
            is_failing = self.record_outcome(failure, is_failing);
        }
    }

    fn mark_confirmed(&self) {
        let now_ms = u64::try_from(self.shared.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.shared.confirmed_ms.store(now_ms, Ordering::Relaxed);
    }

    /// Counts each failure, but logs only the first and the recovery.
    fn record_outcome(&self, failure: Option<String>, was_failing: bool) -> bool {
        match failure {
            Some(reason) => {
                self.shared.failures.fetch_add(1, Ordering::Relaxed);
                if !was_failing {
                    log::warn!("accounts stay as they were: {reason}");
                }
                true
            }
            None => {
                if was_failing {
                    log::info!("accounts are up to date again");
                }
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failure_is_counted_and_an_answer_ends_the_outage() {
        let accounts = AccountsHandle::fixed(filters::accounts::AccountsSnapshot::default());
        let mut is_failing = false;
        for _ in 0..3 {
            is_failing = accounts.record_outcome(Some("down".to_owned()), is_failing);
        }
        assert!(is_failing);
        assert!(!accounts.record_outcome(None, is_failing));
        assert_eq!(accounts.failures(), 3);
    }

    #[test]
    fn clones_share_the_snapshot_in_force() {
        let accounts = AccountsHandle::fixed(filters::accounts::AccountsSnapshot::default());
        let clone = accounts.clone();
        let next = filters::accounts::AccountsSnapshot::new(7, []);
        accounts.shared.current.store(Arc::new(next));
        assert_eq!(clone.current().revision(), 7);
    }
}
