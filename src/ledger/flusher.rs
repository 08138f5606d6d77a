//! Stores ended calls in the background, returns idle leases and records metrics.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use filters::ledger::LedgerEntry;
use filters::ledger::usage_query::first_session_hour;
use filters::money::Usd;
use tokio::sync::watch;

use super::Ledger;
use super::clock::{Difference, MAX_DRIFT_MS, follow_system};
use super::heartbeat::StoreWork;
use super::journal::JournalBatch;
use super::refused_calls::post;
use crate::periodic::Ticks;
use crate::store::StoreError;
use crate::store::ledger::OldCalls;

/// The interval between two flushes.
const FLUSH_INTERVAL: Duration = Duration::from_millis(200);
/// The maximum number of calls in a batch.
pub(super) const MAX_BATCH_ENTRIES: usize = 4096;
/// After this time without a call the free amount of a lease is returned, if other processes share the store. They get
/// it earlier on request.
const LEASE_IDLE_TIMEOUT: Duration = Duration::from_secs(300);
/// How often idle leases are looked for.
const IDLE_INTERVAL: Duration = Duration::from_secs(1);
/// How often old calls are deleted.
const CLEAN_INTERVAL: Duration = Duration::from_secs(600);
/// The pause between two deletions, in which other writes proceed.
const CLEAN_PAUSE: Duration = Duration::from_millis(50);
/// How often what processes of the version before have spent is counted.
const COUNT_INTERVAL: Duration = Duration::from_secs(10);
/// The pause between two steps of it, in which other writes proceed.
const COUNT_PAUSE: Duration = Duration::from_millis(5);
/// The longest time that a plan or a calendar month looks back.
const LOOKBACK_MS: i64 = 32 * 24 * 3_600_000;
/// Spending is joined this much later than limits look back, because the clocks of processes may differ.
const PAST_MARGIN_MS: i64 = 48 * 3_600_000;
/// How much later than its stored call a journal, also that of another process, may date a call.
const RETENTION_MARGIN_MS: i64 = 24 * 3_600_000;

/// The flusher's state between ticks.
#[derive(Default)]
struct FlushState {
    /// The number of next calls that may be stored already: a batch with them failed.
    doubtful: usize,
    /// How many times this process had stored calls after the last batch.
    posts: i64,
    /// The size of the next batch, while the store is too slow for large ones.
    max_entries: Option<usize>,
}

impl FlushState {
    fn max_entries(&self) -> usize {
        self.max_entries.unwrap_or(MAX_BATCH_ENTRIES)
    }
}

impl Ledger {
    /// Runs until `stop`, then stores the remaining calls.
    pub(super) async fn run_flusher(self: Arc<Self>, stop: watch::Receiver<bool>) {
        let mut state = FlushState::default();
        let mut ticks = Ticks::new(FLUSH_INTERVAL, stop);
        while ticks.next().await {
            self.follow_clock();
            self.flush_entries(&mut state).await;
            self.record_metrics();
        }
        self.drain(state).await;
    }

    /// Shares with other processes: returns idle leases. Runs until it is dropped.
    pub(super) async fn share(self: Arc<Self>) {
        let mut ticks = tokio::time::interval(IDLE_INTERVAL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            // While the store fails, leases stay here and serve calls without it.
            if !self.is_failing() {
                self.return_idle_leases(LEASE_IDLE_TIMEOUT).await;
            }
        }
    }

    /// Stores the ended calls.
    async fn flush_entries(&self, state: &mut FlushState) {
        let _flush_guard = self.flush_lock.lock().await;
        loop {
            let max_entries = state.max_entries();
            let Some(batch) = self.journal.next_batch(max_entries) else {
                break;
            };
            let has_more = batch.has_more;
            if !self.post_batch(batch, state).await || !has_more {
                break;
            }
        }
    }

    /// Stores a batch. Returns whether none of its calls has to be tried again.
    async fn post_batch(&self, batch: JournalBatch, state: &mut FlushState) -> bool {
        let (count, mut stored) = (batch.entries.len(), false);
        let posted = post(&self.store, &self.owner, &batch.entries, state.doubtful > 0).await;
        let done = match posted {
            Ok(posted) => {
                if !posted.was_registered {
                    // The next heartbeat registers this process again.
                    self.is_unregistered.store(true, Ordering::Relaxed);
                }
                stored = posted.refused.len() < count;
                self.set_aside(&posted.refused)
            }
            Err(error) => {
                if matches!(error, StoreError::TimedOut) {
                    state.max_entries = Some((count / 2).max(1));
                }
                Err(error.to_string())
            }
        };
        match done {
            Ok(()) => {
                // Unknown, spending is read while nothing is posted.
                let posts = self.store.posts(&self.owner).await.ok();
                self.notice_lost_posts(posts, stored, state);
                self.journal.mark_stored(&batch, posts);
                state.doubtful = state.doubtful.saturating_sub(count);
                let doubled = state.max_entries.map(|max_entries| max_entries * 2);
                state.max_entries = doubled.filter(|max_entries| *max_entries < MAX_BATCH_ENTRIES);
                self.mark_written(StoreWork::Post);
                true
            }
            Err(reason) => {
                state.doubtful = state.doubtful.max(count);
                self.mark_failed(StoreWork::Post, &reason);
                false
            }
        }
    }

