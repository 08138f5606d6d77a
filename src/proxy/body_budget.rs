//! The budget of `limits.buffered_bytes`: the bytes of all request bodies that are in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use filters::fault::{Fault, FaultKind};

/// The bytes that all bodies may take together.
pub struct BodyBudget {
    max_bytes: usize,
    reserved_bytes: AtomicUsize,
}

impl BodyBudget {
    /// Creates a budget of which nothing is reserved.
    pub fn new(max_bytes: usize) -> Self {
        Self {
            max_bytes,
            reserved_bytes: AtomicUsize::new(0),
        }
    }

    /// Returns how many bytes are reserved.
    pub fn reserved_bytes(&self) -> usize {
        self.reserved_bytes.load(Ordering::Relaxed)
    }

    /// Returns a reservation of no bytes yet.
    pub fn reservation(self: &Arc<Self>) -> BodyReservation {
        BodyReservation {
            budget: Arc::clone(self),
            bytes: 0,
        }
    }
}

/// The bytes of one request, until it is dropped.
pub struct BodyReservation {
    budget: Arc<BodyBudget>,
    bytes: usize,
}

impl BodyReservation {
    /// Reserves up to `bytes` in all; less than before changes nothing.
    ///
    /// Errors: 529 if the budget has no room; the reservation stays as it was.
    pub fn grow_to(&mut self, bytes: usize) -> Result<(), Fault> {
        let more = bytes.saturating_sub(self.bytes);
        if more == 0 {
            return Ok(());
        }
        let budget = &self.budget;
        let before = budget.reserved_bytes.fetch_add(more, Ordering::Relaxed);
        if before.saturating_add(more) > budget.max_bytes {
            budget.reserved_bytes.fetch_sub(more, Ordering::Relaxed);
            let message =
                "the bodies of other requests take all memory for them: try again in a second";
            return Err(Fault::new(FaultKind::Overloaded, message).with_retry_after_s(1));
        }
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for BodyReservation {
    fn drop(&mut self) {
        if self.bytes > 0 {
            let reserved = &self.budget.reserved_bytes;
            reserved.fetch_sub(self.bytes, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn what_is_reserved_is_given_back() {
        let budget = Arc::new(BodyBudget::new(10));
        let (mut first, mut second) = (budget.reservation(), budget.reservation());
        first.grow_to(4).unwrap();
        first.grow_to(6).unwrap();
        first.grow_to(2).unwrap();
        assert_eq!(second.grow_to(5).unwrap_err().status(), 529);
        second.grow_to(4).unwrap();
        drop(first);
        second.grow_to(10).unwrap();
        drop(second);
        assert_eq!(budget.reserved_bytes(), 0);
    }
}
