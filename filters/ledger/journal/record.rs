//! The records of the journal.

use serde::{Deserialize, Serialize};

use super::super::entry::LedgerEntry;

/// One record.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Record {
    /// A part of a running call's response was delivered. If the process dies now, this is the call's entry.
    Delivered(Box<LedgerEntry>),
    /// The call has ended with this charge.
    Ended(Box<LedgerEntry>),
}

/// A borrowed record for writing. It encodes to the same bytes as [`Record`].
#[derive(Clone, Copy, Debug, Serialize)]
pub enum RecordRef<'a> {
    /// A part of a running call's response was delivered. If the process dies now, this is the call's entry.
    Delivered(&'a LedgerEntry),
    /// The call has ended with this charge.
    Ended(&'a LedgerEntry),
}

impl<'a> From<&'a Record> for RecordRef<'a> {
    fn from(record: &'a Record) -> Self {
        match record {
            Record::Delivered(entry) => Self::Delivered(entry),
            Record::Ended(entry) => Self::Ended(entry),
        }
    }
}
