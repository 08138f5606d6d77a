//! Segments that nothing needs any more, and segments that will be needed.

use std::time::Duration;

use super::super::segment::{SEGMENT_BYTES, Segment};
use super::{LaneState, SpareState};

/// Bytes of stored segments that running calls may keep on disk, besides twice those calls' own records.
const MAX_PINNED_BYTES: u64 = 8 * SEGMENT_BYTES;

impl LaneState {
    /// Deletes full segments that nothing needs, and carries running calls out of segments that only they need. Starts a
    /// new segment if the current one is old. Returns the number of bytes on disk.
    pub(in super::super) fn clean(&mut self, max_age: Duration) -> u64 {
        self.delete_stored();
        self.carry_running(max_age);
        self.delete_stored();
        // If the clock was set back, the age is unknown and the segment counts as young.
        let is_old = is_older(&self.current, max_age);
        if is_old && !self.current.is_empty() && self.unstored.is_stored() {
            _ = self.rotate();
        }
        (self.full.len() as u64 + 1) * SEGMENT_BYTES
    }

    fn delete_stored(&mut self) {
        let stored = self.unstored.stored;
        let is_done = |segment: &Segment| segment.running == 0 && segment.last_sequence <= stored;
        while self.full.front().is_some_and(is_done) {
            if let Some(segment) = self.full.pop_front() {
                segment.delete();
            }
        }
    }

    /// Writes the records of running calls again, if stored segments wait for them that are old or many. Each such record
    /// is written at most once per [`MAX_PINNED_BYTES`], also if the running calls alone fill many segments.
    fn carry_running(&mut self, max_age: Duration) {
        let stored = self.unstored.stored;
        let running_bytes: usize = self.running.values().map(|call| call.frame.len()).sum();
        let max_bytes = MAX_PINNED_BYTES + 2 * running_bytes as u64;
        loop {
            let is_pinned = |segment: &&Segment| segment.last_sequence <= stored;
            let pinned = self.full.iter().take_while(is_pinned).count() as u64;
            let Some(front) = self.full.front().filter(|_| pinned > 0) else {
                return;
            };
            if pinned * SEGMENT_BYTES <= max_bytes && !is_older(front, max_age) {
                return;
            }
            let number = front.id.number;
            if !self.write_running(|call| call.segment == number) {
                return;
            }
            // No call has its last record there now. A wrong count must not keep the segment, and this loop, for ever.
            if let Some(front) = self.full.front_mut() {
                front.running = 0;
            }
            self.delete_stored();
        }
    }

    /// Returns the number of the segment to create next, if one is missing.
    pub(in super::super) fn request_spare(&mut self) -> Option<u32> {
        if matches!(self.spare, SpareState::Ready(_) | SpareState::Requested) {
            return None;
        }
        self.spare = SpareState::Requested;
        Some(self.current.id.number + 1)
    }

    /// Returns when the oldest segment was started, in unix milliseconds.
    pub(in super::super) fn started_ms(&self) -> i64 {
        self.full.front().unwrap_or(&self.current).started_ms
    }
}

fn is_older(segment: &Segment, age: Duration) -> bool {
    segment.started_at.elapsed() >= age
}
