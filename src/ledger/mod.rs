//! Reserves money before a call, charges the cost after it, and loses neither in a crash.
//!
//! A [`reservation`] covers one call. An [`account`] holds what an organization may spend in this process, and `leases`
//! requests more of its balance from the store. The [`journal`] keeps ended calls on disk until the `flusher` has
//! stored them, [`jobs`] outlive their calls, and [`recovery`] finds the journals of dead processes. Rules and arithmetic are in `filters::money` and
//! `filters::ledger`, SQL is in [`crate::store`]. A request that its lease covers touches no SQL, and no file but its
//! thread's own part of the journal.

pub mod account;
mod account_limits;
mod account_state;
mod budgets;
mod clock;
mod credit;
mod error;
mod flusher;
mod heartbeat;
mod idle;
pub mod jobs;
pub mod journal;
mod leases;
mod limit_leases;
pub mod peer;
mod receipt;
pub mod recovery;
mod refused_calls;
pub mod reservation;
mod spent;
mod start;
mod store_turns;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, mpsc};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use filters::ledger::{Charge, EntryId, Funding};
use filters::money::Usd;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

pub use budgets::use_of_reached;
pub use error::LedgerError;
pub use receipt::Receipt;
pub use reservation::{CallEnd, NewReservation, Reservation, ReservationError};
pub use store_turns::StoreTurns;

use self::account::{Hold, HoldError, LimitedCall, OrganizationAccount};
use self::clock::unix_ms;
use self::journal::Journal;
use self::leases::LeaseQueue;
use self::peer::StorePeer;
use self::refused_calls::RefusedCalls;
use self::reservation::is_funded;
use crate::store::Store;
use crate::tasks::Tasks;
use crate::telemetry::metrics::Metrics;

/// After this time without a successful write the process spends no more credit. Source: docs/promises-tests.md.
const STORE_OUTAGE_TIMEOUT: Duration = Duration::from_secs(10);
/// The time limit of one reservation, whatever it waits for.
const RESERVE_TIMEOUT: Duration = Duration::from_secs(5);
/// How many requests work with the store at once, beside money: all but one of the connections that it has for them, so
/// that changes of accounts are heard.
const REQUEST_TURNS: usize = 3;
/// The maximum number of tries of one reservation. Each try but the last follows a granted lease.
const MAX_TRIES: usize = 100;

/// The ledger of this process.
pub struct Ledger {
    accounts: RwLock<HashMap<Arc<str>, Arc<OrganizationAccount>>>,
    journal: Arc<Journal>,
    store: Store,
    refused_calls: RefusedCalls,
    metrics: Arc<Metrics>,
    /// The runtime on which the store is used.
    runtime: Handle,
    /// The id of this process in leases.
    owner: String,
    /// Whether any number of processes may share the store.
    has_fleet: bool,
    /// The other process on a store that one process has, while one takes the place of the other.
    peer: ArcSwapOption<StorePeer>,
    journal_bytes: u64,
    started: Instant,
    /// Held while ended calls are being stored.
    flush_lock: tokio::sync::Mutex<()>,
    /// The time of the store's last successful write, in milliseconds since the start.
    last_write_ms: AtomicU64,
    /// Whether the store has answered since the start.
    is_attached: AtomicBool,
    /// Whether the store no longer knows this process, which then holds no lease.
    is_unregistered: AtomicBool,
    /// The work that the store refused last, as bits of [`heartbeat::StoreWork`].
    failing: AtomicU8,
    /// Changes of leases that wait for the store.
    lease_changes: LeaseQueue,
    /// The number of the last change of a lease. An account that is dropped and made anew never repeats a number.
    last_lease_number: AtomicI64,
    /// Whether entries of unfunded calls are being dropped.
    is_dropping: AtomicBool,
    /// The turns of requests that work with the store.
    request_turns: Arc<Semaphore>,
    /// What must run until the process stops.
    pub tasks: Tasks,
    stop: watch::Sender<bool>,
    /// Receives a message when the flusher has ended.
    ended: Mutex<Option<mpsc::Receiver<()>>>,
}

/// What a process holds of balances.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeldLeases {
    /// Organizations of which it holds something.
    pub organizations: usize,
    /// What is neither spent nor reserved.
    pub free: Usd,
    /// What running calls may cost.
    pub reserved: Usd,
}

