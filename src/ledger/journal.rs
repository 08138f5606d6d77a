//! The journal at work: requests hand in records, one thread writes them in groups.
//!
//! Records that nobody waits for (a call begins, a piece has gone out) are written within 20 ms; those that end a
//! call are forced to the disk together with all that came meanwhile, and only then does its last byte go out.

mod writer;

use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use filters::ledger::LedgerEntry;
use filters::ledger::journal::{FrameRead, FrameReader, Record, RecordRef, put};
use tokio::sync::oneshot;

use super::error::{LedgerError, file};
use super::open_reservations::OpenReservations;
use super::receipt::Receipt;
use super::segments::SegmentFiles;
use super::unix_ms_of as ms;

/// After so long a segment ends of which the store has everything: rows have to stay as long as their segment.
pub const RENEW: Duration = Duration::from_secs(3600);

/// See the module.
pub struct Journal {
    shared: Arc<JournalShared>,
    writer: Mutex<Option<std::thread::JoinHandle<()>>>,
}

struct JournalShared {
    state: Mutex<JournalState>,
    wake: Condvar,
    /// Bytes on disk.
    bytes: AtomicU64,
    /// Since when, in unix milliseconds.
    since_ms: AtomicI64,
    renew: Duration,
    /// The last write failed, or there is no room for a next segment.
    is_stuck: AtomicBool,
    open: Arc<OpenReservations>,
}

#[derive(Default)]
struct JournalState {
    bytes: Vec<u8>,
    waiting: Vec<WaitingRecords>,
    /// Ended calls that are not in the store yet, oldest first.
    entries: VecDeque<LedgerEntry>,
    /// Younger ones, as records: a worker that gave away what it allocates would always work on cold memory.
    fresh: Vec<u8>,
    /// How many they are.
    fresh_count: usize,
    /// Since when the oldest of them waits.
    oldest: Option<Instant>,
    /// The number of the last ended call.
    sequence: u64,
    /// The number up to which they are in the store.
    stored: u64,
    is_stopping: bool,
}

struct WaitingRecords {
    sequence: u64,
    done: oneshot::Sender<()>,
}

impl JournalState {
    /// How many ended calls are not in the store, but for those on their way.
    fn waiting_entries(&self) -> usize {
        self.entries.len() + self.fresh_count
    }

    /// Lets those go whose record is safe: all up to this number.
    fn release(&mut self, sequence: u64) {
        let waiting = std::mem::take(&mut self.waiting);
        for one in waiting {
            if one.sequence > sequence {
                self.waiting.push(one);
            } else {
                // Nobody waits any more where the client has left.
                _ = one.done.send(());
            }
        }
    }
}

/// Ended calls on their way to the store.
pub struct JournalBatch {
    /// The calls.
    pub entries: Vec<LedgerEntry>,
    /// The number of the last.
    pub sequence: u64,
}

