//! The part of a limit that one process may spend.
//!
//! Several processes spend on the limits of a key, a member or a plan. Each holds a lease of them and spends from it in
//! memory. A call is admitted while something is left of the lease, so a process exceeds its lease by its last call at
//! most. A budget is stricter: what is left has to cover all that the call may cost, as with credit. What the store grants: see
//! [`LimitOffer`].
//!
//! A lease is of no period: it counts against each limit of its scope, whatever period its calls will fall into. What was
//! granted before a period ends counts in full against the next one. It is not used at a time before the one at which it
//! was granted, as an earlier period may have less room.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::limit_grant::{LimitGrant, LimitOffer};
use crate::money::allowance::{Allowance, KeyLimits, LimitReached, SpendingBounds, SpentSoFar};
use crate::money::budgets::{BudgetKind, BudgetReached};
use crate::money::tally::{DAILY_WINDOW_MS, PREMIUM_WINDOW_MS};
use crate::money::{Period, Usd, period};

/// Whose spending is limited. One lease is for all limits of a scope.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum LimitScope {
    /// A key, by its id.
    Key(Arc<str>),
    /// A member, by its id.
    Member(Arc<str>),
    /// The organization's plan.
    Plan,
    /// The share of the plan for premium models.
    Premium,
    /// A budget, by its name.
    Budget(Arc<str>),
}

/// A text that names no scope.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct UnknownScope;

/// The limits of a scope.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LimitTerms {
    /// The limits of a key.
    Key(KeyLimits),
    /// The budget of a member.
    Member(Usd),
    /// The allowance of a plan that began at this time, in unix milliseconds, for a cycle and for 24 hours.
    Plan(Allowance, i64),
    /// The same for premium models.
    Premium(Allowance, i64),
    /// The limits of a budget of this kind.
    Budget(BudgetKind, KeyLimits),
}

/// What the tightest limit of a scope leaves.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Room {
    /// The amount. Negative beyond the limit.
    pub left: Usd,
    /// The refusal that names the limit.
    pub reached: LimitReached,
    /// When the limit begins anew at the earliest, in unix milliseconds; `i64::MAX`: never.
    pub resets_ms: i64,
}

/// A process's lease of the limits of one scope.
#[derive(Clone, Debug, Default)]
pub struct LimitLease {
    /// The limits under which it was granted; `None`: it was not.
    terms: Option<LimitTerms>,
    /// When it was granted, in unix milliseconds.
    granted_ms: i64,
    /// All that the store has granted; `None`: the store knows nothing of it.
    granted: Option<Usd>,
    /// The cost of calls that are not going to be stored, as far as the store was not told. It is in `granted`.
    unstored: Usd,
    /// What may still be reserved. The last call makes it negative.
    left: Usd,
    /// What was left after the last grant, if the store may grant more; else zero.
    part: Usd,
    /// What the limits left at the last grant, and how much of that was not granted to this process.
    room: Option<(Room, Usd)>,
    /// Whether the store holds an amount for this process.
    is_held: bool,
}

impl LimitTerms {
    /// Returns the limits of a call on a plan that began at `plan_since_ms`.
    pub fn of_call(
        bounds: &SpendingBounds,
        plan_since_ms: i64,
        is_premium: bool,
    ) -> impl Iterator<Item = Self> + use<> {
        let key = (bounds.key != KeyLimits::default()).then_some(Self::Key(bounds.key));
        let plan = bounds.plan.map(|plan| Self::Plan(plan, plan_since_ms));
        let premium = bounds.plan.filter(|_| is_premium);
        let premium = premium.map(|plan| Self::Premium(plan, plan_since_ms));
        let all = [key, bounds.member.map(Self::Member), plan, premium];
        all.into_iter().flatten()
    }

    /// Returns when the plan began, in unix milliseconds; 0 if it is none.
    pub fn plan_since_ms(&self) -> i64 {
        match *self {
            Self::Plan(_, since_ms) | Self::Premium(_, since_ms) => since_ms,
            Self::Key(_) | Self::Member(_) | Self::Budget(..) => 0,
        }
    }

    /// Returns what has to be left for a call that may cost this much. Zero: anything.
    pub fn need(&self, max_cost: Usd) -> Usd {
        match self {
            Self::Budget(..) => max_cost,
            _ => Usd::ZERO,
        }
    }

