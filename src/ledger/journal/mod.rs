//! The journal: the thread that serves a call writes its records itself, and nothing but a failure makes it wait.
//!
//! Worker threads have a [`lane`] each: segments of one size, written front to back. A record that is written is in the
//! kernel, so a kill of the process does not lose it. A background thread forces the lanes to the disk, within 20 ms
//! while calls end. With [`Durability::Power`] the last byte of a response waits for that.

mod force;
mod lane;
mod segment;
mod unstored;

#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{JoinHandle, Thread};
use std::time::Duration;

use filters::ledger::journal::{FRAME_HEAD_BYTES, RecordRef, encode_frame};
use filters::ledger::{EntryId, LedgerEntry};

use self::force::Forcer;
use self::lane::Lane;
use self::segment::Folder;
pub use self::segment::{
    JOURNAL_FOLDER, LOCK_FILE, SEGMENT_BYTES, delete_folder, open_lock, parse_name,
};
pub use self::unstored::JournalBatch;
use self::unstored::Unstored;
use super::error::{LedgerError, file_error};
use super::receipt::Receipt;
use crate::config::Durability;
use crate::thread_number::thread_number;

/// The maximum age of a segment that is stored completely. Rows of the ledger must stay as long as their segment.
pub const MAX_SEGMENT_AGE: Duration = Duration::from_secs(3600);
/// The maximum number of lanes. More worker threads share them.
const MAX_LANES: usize = 8;

/// The journal of this process.
pub struct Journal {
    shared: Arc<Shared>,
    forcer: Mutex<Option<JoinHandle<()>>>,
}

/// The part that requests and the background thread share.
struct Shared {
    lanes: Box<[Lane]>,
    unstored: Mutex<Unstored>,
    durability: Durability,
    max_segment_age: Duration,
    /// Bytes on disk.
    bytes: AtomicU64,
    /// Bytes of ended calls that the store does not have.
    unstored_bytes: AtomicU64,
    /// When the oldest segment was started, in unix milliseconds.
    started_ms: AtomicI64,
    /// Whether records cannot be written, or soon will not be.
    is_stuck: AtomicBool,
    /// Whether the background thread sleeps until it is woken.
    is_asleep: AtomicBool,
    is_stopping: AtomicBool,
    background: OnceLock<Thread>,
}

/// The end of a call, which the store gets, but which is not written yet. It is written at the latest when it is dropped,
/// because a call that only the store's queue has would be lost with the process.
#[must_use]
pub struct EndRecord<'a> {
    shared: &'a Shared,
    lane: usize,
    frame: Vec<u8>,
    sequence: u64,
    id: EntryId,
}

impl EndRecord<'_> {
    /// Writes the end of the call. `is_urgent`: the receipt resolves when the record survives what the configuration says;
    /// with [`Durability::Process`] that is at once.
    pub fn write(mut self, is_urgent: bool) -> Receipt {
        self.write_frame(is_urgent)
    }

    fn write_frame(&mut self, is_urgent: bool) -> Receipt {
        let (shared, frame) = (self.shared, std::mem::take(&mut self.frame));
        let Some(lane) = shared.lanes.get(self.lane) else {
            return Receipt::ready();
        };
        let ended = (self.id, self.sequence);
        let receipt = lane.lock().end(ended, frame, is_urgent, shared.durability);
        if receipt.is_ready() {
            shared.wake_if_asleep();
        } else {
            shared.wake();
        }
        receipt
    }
}

impl Drop for EndRecord<'_> {
    fn drop(&mut self) {
        // A written record has no frame.
        if !self.frame.is_empty() {
            _ = self.write_frame(true);
        }
    }
}

