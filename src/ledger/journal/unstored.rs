//! The ended calls that the store does not have yet.

use std::collections::{HashSet, VecDeque};

use filters::ledger::LedgerEntry;
use filters::ledger::journal::{FRAME_HEAD_BYTES, Record, decode_record};

use super::lane::Lane;
use crate::store::ledger::MAX_ORGANIZATIONS;

/// The ended calls of one lane that the background work has not collected: encoded records, each behind its length. A
/// worker that handed over its own allocations would always get cold memory.
#[derive(Default)]
pub(super) struct UnstoredRecords {
    bytes: Vec<u8>,
    /// The number of the last ended call. Numbers have no gaps.
    pub(super) sequence: u64,
    /// The number of the last call that is stored.
    pub(super) stored: u64,
}

impl UnstoredRecords {
    /// Adds an encoded record and returns its number.
    pub(super) fn push(&mut self, record: &[u8]) -> u64 {
        let length = u32::try_from(record.len()).unwrap_or(u32::MAX);
        self.bytes.extend_from_slice(&length.to_le_bytes());
        self.bytes.extend_from_slice(record);
        self.sequence += 1;
        self.sequence
    }

    /// Returns whether all ended calls are stored.
    pub(super) fn is_stored(&self) -> bool {
        self.stored == self.sequence
    }
}

/// An ended call that waits for the store.
struct WaitingCall {
    entry: LedgerEntry,
    lane: usize,
    /// The length of its frame.
    bytes: u64,
}

/// The collected ended calls, in the order in which each lane has them.
pub(super) struct Unstored {
    calls: VecDeque<WaitingCall>,
    /// How many posts of this process are in the store when the calls here are not; `None`: unknown.
    pub(super) posts: Option<i64>,
}

/// Ended calls to store.
pub struct JournalBatch {
    pub entries: Vec<LedgerEntry>,
    /// Whether more calls wait than are in the batch.
    pub has_more: bool,
}

impl Unstored {
    /// Nothing waits, and nothing was ever stored.
    pub(super) fn new() -> Self {
        Self {
            calls: VecDeque::new(),
            posts: Some(0),
        }
    }

    /// Collects the ended calls of all lanes.
    pub(super) fn collect(&mut self, lanes: &[Lane]) {
        for (number, lane) in lanes.iter().enumerate() {
            let mut state = lane.lock();
            let capacity = state.unstored.bytes.len();
            if capacity == 0 {
                continue;
            }
            let bytes = std::mem::replace(&mut state.unstored.bytes, Vec::with_capacity(capacity));
            drop(state);
            self.decode(number, &bytes);
        }
    }

    fn decode(&mut self, lane: usize, mut bytes: &[u8]) {
        while let Some((length, rest)) = bytes.split_first_chunk() {
            let length = u32::from_le_bytes(*length) as usize;
            let Some((record, rest)) = rest.split_at_checked(length) else {
                return;
            };
            bytes = rest;
            // A record that this process has just encoded can be decoded.
            if let Ok(Record::Ended(entry)) = decode_record(record) {
                self.calls.push_back(WaitingCall {
                    entry: *entry,
                    lane,
                    bytes: (FRAME_HEAD_BYTES + length) as u64,
                });
            }
        }
    }

    /// Returns the calls, oldest first.
    pub(super) fn entries(&self) -> impl Iterator<Item = &LedgerEntry> {
        self.calls.iter().map(|call| &call.entry)
    }

    /// Returns the first calls, of no more organizations than the store takes in one transaction.
    pub(super) fn next_batch(&self, max_entries: usize) -> Option<JournalBatch> {
        let mut organizations: HashSet<&str> = HashSet::new();
        let first = self.entries().take(max_entries).take_while(|entry| {
            organizations.insert(&entry.owner.organization_id);
            organizations.len() <= MAX_ORGANIZATIONS
        });
        let entries: Vec<LedgerEntry> = first.cloned().collect();
        let has_more = entries.len() < self.calls.len();
        (!entries.is_empty()).then_some(JournalBatch { entries, has_more })
    }

    /// Removes the calls of a batch, which are stored. Returns the bytes of their frames.
    pub(super) fn mark_stored(
        &mut self,
        batch: &JournalBatch,
        posts: Option<i64>,
        lanes: &[Lane],
    ) -> u64 {
        self.posts = posts;
        let mut counts = vec![0; lanes.len()];
        let mut bytes = 0;
        for call in self
            .calls
            .drain(..batch.entries.len().min(self.calls.len()))
        {
            bytes += call.bytes;
            if let Some(count) = counts.get_mut(call.lane) {
                *count += 1;
            }
        }
        for (lane, count) in lanes.iter().zip(counts) {
            if count > 0 {
                lane.lock().mark_stored(count);
            }
        }
        bytes
    }
}
