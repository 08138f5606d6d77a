//! What an answer costs, exactly: integers of 1e-18 USD, never a float.
//!
//! [`usd`] holds amounts and prices, [`cost`] the formula. Credits, plans and limits are not here yet.

mod cost;
mod usd;

#[cfg(test)]
mod tests;

pub use cost::{Cost, Details, PriceSet, Tokens, cost};
pub use usd::{BadAmount, Price, Usd};
