//! The limits of a key, its owner and its plan, and the spending against them. Source: docs/decisions.md 6,
//! docs/facts/model-gateway.md 5.3, 5.4.
//!
//! A limit is reached when spending plus open reservations equal it, so a limit of 0 is reached at once. The
//! remainders of limits are leased like credit: see `crate::ledger`.

use super::budgets::BudgetReached;
use super::period::Period;
use super::tally::{PlanSpent, Spent};
use super::usd::Usd;
use crate::fault::{Fault, FaultKind};
use crate::fault_code::FaultCode;

/// The limits of a key; `None` means no limit.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct KeyLimits {
    /// In total.
    pub lifetime: Option<Usd>,
    /// In an hour, a day, a week and a month.
    pub periods: [Option<Usd>; 4],
}

/// The allowance of a plan.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Allowance {
    pub cycle: Usd,
    /// On premium models, in seven days from the first such call.
    pub weekly_premium: Usd,
    /// In 24 hours from the first call.
    pub daily: Usd,
}

/// All limits on the spending of one call.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct SpendingBounds {
    pub key: KeyLimits,
    /// The budget of the member who owns the key, or `None` without an owner or a budget.
    pub member: Option<Usd>,
    /// The plan that pays for the call, or `None` if the credit or the caller's provider account pays.
    pub plan: Option<Allowance>,
}

/// The spending against each of the [`SpendingBounds`], including open reservations.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct SpentSoFar {
    pub key: Spent,
    /// By all keys of its owner, in total.
    pub member: Usd,
    pub plan: PlanSpent,
}

/// The limit that was reached. The response is a 402.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LimitReached {
    /// The key's lifetime limit.
    Key(Usd),
    KeyPeriod(Period, Usd),
    Member(Usd),
    /// The plan's credit of this cycle.
    Cycle(Usd),
    /// The plan's weekly share for premium models.
    Premium(Usd),
    /// The plan's daily share.
    Daily(Usd),
    /// What a session, an agent or a tag may spend.
    Budget(BudgetReached),
}

impl From<LimitReached> for Fault {
    fn from(reached: LimitReached) -> Self {
        let (code, message) = match reached {
            LimitReached::Key(usd) => (
                FaultCode::KeyLimitReached,
                format!("this API key has reached its limit of {usd} USD"),
            ),
            LimitReached::KeyPeriod(period, usd) => (
                FaultCode::KeyLimitReached,
                format!("this API key has reached its limit of {usd} USD per {period}"),
            ),
            LimitReached::Member(usd) => (
                FaultCode::MemberBudgetReached,
                format!("the owner of this API key has reached the budget of {usd} USD"),
            ),
            LimitReached::Cycle(usd) => (
                FaultCode::PlanCreditsUsed,
                format!("the plan's {usd} USD of this cycle are used"),
            ),
            LimitReached::Premium(usd) => (
                FaultCode::PlanPremiumLimitReached,
                format!(
                    "the plan's {usd} USD a week for premium models are used; others still answer"
                ),
            ),
            LimitReached::Daily(usd) => (
                FaultCode::PlanDailyLimitReached,
                format!("the plan's {usd} USD for 24 hours are used"),
            ),
            LimitReached::Budget(reached) => (FaultCode::BudgetReached, reached.to_string()),
        };
        Self::new(FaultKind::Payment, message).with_code(code)
    }
}
