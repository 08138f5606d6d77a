//! Replays the journal of a dead process into entries of the ledger.

use std::collections::BTreeMap;

use super::super::entry::{EntryId, LedgerEntry};
use super::Record;

/// Applies records in the order in which they were written. Repeated records have no further effect.
#[derive(Clone, Debug, Default)]
pub struct Replay {
    /// The last entry of each call, and whether the call has ended.
    calls: BTreeMap<EntryId, (LedgerEntry, bool)>,
}

impl Replay {
    /// Applies one record. A call ends once: records after its end are ignored.
    pub fn apply(&mut self, record: Record) {
        let (entry, has_ended) = match record {
            Record::Delivered(entry) => (*entry, false),
            Record::Ended(entry) => (*entry, true),
        };
        let known = self.calls.get(&entry.id);
        if known.is_none_or(|(_, has_ended)| !has_ended) {
            self.calls.insert(entry.id, (entry, has_ended));
        }
    }

    /// Returns all entries that the ledger must have: the ended calls, and the calls that were running when the process
    /// died, charged for what was delivered.
    pub fn into_entries(self) -> Vec<LedgerEntry> {
        self.calls.into_values().map(|(entry, _)| entry).collect()
    }
}
