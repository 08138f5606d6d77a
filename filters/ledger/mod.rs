//! The ledger's values: an entry per call, the credit that many calls share, and the journal's bytes.
//!
//! Not here: prices and limits (`money`), files, the store.

mod balance;
mod entry;
pub mod journal;

pub use balance::{Balance, Charge};
pub use entry::{CallOutcome, CallOwner, CostParts, EntryId, Funding, LedgerEntry, UsageRecord};
