//! What the store grants of a limit that several processes spend.
//!
//! For each limit the store keeps two numbers of each process: the amount that it holds, and how much of what it spent is
//! stored. What is stored and all amounts together do not exceed the limit when something is granted.
//!
//! An amount covers open reservations, ended calls that are not stored, and what is left. A call that is stored leaves
//! the amount only when its process tells the store. Until then it counts twice, so no limit opens meanwhile.
//!
//! A process reads what is spent before it asks, and others store calls meanwhile. A call that another process has told
//! of is in its report of what it stored. So the process also reads the reports, before it reads what is spent, and what
//! these have grown by since counts against its room: such a call may count twice, and is never missed.

use std::collections::HashMap;

use crate::money::Usd;

/// What a process holds of the limits of a scope.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct HeldLimit {
    /// The amount.
    pub amount: Usd,
    /// How much of what the process spent is stored.
    pub stored: Usd,
}

/// What processes hold of the limits of a scope, by process.
pub type HeldLimits = HashMap<String, HeldLimit>;

/// What a process tells the store of its lease when it changes it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct LimitOffer {
    /// What the tightest limit leaves beside what is spent and what this process has reserved. Negative beyond a limit.
    pub room: Usd,
    /// What is left of the lease and stays with the process.
    pub kept: Usd,
    /// Open reservations, and ended calls that may not be stored.
    pub held: Usd,
    /// How much the process has spent that is stored.
    pub stored: Usd,
    /// What it needs; `None`: it only returns what is left.
    pub need: Option<Usd>,
    /// What was left when the offer was made, also where calls have taken more than there was.
    pub left: Usd,
}

/// The result of a change of a lease of limits.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct LimitGrant {
    /// What is left for the process; `None`: its view is old, so it has to look again.
    pub left: Option<Usd>,
    /// The amount that other processes hold, some of which they may not need.
    pub others: Usd,
    /// The amount that the process holds.
    pub amount: Usd,
}

impl LimitOffer {
    /// Decides on the offer of the process `owner`, which has `seen` what others held, while processes hold `now`.
    /// `processes`: the number of running processes.
    pub fn decide(
        &self,
        owner: &str,
        seen: &HeldLimits,
        now: &HeldLimits,
        processes: i64,
    ) -> LimitGrant {
        let (mut others, mut stored_since) = (Usd::ZERO, Usd::ZERO);
        for (other, held) in now.iter().filter(|(other, _)| *other != owner) {
            let seen = seen.get(other).copied().unwrap_or_default();
            others = others.plus(held.amount);
            stored_since = stored_since.plus(held.stored.minus(seen.stored).max(Usd::ZERO));
        }
        let left = self.left_after(others.plus(stored_since), processes);
        // What a process that is gone has stored is not known any more.
        let is_gone = |other: &String| other != owner && !now.contains_key(other);
        let is_old = seen.keys().any(is_gone) || (stored_since > Usd::ZERO && left <= self.kept);
        let left = (self.need.is_none() || !is_old).then_some(left);
        LimitGrant {
            left,
            others,
            // What is taken from the process is held until its next change, as it may spend it before it knows.
            amount: self.held.plus(self.kept.max(left.unwrap_or_default())),
        }
    }

    /// Returns what is left for the process, if others hold `others`. Negative if the limit is exceeded.
    ///
    /// Of what is free it gets an equal part of the half, so that parts are large while much is left and small near the
    /// end; but what it needs, as far as there is so much; and all if it is alone.
    fn left_after(&self, others: Usd, processes: i64) -> Usd {
        let Some(need) = self.need else {
            return Usd::ZERO;
        };
        let allowed = self.room.minus(others);
        let free = allowed.minus(self.kept);
        if free <= Usd::ZERO || processes <= 1 {
            return allowed;
        }
        let share = Usd::from_units(free.units() / (2 * i128::from(processes)));
        let part = share.max(need).min(free);
        match part > Usd::ZERO {
            true => self.kept.plus(part),
            false => allowed,
        }
    }
}

#[cfg(test)]
#[path = "limit_grant_tests.rs"]
mod tests;
