//! An organization's money in this process: what it may spend, what its keys have spent.
//!
//! One short lock per organization, never held across an await.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use filters::ledger::{Balance, Charge, Funding, LedgerEntry};
use filters::money::Usd;
use filters::money::allowance;
use filters::money::allowance::{LimitReached, SpendingBounds, SpentSoFar};
use filters::money::tally::{PlanTally, Tally};

use super::leases::LeaseState;
use crate::store::ledger::SpentRow;

/// See the module.
pub struct OrganizationAccount {
    /// Whose.
    pub organization_id: Arc<str>,
    /// Whoever holds it asks the store; the others wait for what comes of it.
    pub asking: tokio::sync::Mutex<()>,
    /// Held while the lease is changed: one change after the other.
    pub turns: tokio::sync::Mutex<LeaseState>,
    state: Mutex<AccountState>,
}

struct AccountState {
    balance: Balance,
    keys: HashMap<Arc<str>, Spender>,
    members: HashMap<Arc<str>, Spender>,
    plan: PlanTally,
    plan_reserved: Usd,
    premium_reserved: Usd,
    plan_since_ms: i64,
    /// When what the keys have spent was read last.
    loaded: Option<Instant>,
    has_bounds: bool,
    /// Asks begun, the last of them that brought nothing, and for how much.
    asks: u64,
    refused: (u64, Usd),
    /// What the last lease brought, and whether it was all there was.
    lent: Usd,
    touched: Instant,
}

#[derive(Default)]
struct Spender {
    tally: Tally,
    reserved: Usd,
}

/// What a reservation is for.
#[derive(Clone, Copy, Debug)]
pub struct Hold<'a> {
    /// Which key.
    pub key_id: &'a Arc<str>,
    /// Who owns it.
    pub member_id: Option<&'a Arc<str>>,
    /// What pays.
    pub funding: Funding,
    /// The most that the call may cost.
    pub amount: Usd,
    /// Whether the model is premium.
    pub is_premium: bool,
}

/// What a call took in the end.
#[derive(Clone, Copy, Debug)]
pub struct Spent {
    /// What it cost.
    pub cost: Usd,
    /// Whether the caller's own provider key paid.
    pub is_own: bool,
    /// Whether the model that answered is premium; others may have been planned beside it.
    pub is_premium: bool,
    /// When, in unix milliseconds.
    pub at_ms: i64,
}

/// Why nothing was reserved.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HoldError {
    /// A limit is reached.
    Reached(LimitReached),
    /// The lease does not cover it: so much is missing.
    Lease(Usd),
    /// What the keys have spent is not known yet.
    NotLoaded,
}

impl OrganizationAccount {
    /// An organization of which nothing is known yet.
    pub fn new(organization_id: &str) -> Self {
        Self {
            organization_id: organization_id.into(),
            asking: tokio::sync::Mutex::default(),
            turns: tokio::sync::Mutex::default(),
            state: Mutex::new(AccountState {
                balance: Balance::default(),
                keys: HashMap::new(),
                members: HashMap::new(),
                plan: PlanTally::default(),
                plan_reserved: Usd::ZERO,
                premium_reserved: Usd::ZERO,
                plan_since_ms: 0,
                loaded: None,
                has_bounds: false,
                asks: 0,
                refused: (0, Usd::ZERO),
                lent: Usd::ZERO,
                touched: Instant::now(),
            }),
        }
    }

    /// Reserves, where limits and lease allow it.
    pub fn reserve(
        &self,
        want: &Hold<'_>,
        bounds: &SpendingBounds,
        plan_since_ms: i64,
        now_ms: i64,
    ) -> Result<(), HoldError> {
        let mut state = self.lock();
        state.touched = Instant::now();
        state.plan_since_ms = plan_since_ms;
        if *bounds != SpendingBounds::default() {
            state.has_bounds = true;
            if state.loaded.is_none() {
                return Err(HoldError::NotLoaded);
            }
            let member = want.member_id.map(|member| &**member);
            let spent = state.spent(want.key_id, member, now_ms);
            allowance::check(bounds, &spent, want.is_premium).map_err(HoldError::Reached)?;
        }
        if want.funding == Funding::Credit && !state.balance.reserve(want.amount) {
            return Err(HoldError::Lease(want.amount.minus(state.balance.free())));
        }
        state.hold(want, want.amount);
        Ok(())
    }