    /// Tells that the store has forgotten what it had confirmed. Its own count of this process's posts says so: it is that of
    /// an older copy, to which a failover without synchronous replication has switched.
    /// `has_stored`: there was a post since the last look.
    fn notice_lost_posts(&self, posts: Option<i64>, has_stored: bool, state: &mut FlushState) {
        let Some(posts) = posts else { return };
        let expected = state.posts.saturating_add(i64::from(has_stored));
        let lost = expected.saturating_sub(posts);
        state.posts = posts;
        if lost > 0 {
            self.metrics.ledger_lost_posts.inc_by(lost.unsigned_abs());
            log::error!(
                "the store has lost {lost} batches of calls that it had confirmed: it is an older copy of itself. What \
                 they cost is not charged; PostgreSQL that fails over needs synchronous replication"
            );
        }
    }

    /// Sets calls aside that the store refuses. Errors: the file system failed, in its words.
    fn set_aside(&self, refused: &[(&LedgerEntry, StoreError)]) -> Result<(), String> {
        if !refused.is_empty() {
            let appended = self.refused_calls.append(refused);
            let count = appended.map_err(|error| error.to_string())?;
            self.metrics.ledger_refused.inc_by(count);
        }
        Ok(())
    }

    /// Follows the system's clock, or says that it has jumped.
    fn follow_clock(&self) {
        match follow_system() {
            Difference::Known => {}
            Difference::Jumped(by_ms) => log::warn!(
                "the system's clock has jumped by {} s; calls and limits follow it if it stays so for an hour",
                by_ms / 1000
            ),
            Difference::Followed(by_ms) if by_ms.abs() > MAX_DRIFT_MS => {
                log::warn!(
                    "calls and limits follow the system's clock by {} s",
                    by_ms / 1000
                );
            }
            Difference::Followed(_) => {}
        }
    }

    /// Counts what is in no counter of a limit: the history of a store of the version before, and then what its processes
    /// add. Runs until it is dropped.
    pub(super) async fn count_spent(self: Arc<Self>) {
        loop {
            let pause = match self.store.count_spent().await {
                Ok(true) => COUNT_PAUSE,
                Ok(false) => COUNT_INTERVAL,
                Err(error) => {
                    log::warn!("what was spent is not counted: {error}");
                    COUNT_INTERVAL
                }
            };
            tokio::time::sleep(pause).await;
        }
    }

    /// Joins the spending of hours that no limit looks back at, and deletes old sums of sessions and old budgets, at intervals. Runs until it is
    /// dropped.
    pub(super) async fn clean_past_hours(self: Arc<Self>) {
        loop {
            let before_ms = self.now_ms() - LOOKBACK_MS - PAST_MARGIN_MS;
            let step = || self.store.join_past_spent(before_ms);
            clean("old spending stays by the hour", step).await;
            let before = first_session_hour(self.now_ms());
            let step = || self.store.delete_old_named_hours(before);
            clean("old sums of sessions stay in the store", step).await;
            let now_ms = self.now_ms();
            let step = || self.store.delete_old_budgets(now_ms);
            clean("old budgets stay in the store", step).await;
            tokio::time::sleep(CLEAN_INTERVAL).await;
        }
    }

    /// Deletes single calls older than `retention`, and joins the sums of their hours into days, at intervals. Runs until it
    /// is dropped.
    pub(super) async fn delete_old_calls(self: Arc<Self>, retention: Duration) {
        loop {
            let (now_ms, started_ms) = (self.now_ms(), self.journal.started_ms());
            let old = OldCalls {
                before_ms: retention_cutoff_ms(now_ms, retention, i64::MAX),
                owner: &self.owner,
                own_before_ms: retention_cutoff_ms(now_ms, retention, started_ms),
            };
            let step = || self.store.delete_old_calls(&old);
            clean("old calls stay in the store", step).await;
            let before = old.before_ms.div_euclid(3_600_000);
            let step = || self.store.join_hours(before);
            clean("old sums stay by the hour", step).await;
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
    async fn drain(&self, mut state: FlushState) {
        let _flush_guard = self.flush_lock.lock().await;
        while let Some(batch) = self.journal.next_batch(state.max_entries()) {
            if !self.post_batch(batch, &mut state).await {
                return;
            }
        }
        if let Err(error) = self.store.unregister_process(&self.owner).await {
            log::warn!("leases stay until they expire: {error}");
        }
        // Otherwise the journal stays, and the next start brings its calls again.
        if self.journal.is_done()
            && let Err(error) = self.store.forget_journal(&self.owner).await
        {
            log::warn!("the last calls of this process stay in the store: {error}");
        }
    }
}

/// Repeats a step until it has left nothing or fails, which `failure` says in the log. Other writes proceed in its pauses.
async fn clean<F>(failure: &str, step: impl Fn() -> F)
where
    F: Future<Output = Result<bool, StoreError>>,
{
    loop {
        match step().await {
            Ok(false) => return,
            Ok(true) => tokio::time::sleep(CLEAN_PAUSE).await,
            Err(error) => return log::warn!("{failure}: {error}"),
        }
    }
}

/// Returns the time before which calls may be deleted. A call stays as long as a journal may have it, because only the
/// stored call prevents a second charge.
pub(super) fn retention_cutoff_ms(
    now_ms: i64,
    retention: Duration,
    journal_started_ms: i64,
) -> i64 {
    let retention_ms = i64::try_from(retention.as_millis()).unwrap_or(i64::MAX);
    let before_ms = now_ms.saturating_sub(retention_ms);
    before_ms.min(journal_started_ms.saturating_sub(RETENTION_MARGIN_MS))
}
