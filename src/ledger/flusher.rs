//! Stores ended calls in the background, returns idle leases and records metrics.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use filters::money::Usd;
use tokio::sync::watch;

use super::Ledger;
use super::journal::JournalBatch;

/// The interval between two flushes.
const FLUSH_INTERVAL: Duration = Duration::from_millis(200);
/// The maximum number of calls in a batch.
pub(super) const MAX_BATCH_ENTRIES: usize = 4096;
/// The time limit of one operation of the store.
const STORE_TIMEOUT: Duration = Duration::from_secs(8);
/// How often an idle process refreshes its registration.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(2);
/// After this time without a call the free amount of a lease is returned, if other processes share the store. They get
/// it earlier on request.
const LEASE_IDLE_TIMEOUT: Duration = Duration::from_secs(300);
/// Spending is read again for organizations that were active within this time.
const ACTIVE_WINDOW: Duration = Duration::from_secs(5);
/// How often the spending by other processes is read again.
const REFRESH_INTERVAL: Duration = Duration::from_secs(1);
/// How often old rows are deleted.
const CLEAN_INTERVAL: Duration = Duration::from_secs(600);
/// The pause between two deletions, in which other writes proceed.
const CLEAN_PAUSE: Duration = Duration::from_millis(50);
/// How much later than its row a journal, also that of another process, may date a call.
const RETENTION_MARGIN_MS: i64 = 24 * 3_600_000;

/// The flusher's state between ticks.
struct FlushState {
    /// A batch failed, so the store may or may not have its calls.
    may_be_stored: bool,
    is_failing: bool,
    last_heartbeat: Instant,
    last_refresh: Instant,
}

