//! Exact money, as integers of 1e-18 USD and never floats, and the limits on spending.
//!
//! [`usd`] has amounts and prices, [`prices`] the prices of one call, and [`unit`](mod@unit) the units that are
//! billed beside tokens. [`price_list`] has all prices of a mapping, by [`tier`] and hours ([`schedule`]). [`cost`]
//! is the formula, [`max_cost`] the maximum cost of a call, [`tally`] sums of spending, [`period`] the periods of
//! limits, [`allowance`] the 402 errors of keys, members and plans, [`budgets`] what sessions, agents and tags may spend, and
//! [`limit_use`] what is left of limits.

pub mod allowance;
pub mod budgets;
mod cost;
pub mod limit_use;
mod max_cost;
pub mod period;
mod price_list;
mod prices;
mod schedule;
pub mod tally;
mod tier;
mod unit;
mod usd;

#[cfg(test)]
mod allowance_tests;
#[cfg(test)]
mod price_list_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod unit_tests;

pub use cost::{BilledTokens, Cost, Details};
pub use max_cost::{CostInputs, TokenBounds, UNBOUNDED_OUTPUT_TOKENS, UNKNOWN_OUTPUT_TOKENS};
pub use period::Period;
pub use price_list::{PriceChange, PriceList, PriceListParts, PricePoint, Rates};
pub use prices::{PriceSet, TOKEN_PRICE_KEYS, TokenPrices, Unscalable};
pub use schedule::{HoursWindow, Schedule};
pub use tier::ServiceTier;
pub use unit::{PerUnit, Unit, UnitCounts, UnitPrices};
pub use usd::{Factor, InvalidAmount, Price, Usd};
