//! What an organization may spend in this process, and what its keys have spent.
//!
//! One short lock per organization, never held across an await.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use filters::ledger::{Balance, Charge, Funding};
use filters::money::Usd;
use filters::money::allowance::{LimitReached, SpendingBounds, SpentSoFar};
use filters::money::budgets::Budget;

pub use super::account_limits::LimitedCall;
use super::account_limits::PlanLimits;
use super::account_state::{
    AccountState, BudgetSpenders, KnownSpent, LACK_TTL, Lack, MAX_LACK_ANSWERS, Spender, Spenders,
    spender_entry,
};
use super::budgets::TopAgents;
use super::leases::LeaseState;
use crate::store::Credit;

/// How long the store is not asked again for a lease after it did not answer.
const LEASE_FAILURE_TTL: Duration = Duration::from_secs(1);

/// The account of one organization in this process.
pub struct OrganizationAccount {
    /// The organization's id.
    pub organization_id: Arc<str>,
    /// Held by the task that requests a lease from the store. Other tasks wait for its result.
    pub request_lock: tokio::sync::Mutex<()>,
    /// Held while the lease changes, so that changes happen one after another.
    pub lease_state: tokio::sync::Mutex<LeaseState>,
    /// Held while leases of limits change, so that changes happen one after another.
    pub limit_lock: tokio::sync::Mutex<()>,
    state: Mutex<AccountState>,
}

/// One reservation of an amount.
#[derive(Clone, Copy, Debug)]
pub struct Hold<'a> {
    /// The key's id.
    pub key_id: &'a Arc<str>,
    /// The id of the member who owns the key.
    pub member_id: Option<&'a Arc<str>>,
    /// Who pays.
    pub funding: Funding,
    /// The maximum cost of the call.
    pub amount: Usd,
    /// Whether the model is premium.
    pub is_premium: bool,
    /// The budgets in which the call counts.
    pub budgets: &'a [Budget],
}

/// The cost of a call that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Spent {
    /// The cost.
    pub cost: Usd,
    /// Who pays it.
    pub funding: Funding,
    /// Whether the model that replied is premium; the plan of the call may have had others.
    pub is_premium: bool,
    /// Whether it is stored. Else nothing but this process knows of it.
    pub is_stored: bool,
}

/// Why an amount was not reserved.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HoldError {
    /// A limit is reached.
    Reached(LimitReached),
    /// The lease lacks this amount.
    Lease(Usd),
    /// A lease of a limit has nothing left, or has to be granted first.
    Limit,
}

impl OrganizationAccount {
    /// Makes the account of an organization, without a lease and without known spending.
    pub fn new(organization_id: &str) -> Self {
        Self {
            limit_lock: tokio::sync::Mutex::default(),
            organization_id: organization_id.into(),
            request_lock: tokio::sync::Mutex::default(),
            lease_state: tokio::sync::Mutex::default(),
            state: Mutex::new(AccountState {
                balance: Balance::default(),
                keys: Spenders::default(),
                members: Spenders::default(),
                budgets: BudgetSpenders::default(),
                top_agents: TopAgents::default(),
                plan_reserved: Usd::ZERO,
                premium_reserved: Usd::ZERO,
                plan_limits: PlanLimits::default(),
                credit: None,
                spendings: 0,
                requests: 0,
                refused: (0, Usd::ZERO),
                lack: None,
                lease_failed_at: None,
                last_lease: Usd::ZERO,
                last_used: Instant::now(),
            }),
        }
    }

    /// Reserves an amount if limits and leases allow it.
    pub fn reserve(&self, call: &LimitedCall<'_>) -> Result<(), HoldError> {
        let hold = &call.hold;
        let mut state = self.lock();
        state.last_used = Instant::now();
        if *call.bounds != SpendingBounds::default() || !hold.budgets.is_empty() {
            state.check_limits(call)?;
        }
        if hold.funding == Funding::Credit && !state.balance.reserve(hold.amount) {
            return Err(HoldError::Lease(hold.amount.minus(state.balance.free())));
        }
        state.add_reserved(hold, hold.amount);
        Ok(())
    }

