//! The snapshot of accounts, swapped while requests are served, and the rows of BYOK keys and prompts, published beside it.
//!
//! A request loads the current snapshot without a lock and never waits for the store. While the store does not
//! respond, the last snapshot stays in force. The snapshot follows the store's feed of changes, so only changes are
//! read. Everything is read at the start, and again if the feed lacks a revision; meanwhile the snapshot in force
//! still follows the feed. A store on another machine has a [`copy`] here, from which a process starts while that
//! store does not respond.

pub mod access_tokens;
pub mod copy;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use filters::accounts::AccountsSnapshot;
use prometheus::IntCounter;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use self::copy::AccountsCopy;
use crate::periodic::Ticks;
use crate::store::{
    AccountRecord, BudgetRecord, ByokKeyRow, LoadedAccounts, PromptRecord, SharedRows, Store,
    StoreError, UnreadableRows,
};

/// The interval between two checks of the store's revision. With the reads and the swap, a change is in force well
/// within a second.
const REFRESH_INTERVAL: Duration = Duration::from_millis(250);
/// The time limit of one check, with the changes that it reads.
const QUERY_TIMEOUT: Duration = Duration::from_secs(3);
/// The time for which a change waits for the first page of its keys.
const FIRST_PAGE_TIMEOUT: Duration = Duration::from_millis(500);
/// The time limit for reading everything.
const READ_TIMEOUT: Duration = Duration::from_secs(600);
/// The pause after a failure to read everything.
const READ_RETRY_INTERVAL: Duration = Duration::from_secs(5);
/// The maximum number of pages of keys that one check reads, so that later changes do not wait for all of them.
const MAX_PAGES: usize = 8;

/// The accounts in force. Clones share the snapshot.
#[derive(Clone)]
pub struct AccountsHandle {
    shared: Arc<SharedSnapshot>,
}

/// BYOK keys that are coming into force.
pub enum ByokRows {
    All(Vec<ByokKeyRow>),
    /// All keys of some organizations, with the ids of these organizations.
    Of(Vec<String>, Vec<ByokKeyRow>),
}

/// Prompts that are coming into force.
pub enum PromptRows {
    All(Vec<PromptRecord>),
    /// The changed prompts. A prompt without versions is removed.
    Changed(Vec<PromptRecord>),
}

/// What people say of budgets, coming into force.
pub enum BudgetRows {
    All(Vec<BudgetRecord>),
    /// The changed ones. One without a grant is removed.
    Changed(Vec<BudgetRecord>),
}

/// Rows that come into force together with the accounts.
pub enum PublishedRows {
    Byok(ByokRows),
    Prompts(PromptRows),
    Budgets(BudgetRows),
}

type BoxedSubscriber = Box<dyn Fn(PublishedRows) + Send + Sync>;

struct SharedSnapshot {
    current: ArcSwap<AccountsSnapshot>,
    /// The data that keys of the snapshot share. It is locked while the snapshot follows the store.
    rows: tokio::sync::Mutex<SharedRows>,
    /// Receives the other rows before the accounts of their revision come into force.
    publish: BoxedSubscriber,
    /// The copy on disk, or `None` if the store is on this machine.
    copy: Option<Mutex<AccountsCopy>>,
    /// Whether there are accounts, from the store or from the copy.
    is_loaded: AtomicBool,
    /// Whether the feed lacked a change, so that everything has to be read again.
    is_incomplete: AtomicBool,
    failures: AtomicU64,
    /// Counts unreadable rows.
    unreadable: Option<IntCounter>,
    started: Instant,
    confirmed_ms: AtomicU64,
}

impl AccountsHandle {
    /// Reads the first snapshot.
    ///
    /// `publish` gets all BYOK rows and prompts, and later the changed ones, before the accounts of their revision
    /// come into force. So a request never sees a caller without the caller's keys.
    /// Errors: the store failed.
    pub async fn load(
        store: &Store,
        publish: impl Fn(PublishedRows) + Send + Sync + 'static,
    ) -> Result<Self, StoreError> {
        let accounts = Self::empty(None, None, publish);
        accounts.read_again(store).await?;
        Ok(accounts)
    }

