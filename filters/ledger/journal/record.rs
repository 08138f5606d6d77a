//! The records of the journal.

use serde::{Deserialize, Serialize};

use super::super::entry::{CallOwner, EntryId, Funding, LedgerEntry, UsageRecord, units};
use crate::money::Usd;

/// One record.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Record {
    /// A call is about to start.
    Reserve(Reserve),
    /// A part of the response was delivered; this is its usage.
    Delivered(Delivered),
    /// The call has ended with this charge.
    Settle(Box<LedgerEntry>),
    /// The call has ended and costs nothing.
    Release(EntryId),
}

/// A borrowed record for writing. It encodes to the same bytes as [`Record`].
#[derive(Clone, Copy, Debug, Serialize)]
pub enum RecordRef<'a> {
    /// A call is about to start.
    Reserve(&'a Reserve),
    /// A part of the response was delivered; this is its usage.
    Delivered(&'a Delivered),
    /// The call has ended with this charge.
    Settle(&'a LedgerEntry),
    /// The call has ended and costs nothing.
    Release(&'a EntryId),
}

impl<'a> From<&'a Record> for RecordRef<'a> {
    fn from(record: &'a Record) -> Self {
        match record {
            Record::Reserve(reserve) => Self::Reserve(reserve),
            Record::Delivered(delivered) => Self::Delivered(delivered),
            Record::Settle(entry) => Self::Settle(entry),
            Record::Release(id) => Self::Release(id),
        }
    }
}

/// The reservation of a call that is about to start.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Reserve {
    /// The call's id in the ledger.
    pub id: EntryId,
    /// When the reservation was made, in unix milliseconds.
    pub at_ms: i64,
    /// The caller.
    pub owner: CallOwner,
    /// Who will pay.
    pub funding: Funding,
    /// The reserved amount.
    #[serde(with = "units")]
    pub amount: Usd,
    /// Whether the response is an event stream.
    pub is_stream: bool,
}

/// The usage of a response that was delivered so far.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Delivered {
    /// The call's id.
    pub id: EntryId,
    /// The usage so far.
    pub usage: UsageRecord,
}
