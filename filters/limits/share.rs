//! Decides who gets how much of a budget of bytes, so that nobody's bodies stop everybody.

/// Which part of a budget bodies without an API key have together.
const OPEN_PART: usize = 8;
/// What they have of a small budget, up to its half.
const MIN_OPEN_BYTES: usize = 4 << 20;
/// The last part of a budget goes to organizations that hold little.
const LAST_PART: usize = 4;
/// Which part of a budget is little.
const LITTLE_PART: usize = 16;

/// How a budget is held when an owner asks for more of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Share {
    /// All bytes.
    pub total: usize,
    pub held: usize,
    /// How many the owner holds.
    pub own: usize,
    /// How many of these are of the body that grows.
    pub body: usize,
    /// Whether the owner is everybody without an API key.
    pub is_open: bool,
}

impl Share {
    /// Returns whether the owner gets so many more.
    pub fn admits(&self, more: usize) -> bool {
        let (held, own) = (
            self.held.saturating_add(more),
            self.own.saturating_add(more),
        );
        if held > self.total || self.is_open && own > self.open_bytes() {
            return false;
        }
        // A body beside which nothing is held may be as large as the budget, or it never could.
        let is_alone = self.held == self.body;
        is_alone || held <= self.total - self.total / LAST_PART || own <= self.total / LITTLE_PART
    }

    fn open_bytes(&self) -> usize {
        let least = MIN_OPEN_BYTES.min(self.total / 2);
        (self.total / OPEN_PART).max(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(held: usize, own: usize, is_open: bool) -> Share {
        Share {
            total: 64 << 20,
            held,
            own,
            body: 0,
            is_open,
        }
    }

    #[test]
    fn without_a_key_all_have_an_eighth_together() {
        assert!(share(0, 0, true).admits(8 << 20));
        assert!(!share(0, 0, true).admits((8 << 20) + 1));
        assert!(!share(8 << 20, 8 << 20, true).admits(1));
        let small = Share {
            total: 1 << 20,
            ..share(0, 0, true)
        };
        assert!(small.admits(512 << 10) && !small.admits((512 << 10) + 1));
    }

    #[test]
    fn one_organization_leaves_a_quarter_to_those_who_hold_little() {
        assert!(share(1, 1, false).admits((48 << 20) - 1));
        assert!(!share(1, 1, false).admits(48 << 20));
        let full = 48 << 20;
        assert!(!share(full, full, false).admits(1));
        assert!(share(full, 0, false).admits(4 << 20));
        assert!(!share(full, 1, false).admits(4 << 20));
        assert!(!share(64 << 20, 0, false).admits(1));
        assert!(!share(0, 0, false).admits(usize::MAX));
    }

    #[test]
    fn a_body_alone_may_be_as_large_as_the_budget() {
        let alone = |held: usize, is_open: bool| Share {
            body: 60 << 20,
            ..share(held, 60 << 20, is_open)
        };
        assert!(alone(60 << 20, false).admits(4 << 20));
        assert!(!alone(60 << 20, false).admits((4 << 20) + 1));
        assert!(!alone((60 << 20) + 1, false).admits(1 << 20));
        assert!(!alone(60 << 20, true).admits(1));
    }
}
