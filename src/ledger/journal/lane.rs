//! A lane: the segments that one worker thread writes, front to back.

mod cleaning;
mod forcing;

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use filters::ledger::EntryId;
use filters::ledger::journal::{Watermark, seal_frame};
use tokio::sync::oneshot;

use super::super::receipt::Receipt;
use super::segment::{Segment, Spare};
use super::unstored::UnstoredRecords;
use crate::config::Durability;

/// One lane of the journal. Its lock is held for a `pwrite` at most.
pub(super) struct Lane(Mutex<LaneState>);

pub(super) struct LaneState {
    current: Segment,
    /// Segments that are full, oldest first.
    full: VecDeque<Segment>,
    pub(super) spare: SpareState,
    pub(super) unstored: UnstoredRecords,
    /// The calls that have delivered a part of their response.
    running: HashMap<EntryId, RunningCall>,
    /// The place up to which the disk has confirmed all bytes.
    forced: Watermark,
    /// The frames behind that place. If the disk refuses them, they are written anew elsewhere: a second force of the
    /// same bytes would succeed without writing them.
    unforced: Vec<u8>,
    /// Frames that could not be written.
    backlog: Vec<u8>,
    /// Whether records of running calls could not be written.
    has_unwritten: bool,
    backlog_since: Option<Instant>,
    /// The receipts of records that are written, but not forced.
    written_receipts: Vec<WaitingReceipt>,
    /// The receipts of records in the backlog.
    backlog_receipts: Vec<WaitingReceipt>,
    /// Why the last write or force failed.
    failure: Option<io::Error>,
    /// The disk has refused the current segment, so the next record goes to another one.
    is_refused: bool,
}

/// The segment after the current one.
pub(super) enum SpareState {
    Ready(Spare),
    Requested,
    Failed(io::Error),
    Missing,
}

struct RunningCall {
    /// The number of the segment that has its last record.
    segment: u32,
    frame: Vec<u8>,
    /// Whether that record is written. If not, it follows the backlog.
    is_written: bool,
}

struct WaitingReceipt {
    sequence: u64,
    /// The end of its record, once that is written.
    place: Watermark,
    done: oneshot::Sender<()>,
}