    /// Makes a handle without accounts. [`Self::read_again`] or [`Self::read_copy`] reads them. `unreadable` counts
    /// unreadable rows.
    pub fn empty(
        copy: Option<AccountsCopy>,
        unreadable: Option<IntCounter>,
        publish: impl Fn(PublishedRows) + Send + Sync + 'static,
    ) -> Self {
        let none = LoadedAccounts::default();
        let accounts = Self::new(none, copy, unreadable, Box::new(publish));
        accounts.shared.is_loaded.store(false, Ordering::Relaxed);
        accounts
    }

    /// Takes the accounts of the copy, if it is complete, until [`Self::read_again`] reads those of the store.
    pub fn read_copy(&self, store: &Store) {
        let Some(loaded) = self.copy().and_then(|copy| copy.read()) else {
            return;
        };
        self.count_unreadable(&loaded.unreadable);
        match store.open_keys(loaded.byok) {
            Ok(keys) => {
                self.publish_all(keys, loaded.prompts, loaded.budgets);
                self.shared.current.store(Arc::new(loaded.snapshot));
                self.shared.is_loaded.store(true, Ordering::Relaxed);
            }
            Err(error) => log::warn!("the copy of the accounts is not used: {error}"),
        }
    }

    /// Makes a handle that is never refreshed, for tests and benches.
    pub fn fixed(snapshot: AccountsSnapshot) -> Self {
        let loaded = LoadedAccounts {
            snapshot,
            ..LoadedAccounts::default()
        };
        Self::new(loaded, None, None, Box::new(|_| {}))
    }

