//! Tiers: the steps that an allocation rounds up to, and the limit they give an operation.

/// The limits of the operations of one category, in requests per window.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Category {
    /// The limit without an allocation.
    pub default: u64,
    /// The highest limit that an allocation can reach.
    pub maximum: u64,
}

/// The tiers that limits can have, in requests per window, ascending. Source: docs/decisions.md 25.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Tiers(Box<[u64]>);

/// Why tiers are invalid.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum InvalidTiers {
    Empty,
    /// A tier is 0, or not above the one before it.
    NotAscending,
}

impl Tiers {
    /// Checks the tiers. Errors: [`InvalidTiers`].
    pub fn parse(levels: &[u64]) -> Result<Self, InvalidTiers> {
        if levels.is_empty() {
            return Err(InvalidTiers::Empty);
        }
        let mut below = 0;
        for &level in levels {
            if level <= below {
                return Err(InvalidTiers::NotAscending);
            }
            below = level;
        }
        Ok(Self(levels.into()))
    }

    /// Returns the lowest tier of at least `wanted` requests, or the highest tier.
    fn round_up(&self, wanted: u64) -> u64 {
        let above = self.0.iter().find(|level| **level >= wanted);
        above.or(self.0.last()).copied().unwrap_or(wanted)
    }
}

/// The tiers of the service. Source: docs/graph-limits.md 8.2.
impl Default for Tiers {
    fn default() -> Self {
        Self(Box::new([10, 50, 500, 1_000, 1_500, 3_000]))
    }
}

/// A tenant's allocation in requests per window, fractions rounded up.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Allocation(u64);

/// The allocation is 0, negative or not a finite number.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct InvalidAllocation;

impl Allocation {
    /// Converts an allocation in requests per second to one per window of `window_s`.
    ///
    /// The product is computed from the decimal digits of the number: 1.1 per second over ten seconds is 11. In
    /// floating point it would be slightly more, which would round up to the next tier. Errors: [`InvalidAllocation`].
    pub fn parse(per_second: f64, window_s: u64) -> Result<Self, InvalidAllocation> {
        if !per_second.is_finite() || per_second <= 0.0 {
            return Err(InvalidAllocation);
        }
        // `Display` prints the shortest decimal that parses to the same float, never with an exponent.
        let text = per_second.to_string();
        let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
        let whole: u64 = whole.parse().unwrap_or(u64::MAX);
        let fraction = scale_decimals(fraction, window_s);
        Ok(Self(
            whole.saturating_mul(window_s).saturating_add(fraction),
        ))
    }
}

/// Multiplies decimals of a request by the window and rounds up: a long multiplication from the last digit on.
fn scale_decimals(decimals: &str, window_s: u64) -> u64 {
    let mut carry = 0;
    let mut is_exact = true;
    for digit in decimals.bytes().rev().map(|digit| u64::from(digit - b'0')) {
        let product = digit.saturating_mul(window_s).saturating_add(carry);
        is_exact &= product % 10 == 0;
        carry = product / 10;
    }
    carry + u64::from(!is_exact)
}

