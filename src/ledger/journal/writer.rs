//! The thread that writes the journal in groups and syncs a group if a request waits for it.

use std::io;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::super::segments::SegmentFiles;
use super::super::to_unix_ms;
use super::JournalShared;

/// How long a record without a waiting request may wait for others.
const WRITE_DELAY: Duration = Duration::from_millis(20);
/// The minimum interval between two synced groups, so that under load more calls share one.
const SYNC_INTERVAL: Duration = Duration::from_millis(1);
/// The interval between two tries if the journal cannot be written.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);
/// The filled part of a segment at which the next one starts.
const ROTATE_FULLNESS: f64 = 0.75;
/// The maximum sleep of the idle writer.
const IDLE_TIMEOUT: Duration = Duration::from_secs(5);

/// The group of records that is written next.
#[derive(Default)]
struct Group {
    /// Bytes that are not written yet.
    bytes: Vec<u8>,
    /// The sequence number of the last ended call in `bytes`.
    sequence: u64,
    /// The sequence number of the last ended call that was written.
    written: u64,
    /// The sequence number up to which all calls are stored.
    stored: u64,
    is_urgent: bool,
    is_stopping: bool,
    /// When the last synced group was started.
    last_sync: Option<Instant>,
}

impl Group {
    /// Returns how long the next synced group has to wait.
    fn time_to_next_sync(&self) -> Duration {
        let since = self
            .last_sync
            .map_or(SYNC_INTERVAL, |last_sync| last_sync.elapsed());
        SYNC_INTERVAL.saturating_sub(since)
    }
}

impl JournalShared {
    /// Runs the writer thread.
    pub(super) fn run_writer(&self, mut files: SegmentFiles) {
        let mut group = Group::default();
        let mut last_try = Instant::now();
        loop {
            self.collect_group(&mut group, &files);
            let written = self.write_group(&mut files, &mut group, &mut last_try);
            let is_written = written.is_ok();
            self.record_outcome(written);
            files.delete_stored(group.stored);
            self.bytes.store(files.bytes(), Ordering::Relaxed);
            self.started_ms
                .store(to_unix_ms(files.started_at()), Ordering::Relaxed);
            if group.is_stopping {
                break;
            }
            if !is_written {
                std::thread::sleep(RETRY_INTERVAL);
            }
        }
        let state = self.lock();
        if group.bytes.is_empty() && state.stored == state.sequence && self.open.is_empty() {
            files.delete_all();
        }
    }

    /// Waits for records and moves them into the group.
    fn collect_group(&self, group: &mut Group, files: &SegmentFiles) {
        let mut state = self.lock();
        let mut first = None;
        loop {
            let is_due = first.is_some_and(|first: Instant| first.elapsed() >= WRITE_DELAY);
            let has_unwritten = !group.bytes.is_empty();
            if state.is_stopping || is_due || has_unwritten {
                break;
            }
            if !state.receipts.is_empty() {
                // Requests that arrive meanwhile need not wake this thread.
                drop(state);
                std::thread::sleep(group.time_to_next_sync());
                state = self.lock();
                break;
            }
            if first.is_none() && !state.bytes.is_empty() {
                first = Some(Instant::now());
            }
            let timeout = if first.is_some() {
                WRITE_DELAY
            } else {
                IDLE_TIMEOUT
            };
            let woken = self.wake.wait_timeout(state, timeout);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
            let has_news = state.stored > group.stored || files.is_older_than(self.max_segment_age);
            if state.bytes.is_empty() && (has_news || self.is_stuck()) {
                break;
            }
        }
        group.bytes.append(&mut state.bytes);
        group.sequence = state.sequence;
        group.stored = state.stored;
        group.is_urgent = !state.receipts.is_empty();
        group.is_stopping = state.is_stopping;
    }

    /// Writes the group, syncs it if requests wait, and confirms their receipts.
    fn write_group(
        &self,
        files: &mut SegmentFiles,
        group: &mut Group,
        last_try: &mut Instant,
    ) -> io::Result<()> {
        let is_full = !files.has_capacity_for(group.bytes.len());
        let is_old = files.is_older_than(self.max_segment_age) && group.stored >= group.written;
        let is_due = is_full || is_old || files.fullness() > ROTATE_FULLNESS;
        let mut rotated = Ok(());
        if is_due && (!self.is_stuck() || last_try.elapsed() >= RETRY_INTERVAL) {
            *last_try = Instant::now();
            match files.rotate(group.written, is_full) {
                Ok(()) => self.restate_open_calls(group),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && !is_full => {}
                Err(error) => rotated = Err(error),
            }
        } else if is_due {
            rotated = Err(io::ErrorKind::StorageFull.into());
        }
        if is_full && rotated.is_err() {
            return rotated;
        }
        if !group.bytes.is_empty() {
            files.append(&group.bytes)?;
            group.bytes.clear();
        }
        if group.is_urgent {
            group.last_sync = Some(Instant::now());
            files.sync()?;
            self.lock().release_receipts(group.sequence);
        }
        group.written = group.sequence;
        rotated
    }

    /// Puts the open reservations at the start of a new segment, so that older segments are not needed for them.
    fn restate_open_calls(&self, group: &mut Group) {
        let mut bytes = Vec::new();
        self.open.write_records(&mut bytes);
        bytes.append(&mut group.bytes);
        group.bytes = bytes;
    }

    fn is_stuck(&self) -> bool {
        self.is_stuck.load(Ordering::Relaxed)
    }

    /// Records whether the journal can be written. It logs only when that changes.
    fn record_outcome(&self, written: io::Result<()>) {
        let was_stuck = self.is_stuck.swap(written.is_err(), Ordering::Relaxed);
        match written {
            Err(error) if !was_stuck => {
                log::error!("the journal cannot be written: {error}; calls on credit are refused");
            }
            Ok(()) if was_stuck => log::warn!("the journal can be written again"),
            _ => {}
        }
    }
}