    /// Ends a reservation at what the call cost; answers what `hand_in` makes of what that takes from the balance.
    ///
    /// Cost: the lock is held until it is handed in, or a [`Self::load`] in between would count the call nowhere.
    pub fn settle<T>(
        &self,
        want: &Hold<'_>,
        spent: &Spent,
        hand_in: impl FnOnce(Charge) -> T,
    ) -> T {
        let Spent { cost, is_own, .. } = *spent;
        let mut state = self.lock();
        state.hold(want, Usd::ZERO.minus(want.amount));
        let charge = match (want.funding, is_own) {
            (Funding::Credit, false) => state.balance.settle(want.amount, cost),
            (Funding::Credit, true) => {
                state.balance.release(want.amount);
                Charge::default()
            }
            _ => Charge::default(),
        };
        let is_of_plan = want.funding == Funding::Plan && !is_own;
        let (key, member) = (want.key_id, want.member_id);
        let ended = (spent.at_ms, spent.at_ms);
        state.charge(key, member, is_of_plan, spent.is_premium, cost, ended);
        hand_in(charge)
    }

    /// Ends a reservation of a call that costs nothing.
    pub fn release(&self, want: &Hold<'_>) {
        let mut state = self.lock();
        state.hold(want, Usd::ZERO.minus(want.amount));
        if want.funding == Funding::Credit {
            state.balance.release(want.amount);
        }
    }

    /// What was spent so far, without what is only reserved; `None`: it has not been loaded.
    pub fn spent(
        &self,
        key_id: &str,
        member_id: Option<&str>,
        plan_since_ms: i64,
        now_ms: i64,
    ) -> Option<SpentSoFar> {
        let mut state = self.lock();
        state.plan_since_ms = plan_since_ms;
        state
            .loaded
            .is_some()
            .then(|| state.settled(key_id, member_id, now_ms))
    }

    /// Takes what the store says the keys have spent, and what it does not know yet: `pending` shows the calls that
    /// were handed in and not stored. No call is handed in meanwhile, so that each counts in one of the two, once.
    ///
    /// Calls of other organizations are passed over.
    pub fn load(&self, rows: &[SpentRow], pending: impl FnOnce(&mut dyn FnMut(&LedgerEntry))) {
        let mut state = self.lock();
        let spenders = state.keys.values_mut();
        spenders.for_each(|spender| spender.tally = Tally::default());
        let spenders = state.members.values_mut();
        spenders.for_each(|spender| spender.tally = Tally::default());
        state.plan = PlanTally::default();
        for row in rows {
            let (plan, ended) = (row.is_of_plan, row.ended_ms);
            let (key, member) = (row.key_id.as_str().into(), arc(row.member_id.as_deref()));
            state.charge(&key, member.as_ref(), plan, row.is_premium, row.cost, ended);
        }
        pending(&mut |entry| {
            let (who, taken) = (&entry.who, &entry.taken);
            if *who.organization_id != *self.organization_id {
                return;
            }
            let (key, member) = ((*who.key_id).into(), arc(who.member_id.as_deref()));
            let (plan, premium) = (entry.funding == Funding::Plan, taken.is_premium);
            let (cost, ended) = (taken.total(), (entry.at_ms, entry.at_ms));
            state.charge(&key, member.as_ref(), plan, premium, cost, ended);
        });
        state.loaded = Some(Instant::now());
    }

    /// Whether what was spent by others has to be looked at again and again.
    pub fn has_bounds(&self) -> bool {
        let state = self.lock();
        state.has_bounds && state.loaded.is_some()
    }

    /// Whether what the keys have spent was last read longer ago than this.
    pub fn is_stale(&self, after: Duration) -> bool {
        let loaded = self.lock().loaded;
        loaded.is_none_or(|loaded| loaded.elapsed() > after)
    }

    /// Whether anything was done within this time.
    pub fn is_active(&self, within: Duration) -> bool {
        self.lock().touched.elapsed() < within
    }

    /// What may be spent, and what is reserved of it.
    pub fn balance(&self) -> Balance {
        self.lock().balance
    }

    /// Reservations of every kind that are open.
    pub fn reserved(&self) -> Usd {
        let state = self.lock();
        state.balance.reserved().plus(state.plan_reserved)
    }

    /// More was lent by the store.
    pub fn lend(&self, amount: Usd) {
        let mut state = self.lock();
        state.balance.add(amount);
        state.lent = amount;
    }

