//! The journal: requests append records, and one thread writes them in groups.
//!
//! A record without a waiting request (a call starts, a part was delivered) is written within 20 ms. The record that
//! ends a funded call is synced to the disk, together with all records that arrived meanwhile. Only then does the last
//! byte of the response go out.

mod writer;

use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use filters::ledger::LedgerEntry;
use filters::ledger::journal::{FrameRead, FrameReader, Record, RecordRef, write_record};
use tokio::sync::oneshot;

use super::error::{LedgerError, file_error};
use super::open_reservations::OpenReservations;
use super::receipt::Receipt;
use super::segments::SegmentFiles;
use super::to_unix_ms;

/// The maximum age of a segment that is stored completely. Rows of the ledger must stay as long as their segment.
pub const MAX_SEGMENT_AGE: Duration = Duration::from_secs(3600);

/// The journal of this process.
pub struct Journal {
    shared: Arc<JournalShared>,
    writer: Mutex<Option<std::thread::JoinHandle<()>>>,
}

struct JournalShared {
    state: Mutex<JournalState>,
    wake: Condvar,
    /// Bytes on disk.
    bytes: AtomicU64,
    /// When the oldest segment was started, in unix milliseconds.
    started_ms: AtomicI64,
    max_segment_age: Duration,
    /// Whether the last write failed or the next segment does not exist.
    is_stuck: AtomicBool,
    open: Arc<OpenReservations>,
}

#[derive(Default)]
struct JournalState {
    /// Records that are not written yet.
    bytes: Vec<u8>,
    receipts: Vec<WaitingRecords>,
    /// Ended calls that are not stored yet, oldest first.
    entries: VecDeque<LedgerEntry>,
    /// Later ended calls as encoded records. A worker that handed over its own allocations would always get cold
    /// memory.
    records: Vec<u8>,
    /// The number of calls in `records`.
    record_count: usize,
    /// When the oldest ended call started to wait for the store.
    oldest_since: Option<Instant>,
    /// The sequence number of the last ended call.
    sequence: u64,
    /// The sequence number up to which all calls are stored.
    stored: u64,
    is_stopping: bool,
}

struct WaitingRecords {
    sequence: u64,
    done: oneshot::Sender<()>,
}

impl JournalState {
    /// Returns the number of ended calls that wait for the store, without those in a batch.
    fn waiting_entries(&self) -> usize {
        self.entries.len() + self.record_count
    }

    /// Confirms all receipts up to this sequence number.
    fn release_receipts(&mut self, sequence: u64) {
        let receipts = std::mem::take(&mut self.receipts);
        for receipt in receipts {
            if receipt.sequence > sequence {
                self.receipts.push(receipt);
            } else {
                // This fails if the client has disconnected.
                _ = receipt.done.send(());
            }
        }
    }
}

/// Ended calls to store.
pub struct JournalBatch {
    /// The calls.
    pub entries: Vec<LedgerEntry>,
    /// The sequence number of the last call.
    pub sequence: u64,
}