impl Journal {
    /// Creates the files and starts the background thread.
    ///
    /// Errors: the file system failed.
    pub fn start(
        state_dir: &Path,
        owner: [u8; 16],
        durability: Durability,
        max_segment_age: Duration,
    ) -> Result<Self, LedgerError> {
        let count =
            std::thread::available_parallelism().map_or(1, |count| count.get().min(MAX_LANES));
        let (folder, segments) = Folder::create(state_dir, owner, count)?;
        let started_ms = segments.iter().map(|segment| segment.started_ms).min();
        let shared = Arc::new(Shared {
            bytes: AtomicU64::new(segments.len() as u64 * SEGMENT_BYTES),
            unstored_bytes: AtomicU64::new(0),
            started_ms: AtomicI64::new(started_ms.unwrap_or_default()),
            lanes: segments.into_iter().map(Lane::new).collect(),
            unstored: Mutex::new(Unstored::new()),
            durability,
            max_segment_age,
            is_stuck: AtomicBool::new(false),
            is_asleep: AtomicBool::new(false),
            is_stopping: AtomicBool::new(false),
            background: OnceLock::new(),
        });
        let forcer = Forcer::new(Arc::clone(&shared), folder)?;
        let forcer = std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || forcer.run())
            .map_err(file_error(state_dir))?;
        _ = shared.background.set(forcer.thread().clone());
        Ok(Self {
            shared,
            forcer: Mutex::new(Some(forcer)),
        })
    }

    /// Returns the lane of this thread. All records of a call go to one lane, which keeps their order.
    pub fn lane(&self) -> usize {
        thread_number() % self.shared.lanes.len()
    }

    /// Records what a running call has delivered. If the process dies, `entry` is charged. Cost: one encoding, one
    /// uncontended lock, one `pwrite`.
    pub fn deliver(&self, lane: usize, entry: &LedgerEntry) {
        let mut frame = Vec::with_capacity(512);
        encode_frame(RecordRef::Delivered(entry), &mut frame);
        if let Some(lane) = self.shared.lanes.get(lane) {
            lane.lock().deliver(entry.id, frame);
            self.shared.wake_if_asleep();
        }
    }

    /// Gives the end of a call to the store. [`EndRecord::write`] is a step of its own, because an account stays locked
    /// until [`Self::waiting`] can see the call, but not while the record is written.
    pub fn end(&self, lane: usize, entry: &LedgerEntry) -> EndRecord<'_> {
        let mut frame = Vec::with_capacity(512);
        encode_frame(RecordRef::Ended(entry), &mut frame);
        let mut sequence = 0;
        if let Some(lane) = self.shared.lanes.get(lane) {
            let record = frame.get(FRAME_HEAD_BYTES..).unwrap_or_default();
            sequence = lane.lock().unstored.push(record);
        }
        let bytes = &self.shared.unstored_bytes;
        bytes.fetch_add(frame.len() as u64, Ordering::Relaxed);
        EndRecord {
            shared: &self.shared,
            lane,
            frame,
            sequence,
            id: entry.id,
        }
    }

    /// Returns the next calls to store. The caller then calls [`Self::mark_stored`], or tries the same calls again later.
    /// It holds the ledger's `flush_lock`.
    pub fn next_batch(&self, max_entries: usize) -> Option<JournalBatch> {
        let mut unstored = self.unstored();
        unstored.collect(&self.shared.lanes);
        unstored.next_batch(max_entries)
    }

    /// Returns the ended calls that wait for the store, and keeps them so. It decodes new ones already here.
    pub fn waiting(&self) -> WaitingCalls<'_> {
        let lanes = &self.shared.lanes;
        let mut unstored = self.unstored();
        unstored.collect(lanes);
        WaitingCalls { unstored, lanes }
    }

    /// Records that the calls of this batch are stored. `posts`: how many times this process has stored calls, if that
    /// is known.
    pub fn mark_stored(&self, batch: &JournalBatch, posts: Option<i64>) {
        let lanes = &self.shared.lanes;
        let bytes = self.unstored().mark_stored(batch, posts, lanes);
        self.shared
            .unstored_bytes
            .fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Returns how long the oldest ended call has waited for the store.
    pub fn lag(&self, now_ms: i64) -> Duration {
        let oldest_ms = self.unstored().entries().next().map(|entry| entry.at_ms);
        let lag_ms = oldest_ms.map_or(0, |oldest_ms| now_ms.saturating_sub(oldest_ms));
        Duration::from_millis(u64::try_from(lag_ms).unwrap_or_default())
    }

    /// Returns the size on disk in bytes, or the size of the calls that wait for the store in memory if that is more.
    pub fn bytes(&self) -> u64 {
        let unstored_bytes = self.shared.unstored_bytes.load(Ordering::Relaxed);
        self.shared
            .bytes
            .load(Ordering::Relaxed)
            .max(unstored_bytes)
    }

    /// Returns when the oldest segment was started, in unix milliseconds.
    pub fn started_ms(&self) -> i64 {
        self.shared.started_ms.load(Ordering::Relaxed)
    }

    /// Returns whether the journal cannot be written, or soon will not be.
    pub fn is_stuck(&self) -> bool {
        self.shared.is_stuck.load(Ordering::Relaxed)
    }

    /// Returns whether all ended calls are stored and none is running, so that closing deletes the files.
    pub fn is_done(&self) -> bool {
        self.shared.is_done()
    }

    /// Returns whether the background thread runs, or was ended by [`Self::close`].
    pub fn is_running(&self) -> bool {
        let forcer = self.forcer.lock();
        let forcer = forcer.unwrap_or_else(PoisonError::into_inner);
        forcer.as_ref().is_none_or(|forcer| !forcer.is_finished())
    }

    /// Forces all records to the disk and ends the background thread. Calls that are not stored stay on disk.
    pub fn close(&self) {
        self.shared.is_stopping.store(true, Ordering::Relaxed);
        self.shared.wake();
        let forcer = self.forcer.lock();
        let forcer = forcer.unwrap_or_else(PoisonError::into_inner).take();
        if let Some(forcer) = forcer {
            _ = forcer.join();
        }
    }

    fn unstored(&self) -> MutexGuard<'_, Unstored> {
        let unstored = self.shared.unstored.lock();
        unstored.unwrap_or_else(PoisonError::into_inner)
    }
}

/// The ended calls that wait for the store. While it exists, none of them is marked as stored.
pub struct WaitingCalls<'a> {
    unstored: MutexGuard<'a, Unstored>,
    lanes: &'a [Lane],
}

impl WaitingCalls<'_> {
    /// Returns how many times this process had stored calls when these were not stored; `None`: unknown.
    pub fn posts(&self) -> Option<i64> {
        self.unstored.posts
    }

    /// Visits the calls, including those that have ended meanwhile.
    pub fn visit(&mut self, visit: impl FnMut(&LedgerEntry)) {
        self.unstored.collect(self.lanes);
        self.unstored.entries().for_each(visit);
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    fn is_done(&self) -> bool {
        self.lanes.iter().all(|lane| lane.lock().is_done())
    }

    /// Wakes the background thread if it sleeps for long. While calls end it wakes by itself, so that no call pays for a
    /// wake-up.
    fn wake_if_asleep(&self) {
        if self.is_asleep.load(Ordering::Relaxed) {
            self.wake();
        }
    }

    fn wake(&self) {
        self.is_asleep.store(false, Ordering::Relaxed);
        if let Some(background) = self.background.get() {
            background.unpark();
        }
    }
}
