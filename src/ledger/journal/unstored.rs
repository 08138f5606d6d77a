//! The ended calls that the store does not have yet.

use std::collections::VecDeque;

use filters::ledger::LedgerEntry;
use filters::ledger::journal::{FRAME_HEAD_BYTES, Record, decode_record};

use super::lane::Lane;

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
#[derive(Default)]
pub(super) struct Unstored {
    calls: VecDeque<WaitingCall>,
}

/// Ended calls to store.
pub struct JournalBatch {
    /// The calls.
    pub entries: Vec<LedgerEntry>,
}

impl Unstored {
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

    /// Returns the first calls.
    pub(super) fn next_batch(&self, max_entries: usize) -> Option<JournalBatch> {
        let entries: Vec<LedgerEntry> = self.entries().take(max_entries).cloned().collect();
        (!entries.is_empty()).then_some(JournalBatch { entries })
    }

    /// Removes the calls of a batch, which are stored. Returns the bytes of their frames.
    pub(super) fn mark_stored(&mut self, batch: &JournalBatch, lanes: &[Lane]) -> u64 {
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