impl Lane {
    pub(super) fn new(first: Segment) -> Self {
        Self(Mutex::new(LaneState {
            current: first,
            full: VecDeque::new(),
            spare: SpareState::Missing,
            unstored: UnstoredRecords::default(),
            running: HashMap::new(),
            forced: Watermark::default(),
            unforced: Vec::new(),
            backlog: Vec::new(),
            has_unwritten: false,
            backlog_since: None,
            written_receipts: Vec::new(),
            backlog_receipts: Vec::new(),
            failure: None,
            is_refused: false,
        }))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, LaneState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LaneState {
    /// Writes what a running call has delivered.
    pub(super) fn deliver(&mut self, id: EntryId, mut frame: Vec<u8>) {
        let is_written = self.try_write(&mut frame);
        self.has_unwritten |= !is_written;
        self.remember(id, frame, is_written);
    }

    /// Writes the end of a call, which is the lane's ended call of this number.
    pub(super) fn end(
        &mut self,
        (id, sequence): (EntryId, u64),
        mut frame: Vec<u8>,
        is_urgent: bool,
        durability: Durability,
    ) -> Receipt {
        let is_written = self.try_write(&mut frame);
        if is_written {
            self.current.last_sequence = self.current.last_sequence.max(sequence);
        } else if is_urgent {
            self.backlog.extend_from_slice(&frame);
            self.backlog_since.get_or_insert_with(Instant::now);
        }
        if !self.running.is_empty()
            && let Some(call) = self.running.remove(&id)
        {
            self.unpin(call.segment);
        }
        if !is_urgent || (is_written && durability == Durability::Process) {
            return Receipt::ready();
        }
        let (done, receipt) = Receipt::channel();
        let waiting = WaitingReceipt {
            sequence,
            place: self.current.watermark(),
            done,
        };
        if is_written {
            self.written_receipts.push(waiting);
        } else {
            self.backlog_receipts.push(waiting);
        }
        receipt
    }

    /// Writes a frame if none waits before it. Returns whether it is written.
    fn try_write(&mut self, frame: &mut [u8]) -> bool {
        if !self.backlog.is_empty() {
            return false;
        }
        let written = self.write(frame);
        let is_written = written.is_ok();
        self.record_failure(written);
        is_written
    }

    fn record_failure(&mut self, written: io::Result<()>) {
        if let Err(error) = written
            && error.kind() != io::ErrorKind::WouldBlock
        {
            self.failure = Some(error);
        }
    }

    /// Writes a frame.
    ///
    /// Errors: `WouldBlock` if the next segment does not exist yet; the disk has no space for it; the write failed.
    fn write(&mut self, frame: &mut [u8]) -> io::Result<()> {
        if self.is_refused || !self.current.has_capacity_for(frame.len()) {
            self.rotate()?;
        }
        seal_frame(frame, &self.current.id, self.forced);
        self.current.append(frame)?;
        self.unforced.extend_from_slice(frame);
        Ok(())
    }

    /// Starts the next segment.
    fn rotate(&mut self) -> io::Result<()> {
        let spare = match std::mem::replace(&mut self.spare, SpareState::Missing) {
            SpareState::Ready(spare) => spare,
            other => {
                self.spare = other;
                return Err(io::ErrorKind::WouldBlock.into());
            }
        };
        let before = if self.is_refused {
            self.forced
        } else {
            self.current.watermark()
        };
        let next = spare.begin(before)?;
        self.current.needs_force &= !self.is_refused;
        self.is_refused = false;
        self.full
            .push_back(std::mem::replace(&mut self.current, next));
        Ok(())
    }

    /// Remembers where a running call's last record is.
    fn remember(&mut self, id: EntryId, frame: Vec<u8>, is_written: bool) {
        let segment = self.current.id.number;
        self.current.running += 1;
        let call = RunningCall {
            segment,
            frame,
            is_written,
        };
        if let Some(before) = self.running.insert(id, call) {
            self.unpin(before.segment);
        }
    }

    /// Records that a segment no longer has a running call's last record.
    fn unpin(&mut self, number: u32) {
        let mut segments = self.full.iter_mut().chain([&mut self.current]);
        if let Some(segment) = segments.find(|segment| segment.id.number == number) {
            segment.running = segment.running.saturating_sub(1);
        }
    }

    /// Confirms the receipts of records before this place.
    fn confirm(&mut self, end: Watermark) {
        let receipts = &mut self.written_receipts;
        for receipt in receipts.extract_if(.., |receipt| receipt.place <= end) {
            // This fails if the client has disconnected.
            _ = receipt.done.send(());
        }
    }

    /// Records that this many more calls are stored. They are durable, whatever happens to the journal.
    pub(super) fn mark_stored(&mut self, count: u64) {
        self.unstored.stored += count;
        let stored = self.unstored.stored;
        for receipts in [&mut self.written_receipts, &mut self.backlog_receipts] {
            for receipt in receipts.extract_if(.., |receipt| receipt.sequence <= stored) {
                _ = receipt.done.send(());
            }
        }
        if self.unstored.is_stored() && self.running.is_empty() {
            self.backlog.clear();
            self.backlog_since = None;
        }
    }

    /// Returns whether all ended calls are stored and none is running.
    pub(super) fn is_done(&self) -> bool {
        self.unstored.is_stored() && self.running.is_empty()
    }

    /// Replaces the file of the current segment.
    #[cfg(test)]
    pub(super) fn replace_file(&mut self, file: std::fs::File) {
        self.current.file = std::sync::Arc::new(file);
    }

    /// Counts a running call that does not exist.
    #[cfg(test)]
    pub(super) fn miscount_running(&mut self) {
        self.current.running += 1;
    }

    /// Returns whether the disk has confirmed all records.
    #[cfg(test)]
    pub(super) fn is_forced(&self) -> bool {
        !self.is_active() && self.forced > Watermark::default()
    }

    /// Returns whether the next record may have to wait for the next segment.
    #[cfg(test)]
    pub(super) fn is_waiting(&self) -> bool {
        !self.backlog.is_empty() || (!self.current.has_capacity_for(1024) && !self.has_spare())
    }

    #[cfg(test)]
    pub(super) fn has_spare(&self) -> bool {
        matches!(self.spare, SpareState::Ready(_))
    }
}