    /// Returns what the tightest limit leaves.
    pub fn room(&self, spent: &SpentSoFar, now_ms: i64) -> Room {
        let room = |limit: Usd, spent, reached: fn(Usd) -> LimitReached, resets_ms| Room {
            left: limit.minus(spent),
            reached: reached(limit),
            resets_ms,
        };
        match *self {
            Self::Key(limits) => tightest(&limits, spent, now_ms, |period, limit| match period {
                None => LimitReached::Key(limit),
                Some(period) => LimitReached::KeyPeriod(period, limit),
            }),
            Self::Budget(kind, limits) => tightest(&limits, spent, now_ms, |period, limit| {
                LimitReached::Budget(BudgetReached {
                    kind,
                    place: 0,
                    period,
                    limit,
                    left: Usd::ZERO,
                    resets_ms: period.map_or(i64::MAX, |period| period.end_ms(now_ms)),
                })
            }),
            Self::Member(budget) => room(budget, spent.member, LimitReached::Member, i64::MAX),
            Self::Plan(plan, since_ms) => {
                let spent = &spent.plan;
                let resets_ms = period::cycle(since_ms, now_ms).1;
                let cycle = room(plan.cycle, spent.cycle, LimitReached::Cycle, resets_ms);
                // A window that is not open yet begins now at the earliest.
                let resets_ms = spent.daily_resets_ms.unwrap_or(now_ms + DAILY_WINDOW_MS);
                let daily = room(plan.daily, spent.daily, LimitReached::Daily, resets_ms);
                std::cmp::min_by_key(cycle, daily, |room| room.left)
            }
            Self::Premium(plan, _) => {
                let spent = &spent.plan;
                let resets_ms = spent.premium_resets_ms;
                let resets_ms = resets_ms.unwrap_or(now_ms + PREMIUM_WINDOW_MS);
                let weekly = plan.weekly_premium;
                room(weekly, spent.premium, LimitReached::Premium, resets_ms)
            }
        }
    }
}

/// Returns what the tightest of these limits leaves.
fn tightest(
    limits: &KeyLimits,
    spent: &SpentSoFar,
    now_ms: i64,
    reached: impl Fn(Option<Period>, Usd) -> LimitReached,
) -> Room {
    let room = |period: Option<Period>, limit: Usd, spent| Room {
        left: limit.minus(spent),
        reached: reached(period, limit),
        resets_ms: period.map_or(i64::MAX, |period| period.end_ms(now_ms)),
    };
    let lifetime = limits.lifetime;
    let lifetime = lifetime.map(|limit| room(None, limit, spent.key.total));
    let periods = Period::ALL.into_iter().zip(limits.periods);
    let periods = periods.zip(spent.key.periods);
    let periods =
        periods.filter_map(|((period, limit), spent)| Some(room(Some(period), limit?, spent)));
    let all = lifetime.into_iter().chain(periods);
    let tightest = all.min_by_key(|room| room.left);
    tightest.unwrap_or_else(|| room(None, Usd::ZERO, Usd::ZERO))
}

impl LimitLease {
    /// Returns whether it was granted under these limits, at this time or earlier.
    pub fn is_of(&self, terms: &LimitTerms, now_ms: i64) -> bool {
        self.terms.as_ref() == Some(terms) && now_ms >= self.granted_ms
    }

    /// Returns whether something is left for a call, and at least what it needs ([`LimitTerms::need`]).
    pub fn admits(&self, need: Usd) -> bool {
        self.terms.is_some() && self.left > Usd::ZERO && self.left >= need
    }

    /// Returns whether so little is left that the process should ask for more.
    pub fn is_low(&self) -> bool {
        self.part > Usd::ZERO && self.left.units() < self.part.units() / 4
    }

    /// Returns whether the store holds what this process says. Else it holds what runs, from the next change on.
    pub fn is_granted(&self) -> bool {
        self.granted.is_some()
    }

    /// Makes the next change hold nothing but what runs then: what has ended is stored, or never will be.
    pub fn forget_granted(&mut self) {
        self.granted = None;
    }

    /// Returns whether the store holds an amount for this process.
    pub fn is_held(&self) -> bool {
        self.is_held
    }

    /// Returns the refusal of a call for which nothing is left, as the store gave it last.
    pub fn reached(&self) -> Option<LimitReached> {
        let (room, _) = self.room?;
        Some(match room.reached {
            LimitReached::Budget(reached) => LimitReached::Budget(BudgetReached {
                left: self.remaining().unwrap_or_default(),
                ..reached
            }),
            reached => reached,
        })
    }

