//! What is known of the money of an organization, under its lock.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use filters::ledger::{Balance, Funding};
use filters::money::Usd;
use filters::money::allowance;
use filters::money::allowance::SpentSoFar;
use filters::money::tally::{PlanTally, Tally};
use foldhash::fast::FixedState;

use super::account::{Hold, HoldError};
use super::account_limits::{Leased, LeasedLimit, LimitedCall, PlanLimits};
use crate::store::Credit;

/// What the lock of an account guards.
pub(super) struct AccountState {
    pub(super) balance: Balance,
    pub(super) keys: Spenders,
    pub(super) members: Spenders,
    pub(super) plan: PlanTally,
    pub(super) plan_reserved: Usd,
    pub(super) premium_reserved: Usd,
    pub(super) plan_limits: PlanLimits,
    pub(super) plan_since_ms: i64,
    /// The credit as it was last read, and when.
    pub(super) credit: Option<(Instant, Credit)>,
    /// When the keys' spending was last read.
    pub(super) loaded_at: Option<Instant>,
    /// How often jobs have changed it in the store, so that what was read before does not count.
    pub(super) job_changes: u64,
    pub(super) has_bounds: bool,
    /// The number of lease requests so far.
    pub(super) requests: u64,
    /// The number and the amount of the last refused lease request.
    pub(super) refused: (u64, Usd),
    /// What the store lately did not have.
    pub(super) lack: Option<Lack>,
    /// When the store last did not answer a request for a lease.
    pub(super) lease_failed_at: Option<Instant>,
    /// The amount of the last lease; zero if the store had no more.
    pub(super) last_lease: Usd,
    pub(super) last_used: Instant,
}

/// Spenders by id. The store makes the ids, so nobody can choose many that share a hash.
pub(super) type Spenders = HashMap<Arc<str>, Spender, FixedState>;

/// The spending of a key or of a member.
#[derive(Default)]
pub(super) struct Spender {
    pub(super) tally: Tally,
    pub(super) reserved: Usd,
    /// Only where there are limits and other processes.
    pub(super) limit: Option<Box<LeasedLimit>>,
}

/// The longest time that a plan or a calendar month looks back.
pub(super) const LOOKBACK_MS: i64 = 32 * 24 * 3_600_000;

impl AccountState {
    pub(super) fn follow_job(&mut self) {
        self.job_changes += 1;
        self.loaded_at = None;
    }

    /// Checks the limits of a call against what is known to be spent, and against their leases.
    pub(super) fn check_limits(&self, call: &LimitedCall<'_>) -> Result<(), HoldError> {
        let leased = match call.needs_lease {
            true => self.leased(call),
            false => Leased::Covered,
        };
        if leased == Leased::Unknown {
            return Err(HoldError::Limit);
        }
        if self.loaded_at.is_none() {
            return Err(HoldError::NotLoaded);
        }
        let hold = &call.hold;
        let member = hold.member_id.map(|member| &**member);
        let spent = self.spent(hold.key_id, member, call.now_ms);
        allowance::check(call.bounds, &spent, hold.is_premium).map_err(HoldError::Reached)?;
        match leased {
            Leased::Covered => Ok(()),
            Leased::UsedUp | Leased::Unknown => Err(HoldError::Limit),
        }
    }

    /// Returns the spending plus open reservations, which may become spending.
    pub(super) fn spent(&self, key_id: &str, member_id: Option<&str>, now_ms: i64) -> SpentSoFar {
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

    pub(super) fn settled(&self, key_id: &str, member_id: Option<&str>, now_ms: i64) -> SpentSoFar {
        let key = self.keys.get(key_id);
        let member = member_id.and_then(|member| self.members.get(member));
        SpentSoFar {
            key: key.map_or_else(Default::default, |key| key.tally.spent(now_ms)),
            member: member.map_or(Usd::ZERO, |member| member.tally.spent(now_ms).total),
            plan: self.plan.spent(now_ms, self.plan_since_ms),
        }
    }

    /// Adds to the reserved amounts of key, member and plan; a negative amount subtracts.
    pub(super) fn add_reserved(&mut self, hold: &Hold<'_>, amount: Usd) {
        if amount == Usd::ZERO {
            return;
        }
        self.reserve_limits(hold, amount);
        let key = spender_entry(&mut self.keys, hold.key_id);
        key.reserved = key.reserved.plus(amount);
        if let Some(member) = hold.member_id {
            let member = spender_entry(&mut self.members, member);
            member.reserved = member.reserved.plus(amount);
        }
        if hold.funding == Funding::Plan {
            self.plan_reserved = self.plan_reserved.plus(amount);
            if hold.is_premium {
                self.premium_reserved = self.premium_reserved.plus(amount);
            }
        }
    }

    pub(super) fn charge(
        &mut self,
        key: &Arc<str>,
        member: Option<&Arc<str>>,
        is_plan: bool,
        is_premium: bool,
        cost: Usd,
        ended: (i64, i64),
    ) {
        if cost == Usd::ZERO {
            return;
        }
        // Both times are in one hour. So they are in the same periods, or long past.
        let at_ms = ended.1;
        spender_entry(&mut self.keys, key).tally.charge(cost, at_ms);
        if let Some(member) = member {
            spender_entry(&mut self.members, member)
                .tally
                .charge(cost, at_ms);
        }
        if is_plan {
            let since_ms = self.plan_since_ms;
            self.plan.charge(cost, is_premium, ended, since_ms);
        }
    }
}

pub(super) fn spender_entry<'a>(spenders: &'a mut Spenders, id: &Arc<str>) -> &'a mut Spender {
    spenders.entry(Arc::clone(id)).or_default()
}

/// What the store did not have within [`LACK_TTL`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Lack {
    /// The least amount.
    pub(super) amount: Usd,
    pub(super) since: Instant,
    /// How often the store said so.
    pub(super) answers: u32,
}

/// How long calls are refused from memory after the store did not have their amount.
pub(super) const LACK_TTL: Duration = Duration::from_millis(500);

/// The store is asked this often within [`LACK_TTL`]. The second time finds credit that was added after the first refusal,
/// so new credit counts at once but for callers that keep trying.
pub(super) const MAX_LACK_ANSWERS: u32 = 2;
