//! Money at work: what is reserved before a call, what it costs in the end, and how none of it is lost.
//!
//! [`reserve`] stands for a call, [`account`] holds what an organization may spend here, [`lend`] asks the store for
//! more of its balance. [`journal`] keeps on disk what has happened until [`storing`] has brought it to the store, and
//! [`adopt`] finds what a process left behind that is gone. Rules and arithmetic are in `filters::money`, SQL is in
//! [`crate::store`]. A request that its lease covers meets no file and no SQL before its end.

pub mod account;
mod error;
mod flusher;
pub mod journal;
mod leases;
pub mod open_reservations;
mod receipt;
pub mod recovery;
pub mod reservation;
pub mod segments;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, mpsc};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use filters::accounts::Caller;
use filters::ledger::{Charge, EntryId, Funding};
use filters::money::Usd;
use filters::money::allowance::{SpendingBounds, SpentSoFar};
use tokio::runtime::Handle;
use tokio::sync::watch;

pub use error::LedgerError;
pub use receipt::Receipt;
pub use reservation::{CallEnd, NewReservation, Reservation, ReservationError};

use self::account::{Hold, HoldError, OrganizationAccount};
use self::flusher::MAX_BATCH_ENTRIES;
use self::journal::{Journal, RENEW};
use self::open_reservations::OpenReservations;
use self::reservation::is_funded;
use crate::config;
use crate::store::{Store, StoreUrl};
use crate::telemetry::metrics::Metrics;

/// After so long without a successful write no more credit is spent. Source: docs/promises.md.
const STORE_OUTAGE_TIMEOUT: Duration = Duration::from_secs(10);
/// How old what is known of others' spending may be for somebody who asks for it.
const FRESH: Duration = Duration::from_secs(1);
/// How long the last batch may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);
/// How often a request looks again whether its turn has come. A bound: each look but the last follows a lease.
const MAX_TRIES: usize = 100;

/// See the module.
pub struct Ledger {
    accounts: RwLock<HashMap<Arc<str>, Arc<OrganizationAccount>>>,
    journal: Arc<Journal>,
    open: Arc<OpenReservations>,
    store: Store,
    metrics: Arc<Metrics>,
    /// The runtime on which the store is used.
    organs: Handle,
    /// This process, as leases name it.
    owner: String,
    /// Whether other processes may use the store too.
    is_shared: bool,
    journal_bytes: u64,
    begun: Instant,
    /// Held while ended calls are on their way to the store.
    storing: tokio::sync::Mutex<()>,
    /// When the store last took a write, in milliseconds since the beginning.
    written_ms: AtomicU64,
    /// The store has lost sight of this process: it holds no lease.
    is_unknown: AtomicBool,
    /// Rows of calls that cost us nothing are dropped.
    is_dropping: AtomicBool,
    stop: watch::Sender<bool>,
    /// Hears that the background has ended.
    ended: Mutex<Option<mpsc::Receiver<()>>>,
}

impl Ledger {
    /// Adopts what processes left behind that are gone, and begins. Runs on the runtime of the store.
    ///
    /// Errors: a journal that does not add up, files, the store.
    pub async fn start(
        configured: &config::StoreConfig,
        store: Store,
        metrics: Arc<Metrics>,
    ) -> Result<Arc<Self>, LedgerError> {
        for left in recovery::recover(&configured.state_dir)? {
            let count = left.entries.len();
            for some in left.entries.chunks(MAX_BATCH_ENTRIES) {
                store.post(&left.owner, some.to_vec(), true).await?;
            }
            store.end_process(&left.owner).await?;
            if count > 0 {
                log::info!("brought {count} calls of a process that is gone to the store");
            }
            left.forget();
        }
        let owner = *uuid::Uuid::now_v7().as_bytes();
        let open = Arc::new(OpenReservations::default());
        let journal = Journal::start(&configured.state_dir, owner, Arc::clone(&open), RENEW)?;
        let owner: String = owner.iter().map(|byte| format!("{byte:02x}")).collect();
        store.begin_process(&owner).await?;
        let is_shared = matches!(StoreUrl::parse(&configured.url), Ok(StoreUrl::Postgres(_)));
        let (stop, stopped) = watch::channel(false);
        let (end, ended) = mpsc::channel();
        let ledger = Arc::new(Self {
            accounts: RwLock::default(),
            journal: Arc::new(journal),
            open,
            store,
            metrics,
            organs: Handle::current(),
            owner,
            is_shared,
            journal_bytes: configured.journal_bytes,
            begun: Instant::now(),
            storing: tokio::sync::Mutex::default(),
            written_ms: AtomicU64::new(0),
            is_unknown: AtomicBool::new(false),
            is_dropping: AtomicBool::new(false),
            stop,
            ended: Mutex::new(Some(ended)),
        });
        if is_shared {
            let url = configured.url.clone();
            tokio::spawn(Arc::clone(&ledger).listen(url));
        }
        if let Some(keep) = configured.usage_retention {
            tokio::spawn(Arc::clone(&ledger).clean(keep));
        }
        let working = Arc::clone(&ledger);
        tokio::spawn(async move {
            working.work(stopped).await;
            _ = end.send(());
        });
        Ok(ledger)
    }

