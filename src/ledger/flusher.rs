//! In the background: ended calls go to the store, leases that nobody needs go back, figures are kept.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use filters::money::Usd;
use tokio::sync::watch;

use super::Ledger;
use super::journal::JournalBatch;

/// Between two batches.
const FLUSH_INTERVAL: Duration = Duration::from_millis(200);
/// The most calls of one batch.
pub(super) const MAX_BATCH_ENTRIES: usize = 4096;
/// How long the store may take for one batch.
const STORE_TIMEOUT: Duration = Duration::from_secs(8);
/// How often a process says that it lives, where it has nothing else to say.
const CONFIRM: Duration = Duration::from_secs(2);
/// After so long without a call what is free of a lease goes back, where others could use it. They get it before if
/// they ask for it.
const IDLE: Duration = Duration::from_secs(300);
/// Whose limits are read anew: organizations that were active within this time.
const ACTIVE: Duration = Duration::from_secs(5);
/// How often it is read anew what others have spent.
const LOOK: Duration = Duration::from_secs(1);
/// How often rows that are too old are deleted.
const CLEAN: Duration = Duration::from_secs(600);
/// Between two pieces of that: others write meanwhile.
const PAUSE: Duration = Duration::from_millis(50);
/// How much younger than its row the journal's word of a call may be, in another process too.
const MARGIN_MS: i64 = 24 * 3_600_000;

/// What the background remembers from tick to tick.
struct FlushState {
    /// A batch failed: whether the store has it is not known.
    may_be_known: bool,
    is_failing: bool,
    confirmed: Instant,
    looked: Instant,
}

