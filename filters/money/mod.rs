//! What a call costs, exactly: integers of 1e-18 USD, never a float; and whether it may be paid for.
//!
//! [`usd`] holds amounts and prices, [`cost`](mod@cost) the formula, [`max_cost()`] the most that a call may cost,
//! [`tally`] what was spent, [`period`] when a limit resets, [`allowance`] the 402s of keys, budgets and plans.

pub mod allowance;
mod cost;
mod max_cost;
pub mod period;
pub mod tally;
mod usd;

#[cfg(test)]
mod allowance_tests;
#[cfg(test)]
mod tests;

pub use cost::{BilledTokens, Cost, Details, PriceSet, cost};
pub use max_cost::{CostInputs, TokenBounds, max_cost};
pub use period::Period;
pub use usd::{InvalidAmount, Price, Usd};
