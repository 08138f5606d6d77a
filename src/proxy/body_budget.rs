//! The budget of `limits.buffered_bytes`: the bytes of all request bodies in memory, and their owners.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use filters::fault::{Fault, FaultKind};
use filters::limits::Share;

/// The owner of a body: an organization, or `None` for all callers without an API key together.
pub type BodyOwner = Option<Arc<str>>;

/// The maximum bytes of all bodies together.
pub struct BodyBudget {
    max_bytes: AtomicUsize,
    held: Mutex<HeldBytes>,
}

/// The bytes that are reserved.
#[derive(Default)]
struct HeldBytes {
    all: usize,
    /// The bytes of each owner that has any.
    by_owner: HashMap<BodyOwner, usize>,
}

impl BodyBudget {
    /// Creates a budget without reservations.
    pub fn new(max_bytes: usize) -> Self {
        Self {
            max_bytes: AtomicUsize::new(max_bytes),
            held: Mutex::default(),
        }
    }

    /// Sets the maximum. Reservations stay; while they are more than the maximum, none grows.
    pub fn set_max_bytes(&self, max_bytes: usize) {
        self.max_bytes.store(max_bytes, Ordering::Relaxed);
    }

    /// Returns how many bytes are reserved.
    pub fn reserved_bytes(&self) -> usize {
        self.held().all
    }

    /// Returns an empty reservation.
    pub fn reservation(self: &Arc<Self>, owner: BodyOwner) -> BodyReservation {
        BodyReservation {
            budget: Arc::clone(self),
            owner,
            bytes: 0,
        }
    }

    fn held(&self) -> MutexGuard<'_, HeldBytes> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The reserved bytes of one request. Dropping the value frees them.
pub struct BodyReservation {
    budget: Arc<BodyBudget>,
    owner: BodyOwner,
    bytes: usize,
}

impl BodyReservation {
    /// Returns an empty reservation of the same owner.
    pub fn beside(&self) -> Self {
        self.budget.reservation(self.owner.clone())
    }

    /// Reserves up to `bytes` in total. A smaller number than before changes nothing.
    ///
    /// Errors: 529 if the budget has no room for the owner. The reservation stays as it was.
    pub fn grow_to(&mut self, bytes: usize) -> Result<(), Fault> {
        let more = bytes.saturating_sub(self.bytes);
        if more == 0 {
            return Ok(());
        }
        let mut held = self.budget.held();
        let share = Share {
            total: self.budget.max_bytes.load(Ordering::Relaxed),
            held: held.all,
            own: held.by_owner.get(&self.owner).copied().unwrap_or_default(),
            body: self.bytes,
            is_keyless: self.owner.is_none(),
        };
        if !share.is_admitted(more) {
            let message =
                "the bodies of other requests take all memory for them: try again in a second";
            return Err(Fault::new(FaultKind::Overloaded, message).with_retry_after_s(1));
        }
        held.all += more;
        *held.by_owner.entry(self.owner.clone()).or_default() += more;
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for BodyReservation {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        let mut held = self.budget.held();
        held.all -= self.bytes;
        if let Some(own) = held.by_owner.get_mut(&self.owner) {
            *own -= self.bytes;
            if *own == 0 {
                held.by_owner.remove(&self.owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn what_is_reserved_is_given_back() {
        let budget = Arc::new(BodyBudget::new(1600));
        let of = |owner: &str| budget.reservation(Some(owner.into()));
        let (mut first, mut second) = (of("a"), of("b"));
        first.grow_to(800).unwrap();
        first.grow_to(1200).unwrap();
        first.grow_to(2).unwrap();
        second.grow_to(1).unwrap();
        assert_eq!(first.grow_to(1201).unwrap_err().status(), 529);
        assert_eq!(second.grow_to(101).unwrap_err().status(), 529);
        second.grow_to(100).unwrap();
        drop(first);
        second.grow_to(1600).unwrap();
        drop(second);
        assert_eq!(budget.reserved_bytes(), 0);
        assert!(budget.held().by_owner.is_empty());
    }

    #[test]
    fn a_smaller_maximum_keeps_what_is_reserved_and_admits_no_more() {
        let budget = Arc::new(BodyBudget::new(1600));
        let of = |owner: &str| budget.reservation(Some(owner.into()));
        let (mut first, mut second) = (of("a"), of("b"));
        first.grow_to(800).unwrap();
        budget.set_max_bytes(400);
        assert_eq!(first.grow_to(801).unwrap_err().status(), 529);
        assert_eq!(second.grow_to(1).unwrap_err().status(), 529);
        assert_eq!(budget.reserved_bytes(), 800);
        drop(first);
        second.grow_to(100).unwrap();
        budget.set_max_bytes(3200);
        second.grow_to(1600).unwrap();
    }

    #[test]
    fn bodies_without_a_key_leave_room_for_those_with_one() {
        let budget = Arc::new(BodyBudget::new(1600));
        let mut open: Vec<_> = (0..100).map(|_| budget.reservation(None)).collect();
        let taken = open.iter_mut().filter_map(|it| it.grow_to(100).ok());
        assert_eq!(taken.count(), 8);
        budget.reservation(Some("a".into())).grow_to(400).unwrap();
    }
}
