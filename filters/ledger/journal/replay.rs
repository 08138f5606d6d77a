//! Replays the journal of a dead process into entries of the ledger.

use std::collections::{BTreeMap, BTreeSet};

use super::super::entry::{CallOutcome, EntryId, LedgerEntry, UsageRecord};
use super::{Record, Reserve};

/// Applies records in the order in which they were written. Repeated records have no further effect.
#[derive(Clone, Debug, Default)]
pub struct Replay {
    open: BTreeMap<EntryId, (Reserve, Option<UsageRecord>)>,
    settled: BTreeMap<EntryId, LedgerEntry>,
    released: BTreeSet<EntryId>,
}

impl Replay {
    /// Applies one record. A call ends once: records after its end are ignored.
    pub fn apply(&mut self, record: Record) {
        match record {
            Record::Reserve(reserve) => {
                if !self.has_ended(&reserve.id) {
                    self.open.entry(reserve.id).or_insert((reserve, None));
                }
            }
            Record::Delivered(delivered) => {
                if let Some((_, usage)) = self.open.get_mut(&delivered.id) {
                    *usage = Some(delivered.usage);
                }
            }
            Record::Settle(entry) => {
                if !self.has_ended(&entry.id) {
                    self.open.remove(&entry.id);
                    self.settled.insert(entry.id, *entry);
                }
            }
            Record::Release(id) => {
                if !self.has_ended(&id) {
                    self.open.remove(&id);
                    self.released.insert(id);
                }
            }
        }
    }

    fn has_ended(&self, id: &EntryId) -> bool {
        self.settled.contains_key(id) || self.released.contains(id)
    }

    /// Returns all entries that the ledger must have: the settled calls, and the calls that were running when the
    /// process died, charged for what was delivered.
    pub fn into_entries(self) -> Vec<LedgerEntry> {
        let killed = self
            .open
            .into_values()
            .filter_map(|(reserve, usage)| Some(killed_entry(reserve, usage?)));
        self.settled.into_values().chain(killed).collect()
    }
}

/// Returns the entry of a call that ended because its process died. It charges the delivered part, up to the reserved
/// amount.
fn killed_entry(reserve: Reserve, usage: UsageRecord) -> LedgerEntry {
    let cost = usage.total();
    let charged = cost.min(reserve.amount);
    LedgerEntry {
        id: reserve.id,
        at_ms: reserve.at_ms,
        owner: reserve.owner,
        funding: reserve.funding,
        outcome: CallOutcome::Killed,
        reserved: reserve.amount,
        charged,
        shortfall: cost.minus(charged),
        duration_ms: 0,
        first_event_ms: None,
        is_stream: reserve.is_stream,
        usage,
    }
}