impl Ledger {
    /// Reserves the maximum cost of a call.
    ///
    /// If the lease does not cover it, the ledger requests more from the store before it refuses the call. Errors: see
    /// [`ReservationError`]. Cost: one short lock if the lease covers the call.
    pub async fn reserve(
        self: &Arc<Self>,
        call: &NewReservation<'_>,
    ) -> Result<Reservation, ReservationError> {
        if is_funded(call.funding) && !self.is_available() {
            return Err(ReservationError::Unavailable);
        }
        let account = self.account(&call.caller.organization_id);
        // Most calls wait for nothing, so only the others get a time and the memory to wait with.
        match self.try_reserve(&account, call) {
            Ok(reservation) => return Ok(reservation),
            Err(HoldError::Reached(reached)) => return Err(ReservationError::Reached(reached)),
            Err(HoldError::Limit | HoldError::Lease(_)) => {}
        }
        let leased = Box::pin(self.reserve_leased(&account, call));
        match timeout(RESERVE_TIMEOUT, leased).await {
            Ok(reserved) => reserved,
            Err(_) if is_funded(call.funding) => Err(ReservationError::Unavailable),
            Err(_) => self.reserve_unleased(&account, call),
        }
    }

    /// Reserves a call, and asks the store for what is missing.
    async fn reserve_leased(
        self: &Arc<Self>,
        account: &Arc<OrganizationAccount>,
        call: &NewReservation<'_>,
    ) -> Result<Reservation, ReservationError> {
        let began = Instant::now();
        for _ in 0..MAX_TRIES {
            let seen_requests = account.request_count();
            match self.try_reserve(account, call) {
                Ok(reservation) => return Ok(reservation),
                Err(HoldError::Reached(reached)) => return Err(ReservationError::Reached(reached)),
                Err(HoldError::Limit) => match self.wait_for_limits(account, call, began).await {
                    Ok(Some(reservation)) => return Ok(reservation),
                    Ok(None) => {}
                    Err(ReservationError::Unavailable) if !is_funded(call.funding) => {
                        return self.reserve_unleased(account, call);
                    }
                    Err(refused) => return Err(refused),
                },
                Err(HoldError::Lease(missing)) if account.lacks_credit(missing) => {
                    return Err(ReservationError::NoCredit);
                }
                Err(HoldError::Lease(_)) => {
                    if let Some(reservation) = self
                        .wait_for_lease(account, call, (seen_requests, began))
                        .await?
                    {
                        return Ok(reservation);
                    }
                }
            }
        }
        let reached = account.reached_limit(&self.limited(call));
        Err(reached.map_or(ReservationError::NoCredit, ReservationError::Reached))
    }

    /// Reserves a call that its provider bills to the caller, under the limits as this process knows them, because the store
    /// grants no lease now.
    fn reserve_unleased(
        self: &Arc<Self>,
        account: &Arc<OrganizationAccount>,
        call: &NewReservation<'_>,
    ) -> Result<Reservation, ReservationError> {
        let known = LimitedCall {
            needs_lease: false,
            ..self.limited(call)
        };
        match account.reserve(&known) {
            Ok(()) => Ok(Reservation::begin(self, account, call, known.now_ms)),
            Err(HoldError::Reached(reached)) => Err(ReservationError::Reached(reached)),
            Err(_) => Err(ReservationError::Unavailable),
        }
    }

    /// Requests a larger lease from the store, or waits for the request of another task.
    async fn wait_for_lease(
        self: &Arc<Self>,
        account: &Arc<OrganizationAccount>,
        call: &NewReservation<'_>,
        (seen_requests, began): (u64, Instant),
    ) -> Result<Option<Reservation>, ReservationError> {
        let _request = account.request_lock.lock().await;
        match self.try_reserve(account, call) {
            Ok(reservation) => return Ok(Some(reservation)),
            Err(HoldError::Lease(_)) => {}
            Err(_) => return Ok(None),
        }
        if account.was_refused(seen_requests, call.max_cost) {
            return Err(ReservationError::NoCredit);
        }
        if account.has_lease_failure(began) {
            return Err(ReservationError::Unavailable);
        }
        account.begin_request();
        match self.request_lease(account, call.max_cost).await {
            Ok(true) => {}
            Ok(false) => {
                account.mark_refused(call.max_cost);
                // Calls that ended meanwhile may have left enough.
                return match self.try_reserve(account, call) {
                    Ok(reservation) => Ok(Some(reservation)),
                    Err(HoldError::Lease(_)) => Err(ReservationError::NoCredit),
                    Err(_) => Ok(None),
                };
            }
            Err(()) => {
                account.record_lease_failure();
                return Err(ReservationError::Unavailable);
            }
        }
        Ok(None)
    }