impl Journal {
    /// Creates the files and starts the writer thread.
    ///
    /// Errors: the file system failed.
    pub fn start(
        state_dir: &Path,
        owner: [u8; 16],
        open: Arc<OpenReservations>,
        max_segment_age: Duration,
    ) -> Result<Self, LedgerError> {
        let files = SegmentFiles::create(state_dir, owner)?;
        let shared = Arc::new(JournalShared {
            state: Mutex::default(),
            wake: Condvar::new(),
            bytes: AtomicU64::new(files.bytes()),
            started_ms: AtomicI64::new(to_unix_ms(files.started_at())),
            max_segment_age,
            is_stuck: AtomicBool::new(false),
            open,
        });
        let writing = Arc::clone(&shared);
        let writer = std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || writing.run_writer(files))
            .map_err(file_error(state_dir))?;
        Ok(Self {
            shared,
            writer: Mutex::new(Some(writer)),
        })
    }

    /// Appends a record without a receipt. Cost: one encoding, one short lock.
    pub fn append<'a>(&self, record: impl Into<RecordRef<'a>>) {
        let mut bytes = Vec::with_capacity(512);
        write_record(record, &mut bytes);
        let mut state = self.shared.lock();
        let is_first = state.bytes.is_empty();
        state.bytes.extend_from_slice(&bytes);
        drop(state);
        if is_first {
            self.shared.wake.notify_one();
        }
    }

    /// Appends the end of a call. If `is_urgent`, the receipt resolves when the record is durable.
    pub fn settle(&self, entry: &LedgerEntry, is_urgent: bool) -> Receipt {
        let mut bytes = Vec::with_capacity(512);
        write_record(RecordRef::Settle(entry), &mut bytes);
        let mut state = self.shared.lock();
        let is_first = state.bytes.is_empty();
        state.sequence += 1;
        state.bytes.extend_from_slice(&bytes);
        state.records.extend_from_slice(&bytes);
        state.record_count += 1;
        state.oldest_since.get_or_insert_with(Instant::now);
        let mut receipt = Receipt::ready();
        if is_urgent {
            let (done, waiting) = Receipt::channel();
            let sequence = state.sequence;
            state.receipts.push(WaitingRecords { sequence, done });
            receipt = waiting;
        }
        drop(state);
        if is_first || is_urgent {
            self.shared.wake.notify_one();
        }
        receipt
    }

    /// Takes the next calls to store. The caller then calls [`Self::mark_stored`] or [`Self::put_back`].
    pub fn take_batch(&self, max_entries: usize) -> Option<JournalBatch> {
        self.decode_records();
        let mut state = self.shared.lock();
        let count = state.entries.len().min(max_entries);
        let entries: Vec<LedgerEntry> = state.entries.drain(..count).collect();
        // Sequence numbers have no gaps.
        let sequence = state.sequence - state.waiting_entries() as u64;
        (!entries.is_empty()).then_some(JournalBatch { entries, sequence })
    }

    /// Visits the ended calls that wait for the store, without those in a batch.
    pub fn visit_waiting(&self, mut visit: impl FnMut(&LedgerEntry)) {
        self.decode_records();
        self.shared.lock().entries.iter().for_each(&mut visit);
    }

    /// Decodes the records of ended calls into entries. The caller holds the ledger's `flush_lock`.
    fn decode_records(&self) {
        let mut state = self.shared.lock();
        let capacity = state.records.len();
        let records = std::mem::replace(&mut state.records, Vec::with_capacity(capacity));
        drop(state);
        let mut reader = FrameReader::from_records(&records);
        let mut entries = VecDeque::new();
        while let Ok(FrameRead::Record(record)) = reader.read() {
            if let Record::Settle(entry) = *record {
                entries.push_back(*entry);
            }
        }
        let mut state = self.shared.lock();
        state.record_count -= entries.len();
        state.entries.append(&mut entries);
    }

    /// Returns the number of ended calls that wait for the store.
    pub fn waiting_entries(&self) -> usize {
        self.shared.lock().waiting_entries()
    }

    /// Puts back a batch that the store did not accept.
    pub fn put_back(&self, batch: JournalBatch) {
        let mut state = self.shared.lock();
        for entry in batch.entries.into_iter().rev() {
            state.entries.push_front(entry);
        }
    }

    /// Records that all calls up to this sequence number are stored.
    pub fn mark_stored(&self, sequence: u64) {
        let mut state = self.shared.lock();
        state.stored = sequence;
        state.oldest_since = (state.waiting_entries() > 0).then(Instant::now);
        // Stored calls are durable, whatever happens to the journal.
        state.release_receipts(sequence);
    }

    /// Returns how long the oldest ended call has waited for the store.
    pub fn lag(&self) -> Duration {
        let oldest_since = self.shared.lock().oldest_since;
        oldest_since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Returns the size on disk in bytes.
    pub fn bytes(&self) -> u64 {
        self.shared.bytes.load(Ordering::Relaxed)
    }

    /// Returns when the oldest segment was started, in unix milliseconds.
    pub fn started_ms(&self) -> i64 {
        self.shared.started_ms.load(Ordering::Relaxed)
    }

    /// Returns whether the journal cannot be written, or soon will not be.
    pub fn is_stuck(&self) -> bool {
        self.shared.is_stuck.load(Ordering::Relaxed)
    }

    /// Writes the remaining records and ends the writer thread. Calls that are not stored stay on disk.
    pub fn close(&self) {
        self.shared.lock().is_stopping = true;
        self.shared.wake.notify_one();
        let writer = self
            .writer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(writer) = writer {
            _ = writer.join();
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.close();
    }
}

impl JournalShared {
    fn lock(&self) -> MutexGuard<'_, JournalState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