impl Ledger {
    /// Runs until `stop`, then stores the remaining calls.
    pub(super) async fn run_flusher(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        let mut ticks = tokio::time::interval(FLUSH_INTERVAL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut state = FlushState {
            may_be_stored: false,
            is_failing: false,
            last_heartbeat: Instant::now(),
            last_refresh: Instant::now(),
        };
        loop {
            tokio::select! {
                changed = stop.changed() => {
                    if changed.is_err() || *stop.borrow() {
                        break;
                    }
                }
                _ = ticks.tick() => self.flush_once(&mut state).await,
            }
        }
        self.drain().await;
    }

    async fn flush_once(&self, state: &mut FlushState) {
        self.flush_entries(state).await;
        if self.is_unregistered.load(Ordering::Relaxed)
            || state.last_heartbeat.elapsed() >= HEARTBEAT_INTERVAL
        {
            self.send_heartbeat(state).await;
        }
        // While the store fails, leases stay here and serve calls without it.
        if self.is_shared && !state.is_failing {
            for account in self.accounts() {
                if !account.is_active(LEASE_IDLE_TIMEOUT) {
                    self.return_lease(&account).await;
                }
            }
        }
        if self.is_shared && state.last_refresh.elapsed() >= REFRESH_INTERVAL {
            state.last_refresh = Instant::now();
            self.refresh_spent().await;
        }
        self.record_metrics();
    }

    /// Stores the ended calls.
    async fn flush_entries(&self, state: &mut FlushState) {
        let _flush_guard = self.flush_lock.lock().await;
        while let Some(batch) = self.journal.next_batch(MAX_BATCH_ENTRIES) {
            let count = batch.entries.len();
            if !self.post_batch(batch, state).await || count < MAX_BATCH_ENTRIES {
                break;
            }
        }
    }

    /// Stores a batch. Returns whether the store accepted it.
    async fn post_batch(&self, batch: JournalBatch, state: &mut FlushState) -> bool {
        let entries = batch.entries.clone();
        let may_be_stored = state.may_be_stored;
        let posted = self.store.post(&self.owner, entries, may_be_stored);
        match posted.await {
            Ok(was_registered) => {
                self.journal.mark_stored(&batch);
                state.may_be_stored = false;
                self.mark_written(was_registered, state).await;
                true
            }
            Err(error) => {
                state.may_be_stored = true;
                self.mark_failed(&error.to_string(), state);
                false
            }
        }
    }

    async fn send_heartbeat(&self, state: &mut FlushState) {
        let refreshed = self.store.refresh_process(&self.owner);
        match tokio::time::timeout(STORE_TIMEOUT, refreshed).await {
            Ok(Ok(was_registered)) => self.mark_written(was_registered, state).await,
            Ok(Err(error)) => self.mark_failed(&error.to_string(), state),
            Err(_) => self.mark_failed("it does not answer", state),
        }
    }

    /// Records a successful write. If the store did not know this process, resets its leases.
    async fn mark_written(&self, was_registered: bool, state: &mut FlushState) {
        state.last_heartbeat = Instant::now();
        if std::mem::take(&mut state.is_failing) {
            log::info!("the store takes calls again");
        }
        if !was_registered && let Err(error) = self.reset_leases().await {
            log::warn!("the store does not know this process: {error}");
            return;
        }
        let last_write_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_write_ms.store(last_write_ms, Ordering::Relaxed);
    }

    fn mark_failed(&self, reason: &str, state: &mut FlushState) {
        // Each failure is counted, but only the first of an outage is logged.
        self.metrics.ledger_failures.inc();
        state.last_heartbeat = Instant::now();
        if !std::mem::replace(&mut state.is_failing, true) {
            log::warn!("the store takes no calls, the journal keeps them: {reason}");
        }
    }

    /// Reads the spending of keys with limits again, which other processes may have raised.
    async fn refresh_spent(&self) {
        for account in self.accounts() {
            if account.has_bounds() && account.is_active(ACTIVE_WINDOW) {
                // Failures are reported by other operations of the store, and the next refresh follows soon.
                _ = tokio::time::timeout(STORE_TIMEOUT, self.read_spent(&account)).await;
            }
        }
    }

    /// Deletes rows older than `retention` at intervals. Runs until it is dropped.
    pub(super) async fn delete_old_rows(self: Arc<Self>, retention: Duration) {
        loop {
            let before_ms =
                retention_cutoff_ms(self.now_ms(), retention, self.journal.started_ms());
            loop {
                match self.store.delete_old_calls(before_ms).await {
                    Ok(false) => break,
                    Ok(true) => tokio::time::sleep(CLEAN_PAUSE).await,
                    Err(error) => {
                        log::warn!("old rows of the ledger stay: {error}");
                        break;
                    }
                }
            }
            tokio::time::sleep(CLEAN_INTERVAL).await;
        }
    }

    fn record_metrics(&self) {
        let accounts = self.accounts();
        let reserved = accounts
            .iter()
            .fold(Usd::ZERO, |sum, account| sum.plus(account.reserved()));
        let metrics = &self.metrics;
        metrics.ledger_reserved.set(reserved.to_f64_for_metrics());
        metrics
            .journal_lag
            .set(self.journal.lag(self.now_ms()).as_secs_f64());
        let bytes = i64::try_from(self.journal.bytes()).unwrap_or(i64::MAX);
        metrics.journal_bytes.set(bytes);
    }

    /// Stores the remaining calls and returns the leases. The next start recovers calls that could not be stored.
    async fn drain(&self) {
        let mut state = FlushState {
            may_be_stored: true,
            is_failing: true,
            last_heartbeat: Instant::now(),
            last_refresh: Instant::now(),
        };
        let _flush_guard = self.flush_lock.lock().await;
        while let Some(batch) = self.journal.next_batch(MAX_BATCH_ENTRIES) {
            if !self.post_batch(batch, &mut state).await {
                return;
            }
        }
        if let Err(error) = self.store.unregister_process(&self.owner).await {
            log::warn!("leases stay until they expire: {error}");
        }
    }
}

/// Returns the time before which rows may be deleted. A row stays as long as a journal may have its call, because only
/// the row prevents a second charge.
pub(super) fn retention_cutoff_ms(
    now_ms: i64,
    retention: Duration,
    journal_started_ms: i64,
) -> i64 {
    let retention_ms = i64::try_from(retention.as_millis()).unwrap_or(i64::MAX);
    let before_ms = now_ms.saturating_sub(retention_ms);
    before_ms.min(journal_started_ms.saturating_sub(RETENTION_MARGIN_MS))
}