    /// Ends a reservation and charges the cost. Returns what `submit` makes of the charge.
    ///
    /// Cost: the lock is held while `submit` runs. Otherwise what is read between the two would miss the call.
    pub fn settle<T>(&self, hold: &Hold<'_>, spent: &Spent, submit: impl FnOnce(Charge) -> T) -> T {
        let cost = spent.cost;
        let mut state = self.lock();
        state.add_reserved(hold, Usd::ZERO.minus(hold.amount));
        let charge = match (hold.funding, spent.funding) {
            (Funding::Credit, Funding::Byok | Funding::Unbilled) => {
                state.balance.release(hold.amount);
                Charge::default()
            }
            (Funding::Credit, _) => state.balance.settle(hold.amount, cost),
            _ => Charge::default(),
        };
        let premium = (spent.funding == Funding::Plan).then_some(spent.is_premium);
        state.spend(hold, premium, |lease| match spent.is_stored {
            true => lease.charge(cost),
            false => lease.charge_unstored(cost),
        });
        submit(charge)
    }

    /// Ends the reservation of a call that costs nothing.
    pub fn release(&self, hold: &Hold<'_>) {
        let mut state = self.lock();
        state.add_reserved(hold, Usd::ZERO.minus(hold.amount));
        if hold.funding == Funding::Credit {
            state.balance.release(hold.amount);
        }
    }

    /// Ends a reservation of which the store now holds `amount` for a job, where it counts as spent. The rest is free again;
    /// `is_byok`: all of its credit is.
    pub fn hand_over(&self, hold: &Hold<'_>, amount: Usd, is_byok: bool) {
        let mut state = self.lock();
        state.add_reserved(hold, Usd::ZERO.minus(hold.amount));
        match (hold.funding, is_byok) {
            (Funding::Credit, false) => {
                state.balance.hand_over(amount);
                state.balance.release(hold.amount.minus(amount));
            }
            (Funding::Credit, true) => state.balance.release(hold.amount),
            _ => {}
        }
        let is_plan = hold.funding == Funding::Plan && !is_byok;
        let premium = is_plan.then_some(hold.is_premium);
        state.spend(hold, premium, |lease| lease.charge(amount));
    }

    /// Follows the end of a job, which the store has charged: it may have left more than was held for it.
    pub fn follow_job(&self) {
        let mut state = self.lock();
        state.spendings += 1;
        state.forget_lacks();
    }

    /// Returns how often this process has changed what is spent.
    pub fn spendings(&self) -> u64 {
        self.lock().spendings
    }

    /// Returns what a key, its member and its plan had spent when it was last read; whether nothing has changed since in this
    /// process; and its age.
    pub fn known_spent(&self, key_id: &str) -> Option<(SpentSoFar, bool, Duration)> {
        let state = self.lock();
        let known = state.keys.get(key_id)?.known.as_deref()?;
        let is_current = known.spendings == state.spendings;
        Some((known.spent, is_current, known.read_at.elapsed()))
    }

    /// Keeps what was spent as it was read after so many [`Self::spendings`].
    pub fn set_known_spent(&self, key_id: &Arc<str>, spent: SpentSoFar, spendings: u64) {
        let read_at = Instant::now();
        let known = KnownSpent {
            read_at,
            spendings,
            spent,
        };
        spender_entry(&mut self.lock().keys, key_id).known = Some(Box::new(known));
    }

    /// Returns the credit as it was last read, and when.
    pub(super) fn known_credit(&self) -> Option<(Instant, Credit)> {
        self.lock().credit
    }

    /// Keeps the credit as it was read, and when.
    pub(super) fn set_known_credit(&self, read: (Instant, Credit)) {
        self.lock().credit = Some(read);
    }

