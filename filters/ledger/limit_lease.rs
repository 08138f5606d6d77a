//! The part of a limit that one process may spend.
//!
//! Several processes spend on the limits of a key, a member or a plan. Each holds a lease of them and spends from it in
//! memory. A call is admitted while something is left of the lease, so a process exceeds its lease by its last call at
//! most. What the store grants: see [`LimitOffer`].
//!
//! A lease is of no period: it counts against each limit of its scope, whatever period its calls will fall into. What was
//! granted before a period ends counts in full against the next one. It is not used at a time before the one at which it
//! was granted, as an earlier period may have less room.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::limit_grant::LimitOffer;
use crate::money::allowance::{Allowance, KeyLimits, LimitReached, SpendingBounds, SpentSoFar};
use crate::money::{Period, Usd};

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
}

/// A process's lease of the limits of one scope.
#[derive(Clone, Debug, Default)]
pub struct LimitLease {
    /// The limits under which it was granted; `None`: it was not.
    terms: Option<LimitTerms>,
    /// When it was granted, in unix milliseconds.
    granted_ms: i64,
    /// What may still be reserved. The last call makes it negative.
    left: Usd,
    /// What was left after the last grant, if the store may grant more; else zero.
    part: Usd,
    /// The cost of ended calls; at least that of those that are not stored.
    ended: Usd,
    /// The cost of ended calls that may not be stored.
    unstored: Usd,
    /// Whether the store may hold an amount for this process.
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

    /// Returns what the tightest limit leaves, and the refusal that names it. Negative beyond a limit.
    pub fn room(&self, spent: &SpentSoFar) -> (Usd, LimitReached) {
        let room = |limit: Usd, spent, reached: LimitReached| (limit.minus(spent), reached);
        match *self {
            Self::Key(limits) => {
                let lifetime = limits.lifetime.into_iter();
                let lifetime =
                    lifetime.map(|limit| room(limit, spent.key.total, LimitReached::Key(limit)));
                let periods = Period::ALL.into_iter().zip(limits.periods);
                let periods = periods.zip(spent.key.periods);
                let periods = periods.filter_map(|((period, limit), spent)| {
                    limit.map(|limit| room(limit, spent, LimitReached::KeyPeriod(period, limit)))
                });
                let tightest = lifetime.chain(periods).min_by_key(|(room, _)| *room);
                tightest.unwrap_or((Usd::ZERO, LimitReached::Key(Usd::ZERO)))
            }
            Self::Member(budget) => room(budget, spent.member, LimitReached::Member(budget)),
            Self::Plan(plan, _) => {
                let cycle = room(
                    plan.cycle,
                    spent.plan.cycle,
                    LimitReached::Cycle(plan.cycle),
                );
                let daily = room(
                    plan.daily,
                    spent.plan.daily,
                    LimitReached::Daily(plan.daily),
                );
                std::cmp::min_by_key(cycle, daily, |(room, _)| *room)
            }
            Self::Premium(plan, _) => {
                let weekly = plan.weekly_premium;
                room(weekly, spent.plan.premium, LimitReached::Premium(weekly))
            }
        }
    }
}

impl LimitLease {
    /// Returns whether it was granted under these limits, at this time or earlier.
    pub fn is_of(&self, terms: &LimitTerms, now_ms: i64) -> bool {
        self.terms.as_ref() == Some(terms) && now_ms >= self.granted_ms
    }

    /// Returns whether something is left for a call.
    pub fn admits(&self) -> bool {
        self.terms.is_some() && self.left > Usd::ZERO
    }

    /// Returns whether so little is left that the process should ask for more.
    pub fn is_low(&self) -> bool {
        self.part > Usd::ZERO && self.left.units() < self.part.units() / 4
    }

    /// Returns whether the store may hold an amount for this process.
    pub fn is_held(&self) -> bool {
        self.is_held
    }

    /// Returns whether ended calls may not be stored.
    pub fn has_unstored(&self) -> bool {
        self.unstored > Usd::ZERO
    }

    /// Reserves an amount; a negative amount ends a reservation.
    pub fn reserve(&mut self, amount: Usd) {
        self.left = self.left.minus(amount);
    }

    /// Adds the cost of a call that has ended.
    pub fn charge(&mut self, cost: Usd) {
        self.left = self.left.minus(cost);
        self.ended = self.ended.plus(cost);
        self.unstored = self.unstored.plus(cost);
    }

    /// Forgets which ended calls are not stored, before they are counted anew.
    pub fn forget_unstored(&mut self) {
        self.unstored = Usd::ZERO;
    }

    /// Counts an ended call that is not stored.
    pub fn add_unstored(&mut self, cost: Usd) {
        self.unstored = self.unstored.plus(cost);
    }

    /// Continues from what the store knows this process has stored. What is reported never falls, or another process
    /// that compares two reports would miss what was stored between them.
    pub fn continue_from(&mut self, stored: Usd) {
        let told = self.ended.minus(self.unstored);
        if told < stored {
            self.ended = self.ended.plus(stored.minus(told));
        }
    }

    /// Returns the offer for a change, with what the process has reserved and the room under the limits. Without a need,
    /// what is left is taken out: no call spends it while it is returned.
    pub fn offer(&mut self, reserved: Usd, room: Usd, need: Option<Usd>) -> LimitOffer {
        if need.is_none() {
            self.left = self.left.min(Usd::ZERO);
        }
        let kept = match self.terms {
            Some(_) => self.left.max(Usd::ZERO),
            None => Usd::ZERO,
        };
        self.is_held = true;
        LimitOffer {
            room,
            kept,
            held: reserved.plus(self.unstored),
            stored: self.ended.minus(self.unstored),
            need,
            left: self.left,
        }
    }

    /// Applies what the store granted on an offer made at `at_ms`: what is left, without what calls have taken and
    /// given back since.
    pub fn apply(&mut self, offer: &LimitOffer, granted: Usd, terms: LimitTerms, at_ms: i64) {
        self.left = self.left.plus(granted.minus(offer.left));
        self.part = match granted > offer.kept {
            true => granted,
            false => Usd::ZERO,
        };
        (self.terms, self.granted_ms) = (Some(terms), at_ms);
    }

    /// Records that the store holds no amount for this process any more.
    pub fn mark_returned(&mut self) {
        self.is_held = false;
    }

    /// Forgets the lease: the store has given it to others.
    pub fn revoke(&mut self) {
        (self.terms, self.is_held) = (None, false);
    }
}

impl fmt::Display for LimitScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(id) => write!(f, "key/{id}"),
            Self::Member(id) => write!(f, "member/{id}"),
            Self::Plan => f.write_str("plan"),
            Self::Premium => f.write_str("premium"),
        }
    }
}

impl FromStr for LimitScope {
    type Err = UnknownScope;
    fn from_str(text: &str) -> Result<Self, UnknownScope> {
        match text.split_once('/') {
            Some(("key", id)) => Ok(Self::Key(id.into())),
            Some(("member", id)) => Ok(Self::Member(id.into())),
            None if text == "plan" => Ok(Self::Plan),
            None if text == "premium" => Ok(Self::Premium),
            _ => Err(UnknownScope),
        }
    }
}

#[cfg(test)]
#[path = "limit_lease_tests.rs"]
mod tests;
