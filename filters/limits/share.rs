//! Divides a budget of bytes for bodies, so that the bodies of one caller do not stop all others.

/// Callers without an API key share one part in this many of a budget.
const KEYLESS_DIVISOR: usize = 8;
/// The least that callers without an API key share, but never more than half of the budget.
const MIN_KEYLESS_BYTES: usize = 4 << 20;
/// One part in this many of a budget is reserved for organizations that hold little.
const RESERVE_DIVISOR: usize = 4;
/// An organization that holds at most one part in this many of a budget holds little.
const SMALL_HOLDER_DIVISOR: usize = 16;

/// The use of a budget when an owner asks for more of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Share {
    /// The size of the budget in bytes.
    pub total: usize,
    pub held: usize,
    /// The bytes that the owner holds.
    pub own: usize,
    /// The bytes that the growing body holds.
    pub body: usize,
    /// Whether the owner stands for all callers without an API key.
    pub is_keyless: bool,
}

impl Share {
    /// Returns whether the owner gets `more` bytes.
    pub fn is_admitted(&self, more: usize) -> bool {
        let (held, own) = (
            self.held.saturating_add(more),
            self.own.saturating_add(more),
        );
        if held > self.total || self.is_keyless && own > self.keyless_bytes() {
            return false;
        }
        // A body alone may fill the whole budget. Otherwise a body of that size would never be admitted.
        let is_alone = self.held == self.body;
        is_alone
            || held <= self.total - self.total / RESERVE_DIVISOR
            || own <= self.total / SMALL_HOLDER_DIVISOR
    }

    fn keyless_bytes(&self) -> usize {
        let least = MIN_KEYLESS_BYTES.min(self.total / 2);
        (self.total / KEYLESS_DIVISOR).max(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(held: usize, own: usize, is_keyless: bool) -> Share {
        Share {
            total: 64 << 20,
            held,
            own,
            body: 0,
            is_keyless,
        }
    }

    #[test]
    fn without_a_key_all_have_an_eighth_together() {
        assert!(share(0, 0, true).is_admitted(8 << 20));
        assert!(!share(0, 0, true).is_admitted((8 << 20) + 1));
        assert!(!share(8 << 20, 8 << 20, true).is_admitted(1));
        let small = Share {
            total: 1 << 20,
            ..share(0, 0, true)
        };
        assert!(small.is_admitted(512 << 10) && !small.is_admitted((512 << 10) + 1));
    }

    #[test]
    fn one_organization_leaves_a_quarter_to_those_who_hold_little() {
        assert!(share(1, 1, false).is_admitted((48 << 20) - 1));
        assert!(!share(1, 1, false).is_admitted(48 << 20));
        let full = 48 << 20;
        assert!(!share(full, full, false).is_admitted(1));
        assert!(share(full, 0, false).is_admitted(4 << 20));
        assert!(!share(full, 1, false).is_admitted(4 << 20));
        assert!(!share(64 << 20, 0, false).is_admitted(1));
        assert!(!share(0, 0, false).is_admitted(usize::MAX));
    }

    #[test]
    fn a_body_alone_may_be_as_large_as_the_budget() {
        let alone = |held: usize, is_keyless: bool| Share {
            body: 60 << 20,
            ..share(held, 60 << 20, is_keyless)
        };
        assert!(alone(60 << 20, false).is_admitted(4 << 20));
        assert!(!alone(60 << 20, false).is_admitted((4 << 20) + 1));
        assert!(!alone((60 << 20) + 1, false).is_admitted(1 << 20));
        assert!(!alone(60 << 20, true).is_admitted(1));
    }
}
