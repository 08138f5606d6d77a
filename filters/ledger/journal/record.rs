//! What the journal says.

use serde::{Deserialize, Serialize};

use super::super::entry::{CallOwner, EntryId, Funding, LedgerEntry, UsageRecord, units};
use crate::money::Usd;

/// One record.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Record {
    /// A call is about to be made.
    Reserve(Reserve),
    /// So much of its answer has gone out.
    Delivered(Delivered),
    /// It has ended, and costs this.
    Settle(Box<LedgerEntry>),
    /// It has ended, and costs nothing.
    Release(EntryId),
}

/// One record on its way into a file: the same bytes as [`Record`], of which nothing has to be owned.
#[derive(Clone, Copy, Debug, Serialize)]
pub enum RecordRef<'a> {
    /// A call is about to be made.
    Reserve(&'a Reserve),
    /// So much of its answer has gone out.
    Delivered(&'a Delivered),
    /// It has ended, and costs this.
    Settle(&'a LedgerEntry),
    /// It has ended, and costs nothing.
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

/// A call that is about to be made.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Reserve {
    /// Its name in the ledger.
    pub id: EntryId,
    /// When, in unix milliseconds.
    pub at_ms: i64,
    /// Who asked.
    pub who: CallOwner,
    /// What will pay.
    pub funding: Funding,
    /// How much was set aside.
    #[serde(with = "units")]
    pub amount: Usd,
    /// Whether it is an event stream.
    pub is_stream: bool,
}

/// What of an answer has gone out.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Delivered {
    /// Of which call.
    pub id: EntryId,
    /// What it has taken so far.
    pub taken: UsageRecord,
}
