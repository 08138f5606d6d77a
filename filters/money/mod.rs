//! What an answer costs, exactly: integers of 1e-18 USD, never a float; and whether it may be paid for.
//!
//! [`usd`] holds amounts and prices, [`cost`](mod@cost) the formula, [`tally`] what was spent, [`period`] when a limit begins anew,
//! [`allowance`] the 402s of keys, budgets and plans. Balances of credit, which many requests share, are the ledger's.

pub mod allowance;
mod cost;
pub mod period;
pub mod tally;
mod usd;

#[cfg(test)]
mod allowance_tests;
#[cfg(test)]
mod tests;

pub use cost::{Cost, Details, PriceSet, Tokens, cost};
pub use period::Period;
pub use usd::{BadAmount, Price, Usd};
