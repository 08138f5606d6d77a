//! Decides who gets one of a fixed number of permits, so that one organization cannot starve the others.

/// How the permits are held when an organization asks for one more.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Occupancy {
    pub total: usize,
    pub taken: usize,
    /// How many the organization has.
    pub own: usize,
    /// How many organizations have at least one.
    pub active: usize,
    /// Whether another organization was refused a moment ago although it had less than its share.
    pub others_wait: bool,
}

impl Occupancy {
    /// Returns whether the organization gets a permit: there is one, and it does not take it from one that waits.
    pub fn admits(&self) -> bool {
        self.taken < self.total && (!self.others_wait || self.is_below_share())
    }

    /// Returns whether the organization has less than its equal share of the permits.
    pub fn is_below_share(&self) -> bool {
        // While others wait, at least one of them counts, which may have no permit yet. Who has none is below any share.
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
            assert!(occupancy(own, own, usize::from(own > 0), false).admits());
        }
        assert!(!occupancy(4, 4, 1, false).admits());
    }

    #[test]
    fn while_others_wait_each_gets_its_share() {
        assert!(!occupancy(3, 3, 1, true).admits());
        assert!(!occupancy(3, 2, 1, true).admits());
        assert!(occupancy(3, 1, 1, true).admits());
        assert!(occupancy(3, 0, 1, true).admits());
        assert!(occupancy(3, 3, 1, false).admits());
        assert!(
            occupancy(2, 0, 9, true).admits(),
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
