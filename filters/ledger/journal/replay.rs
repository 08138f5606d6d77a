//! What a journal comes to when its process is gone.

use std::collections::{BTreeMap, BTreeSet};

use super::super::entry::{CallOutcome, EntryId, LedgerEntry, UsageRecord};
use super::{Record, Reserve};

/// Takes records in the order in which they were written, any of them any number of times.
#[derive(Clone, Debug, Default)]
pub struct Replay {
    open: BTreeMap<EntryId, (Reserve, Option<UsageRecord>)>,
    settled: BTreeMap<EntryId, LedgerEntry>,
    released: BTreeSet<EntryId>,
}

impl Replay {
    /// Takes one record. A call ends once: what comes behind its end counts for nothing.
    pub fn take(&mut self, record: Record) {
        match record {
            Record::Reserve(reserve) => {
                if !self.has_ended(&reserve.id) {
                    self.open.entry(reserve.id).or_insert((reserve, None));
                }
            }
            Record::Delivered(delivered) => {
                if let Some((_, taken)) = self.open.get_mut(&delivered.id) {
                    *taken = Some(delivered.taken);
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

    /// Everything that has to be in the ledger: what was settled, and what ran when the process ended, as far as its
    /// answer had gone out.
    pub fn finish(self) -> Vec<LedgerEntry> {
        let killed = self
            .open
            .into_values()
            .filter_map(|(reserve, taken)| Some(killed(reserve, taken?)));
        self.settled.into_values().chain(killed).collect()
    }
}

/// A call whose process ended: charged for what had gone out, as far as it was reserved.
fn killed(reserve: Reserve, taken: UsageRecord) -> LedgerEntry {
    let cost = taken.total();
    let charged = cost.min(reserve.amount);
    LedgerEntry {
        id: reserve.id,
        at_ms: reserve.at_ms,
        who: reserve.who,
        funding: reserve.funding,
        outcome: CallOutcome::Killed,
        reserved: reserve.amount,
        charged,
        shortfall: cost.minus(charged),
        duration_ms: 0,
        first_event_ms: None,
        is_stream: reserve.is_stream,
        taken,
    }
}