impl Journal {
    /// Makes the files and starts the writer.
    ///
    /// Errors: what the file system said.
    pub fn start(
        state_dir: &Path,
        owner: [u8; 16],
        open: Arc<OpenReservations>,
        renew: Duration,
    ) -> Result<Self, LedgerError> {
        let files = SegmentFiles::create(state_dir, owner)?;
        let shared = Arc::new(JournalShared {
            state: Mutex::default(),
            wake: Condvar::new(),
            bytes: AtomicU64::new(files.bytes()),
            since_ms: AtomicI64::new(ms(files.since())),
            renew,
            is_stuck: AtomicBool::new(false),
            open,
        });
        let writing = Arc::clone(&shared);
        let writer = std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || writing.write(files))
            .map_err(file(state_dir))?;
        Ok(Self {
            shared,
            writer: Mutex::new(Some(writer)),
        })
    }

    /// Hands in a record that nobody waits for. Cost: one encoding, one short lock.
    pub fn note<'a>(&self, record: impl Into<RecordRef<'a>>) {
        let mut bytes = Vec::with_capacity(512);
        put(record, &mut bytes);
        let mut state = self.shared.lock();
        let is_first = state.bytes.is_empty();
        state.bytes.extend_from_slice(&bytes);
        drop(state);
        if is_first {
            self.shared.wake.notify_one();
        }
    }

    /// Hands in the end of a call; `is_urgent`: somebody waits for it to be safe.
    pub fn settle(&self, entry: &LedgerEntry, is_urgent: bool) -> Receipt {
        let mut bytes = Vec::with_capacity(512);
        put(RecordRef::Settle(entry), &mut bytes);
        let mut state = self.shared.lock();
        let is_first = state.bytes.is_empty();
        state.sequence += 1;
        state.bytes.extend_from_slice(&bytes);
        state.fresh.extend_from_slice(&bytes);
        state.fresh_count += 1;
        state.oldest.get_or_insert_with(Instant::now);
        let mut ticket = Receipt::ready();
        if is_urgent {
            let (done, theirs) = Receipt::new();
            let sequence = state.sequence;
            state.waiting.push(WaitingRecords { sequence, done });
            ticket = theirs;
        }
        drop(state);
        if is_first || is_urgent {
            self.shared.wake.notify_one();
        }
        ticket
    }

    /// Takes what has to go to the store. Whoever takes it says [`Self::stored`] or [`Self::put_back`].
    pub fn take(&self, most: usize) -> Option<JournalBatch> {
        self.read_fresh();
        let mut state = self.shared.lock();
        let count = state.entries.len().min(most);
        let entries: Vec<LedgerEntry> = state.entries.drain(..count).collect();
        // Every ended call has the next number.
        let sequence = state.sequence - state.waiting_entries() as u64;
        (!entries.is_empty()).then_some(JournalBatch { entries, sequence })
    }

    /// Shows the ended calls that are not in the store yet, but for those taken.
    pub fn look(&self, mut look: impl FnMut(&LedgerEntry)) {
        self.read_fresh();
        self.shared.lock().entries.iter().for_each(&mut look);
    }

    /// Makes entries out of the records of ended calls. Whoever calls this holds the ledger's `storing`.
    fn read_fresh(&self) {
        let mut state = self.shared.lock();
        let room = state.fresh.len();
        let records = std::mem::replace(&mut state.fresh, Vec::with_capacity(room));
        drop(state);
        let mut reader = FrameReader::of_records(&records);
        let mut entries = VecDeque::new();
        while let Ok(FrameRead::Record(record)) = reader.read() {
            if let Record::Settle(entry) = *record {
                entries.push_back(*entry);
            }
        }
        let mut state = self.shared.lock();
        state.fresh_count -= entries.len();
        state.entries.append(&mut entries);
    }

    /// How many ended calls wait for the store.
    pub fn waiting(&self) -> usize {
        self.shared.lock().waiting_entries()
    }

    /// The store did not take it.
    pub fn put_back(&self, batch: JournalBatch) {
        let mut state = self.shared.lock();
        for entry in batch.entries.into_iter().rev() {
            state.entries.push_front(entry);
        }
    }

    /// The store has everything up to this number.
    pub fn stored(&self, sequence: u64) {
        let mut state = self.shared.lock();
        state.stored = sequence;
        state.oldest = (state.waiting_entries() > 0).then(Instant::now);
        // What is in the store is safe, whatever became of the journal.
        state.release(sequence);
    }

    /// Since when the oldest ended call waits for the store.
    pub fn lag(&self) -> Duration {
        let oldest = self.shared.lock().oldest;
        oldest.map_or(Duration::ZERO, |oldest| oldest.elapsed())
    }

    /// Bytes on disk.
    pub fn bytes(&self) -> u64 {
        self.shared.bytes.load(Ordering::Relaxed)
    }

    /// When the oldest of its files was begun, in unix milliseconds.
    pub fn since_ms(&self) -> i64 {
        self.shared.since_ms.load(Ordering::Relaxed)
    }

    /// Whether it cannot be written, or soon will not be.
    pub fn is_stuck(&self) -> bool {
        self.shared.is_stuck.load(Ordering::Relaxed)
    }

    /// Writes what is left and ends the writer. What is not in the store stays on disk.
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
