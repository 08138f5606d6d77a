//! What one process may spend for an organization: reserve, settle, release.
//!
//! A process spends out of what it has taken from the organization's balance (its lease). Every amount in here
//! is in exactly one place: free, or reserved for a call that runs, or settled and on its way to the store. Nothing
//! is ever below zero.

use crate::money::Usd;

/// See the module.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Balance {
    free: Usd,
    reserved: Usd,
    /// What of the reserved does not stand behind it any more.
    unbacked: Usd,
    /// What was settled since the start; only for looking at.
    settled: Usd,
}

/// What became of a reservation.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Charge {
    /// What was taken from the balance.
    pub charged: Usd,
    /// What the call cost beyond that, because the balance did not go so far.
    pub shortfall: Usd,
}

impl Balance {
    /// What nothing has been reserved of.
    pub fn free(&self) -> Usd {
        self.free
    }

    /// What running calls may cost.
    pub fn reserved(&self) -> Usd {
        self.reserved
    }

    /// What calls have cost since the start.
    pub fn settled(&self) -> Usd {
        self.settled
    }

    /// More was taken from the organization's balance.
    pub fn add(&mut self, amount: Usd) {
        self.free = self.free.plus(amount.max(Usd::ZERO));
    }

    /// Takes out what is free, to give it back; answers how much that was.
    pub fn take_free(&mut self) -> Usd {
        std::mem::take(&mut self.free)
    }

    /// Sets an amount aside for a call; answers whether there was so much.
    #[must_use]
    pub fn reserve(&mut self, amount: Usd) -> bool {
        let amount = amount.max(Usd::ZERO);
        if amount > self.free {
            return false;
        }
        self.free = self.free.minus(amount);
        self.reserved = self.reserved.plus(amount);
        true
    }

    /// Ends a reservation at what the call cost: what it does not need becomes free again, what it lacks is taken
    /// from what is free, and the rest is a shortfall.
    pub fn settle(&mut self, reserved: Usd, cost: Usd) -> Charge {
        let cost = cost.max(Usd::ZERO);
        self.release(reserved);
        let charged = cost.min(self.free);
        self.free = self.free.minus(charged);
        self.settled = self.settled.plus(charged);
        Charge {
            charged,
            shortfall: cost.minus(charged),
        }
    }

    /// Ends a reservation of a call that costs nothing.
    pub fn release(&mut self, reserved: Usd) {
        let reserved = reserved.max(Usd::ZERO).min(self.reserved);
        self.reserved = self.reserved.minus(reserved);
        let lost = reserved.min(self.unbacked);
        self.unbacked = self.unbacked.minus(lost);
        self.free = self.free.plus(reserved.minus(lost));
    }

    /// The lease was lost: nothing is free, and what is reserved has nothing behind it. Calls that run may end, but
    /// what they do not need comes back to nobody.
    pub fn lose(&mut self) {
        self.free = Usd::ZERO;
        self.unbacked = self.reserved;
    }
}
