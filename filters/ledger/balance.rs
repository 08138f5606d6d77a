//! The amount that one process may spend for an organization: reserve, settle, release.
//!
//! A process spends from a lease: a part of the organization's balance that the store granted it. Each amount is in
//! exactly one place: free, reserved for a running call, or settled and on its way to the store. No amount is ever
//! negative.

use crate::money::Usd;

/// The lease of one process, split into free and reserved amounts.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Balance {
    free: Usd,
    reserved: Usd,
    /// The part of `reserved` that a revoked lease no longer covers.
    unbacked: Usd,
    /// The sum settled since the process started, for metrics and tests only.
    settled: Usd,
}

/// How a reservation was settled.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Charge {
    /// The amount taken from the balance.
    pub charged: Usd,
    /// The part of the cost that the balance did not cover.
    pub shortfall: Usd,
}

impl Balance {
    /// Returns the amount that is not reserved.
    pub fn free(&self) -> Usd {
        self.free
    }

    /// Returns the amount reserved for running calls.
    pub fn reserved(&self) -> Usd {
        self.reserved
    }

    /// Returns the sum charged for calls since the process started.
    pub fn settled(&self) -> Usd {
        self.settled
    }

    /// Adds an amount that the store granted.
    pub fn add(&mut self, amount: Usd) {
        self.free = self.free.plus(amount.max(Usd::ZERO));
    }

    /// Takes out and returns the free amount, so that the process can return it to the store.
    pub fn take_free(&mut self) -> Usd {
        std::mem::take(&mut self.free)
    }

    /// Reserves an amount for a call. Returns whether the free amount covers it.
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

    /// Ends a reservation and charges the cost. An unused part becomes free again. A missing part is taken from the
    /// free amount, and the rest is a shortfall.
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

    /// Ends the reservation of a call that costs nothing.
    pub fn release(&mut self, reserved: Usd) {
        let reserved = reserved.max(Usd::ZERO).min(self.reserved);
        self.reserved = self.reserved.minus(reserved);
        let lost = reserved.min(self.unbacked);
        self.unbacked = self.unbacked.minus(lost);
        self.free = self.free.plus(reserved.minus(lost));
    }

    /// Ends a reservation whose amount the store now holds in another place.
    pub fn hand_over(&mut self, reserved: Usd) {
        let reserved = reserved.max(Usd::ZERO).min(self.reserved);
        self.reserved = self.reserved.minus(reserved);
        self.unbacked = self.unbacked.minus(reserved.min(self.unbacked));
    }

    /// Revokes the lease: the free amount becomes zero and nothing covers the reserved amount any more. Running calls
    /// may end, but their unused amounts do not become free.
    pub fn revoke_lease(&mut self) {
        self.free = Usd::ZERO;
        self.unbacked = self.reserved;
    }
}