    /// Returns whether the account was used within this time.
    pub fn is_active(&self, within: Duration) -> bool {
        self.lock().last_used.elapsed() < within
    }

    /// Returns whether there is no lease and no open reservation.
    pub fn holds_nothing(&self) -> bool {
        if !self.held_limits().is_empty() {
            return false;
        }
        let state = self.lock();
        let is_reserved = |spender: &Spender| spender.reserved != Usd::ZERO;
        state.balance.free() == Usd::ZERO
            && state.balance.reserved() == Usd::ZERO
            && state.plan_reserved == Usd::ZERO
            && !state.keys.values().any(is_reserved)
    }

    /// Returns the lease.
    pub fn balance(&self) -> Balance {
        self.lock().balance
    }

    /// Returns the sum of all open reservations of credit and plan.
    pub fn reserved(&self) -> Usd {
        let state = self.lock();
        state.balance.reserved().plus(state.plan_reserved)
    }

    /// Adds an amount that the store granted.
    pub fn add_lease(&self, amount: Usd) {
        let mut state = self.lock();
        state.balance.add(amount);
        state.last_lease = amount;
        if amount > Usd::ZERO {
            state.lack = None;
        }
    }

    /// Takes out and returns the free amount, so that the process can return it to the store.
    pub fn take_free(&self) -> Usd {
        self.lock().balance.take_free()
    }

    /// Forgets the lease: the store has released it for other processes.
    pub fn revoke_lease(&self) {
        self.lock().balance.revoke_lease();
    }

    /// Returns whether the free amount is so low that the process should request the next lease.
    pub fn is_low(&self) -> bool {
        let state = self.lock();
        state.last_lease > Usd::ZERO && state.balance.free().units() < state.last_lease.units() / 4
    }

    /// Returns the number of lease requests so far.
    pub fn request_count(&self) -> u64 {
        self.lock().requests
    }

    /// Counts a lease request that starts.
    pub fn begin_request(&self) {
        self.lock().requests += 1;
    }

    /// Records that the latest lease request was refused.
    pub fn mark_refused(&self, need: Usd) {
        let mut state = self.lock();
        state.refused = (state.requests, need);
        state.last_lease = Usd::ZERO;
    }

    /// Records that the store does not have this amount.
    pub fn record_lack(&self, missing: Usd) {
        let mut state = self.lock();
        let known = state.lack.filter(|lack| lack.since.elapsed() < LACK_TTL);
        state.lack = Some(Lack {
            amount: known.map_or(missing, |lack| lack.amount.min(missing)),
            since: known.map_or_else(Instant::now, |lack| lack.since),
            answers: known.map_or(1, |lack| lack.answers + 1),
        });
    }

    /// Returns whether the store has said often enough that it does not have this amount, so that it is not asked again.
    pub fn lacks_credit(&self, missing: Usd) -> bool {
        let lack = self.lock().lack;
        lack.is_some_and(|lack| {
            missing >= lack.amount
                && lack.answers >= MAX_LACK_ANSWERS
                && lack.since.elapsed() < LACK_TTL
        })
    }

    /// Records that the store did not answer a request for a lease.
    pub fn record_lease_failure(&self) {
        self.lock().lease_failed_at = Some(Instant::now());
    }

    /// Returns whether the store did not answer such a request after this time, or a moment ago. Then no other call waits for
    /// it as long again.
    pub fn has_lease_failure(&self, waits_since: Instant) -> bool {
        let failed_at = self.lock().lease_failed_at;
        failed_at.is_some_and(|failed_at| {
            failed_at >= waits_since || failed_at.elapsed() < LEASE_FAILURE_TTL
        })
    }

    /// Returns whether a request after the first `seen_requests` was refused for this amount or less.
    pub fn was_refused(&self, seen_requests: u64, need: Usd) -> bool {
        let (request, refused) = self.lock().refused;
        request > seen_requests && need >= refused
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, AccountState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