/// Returns the limit of an operation of this category, in requests per window.
///
/// An allocation rounds up to a tier, and never raises a limit above the category's maximum. Source:
/// docs/graph-limits.md 8.3.1 to 8.3.3; docs/decisions.md 25.
pub fn compute_limit(category: Category, allocation: Option<Allocation>, tiers: &Tiers) -> u64 {
    match allocation {
        None => category.default,
        Some(Allocation(wanted)) => tiers.round_up(wanted).min(category.maximum),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use proptest::prelude::*;

    use super::super::table::CATEGORIES;
    use super::*;

    fn category(name: &str) -> Category {
        CATEGORIES
            .iter()
            .find(|(known, _)| *known == name)
            .unwrap()
            .1
    }

    /// The limits of queries, indexing, management, configuration and account for an allocation.
    fn limits(per_second: Option<f64>) -> [u64; 5] {
        let allocation = per_second.map(|rate| Allocation::parse(rate, 10).unwrap());
        [
            "query",
            "indexing",
            "management",
            "configuration",
            "account",
        ]
        .map(|name| compute_limit(category(name), allocation, &Tiers::default()))
    }

    /// Contract: graph-limits 8.3 1
    #[test]
    fn without_an_allocation_the_defaults_hold() {
        assert_eq!(limits(None), [1_500, 500, 1_000, 10, 50]);
    }

    /// Contract: graph-limits 8.3 2
    #[test]
    fn an_allocation_of_150_is_capped_at_50_where_50_is_the_maximum() {
        assert_eq!(limits(Some(150.0)), [1_500, 500, 1_000, 10, 50]);
    }

    /// Contract: graph-limits 8.3 3
    #[test]
    fn an_allocation_of_200_rounds_up_to_300_on_queries() {
        assert_eq!(limits(Some(200.0)), [3_000, 500, 1_000, 10, 50]);
    }

    /// Contract: graph-limits 8.2 GraphQL queries and content reads with an elevated allocation
    #[test]
    fn an_allocation_of_300_is_300() {
        assert_eq!(limits(Some(300.0)), [3_000, 500, 1_000, 10, 50]);
    }

    #[test]
    fn an_allocation_above_all_levels_is_the_highest() {
        assert_eq!(limits(Some(301.0)), [3_000, 500, 1_000, 10, 50]);
        assert_eq!(limits(Some(1_000.0)), [3_000, 500, 1_000, 10, 50]);
        assert_eq!(limits(Some(1e300)), [3_000, 500, 1_000, 10, 50]);
    }

    #[test]
    fn an_allocation_just_above_a_level_rounds_up() {
        assert_eq!(limits(Some(151.0)), [3_000, 500, 1_000, 10, 50]);
        assert_eq!(limits(Some(150.1)), [3_000, 500, 1_000, 10, 50]);
        assert_eq!(limits(Some(150.000_000_1))[0], 3_000);
    }

    /// Contract: graph-limits 8.3 2
    #[test]
    fn an_allocation_lowers_what_is_above_it() {
        assert_eq!(limits(Some(100.0)), [1_000, 500, 1_000, 10, 50]);
        assert_eq!(limits(Some(51.0)), [1_000, 500, 1_000, 10, 50]);
        assert_eq!(limits(Some(50.0)), [500, 500, 500, 10, 50]);
        assert_eq!(limits(Some(20.0)), [500, 500, 500, 10, 50]);
        assert_eq!(limits(Some(1.0)), [10, 10, 10, 10, 10]);
    }

    #[test]
    fn an_allocation_that_is_not_above_zero_is_refused() {
        for rate in [0.0, -0.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(
                Allocation::parse(rate, 10),
                Err(InvalidAllocation),
                "{rate}"
            );
        }
    }

    #[test]
    fn an_allocation_is_multiplied_in_decimals() {
        for (rate, window_s, wanted) in [
            (1.1, 10, 11),
            (0.1, 10, 1),
            (0.29, 100, 29),
            (150.1, 10, 1_501),
            (150.11, 10, 1_502),
            (1e-300, 10, 1),
            (2.5, 60, 150),
            (1.0, 86_400, 86_400),
        ] {
            assert_eq!(
                Allocation::parse(rate, window_s),
                Ok(Allocation(wanted)),
                "{rate}"
            );
        }
    }

    #[test]
    fn levels_must_ascend_from_above_zero() {
        assert_eq!(Tiers::parse(&[]), Err(InvalidTiers::Empty));
        for levels in [&[0, 1][..], &[2, 2], &[2, 1]] {
            assert_eq!(Tiers::parse(levels), Err(InvalidTiers::NotAscending));
        }
    }

    proptest! {
        #[test]
        fn no_allocation_raises_a_limit_above_its_maximum(rate in 0.001..2_000.0_f64) {
            let allocation = Some(Allocation::parse(rate, 10).unwrap());
            for (_, category) in CATEGORIES {
                prop_assert!(compute_limit(*category, allocation, &Tiers::default()) <= category.maximum);
            }
        }

        #[test]
        fn a_limit_is_a_level_or_the_maximum(rate in 0.001..2_000.0_f64, maximum in 1..4_000_u64) {
            let category = Category { default: maximum, maximum };
            let limit = compute_limit(category, Allocation::parse(rate, 10).ok(), &Tiers::default());
            prop_assert!(limit == maximum || Tiers::default().0.contains(&limit));
        }

        #[test]
        fn more_allocation_is_never_less_limit(low in 0.001..400.0_f64, more in 0.0..400.0_f64) {
            let category = category("query");
            let limit_at = |rate| compute_limit(category, Allocation::parse(rate, 10).ok(), &Tiers::default());
            prop_assert!(limit_at(low) <= limit_at(low + more));
        }

        #[test]
        fn an_allocation_of_a_level_is_that_level(index in 0..6_usize) {
            let level = Tiers::default().0[index];
            let category = Category { default: 1, maximum: u64::MAX };
            let allocation = Allocation::parse(level as f64 / 10.0, 10).unwrap();
            prop_assert_eq!(compute_limit(category, Some(allocation), &Tiers::default()), level);
        }
    }
}