    /// Brings what is left to the store and gives leases back; what does not get there the next start finds.
    ///
    /// Blocks: to be called from a thread of its own, after the last request.
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

    /// Reserves the most that a call may cost.
    ///
    /// Before it refuses for want of credit it asks the store once, where other processes may hold some. Errors: as
    /// [`ReservationError`] says. Cost: one short lock where the lease covers it.
    pub async fn reserve(
        self: &Arc<Self>,
        call: &NewReservation<'_>,
    ) -> Result<Reservation, ReservationError> {
        if is_funded(call.funding) && !self.is_available() {
            return Err(ReservationError::Unavailable);
        }
        let account = self.of(&call.caller.organization_id);
        let mut call = *call;
        for _ in 0..MAX_TRIES {
            let seen = account.asks();
            match self.try_reserve(&account, &call) {
                Ok(reservation) => return Ok(reservation),
                Err(HoldError::Reached(reached)) => return Err(ReservationError::Reached(reached)),
                Err(HoldError::NotLoaded) => match self.load(&account).await {
                    Ok(()) => {}
                    Err(()) if is_funded(call.funding) => {
                        return Err(ReservationError::Unavailable);
                    }
                    // The provider bills the caller: limits that nobody can read hold no such call back.
                    Err(()) => call.bounds = SpendingBounds::default(),
                },
                Err(HoldError::Lease(_)) => {
                    if let Some(reservation) = self.wait(&account, &call, seen).await? {
                        return Ok(reservation);
                    }
                }
            }
        }
        Err(ReservationError::NoCredit)
    }

    /// Asks the store for more, or waits for what another request's ask brings.
    async fn wait(
        self: &Arc<Self>,
        account: &Arc<OrganizationAccount>,
        call: &NewReservation<'_>,
        seen: u64,
    ) -> Result<Option<Reservation>, ReservationError> {
        let _turn = account.asking.lock().await;
        match self.try_reserve(account, call) {
            Ok(reservation) => return Ok(Some(reservation)),
            Err(HoldError::Lease(_)) => {}
            Err(_) => return Ok(None),
        }
        if account.was_refused(seen, call.worst) {
            return Err(ReservationError::NoCredit);
        }
        account.begin_ask();
        match self.borrow(account, call.worst).await {
            Ok(true) => {}
            Ok(false) => account.refuse(call.worst),
            Err(()) => return Err(ReservationError::Unavailable),
        }
        Ok(None)
    }

    fn try_reserve(
        self: &Arc<Self>,
        account: &Arc<OrganizationAccount>,
        call: &NewReservation<'_>,
    ) -> Result<Reservation, HoldError> {
        let member: Option<Arc<str>> = call.caller.member.as_deref().map(|it| (*it.id).into());
        let want = Hold {
            key_id: &call.caller.key_id,
            member_id: member.as_ref(),
            funding: call.funding,
            amount: call.worst,
            is_premium: call.is_premium,
        };
        account.reserve(
            &want,
            &call.bounds,
            call.caller.plan_since_ms,
            self.now_ms(),
        )?;
        if call.funding == Funding::Credit {
            self.top_up(account, call.worst);
        }
        Ok(Reservation::begin(self, account, call))
    }

