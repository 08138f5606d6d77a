//! What the store grants of a limit that processes spend.
//!
//! For each limit the store keeps two sums of each process: what it was granted, and how much of what it spent is stored.
//! Their difference is what the process holds: open reservations, ended calls that are not stored, and what is left. A
//! call that is stored moves from there to what is spent, in one change. So what is spent and what all processes hold do
//! not exceed the limit when something is granted.

use super::limit_lease::{LimitTerms, Room};
use crate::money::Usd;

/// What a process tells the store of its lease when it changes it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct LimitOffer {
    /// All that it was granted, as far as it knows; `None`: it has no lease.
    pub granted: Option<Usd>,
    /// Its open reservations.
    pub reserved: Usd,
    /// What is left of its lease.
    pub left: Usd,
    /// The limits, and what it needs; `None`: it only returns something.
    pub wanted: Option<(LimitTerms, Usd)>,
    /// The time, in unix milliseconds.
    pub now_ms: i64,
}

/// What the store knows when it changes a lease.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct LimitState {
    /// How much of what the process spent is stored.
    pub stored: Usd,
    /// The amount that other processes hold.
    pub others: Usd,
    /// What the limits leave of what is stored; `None` if nothing is wanted of them.
    pub room: Option<Room>,
    /// The number of running processes.
    pub processes: i64,
}

/// The result of a change of a lease of limits.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct LimitGrant {
    /// All that the process was granted.
    pub granted: Usd,
    /// What this change has added to it. Negative if the limits leave less than the process has left.
    pub added: Usd,
    /// The amount that the process holds.
    pub held: Usd,
    /// The amount that other processes hold, some of which they may not need.
    pub others: Usd,
    /// What the limits leave of what is stored.
    pub room: Option<Room>,
}

impl LimitOffer {
    /// Decides on the offer.
    pub fn decide(&self, state: &LimitState) -> LimitGrant {
        let stored = state.stored;
        // Without a lease, what runs is held from here on.
        let before = self.granted.unwrap_or(stored.plus(self.reserved));
        let held = before.minus(stored).max(Usd::ZERO);
        let granted = match (self.wanted, state.room) {
            (Some((terms, need)), Some(room)) => {
                let free = room.left.minus(state.others).minus(held);
                match free > Usd::ZERO {
                    // What was spent beyond the lease is stored by now, so it is owed no more.
                    true => stored
                        .plus(held)
                        .plus(part(free, (need, terms), state.processes)),
                    false => before.plus(free.max(Usd::ZERO.minus(self.left))),
                }
            }
            _ => before,
        };
        LimitGrant {
            granted,
            added: granted.minus(before),
            held: granted.minus(stored).max(Usd::ZERO),
            others: state.others,
            room: state.room,
        }
    }
}

/// Returns what a process gets of what is free: an equal part of the half, so that parts are large while much is left and
/// small near the end; but what it needs, as far as there is so much; and all if it is alone. Of a budget it gets what some such
/// calls need, so that nothing is left over which no call can use.
fn part(free: Usd, (need, terms): (Usd, LimitTerms), processes: i64) -> Usd {
    if processes <= 1 {
        return free;
    }
    let share = Usd::from_units(free.units() / (2 * i128::from(processes)));
    let share = match terms.need(need).units() {
        ..=0 => share,
        need => Usd::from_units(share.units() / need * need),
    };
    // A part of nothing would be asked for again and again.
    match share.max(need).min(free) {
        Usd::ZERO => free,
        part => part,
    }
}

#[cfg(test)]
#[path = "limit_grant_tests.rs"]
mod tests;
