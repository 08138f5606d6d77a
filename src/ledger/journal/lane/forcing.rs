//! The way of written records to the disk, and the way of records that a failure has held back.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use filters::ledger::EntryId;
use filters::ledger::journal::{Watermark, watermark_frame};

use super::{Durability, LaneState, RunningCall, SpareState, WaitingReceipt};

/// The filled part of a segment at which the next one must exist.
const MAX_FULLNESS: f64 = 0.75;
/// How long records may wait for the next segment before calls on credit are refused.
const SPARE_PATIENCE: Duration = Duration::from_secs(1);

/// The part of a lane that is being forced.
pub(in super::super) struct ForceTask {
    /// The files, oldest first.
    pub(in super::super) files: Vec<Arc<File>>,
    end: Watermark,
    frame_bytes: usize,
}

impl LaneState {
    /// Writes the records that could not be written, if there are any.
    pub(in super::super) fn write_backlog(&mut self, durability: Durability) {
        if self.backlog.is_empty() && !self.has_unwritten {
            return;
        }
        let mut backlog = std::mem::take(&mut self.backlog);
        let mut written = 0;
        while let Some(frame) = first_frame(backlog.get_mut(written..).unwrap_or_default()) {
            let done = self.write(frame);
            if done.is_err() {
                self.record_failure(done);
                break;
            }
            // Which calls the frame belongs to is no longer known.
            self.current.last_sequence = self.unstored.sequence;
            written += frame.len();
        }
        backlog.drain(..written);
        self.backlog = backlog;
        if self.backlog.is_empty() && self.write_running(|call| !call.is_written) {
            self.backlog_since = None;
            self.has_unwritten = false;
            let place = self.current.watermark();
            for receipt in self.backlog_receipts.drain(..) {
                self.written_receipts
                    .push(WaitingReceipt { place, ..receipt });
            }
            if durability == Durability::Process {
                self.confirm(place);
            }
        }
    }

    /// Writes the records of these running calls again. Returns whether all are written.
    pub(super) fn write_running(&mut self, is_chosen: impl Fn(&RunningCall) -> bool) -> bool {
        let calls = self.running.iter().filter(|(_, call)| is_chosen(call));
        let calls: Vec<EntryId> = calls.map(|(id, _)| *id).collect();
        for id in calls {
            let Some(call) = self.running.get_mut(&id) else {
                continue;
            };
            let mut frame = std::mem::take(&mut call.frame);
            let is_written = self.try_write(&mut frame);
            self.remember(id, frame, is_written);
            if !is_written {
                return false;
            }
        }
        true
    }

    /// Returns what has to be forced.
    pub(in super::super) fn begin_force(&self) -> Option<ForceTask> {
        if self.unforced.is_empty() || self.is_refused {
            return None;
        }
        let full = self.full.iter().filter(|segment| segment.needs_force);
        let files = full.chain([&self.current]);
        Some(ForceTask {
            files: files.map(|segment| Arc::clone(&segment.file)).collect(),
            end: self.current.watermark(),
            frame_bytes: self.unforced.len(),
        })
    }

    /// Records a force that the disk has confirmed. The watermark goes into the journal, but does not ask for a force.
    pub(in super::super) fn end_force(&mut self, task: &ForceTask) {
        self.failure = None;
        self.forced = task.end;
        self.unforced.drain(..task.frame_bytes);
        for segment in &mut self.full {
            segment.needs_force &= segment.id.number >= task.end.segment;
        }
        self.confirm(task.end);
        let frame = watermark_frame(&self.current.id, self.forced);
        if self.current.has_capacity_for(frame.len()) {
            // Recovery needs it only to tell damage from a torn tail.
            _ = self.current.append(&frame);
        }
    }

    /// Records that the disk refused a force. All frames that it has not confirmed are written anew, to another segment.
    pub(in super::super) fn refuse_force(&mut self, error: io::Error) {
        self.failure = Some(error);
        self.is_refused = true;
        let mut frames = std::mem::take(&mut self.unforced);
        frames.append(&mut self.backlog);
        self.backlog = frames;
        self.backlog_since.get_or_insert_with(Instant::now);
        let mut receipts = std::mem::take(&mut self.written_receipts);
        receipts.append(&mut self.backlog_receipts);
        self.backlog_receipts = receipts;
        // Another force of these segments would prove nothing.
        for segment in &mut self.full {
            segment.needs_force = false;
        }
    }

    /// Returns why records cannot be written, or soon will not be; `None` if they can.
    pub(in super::super) fn stuck_reason(&self) -> Option<String> {
        if let Some(error) = self.failure.as_ref().filter(|_| !self.backlog.is_empty()) {
            return Some(error.to_string());
        }
        match &self.spare {
            SpareState::Failed(error) if self.current.fullness() > MAX_FULLNESS => {
                Some(error.to_string())
            }
            _ if self
                .backlog_since
                .is_some_and(|since| since.elapsed() > SPARE_PATIENCE) =>
            {
                Some("the next segment does not exist yet".to_owned())
            }
            _ => None,
        }
    }

    /// Returns whether it has records that are not forced.
    pub(in super::super) fn is_active(&self) -> bool {
        !self.unforced.is_empty() || !self.backlog.is_empty() || self.has_unwritten
    }
}

/// Returns the first of several frames.
fn first_frame(frames: &mut [u8]) -> Option<&mut [u8]> {
    let length = filters::ledger::journal::frame_length(frames)?;
    frames.get_mut(..length)
}
