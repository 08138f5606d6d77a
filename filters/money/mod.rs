//! What an answer costs, exactly: integers of 1e-18 USD, never a float; and whether it may be paid for.
//!
//! [`usd`] holds amounts and prices, [`cost`](mod@cost) the formula, [`tally`] what was spent, [`period`] when a limit begins anew,
//! [`allowance`] the 402s of keys, budgets and plans. [`worst`](mod@worst) is the most that a call may cost, [`balance`] the credit
//! that many requests share, [`entry`] a call in the ledger, [`journal`] its bytes.

pub mod allowance;
mod balance;
mod cost;
mod entry;
pub mod journal;
pub mod period;
pub mod tally;
mod usd;
mod worst;

#[cfg(test)]
mod allowance_tests;
#[cfg(test)]
mod tests;

pub use balance::{Balance, Charge};
pub use cost::{Cost, Details, PriceSet, Tokens, cost};
pub use entry::{Entry, EntryId, Funding, Outcome, Parts, Taken, Who};
pub use period::Period;
pub use usd::{BadAmount, Price, Usd};
pub use worst::{Asked, TokenBounds, worst};
