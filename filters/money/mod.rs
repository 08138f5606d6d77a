//! Exact money, as integers of 1e-18 USD and never floats, and the limits on spending.
//!
//! [`usd`] has amounts and prices, [`cost`](mod@cost) the formula, [`max_cost()`] the maximum cost of a call, [`tally`]
//! sums of spending, [`period`] the periods of limits, and [`allowance`] the 402 errors of keys, budgets and plans.

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

pub use cost::{BilledTokens, Cost, Details, LongContext, PriceSet, cost};
pub use max_cost::{CostInputs, TokenBounds, max_cost};
pub use period::Period;
pub use usd::{InvalidAmount, Price, Usd};
