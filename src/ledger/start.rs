//! Starts the ledger with its store or without it, and ends it.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, mpsc};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use filters::ledger::LedgerEntry;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};

use super::flusher::MAX_BATCH_ENTRIES;
use super::heartbeat::StoreWork;
use super::journal::{Journal, MAX_SEGMENT_AGE};
use super::leases::{LEASE_TASKS, LeaseQueue};
use super::recovery::RecoveredJournal;
use super::refused_calls::{RefusedCalls, post};
use super::{Ledger, LedgerError, REQUEST_TURNS};
use crate::config;
use crate::store::{Store, StoreError, StoreUrl, in_background};
use crate::tasks::Tasks;
use crate::telemetry::metrics::Metrics;

/// The time limit of the last batch at shutdown.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);

impl Ledger {
    /// Starts the ledger, and attaches the store.
    ///
    /// Errors: files, the store.
    pub async fn start(
        configured: &config::StoreConfig,
        recovered: Vec<RecoveredJournal>,
        store: Store,
        metrics: Arc<Metrics>,
    ) -> Result<Arc<Self>, LedgerError> {
        let ledger = Self::detached(configured, store, metrics)?;
        ledger.attach(configured, recovered, |_, _| {}).await?;
        Ok(ledger)
    }

    /// Starts the ledger without its store: until [`Self::attach`] no credit is spent, and calls on the callers' own keys
    /// wait in the journal. Runs on the store's runtime.
    ///
    /// Errors: files.
    pub fn detached(
        configured: &config::StoreConfig,
        store: Store,
        metrics: Arc<Metrics>,
    ) -> Result<Arc<Self>, LedgerError> {
        let owner = *uuid::Uuid::now_v7().as_bytes();
        let journal = Journal::start(
            &configured.state_dir,
            owner,
            configured.durability,
            MAX_SEGMENT_AGE,
        )?;
        let owner: String = owner.iter().map(|byte| format!("{byte:02x}")).collect();
        let has_fleet = matches!(StoreUrl::parse(&configured.url), Ok(StoreUrl::Postgres(_)));
        Ok(Arc::new(Self {
            accounts: RwLock::default(),
            journal: Arc::new(journal),
            store,
            refused_calls: RefusedCalls::new(&configured.state_dir),
            metrics,
            runtime: Handle::current(),
            owner,
            has_fleet,
            peer: ArcSwapOption::empty(),
            journal_bytes: configured.journal_bytes,
            started: Instant::now(),
            flush_lock: tokio::sync::Mutex::default(),
            last_write_ms: AtomicU64::new(0),
            is_attached: AtomicBool::new(false),
            is_unregistered: AtomicBool::new(false),
            failing: AtomicU8::new(0),
            lease_changes: LeaseQueue::default(),
            last_lease_number: AtomicI64::new(0),
            is_dropping: AtomicBool::new(false),
            request_turns: Arc::new(Semaphore::new(REQUEST_TURNS)),
            tasks: Tasks::default(),
            stop: watch::channel(false).0,
            ended: Mutex::new(None),
        }))
    }

    /// Stores what dead processes left in their journals, then starts the background tasks. Runs on the store's
    /// runtime. `on_stored` is told how many of those calls are stored, and how many there are.
    ///
    /// Errors: the store. Then it may be called again, with what [`super::recovery::recover_journals`] finds then.
    pub async fn attach(
        self: &Arc<Self>,
        configured: &config::StoreConfig,
        recovered: Vec<RecoveredJournal>,
        on_stored: impl Fn(u64, u64) + Send + Sync + 'static,
    ) -> Result<(), LedgerError> {
        let ledger = Arc::clone(self);
        let storing = async move { Ok(ledger.store_recovered(recovered, on_stored).await) };
        in_background(storing).await??;
        let (store, owner) = (self.store.clone(), self.owner.clone());
        in_background(async move { store.register_process(&owner).await }).await?;
        let (end, ended) = mpsc::channel();
        *self.ended.lock().unwrap_or_else(PoisonError::into_inner) = Some(ended);
        let stopped = self.stop.subscribe();
        self.mark_written(StoreWork::Heartbeat);
        self.is_attached.store(true, Ordering::Relaxed);
        self.spawn_tasks(configured, &stopped);
        let flusher = Arc::clone(self);
        self.tasks.spawn("ledger", async move {
            flusher.run_flusher(stopped).await;
            _ = end.send(());
        });
        Ok(())
    }

