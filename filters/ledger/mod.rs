//! The ledger's values: one entry per call, the balance that concurrent calls share, and the bytes of the journal.
//!
//! Prices and limits are in `money`; files and the store are in the crate `weirgate`.

mod balance;
mod entry;
pub mod journal;
pub mod packed;

#[cfg(test)]
mod balance_tests;

pub use balance::{Balance, Charge};
pub use entry::{CallOutcome, CallOwner, CostParts, EntryId, Funding, LedgerEntry, UsageRecord};