    /// Takes out what is free, to give it back.
    pub fn take_free(&self) -> Usd {
        self.lock().balance.take_free()
    }

    /// The store has given this process's leases to others.
    pub fn lose(&self) {
        self.lock().balance.lose();
    }

    /// Whether so little is left of the last lease that the next one should be on its way.
    pub fn is_low(&self) -> bool {
        let state = self.lock();
        state.lent > Usd::ZERO && state.balance.free().units() < state.lent.units() / 4
    }

    /// How many asks have begun.
    pub fn asks(&self) -> u64 {
        self.lock().asks
    }

    /// An ask begins.
    pub fn begin_ask(&self) {
        self.lock().asks += 1;
    }

    /// It brought nothing.
    pub fn refuse(&self, need: Usd) {
        let mut state = self.lock();
        state.refused = (state.asks, need);
        state.lent = Usd::ZERO;
    }

    /// Whether an ask that began after `seen` others brought nothing for as little as this.
    pub fn was_refused(&self, seen: u64, need: Usd) -> bool {
        let (ask, refused) = self.lock().refused;
        ask > seen && need >= refused
    }

    fn lock(&self) -> MutexGuard<'_, AccountState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The longest that a plan looks back, and a month of the calendar.
pub const LOOK_BACK_MS: i64 = 32 * 24 * 3_600_000;

impl AccountState {
    /// What was spent, and what is reserved, which may come to be spent.
    fn spent(&self, key_id: &str, member_id: Option<&str>, now_ms: i64) -> SpentSoFar {
        let mut spent = self.settled(key_id, member_id, now_ms);
        if let Some(key) = self.keys.get(key_id) {
            spent.key.total = spent.key.total.plus(key.reserved);
            for period in &mut spent.key.periods {
                *period = period.plus(key.reserved);
            }
        }
        let member = member_id.and_then(|member| self.members.get(member));
        let reserved = member.map_or(Usd::ZERO, |member| member.reserved);
        spent.member = spent.member.plus(reserved);
        spent.plan.cycle = spent.plan.cycle.plus(self.plan_reserved);
        spent.plan.daily = spent.plan.daily.plus(self.plan_reserved);
        spent.plan.premium = spent.plan.premium.plus(self.premium_reserved);
        spent
    }

    fn settled(&self, key_id: &str, member_id: Option<&str>, now_ms: i64) -> SpentSoFar {
        let key = self.keys.get(key_id);
        let member = member_id.and_then(|member| self.members.get(member));
        SpentSoFar {
            key: key.map_or_else(Default::default, |key| key.tally.spent(now_ms)),
            member: member.map_or(Usd::ZERO, |member| member.tally.spent(now_ms).total),
            plan: self.plan.spent(now_ms, self.plan_since_ms),
        }
    }

    /// Adds to what is reserved by key, member and plan; takes away where the amount is negative.
    fn hold(&mut self, want: &Hold<'_>, amount: Usd) {
        if amount == Usd::ZERO {
            return;
        }
        let key = spender(&mut self.keys, want.key_id);
        key.reserved = key.reserved.plus(amount);
        if let Some(member) = want.member_id {
            let member = spender(&mut self.members, member);
            member.reserved = member.reserved.plus(amount);
        }
        if want.funding == Funding::Plan {
            self.plan_reserved = self.plan_reserved.plus(amount);
            if want.is_premium {
                self.premium_reserved = self.premium_reserved.plus(amount);
            }
        }
    }

    fn charge(
        &mut self,
        key: &Arc<str>,
        member: Option<&Arc<str>>,
        is_of_plan: bool,
        is_premium: bool,
        cost: Usd,
        ended: (i64, i64),
    ) {
        if cost == Usd::ZERO {
            return;
        }
        // Both moments are in one hour, and so in the same periods, or long past.
        let at_ms = ended.1;
        spender(&mut self.keys, key).tally.charge(cost, at_ms);
        if let Some(member) = member {
            spender(&mut self.members, member).tally.charge(cost, at_ms);
        }
        if is_of_plan {
            let since_ms = self.plan_since_ms;
            self.plan.charge(cost, is_premium, ended, since_ms);
        }
    }
}

fn spender<'a>(spenders: &'a mut HashMap<Arc<str>, Spender>, id: &Arc<str>) -> &'a mut Spender {
    spenders.entry(Arc::clone(id)).or_default()
}

fn arc(text: Option<&str>) -> Option<Arc<str>> {
    text.map(Arc::from)
}