    /// What a key, its member and its plan have spent, without what is only reserved. What other processes have
    /// stored is at most [`FRESH`] old, where the store answers.
    ///
    /// Errors: it has never been read, and the store does not answer.
    pub async fn spent(self: &Arc<Self>, caller: &Caller) -> Result<SpentSoFar, ReservationError> {
        let account = self.of(&caller.organization_id);
        let member = caller.member.as_deref().map(|member| &*member.id);
        let look = || {
            let (key, since_ms) = (&caller.key_id, caller.plan_since_ms);
            account.spent(key, member, since_ms, self.now_ms())
        };
        let known = look();
        if known.is_some() && !(self.is_shared && account.is_stale(FRESH)) {
            return known.ok_or(ReservationError::Unavailable);
        }
        match self.load(&account).await {
            Ok(()) => look().ok_or(ReservationError::Unavailable),
            Err(()) => known.ok_or(ReservationError::Unavailable),
        }
    }

    /// Whether credit can be spent: the store takes writes, and the journal has room.
    pub fn is_available(&self) -> bool {
        !self.is_silent() && !self.journal.is_stuck() && self.has_room()
    }

    fn has_room(&self) -> bool {
        self.journal.bytes() <= self.journal_bytes
    }

    /// Whether the row of a call that costs us nothing is dropped: such calls go on while the store is away, and would
    /// fill disk and memory. Counts it.
    fn drops_free(&self) -> bool {
        let drops = !self.has_room();
        if drops {
            self.metrics.ledger_dropped.inc();
        }
        if self.is_dropping.swap(drops, Ordering::Relaxed) != drops && drops {
            log::warn!(
                "the journal is over its bound: calls on the callers' own keys are not recorded"
            );
        }
        drops
    }

    /// Whether the store has taken no write for ten seconds.
    pub fn is_silent(&self) -> bool {
        let written = Duration::from_millis(self.written_ms.load(Ordering::Relaxed));
        self.begun.elapsed().saturating_sub(written) >= STORE_OUTAGE_TIMEOUT
    }

    /// The organization's account in this process.
    fn of(&self, organization_id: &Arc<str>) -> Arc<OrganizationAccount> {
        if let Some(account) = self.find(organization_id) {
            return account;
        }
        let mut accounts = self
            .accounts
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let new = || Arc::new(OrganizationAccount::new(organization_id));
        let account = accounts
            .entry(Arc::clone(organization_id))
            .or_insert_with(new);
        Arc::clone(account)
    }

    fn find(&self, organization_id: &str) -> Option<Arc<OrganizationAccount>> {
        let accounts = self.accounts.read().unwrap_or_else(PoisonError::into_inner);
        accounts.get(organization_id).cloned()
    }

    fn accounts(&self) -> Vec<Arc<OrganizationAccount>> {
        let accounts = self.accounts.read().unwrap_or_else(PoisonError::into_inner);
        accounts.values().cloned().collect()
    }

    fn count(&self, charge: &Charge) {
        let metrics = &self.metrics;
        metrics
            .ledger_settled
            .inc_by(charge.charged.to_f64_for_metrics());
        if charge.shortfall > Usd::ZERO {
            let shortfall = charge.shortfall.to_f64_for_metrics();
            metrics.ledger_shortfall.inc_by(shortfall);
        }
    }

    /// Unix milliseconds.
    fn now_ms(&self) -> i64 {
        unix_ms()
    }

    /// The name of a new call: it sorts by time, and its end is random.
    fn new_id(&self) -> EntryId {
        let mut random = [0; 10];
        fastrand::fill(&mut random);
        let ms = u64::try_from(unix_ms()).unwrap_or_default();
        let id = uuid::Builder::from_unix_timestamp_millis(ms, &random).into_uuid();
        EntryId(*id.as_bytes())
    }
}

fn unix_ms() -> i64 {
    unix_ms_of(SystemTime::now())
}

fn unix_ms_of(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
