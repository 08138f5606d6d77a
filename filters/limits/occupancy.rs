//! Decides who gets one of a fixed number of permits, so that one organization cannot starve the others.

/// The permits that are held when an organization asks for one more.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Occupancy {
    pub total: usize,
    pub taken: usize,
    /// The permits that this organization holds.
    pub own: usize,
    /// The number of organizations that hold at least one permit.
    pub active: usize,
    /// Whether another organization, with less than its share, was refused a moment ago.
    pub others_wait: bool,
}

impl Occupancy {
    /// Returns whether the organization gets a permit: one is free, and no waiting organization has a better claim to
    /// it.
    pub fn is_admitted(&self) -> bool {
        self.taken < self.total && (!self.others_wait || self.is_below_share())
    }

    /// Returns whether the organization has less than its equal share of the permits.
    pub fn is_below_share(&self) -> bool {
        // If others wait, at least one organization counts that may hold no permit yet. An organization without a
        // permit is below any share.
        let organizations = self.active + usize::from(self.others_wait);
        self.own < self.total.div_ceil(organizations.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn occupancy(taken: usize, own: usize, active: usize, others_wait: bool) -> Occupancy {
        Occupancy {
            total: 4,
            taken,
            own,
            active,
            others_wait,
        }
    }

    #[test]
    fn alone_an_organization_gets_every_permit() {
        for own in 0..4 {
            assert!(occupancy(own, own, usize::from(own > 0), false).is_admitted());
        }
        assert!(!occupancy(4, 4, 1, false).is_admitted());
    }

    #[test]
    fn while_others_wait_each_gets_its_share() {
        assert!(!occupancy(3, 3, 1, true).is_admitted());
        assert!(!occupancy(3, 2, 1, true).is_admitted());
        assert!(occupancy(3, 1, 1, true).is_admitted());
        assert!(occupancy(3, 0, 1, true).is_admitted());
        assert!(occupancy(3, 3, 1, false).is_admitted());
        assert!(
            occupancy(2, 0, 9, true).is_admitted(),
            "a share is never nothing"
        );
    }

    #[test]
    fn a_share_is_that_of_the_organizations_there_are() {
        assert!(occupancy(4, 1, 3, false).is_below_share());
        assert!(!occupancy(4, 1, 3, true).is_below_share());
        assert!(!occupancy(4, 2, 3, false).is_below_share());
        for others_wait in [false, true] {
            assert!(occupancy(4, 0, 9, others_wait).is_below_share());
        }
    }
}