    fn try_reserve(
        self: &Arc<Self>,
        account: &Arc<OrganizationAccount>,
        call: &NewReservation<'_>,
    ) -> Result<Reservation, HoldError> {
        let limited = self.limited(call);
        let has_lost_leases = self.is_unregistered.load(Ordering::Relaxed);
        if has_lost_leases && limited.needs_lease && call.has_bounds() {
            return Err(HoldError::Limit);
        }
        account.reserve(&limited)?;
        if call.funding == Funding::Credit {
            self.top_up(account, call.max_cost);
        }
        if call.has_bounds() {
            self.top_up_limits(account, &limited);
        }
        Ok(Reservation::begin(self, account, call, limited.now_ms))
    }

    /// Returns the call as its limits see it now.
    fn limited<'a>(&self, call: &'a NewReservation<'_>) -> LimitedCall<'a> {
        let hold = Hold {
            key_id: &call.caller.key_id,
            member_id: call.caller.member.as_deref().map(|member| &member.id),
            funding: call.funding,
            amount: call.max_cost,
            is_premium: call.is_premium,
            budgets: call.budgets.map_or(&[], |all| all),
        };
        LimitedCall {
            hold,
            bounds: &call.bounds,
            plan_since_ms: call.caller.plan_since_ms,
            now_ms: self.now_ms(),
            // While the store fails, the limits of calls on the caller's own keys follow what is known here.
            needs_lease: is_funded(call.funding) || !self.is_failing(),
        }
    }

    /// Returns whether credit can be spent: the store accepts writes and the journal has capacity.
    pub fn is_available(&self) -> bool {
        !self.is_store_down() && !self.journal.is_stuck() && self.has_capacity()
    }

    fn has_capacity(&self) -> bool {
        self.journal.bytes() <= self.journal_bytes
    }

    /// Returns whether to drop the entry of an unfunded call, and counts it then. Such calls continue while the store
    /// is down and would fill disk and memory.
    fn drop_unfunded(&self) -> bool {
        let drops = !self.has_capacity();
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

    /// Returns whether the store has answered since the start.
    pub(crate) fn is_attached(&self) -> bool {
        self.is_attached.load(Ordering::Relaxed)
    }

    /// Returns whether the store has accepted no write for [`STORE_OUTAGE_TIMEOUT`].
    pub fn is_store_down(&self) -> bool {
        if !self.is_attached() {
            return true;
        }
        let last_write = Duration::from_millis(self.last_write_ms.load(Ordering::Relaxed));
        self.started.elapsed().saturating_sub(last_write) >= STORE_OUTAGE_TIMEOUT
    }

    /// Returns the organization's account in this process; creates it at the first call.
    fn account(&self, organization_id: &Arc<str>) -> Arc<OrganizationAccount> {
        if let Some(account) = self.find_account(organization_id) {
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

    fn find_account(&self, organization_id: &str) -> Option<Arc<OrganizationAccount>> {
        let accounts = self.accounts.read().unwrap_or_else(PoisonError::into_inner);
        accounts.get(organization_id).cloned()
    }

    /// Returns what this process holds of balances.
    pub fn held_leases(&self) -> HeldLeases {
        let mut held = HeldLeases::default();
        for account in self.accounts() {
            let balance = account.balance();
            held.free = held.free.plus(balance.free());
            held.reserved = held.reserved.plus(account.reserved());
            held.organizations += usize::from(!account.holds_nothing());
        }
        held
    }

    fn accounts(&self) -> Vec<Arc<OrganizationAccount>> {
        let accounts = self.accounts.read().unwrap_or_else(PoisonError::into_inner);
        accounts.values().cloned().collect()
    }

    fn count_charge(&self, charge: &Charge) {
        let metrics = &self.metrics;
        metrics
            .ledger_settled
            .inc_by(charge.charged.to_f64_for_metrics());
        if charge.shortfall > Usd::ZERO {
            let shortfall = charge.shortfall.to_f64_for_metrics();
            metrics.ledger_shortfall.inc_by(shortfall);
        }
    }

    /// Returns the current time in unix milliseconds.
    pub fn now_ms(&self) -> i64 {
        unix_ms()
    }

    /// Returns the id of a call that begins at this time, in unix milliseconds. Ids sort by time and end in random bytes.
    fn new_entry_id(&self, now_ms: i64) -> EntryId {
        let mut random = [0; 10];
        fastrand::fill(&mut random);
        let ms = u64::try_from(now_ms).unwrap_or_default();
        let id = uuid::Builder::from_unix_timestamp_millis(ms, &random).into_uuid();
        EntryId(*id.as_bytes())
    }
}
