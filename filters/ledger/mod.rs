//! The ledger's values: one entry per call, the balance that concurrent calls share, leases of limits, and the bytes of
//! the journal.
//!
//! Prices and limits are in `money`; files and the store are in the crate `weirgate`.

mod balance;
pub mod duration_step;
mod entry;
pub mod journal;
mod limit_grant;
mod limit_lease;
pub mod packed;
pub mod usage_query;

#[cfg(test)]
mod balance_tests;

pub use balance::{Balance, Charge};
pub use entry::{
    CallMarks, CallOutcome, CallOwner, CostParts, EntryId, ExperimentNames, Funding, LedgerEntry,
    SessionNames, UsageRecord,
};
pub use limit_grant::{LimitGrant, LimitOffer, LimitState};
pub use limit_lease::{LimitLease, LimitScope, LimitTerms, Room, UnknownScope};