    fn new(
        loaded: LoadedAccounts,
        copy: Option<AccountsCopy>,
        unreadable: Option<IntCounter>,
        publish: BoxedSubscriber,
    ) -> Self {
        let shared = SharedSnapshot {
            current: ArcSwap::from_pointee(loaded.snapshot),
            rows: tokio::sync::Mutex::new(loaded.shared),
            publish,
            copy: copy.map(Mutex::new),
            is_loaded: AtomicBool::new(true),
            is_incomplete: AtomicBool::new(false),
            failures: AtomicU64::new(0),
            unreadable,
            started: Instant::now(),
            confirmed_ms: AtomicU64::new(0),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Returns whether there are accounts. Without any, an issued key cannot be told from an unknown one.
    pub fn is_loaded(&self) -> bool {
        self.shared.is_loaded.load(Ordering::Relaxed)
    }

    /// Returns the snapshot in force. Cost: no lock, no allocation.
    pub fn current(&self) -> arc_swap::Guard<Arc<AccountsSnapshot>> {
        self.shared.current.load()
    }

    /// Returns how many times the store has failed to respond.
    pub fn failures(&self) -> u64 {
        self.shared.failures.load(Ordering::Relaxed)
    }

    /// Returns the time since the store last confirmed the snapshot.
    pub fn age(&self) -> Duration {
        let confirmed_ms = self.shared.confirmed_ms.load(Ordering::Relaxed);
        let confirmed = Duration::from_millis(confirmed_ms);
        self.shared.started.elapsed().saturating_sub(confirmed)
    }

    /// Checks the store's revision and swaps in the next snapshot if it has changed. Returns whether it has.
    ///
    /// The keys of a changed organization, project or member follow in pages. One call reads a few pages, so that
    /// many keys do not delay later changes.
    ///
    /// Errors: the store failed; the snapshot stays. Cost: proportional to the changes.
    pub async fn refresh(&self, store: &Store) -> Result<bool, StoreError> {
        let shared = &self.shared;
        let mut rows = shared.rows.lock().await;
        let before = shared.current.load_full();
        let followed = store.follow_accounts(&before, &mut rows).await?;
        let mut has_changed = followed.is_some();
        if let Some(followed) = followed {
            self.count_unreadable(&followed.unreadable);
            if !followed.is_complete {
                shared.is_incomplete.store(true, Ordering::Relaxed);
            }
            if !followed.byok.is_empty() {
                // The keys are published before the swap, so that a caller's keys are there as soon as the caller is.
                // The snapshot carries the revision, so a failure here repeats both.
                let (organizations, keys): (Vec<_>, Vec<_>) = followed.byok.into_iter().unzip();
                let keys = store.open_keys(keys.into_iter().flatten().collect())?;
                let rows = ByokRows::Of(organizations, keys);
                (shared.publish)(PublishedRows::Byok(rows));
            }
            if !followed.prompts.is_empty() {
                let rows = PromptRows::Changed(followed.prompts);
                (shared.publish)(PublishedRows::Prompts(rows));
            }
            if !followed.budgets.is_empty() {
                let rows = BudgetRows::Changed(followed.budgets);
                (shared.publish)(PublishedRows::Budgets(rows));
            }
            self.append_to_copy(&followed.records);
            let mut snapshot = followed.snapshot;
            // The keys of a small change come into force together with it.
            let page =
                tokio::time::timeout(FIRST_PAGE_TIMEOUT, store.follow_keys(&snapshot, &mut rows));
            if let Ok(Ok(Some((next, unreadable)))) = page.await {
                self.count_unreadable(&unreadable);
                snapshot = next;
            }
            shared.current.store(Arc::new(snapshot));
        }
        for _ in 0..MAX_PAGES {
            let before = shared.current.load_full();
            let Some((snapshot, unreadable)) = store.follow_keys(&before, &mut rows).await? else {
                break;
            };
            self.count_unreadable(&unreadable);
            shared.current.store(Arc::new(snapshot));
            has_changed = true;
        }
        rows.speed_up();
        self.mark_confirmed();
        Ok(has_changed)
    }

    /// Makes the next steps smaller after the store did not respond in time.
    async fn slow_down(&self) {
        self.shared.rows.lock().await.slow_down();
    }

    /// Reads everything again. Meanwhile the snapshot in force follows the feed.
    ///
    /// Errors: the store failed; the snapshot stays.
    pub async fn read_again(&self, store: &Store) -> Result<(), StoreError> {
        let shared = &self.shared;
        shared.is_incomplete.store(false, Ordering::Relaxed);
        let mut draft = self.copy().map(|copy| copy.begin());
        let mut keep = |record: &AccountRecord| {
            if let Some(draft) = &mut draft {
                draft.write(record);
            }
        };
        let mut loaded = store.load_accounts(&mut keep).await?;
        if let Some(draft) = &mut draft {
            draft.sync().await;
        }
        // Changes that came into force in the meantime are kept. Most of them are read before the snapshot has to
        // wait.
        self.catch_up(store, &mut loaded, &mut draft).await?;
        let mut rows = shared.rows.lock().await;
        self.catch_up(store, &mut loaded, &mut draft).await?;
        self.count_unreadable(&loaded.unreadable);
        let (prompts, budgets) = (store.all_prompts().await?, store.all_budgets().await?);
        self.publish_all(store.byok_keys().await?, prompts, budgets);
        *rows = loaded.shared;
        shared.current.store(Arc::new(loaded.snapshot));
        shared.is_loaded.store(true, Ordering::Relaxed);
        if let (Some(mut copy), Some(draft)) = (self.copy(), draft)
            && let Err(error) = copy.replace(draft)
        {
            log::warn!("a start without the store will know no accounts: {error}");
        }
        self.mark_confirmed();
        Ok(())
    }

    /// Follows the feed to its end with accounts that are not in force yet.
    async fn catch_up(
        &self,
        store: &Store,
        loaded: &mut LoadedAccounts,
        draft: &mut Option<copy::Draft>,
    ) -> Result<(), StoreError> {
        loop {
            let followed = store.follow_accounts(&loaded.snapshot, &mut loaded.shared);
            let Some(followed) = followed.await? else {
                break;
            };
            self.count_unreadable(&followed.unreadable);
            if !followed.is_complete {
                self.shared.is_incomplete.store(true, Ordering::Relaxed);
            }
            if let Some(draft) = draft {
                followed.records.iter().for_each(|it| draft.write(it));
            }
            loaded.snapshot = followed.snapshot;
        }
        while let Some((snapshot, unreadable)) = store
            .follow_keys(&loaded.snapshot, &mut loaded.shared)
            .await?
        {
            self.count_unreadable(&unreadable);
            loaded.snapshot = snapshot;
        }
        Ok(())
    }

    /// Counts unreadable rows, and logs some of their ids.
    fn count_unreadable(&self, rows: &UnreadableRows) {
        if rows.count == 0 {
            return;
        }
        if let Some(counter) = &self.shared.unreadable {
            counter.inc_by(rows.count);
        }
        log::error!(
            "{} rows of accounts cannot be read, the keys that need them are refused: {}",
            rows.count,
            rows.named.join("; ")
        );
    }

    fn publish_all(
        &self,
        keys: Vec<ByokKeyRow>,
        prompts: Vec<PromptRecord>,
        budgets: Vec<BudgetRecord>,
    ) {
        (self.shared.publish)(PublishedRows::Byok(ByokRows::All(keys)));
        (self.shared.publish)(PublishedRows::Prompts(PromptRows::All(prompts)));
        (self.shared.publish)(PublishedRows::Budgets(BudgetRows::All(budgets)));
    }

    fn copy(&self) -> Option<std::sync::MutexGuard<'_, AccountsCopy>> {
        let copy = self.shared.copy.as_ref()?;
        Some(copy.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn append_to_copy(&self, records: &[AccountRecord]) {
        let Some(mut copy) = self.copy() else { return };
        let appended = copy.append(records);
        if appended.is_err() || copy.is_long() {
            // Everything has to be read again, which also rewrites the copy.
            self.shared.is_incomplete.store(true, Ordering::Relaxed);
        }
        if let Err(error) = appended {
            log::warn!("the copy of the accounts is written anew: {error}");
        }
    }

    /// Refreshes at intervals until `stop` becomes true or its sender is dropped.
    pub async fn run_refresh(self, store: Store, stop: watch::Receiver<bool>) {
        let mut is_failing = false;
        let mut reading: Option<JoinHandle<()>> = None;
        let mut ticks = Ticks::new(REFRESH_INTERVAL, stop);
        while ticks.next().await {
            let outcome = tokio::time::timeout(QUERY_TIMEOUT, self.refresh(&store)).await;
            let failure = match outcome {
                Ok(Ok(_)) => None,
                Ok(Err(error)) => Some(error.to_string()),
                Err(_) => {
                    self.slow_down().await;
                    Some("the store does not answer".to_owned())
                }
            };
            is_failing = self.record_outcome(failure, is_failing);
            let is_reading = reading.as_ref().is_some_and(|task| !task.is_finished());
            if !is_reading && self.shared.is_incomplete.load(Ordering::Relaxed) {
                let (accounts, store) = (self.clone(), store.clone());
                reading = Some(tokio::spawn(async move {
                    accounts.read_everything(&store).await;
                }));
            }
        }
        if let Some(reading) = reading {
            reading.abort();
        }
    }

    async fn read_everything(&self, store: &Store) {
        let read = tokio::time::timeout(READ_TIMEOUT, self.read_again(store)).await;
        let failure = match read {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(_) => "the store does not answer".to_owned(),
        };
        self.shared.is_incomplete.store(true, Ordering::Relaxed);
        log::warn!("the accounts could not be read anew: {failure}");
        tokio::time::sleep(READ_RETRY_INTERVAL).await;
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
        let accounts = AccountsHandle::fixed(AccountsSnapshot::default());
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
        let accounts = AccountsHandle::fixed(AccountsSnapshot::default());
        let clone = accounts.clone();
        let next = AccountsSnapshot::new(7, []);
        accounts.shared.current.store(Arc::new(next));
        assert_eq!(clone.current().revision(), 7);
    }
}