impl Ledger {
    /// Works until `stop`, and then stores what is left.
    pub(super) async fn work(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        let mut ticks = tokio::time::interval(FLUSH_INTERVAL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut rhythm = FlushState {
            may_be_known: false,
            is_failing: false,
            confirmed: Instant::now(),
            looked: Instant::now(),
        };
        loop {
            tokio::select! {
                changed = stop.changed() => {
                    if changed.is_err() || *stop.borrow() {
                        break;
                    }
                }
                _ = ticks.tick() => self.tick(&mut rhythm).await,
            }
        }
        self.finish().await;
    }

    async fn tick(&self, rhythm: &mut FlushState) {
        self.store_ended(rhythm).await;
        if self.is_unknown.load(Ordering::Relaxed) || rhythm.confirmed.elapsed() >= CONFIRM {
            self.confirm(rhythm).await;
        }
        // While the store fails nothing goes back: what is here serves calls without it.
        if self.is_shared && !rhythm.is_failing {
            for account in self.accounts() {
                if !account.is_active(IDLE) {
                    self.give_back(&account).await;
                }
            }
        }
        if self.is_shared && rhythm.looked.elapsed() >= LOOK {
            rhythm.looked = Instant::now();
            self.look().await;
        }
        self.measure();
    }

    /// Brings what has ended to the store.
    async fn store_ended(&self, rhythm: &mut FlushState) {
        let _on_their_way = self.storing.lock().await;
        while let Some(batch) = self.journal.take(MAX_BATCH_ENTRIES) {
            let count = batch.entries.len();
            if !self.post(batch, rhythm).await || count < MAX_BATCH_ENTRIES {
                break;
            }
        }
    }

    /// Sends a batch; answers whether the store has it.
    async fn post(&self, batch: JournalBatch, rhythm: &mut FlushState) -> bool {
        let entries = batch.entries.clone();
        let may_be_known = rhythm.may_be_known;
        let posted = self.store.post(&self.owner, entries, may_be_known);
        match posted.await {
            Ok(was_known) => {
                self.journal.stored(batch.sequence);
                rhythm.may_be_known = false;
                self.wrote(was_known, rhythm).await;
                true
            }
            Err(error) => {
                rhythm.may_be_known = true;
                self.journal.put_back(batch);
                self.failed(&error.to_string(), rhythm);
                false
            }
        }
    }

    async fn confirm(&self, rhythm: &mut FlushState) {
        let confirmed = self.store.confirm_process(&self.owner);
        match tokio::time::timeout(STORE_TIMEOUT, confirmed).await {
            Ok(Ok(was_known)) => self.wrote(was_known, rhythm).await,
            Ok(Err(error)) => self.failed(&error.to_string(), rhythm),
            Err(_) => self.failed("it does not answer", rhythm),
        }
    }

    /// The store took a write.
    async fn wrote(&self, was_known: bool, rhythm: &mut FlushState) {
        rhythm.confirmed = Instant::now();
        if std::mem::take(&mut rhythm.is_failing) {
            log::info!("the store takes calls again");
        }
        if !was_known && let Err(error) = self.begin_anew().await {
            log::warn!("the store does not know this process: {error}");
            return;
        }
        let written_ms = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.written_ms.store(written_ms, Ordering::Relaxed);
    }

    fn failed(&self, why: &str, rhythm: &mut FlushState) {
        // Counted once per try, logged once per outage.
        self.metrics.ledger_failures.inc();
        rhythm.confirmed = Instant::now();
        if !std::mem::replace(&mut rhythm.is_failing, true) {
            log::warn!("the store takes no calls, the journal keeps them: {why}");
        }
    }

    /// Reads anew what keys with limits have spent through other processes.
    async fn look(&self) {
        for account in self.accounts() {
            if account.has_bounds() && account.is_active(ACTIVE) {
                // What fails here fails louder elsewhere; the next look comes soon.
                _ = tokio::time::timeout(STORE_TIMEOUT, self.read_spent(&account)).await;
            }
        }
    }

    /// Deletes rows that are older than they are to be kept, again and again, as long as it is polled.
    pub(super) async fn clean(self: Arc<Self>, keep: Duration) {
        loop {
            let before_ms = forgotten_before_ms(self.now_ms(), keep, self.journal.since_ms());
            loop {
                match self.store.forget_calls(before_ms).await {
                    Ok(false) => break,
                    Ok(true) => tokio::time::sleep(PAUSE).await,
                    Err(error) => {
                        log::warn!("old rows of the ledger stay: {error}");
                        break;
                    }
                }
            }
            tokio::time::sleep(CLEAN).await;
        }
    }

    fn measure(&self) {
        let accounts = self.accounts();
        let reserved = accounts
            .iter()
            .fold(Usd::ZERO, |sum, account| sum.plus(account.reserved()));
        let metrics = &self.metrics;
        metrics.ledger_reserved.set(reserved.to_f64_for_metrics());
        metrics.journal_lag.set(self.journal.lag().as_secs_f64());
        let bytes = i64::try_from(self.journal.bytes()).unwrap_or(i64::MAX);
        metrics.journal_bytes.set(bytes);
    }

    /// The last word: what is left goes to the store, and leases go back. What does not, the next start finds.
    async fn finish(&self) {
        let mut rhythm = FlushState {
            may_be_known: true,
            is_failing: true,
            confirmed: Instant::now(),
            looked: Instant::now(),
        };
        let _on_their_way = self.storing.lock().await;
        while let Some(batch) = self.journal.take(MAX_BATCH_ENTRIES) {
            if !self.post(batch, &mut rhythm).await {
                return;
            }
        }
        if let Err(error) = self.store.end_process(&self.owner).await {
            log::warn!("leases stay until they expire: {error}");
        }
    }
}

/// Which rows are deleted: none whose call a journal may still know, as nothing else keeps it from being charged again.
pub(super) fn forgotten_before_ms(now_ms: i64, keep: Duration, journal_since_ms: i64) -> i64 {
    let keep_ms = i64::try_from(keep.as_millis()).unwrap_or(i64::MAX);
    let before_ms = now_ms.saturating_sub(keep_ms);
    before_ms.min(journal_since_ms.saturating_sub(MARGIN_MS))
}