    /// Starts the background tasks beside the flusher.
    fn spawn_tasks(
        self: &Arc<Self>,
        configured: &config::StoreConfig,
        stopped: &watch::Receiver<bool>,
    ) {
        if self.has_fleet {
            tokio::spawn(Arc::clone(self).listen());
            self.tasks.spawn("spending", Arc::clone(self).share());
        } else {
            tokio::spawn(Arc::clone(self).hear_commands());
        }
        for _ in 0..LEASE_TASKS {
            self.tasks
                .spawn("leases", Arc::clone(self).change_queued_leases());
        }
        let heartbeat = Arc::clone(self).run_heartbeat(stopped.clone());
        self.tasks.spawn("heartbeat", heartbeat);
        let journal = Arc::clone(&self.journal);
        self.tasks.watch("journal", move || journal.is_running());
        tokio::spawn(Arc::clone(self).run_idle_accounts());
        tokio::spawn(Arc::clone(self).count_spent());
        tokio::spawn(Arc::clone(self).clean_past_hours());
        if let Some(retention) = configured.usage_retention {
            tokio::spawn(Arc::clone(self).delete_old_calls(retention));
        }
    }

    /// Stores the remaining calls and returns the leases. The next start recovers calls that could not be stored.
    ///
    /// Blocks: call it from a separate thread, after the last request.
    pub fn close(&self) {
        self.stop.send_replace(true);
        let ended = self
            .ended
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(ended) = ended {
            _ = ended.recv_timeout(CLOSE_TIMEOUT);
        }
        self.journal.close();
    }

    /// Stores what dead processes left in their journals.
    async fn store_recovered(
        &self,
        recovered: Vec<RecoveredJournal>,
        on_stored: impl Fn(u64, u64) + Send + Sync,
    ) -> Result<(), LedgerError> {
        let total: usize = recovered.iter().map(|left| left.entries.len()).sum();
        let mut done = 0;
        for left in recovered {
            let count = left.entries.len();
            let posting = self.post_recovered(&left.owner, &left.entries, |stored| {
                on_stored((done + stored) as u64, total as u64);
            });
            posting.await?;
            done += count;
            self.store.unregister_process(&left.owner).await?;
            if count > 0 {
                log::info!("brought {count} calls of a process that is gone to the store");
            }
            let owner = left.owner.clone();
            left.delete();
            self.store.forget_journal(&owner).await?;
        }
        Ok(())
    }

    /// Stores calls of a dead process. A store that is too slow for a batch gets it in halves. `on_stored` is told how many are
    /// stored.
    ///
    /// Errors: the store failed, or is too slow for a single call.
    pub(super) async fn post_recovered(
        &self,
        owner: &str,
        mut calls: &[LedgerEntry],
        on_stored: impl Fn(usize),
    ) -> Result<(), LedgerError> {
        let total = calls.len();
        let mut max_entries = MAX_BATCH_ENTRIES;
        while !calls.is_empty() {
            let (batch, behind) = calls.split_at(max_entries.min(calls.len()));
            let posted = match post(&self.store, owner, batch, true).await {
                Err(StoreError::TimedOut) if batch.len() > 1 => {
                    max_entries = batch.len() / 2;
                    continue;
                }
                posted => posted?,
            };
            if !posted.refused.is_empty() {
                let count = self.refused_calls.append(&posted.refused)?;
                self.metrics.ledger_refused.inc_by(count);
            }
            calls = behind;
            on_stored(total - calls.len());
        }
        Ok(())
    }
}
