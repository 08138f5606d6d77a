//! How much of each limit is used, for people who look at many of them.
//!
//! [`super::allowance`] decides about calls; nothing here does.

use std::cmp::Ordering;
use std::fmt;

use super::allowance::{Allowance, KeyLimits};
use super::budgets::BudgetKind;
use super::period::{Period, cycle};
use super::tally::{PlanSpent, Spent};
use super::usd::Usd;

/// What an amount is a limit of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LimitName {
    /// All that a key may ever spend.
    Lifetime,
    /// What a key may spend in a period of the calendar.
    Per(Period),
    /// All that the keys of a member may ever spend.
    Budget,
    /// The plan's credit of this cycle.
    Cycle,
    /// The plan's share for premium models, in seven days.
    Premium,
    /// The plan's share for 24 hours.
    Daily,
    /// The credit of an organization.
    Credit,
    /// The budget of a session, an agent or a tag.
    Of(BudgetKind),
}

/// A limit, and how much of it is used.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LimitUse {
    pub name: LimitName,
    pub limit: Usd,
    pub used: Usd,
    /// When it begins anew, in unix milliseconds; `None`: never, or its window is not open.
    pub resets_ms: Option<i64>,
}

impl fmt::Display for LimitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lifetime => f.write_str("limit"),
            Self::Per(period) => write!(f, "limit per {period}"),
            Self::Budget => f.write_str("budget"),
            Self::Cycle => f.write_str("plan's cycle"),
            Self::Premium => f.write_str("plan's week for premium models"),
            Self::Daily => f.write_str("plan's 24 hours"),
            Self::Credit => f.write_str("credit"),
            Self::Of(kind) => write!(f, "budget of the {kind}"),
        }
    }
}

impl LimitUse {
    /// Returns a limit that never begins anew.
    pub fn lasting(name: LimitName, limit: Usd, used: Usd) -> Self {
        Self {
            name,
            limit,
            used,
            resets_ms: None,
        }
    }

    /// Returns the limits of a key at `now_ms`: that of its lifetime, then those of periods, the shortest first.
    pub fn of_key(limits: &KeyLimits, spent: &Spent, now_ms: i64) -> Vec<Self> {
        let lifetime = limits.lifetime;
        let lifetime = lifetime.map(|limit| Self::lasting(LimitName::Lifetime, limit, spent.total));
        let periods = Period::ALL.into_iter().zip(limits.periods);
        let periods = periods
            .zip(spent.periods)
            .filter_map(|((period, limit), used)| {
                Some(Self {
                    name: LimitName::Per(period),
                    limit: limit?,
                    used,
                    resets_ms: Some(period.end_ms(now_ms)),
                })
            });
        lifetime.into_iter().chain(periods).collect()
    }

    /// Returns the limits of a plan that began at `since_ms`.
    pub fn of_plan(plan: &Allowance, spent: &PlanSpent, since_ms: i64, now_ms: i64) -> [Self; 3] {
        let of = |name, limit, used, resets_ms| Self {
            name,
            limit,
            used,
            resets_ms,
        };
        let cycle_ends_ms = Some(cycle(since_ms, now_ms).1);
        let premium_ends_ms = spent.premium_resets_ms;
        [
            of(LimitName::Cycle, plan.cycle, spent.cycle, cycle_ends_ms),
            of(
                LimitName::Premium,
                plan.weekly_premium,
                spent.premium,
                premium_ends_ms,
            ),
            of(
                LimitName::Daily,
                plan.daily,
                spent.daily,
                spent.daily_resets_ms,
            ),
        ]
    }

    /// Returns what is left, at least zero.
    pub fn left(&self) -> Usd {
        self.limit.minus(self.used).max(Usd::ZERO)
    }

    /// Returns the used share of the limit: 1 is all. Nothing is left of a limit of zero.
    pub fn share(&self) -> f64 {
        match self.limit > Usd::ZERO {
            true => self.used.to_f64_for_metrics() / self.limit.to_f64_for_metrics(),
            false => 1.0,
        }
    }

    /// Compares how near limits are to their end: the nearest is the greatest.
    pub fn cmp_nearness(&self, other: &Self) -> Ordering {
        self.share().total_cmp(&other.share())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use super::*;

    /// 2027-01-15T08:00:00Z.
    const NOW_MS: i64 = 1_800_000_000_000;

    fn usd(text: &str) -> Usd {
        Usd::parse(text).unwrap()
    }

    #[test]
    fn a_key_shows_each_limit_that_it_has_with_what_is_left() {
        let limits = KeyLimits {
            lifetime: Some(usd("10")),
            periods: [None, Some(usd("4")), None, Some(usd("2"))],
        };
        let spent = Spent {
            total: usd("7.5"),
            periods: [usd("1"), usd("1"), usd("2"), usd("3")],
        };
        let uses = LimitUse::of_key(&limits, &spent, NOW_MS);
        let shown: Vec<_> = uses
            .iter()
            .map(|of| (of.name.to_string(), of.left(), of.share()))
            .collect();
        assert_eq!(
            shown,
            [
                ("limit".to_owned(), usd("2.5"), 0.75),
                ("limit per day".to_owned(), usd("3"), 0.25),
                ("limit per month".to_owned(), Usd::ZERO, 1.5),
            ]
        );
        assert_eq!(uses[0].resets_ms, None);
        assert_eq!(uses[1].resets_ms, Some(NOW_MS + 16 * 3_600_000));
        assert_eq!(LimitUse::of_key(&KeyLimits::default(), &spent, NOW_MS), []);
    }

    #[test]
    fn a_plan_shows_its_three_shares_and_when_they_begin_anew() {
        let plan = Allowance {
            cycle: usd("87"),
            weekly_premium: usd("8.7"),
            daily: usd("6.96"),
        };
        let spent = PlanSpent {
            cycle: usd("87"),
            premium: usd("1"),
            premium_resets_ms: Some(NOW_MS + 5),
            daily: Usd::ZERO,
            daily_resets_ms: None,
        };
        let [of_cycle, premium, daily] = LimitUse::of_plan(&plan, &spent, NOW_MS, NOW_MS);
        assert_eq!((of_cycle.share(), of_cycle.left()), (1.0, Usd::ZERO));
        assert!(of_cycle.resets_ms.unwrap() > NOW_MS);
        assert_eq!(
            (premium.left(), premium.resets_ms),
            (usd("7.7"), Some(NOW_MS + 5))
        );
        assert_eq!((daily.left(), daily.resets_ms), (usd("6.96"), None));
    }

    #[test]
    fn a_limit_of_zero_is_used_up_and_sorts_before_one_that_is_not() {
        let none = LimitUse::lasting(LimitName::Budget, Usd::ZERO, Usd::ZERO);
        let half = LimitUse::lasting(LimitName::Credit, usd("2"), usd("1"));
        let beyond = LimitUse::lasting(LimitName::Lifetime, usd("1"), usd("3"));
        let mut all = [half, beyond, none];
        all.sort_by(|a, b| b.cmp_nearness(a));
        assert_eq!(all, [beyond, none, half]);
    }
}
