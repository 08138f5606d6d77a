//! Whether the ledger and a provider's bill say the same, by model and day, and what causes the difference.
//!
//! A bill is what the provider's usage and cost interfaces answer ([`openai`], [`anthropic`]), or a table ([`table`]). All of them
//! become [`BillLine`]s, and [`compare()`] holds them against the ledger. Nothing here asks for anything.
//! Source: docs/reconcile.md.

pub mod anthropic;
pub mod bill;
pub mod cause;
pub mod compare;
pub mod names;
pub mod openai;
pub mod report;
pub mod table;

#[cfg(test)]
mod compare_tests;
#[cfg(test)]
mod report_tests;

pub use bill::{Amounts, BillLine, Tolerance};
pub use cause::Cause;
pub use compare::{LedgerLine, ReconciledRow, compare};
pub use names::ModelNames;
pub use report::{Report, ReportPage, reports};
