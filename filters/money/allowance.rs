//! Whether a key, its owner and its plan may spend more.
//! Source: docs/decisions.md 6, docs/facts/model-gateway.md 5.3, 5.4.
//!
//! A limit is reached when what was spent and what is reserved come up to it, so a limit of 0 is reached at once.
//! Credit is not asked here: a balance shared by many requests at a time is the ledger's.

use super::period::Period;
use super::tally::{PlanSpent, Spent};
use super::usd::Usd;
use crate::fault::{Fault, FaultKind};

/// The most that a key may spend; none: any amount.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct KeyLimits {
    /// Ever.
    pub lifetime: Option<Usd>,
    /// In an hour, a day, a week, a month.
    pub periods: [Option<Usd>; 4],
}

/// What a plan allows.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Allowance {
    /// In a cycle.
    pub cycle: Usd,
    /// On premium models, in seven days from the first such call.
    pub weekly_premium: Usd,
    /// In 24 hours from the first call.
    pub daily: Usd,
}

/// Everything that bounds the spending of one call.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct SpendingBounds {
    /// The key's.
    pub key: KeyLimits,
    /// The budget of the member who owns the key; none: no owner, or any amount.
    pub member: Option<Usd>,
    /// The plan that pays for the call; none: credit does, or the caller's own provider.
    pub plan: Option<Allowance>,
}

/// What was spent so far against each of the [`SpendingBounds`], open reservations included.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct SpentSoFar {
    /// By the key.
    pub key: Spent,
    /// By all keys of its owner, ever.
    pub member: Usd,
    /// Of the plan, by the whole organization.
    pub plan: PlanSpent,
}

/// Which bound was reached: the answer is a 402.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LimitReached {
    /// The key's lifetime limit.
    Key(Usd),
    /// The key's limit of a period.
    KeyPeriod(Period, Usd),
    /// The owner's budget.
    Member(Usd),
    /// The plan's credit of this cycle.
    Cycle(Usd),
    /// The plan's weekly share for premium models.
    Premium(Usd),
    /// The plan's daily share.
    Daily(Usd),
}

/// Whether one more call may be paid for.
///
/// `is_premium` says that the model is one ([`super::PriceSet::is_premium`]). Errors: the first bound that is
/// reached, the key's own first: who holds a key learns of its owner only what concerns him.
pub fn check(
    bounds: &SpendingBounds,
    spent: &SpentSoFar,
    is_premium: bool,
) -> Result<(), LimitReached> {
    key(&bounds.key, &spent.key)?;
    reached(bounds.member, spent.member, LimitReached::Member)?;
    let Some(plan) = &bounds.plan else {
        return Ok(());
    };
    reached(Some(plan.cycle), spent.plan.cycle, LimitReached::Cycle)?;
    if is_premium {
        let limit = Some(plan.weekly_premium);
        reached(limit, spent.plan.premium, LimitReached::Premium)?;
    }
    reached(Some(plan.daily), spent.plan.daily, LimitReached::Daily)
}

fn key(limits: &KeyLimits, spent: &Spent) -> Result<(), LimitReached> {
    reached(limits.lifetime, spent.total, LimitReached::Key)?;
    let pairs = limits.periods.into_iter().zip(spent.periods);
    for (period, (limit, spent)) in Period::ALL.into_iter().zip(pairs) {
        reached(limit, spent, |limit| LimitReached::KeyPeriod(period, limit))?;
    }
    Ok(())
}

fn reached(
    limit: Option<Usd>,
    spent: Usd,
    why: impl Fn(Usd) -> LimitReached,
) -> Result<(), LimitReached> {
    match limit {
        Some(limit) if spent >= limit => Err(why(limit)),
        _ => Ok(()),
    }
}

impl From<LimitReached> for Fault {
    fn from(reached: LimitReached) -> Self {
        let (code, message) = match reached {
            LimitReached::Key(usd) => (
                "key_limit_reached",
                format!("this API key has reached its limit of {usd} USD"),
            ),
            LimitReached::KeyPeriod(period, usd) => (
                "key_limit_reached",
                format!("this API key has reached its limit of {usd} USD per {period}"),
            ),
            LimitReached::Member(usd) => (
                "member_budget_reached",
                format!("the owner of this API key has reached the budget of {usd} USD"),
            ),
            LimitReached::Cycle(usd) => (
                "plan_credits_used",
                format!("the plan's {usd} USD of this cycle are used"),
            ),
            LimitReached::Premium(usd) => (
                "plan_premium_limit_reached",
                format!(
                    "the plan's {usd} USD a week for premium models are used; others still answer"
                ),
            ),
            LimitReached::Daily(usd) => (
                "plan_daily_limit_reached",
                format!("the plan's {usd} USD for 24 hours are used"),
            ),
        };
        Self::new(FaultKind::Payment, message).with_code(code)
    }
}
