//! What is known of the money of an organization, under its lock.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use filters::ledger::{Balance, Funding};
use filters::money::Usd;
use filters::money::allowance::SpentSoFar;
use foldhash::fast::FixedState;

use super::account::Hold;
use super::account_limits::{LeasedLimit, PlanLimits};
use super::budgets::TopAgents;
use crate::store::Credit;

/// What the lock of an account guards.
pub(super) struct AccountState {
    pub(super) balance: Balance,
    pub(super) keys: Spenders,
    pub(super) members: Spenders,
    pub(super) budgets: BudgetSpenders,
    pub(super) top_agents: TopAgents,
    pub(super) plan_reserved: Usd,
    pub(super) premium_reserved: Usd,
    pub(super) plan_limits: PlanLimits,
    /// The credit as it was last read, and when.
    pub(super) credit: Option<(Instant, Credit)>,
    /// How often this process has changed what is spent.
    pub(super) spendings: u64,
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

/// Budgets by name. Clients choose the names, so nobody may know how they are hashed.
pub(super) type BudgetSpenders = HashMap<Arc<str>, BudgetSpender>;

/// What a budget spends.
#[derive(Default)]
pub(super) struct BudgetSpender {
    pub(super) reserved: Usd,
    pub(super) limit: Option<Box<LeasedLimit>>,
    /// When a call last used it.
    pub(super) used_at: Option<Instant>,
    /// The limit and the period of which no call behind the end is left.
    pub(super) grace_over: Option<Box<str>>,
}

impl BudgetSpender {
    /// Returns whether no call has used it for this time.
    pub(super) fn is_idle(&self, idle: Duration) -> bool {
        let is_old = self.used_at.is_none_or(|used_at| used_at.elapsed() >= idle);
        is_old && self.reserved == Usd::ZERO
    }

    /// Returns whether the store may hold an amount of it for this process.
    pub(super) fn is_held(&self) -> bool {
        self.limit.as_deref().is_some_and(LeasedLimit::is_held)
    }
}

/// What a key or a member spends.
#[derive(Default)]
pub(super) struct Spender {
    pub(super) reserved: Usd,
    /// Only where there are limits.
    pub(super) limit: Option<Box<LeasedLimit>>,
    /// What the key has spent, as it was last read.
    pub(super) known: Option<Box<KnownSpent>>,
    /// An hour, and how many budgets of new names calls of the key have begun in it.
    pub(super) new_names: (i64, u32),
}

/// What a key, its member and its plan had spent.
#[derive(Clone, Copy)]
pub(super) struct KnownSpent {
    pub(super) read_at: Instant,
    /// [`AccountState::spendings`] before it was read.
    pub(super) spendings: u64,
    pub(super) spent: SpentSoFar,
}

impl AccountState {
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
        for budget in hold.budgets {
            let budget = budget_entry(&mut self.budgets, &budget.name);
            budget.reserved = budget.reserved.plus(amount);
            budget.used_at = Some(self.last_used);
        }
        if hold.funding == Funding::Plan {
            self.plan_reserved = self.plan_reserved.plus(amount);
            if hold.is_premium {
                self.premium_reserved = self.premium_reserved.plus(amount);
            }
        }
    }
}

pub(super) fn spender_entry<'a>(spenders: &'a mut Spenders, id: &Arc<str>) -> &'a mut Spender {
    spenders.entry(Arc::clone(id)).or_default()
}

pub(super) fn budget_entry<'a>(
    budgets: &'a mut BudgetSpenders,
    name: &Arc<str>,
) -> &'a mut BudgetSpender {
    budgets.entry(Arc::clone(name)).or_default()
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