    /// Returns what is left of the tightest limit, as far as this process knows: the calls of others since the last grant are
    /// not in it. Negative beyond the limit; `None`: it knows nothing.
    pub fn remaining(&self) -> Option<Usd> {
        let (room, beside) = self.room?;
        let beyond = room.left.min(Usd::ZERO);
        Some(self.left.plus(beside).plus(beyond))
    }

    /// Returns when the tightest limit begins anew, in unix milliseconds, as the store said last.
    pub fn resets_ms(&self) -> i64 {
        self.room.map_or(0, |(room, _)| room.resets_ms)
    }

    /// Returns whether a call may begin that no lease is granted for: under these limits something was left at the last
    /// grant, here or elsewhere, or what was known then is over.
    pub fn may_be_left(&self, terms: &LimitTerms, now_ms: i64) -> bool {
        match self.room {
            Some((room, beside)) if self.is_of(terms, now_ms) && now_ms < room.resets_ms => {
                self.left.plus(beside) > Usd::ZERO
            }
            _ => true,
        }
    }

    /// Reserves an amount; a negative amount ends a reservation.
    pub fn reserve(&mut self, amount: Usd) {
        self.left = self.left.minus(amount);
    }

    /// Adds the cost of a call that has ended.
    pub fn charge(&mut self, cost: Usd) {
        self.left = self.left.minus(cost);
    }

    /// Adds the cost of a call that has ended and is not going to be stored, so that the store does not hold it for ever.
    pub fn charge_unstored(&mut self, cost: Usd) {
        self.charge(cost);
        self.unstored = self.unstored.plus(cost);
    }

    /// Returns the offer for a change of what the process has reserved: for more under limits, for a call of this cost, or
    /// to return what is left. That is taken out: no call spends it while it is returned.
    pub fn offer(
        &mut self,
        reserved: Usd,
        wanted: Option<(LimitTerms, Usd)>,
        now_ms: i64,
    ) -> LimitOffer {
        let unstored = std::mem::take(&mut self.unstored);
        match &mut self.granted {
            Some(granted) => *granted = granted.minus(unstored),
            None => self.left = Usd::ZERO,
        }
        let mut left = self.left.max(Usd::ZERO);
        let exceeded = left.minus(self.left);
        if wanted.is_none() {
            self.left = self.left.minus(left);
            // Also where the answer does not come, the next offer says so.
            self.granted = self.granted.map(|granted| granted.minus(left));
            left = Usd::ZERO;
        }
        self.is_held = true;
        LimitOffer {
            granted: self.granted,
            reserved,
            left,
            wanted: wanted.map(|(terms, cost)| (terms, cost.plus(exceeded))),
            now_ms,
        }
    }

    /// Applies what the store granted on an offer.
    pub fn apply(&mut self, offer: &LimitOffer, grant: &LimitGrant) {
        self.granted = Some(grant.granted);
        self.left = self.left.plus(grant.added);
        self.is_held = grant.held > Usd::ZERO;
        let Some((terms, _)) = offer.wanted else {
            return;
        };
        self.part = match grant.added > Usd::ZERO {
            true => offer.left.plus(grant.added),
            false => Usd::ZERO,
        };
        let beside = |room: Room| room.left.minus(grant.held).max(Usd::ZERO);
        self.room = grant.room.map(|room| (room, beside(room)));
        (self.terms, self.granted_ms) = (Some(terms), offer.now_ms);
    }

    /// Forgets the lease: the store has given it to others.
    pub fn revoke(&mut self) {
        (self.terms, self.granted, self.is_held) = (None, None, false);
    }
}

impl fmt::Display for LimitScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(id) => write!(f, "key/{id}"),
            Self::Member(id) => write!(f, "member/{id}"),
            Self::Plan => f.write_str("plan"),
            Self::Premium => f.write_str("premium"),
            Self::Budget(name) => write!(f, "budget/{name}"),
        }
    }
}

impl FromStr for LimitScope {
    type Err = UnknownScope;
    fn from_str(text: &str) -> Result<Self, UnknownScope> {
        match text.split_once('/') {
            Some(("key", id)) => Ok(Self::Key(id.into())),
            Some(("member", id)) => Ok(Self::Member(id.into())),
            Some(("budget", name)) => Ok(Self::Budget(name.into())),
            None if text == "plan" => Ok(Self::Plan),
            None if text == "premium" => Ok(Self::Premium),
            _ => Err(UnknownScope),
        }
    }
}

#[cfg(test)]
#[path = "limit_lease_tests.rs"]
mod tests;
