//! The thread that writes the journal: in groups, each forced to the disk where somebody waits for it.

use std::io;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::super::segments::SegmentFiles;
use super::super::unix_ms_of as ms;
use super::JournalShared;

/// How long a record may wait for company that nobody waits for.
const LINGER: Duration = Duration::from_millis(20);
/// Between the beginnings of two groups that are forced to the disk: under load, more calls share one.
const GROUP: Duration = Duration::from_millis(1);
/// Between two tries of a journal that cannot be written.
const RETRY: Duration = Duration::from_millis(100);
/// How full a segment is when the next one is begun.
const ROTATE_AT: f64 = 0.75;
/// How long the writer sleeps where nothing wakes it.
const SLEEP: Duration = Duration::from_secs(5);

/// What the writer has in hand.
#[derive(Default)]
struct Group {
    /// Bytes that are not written yet.
    bytes: Vec<u8>,
    /// The number of the last ended call in them.
    sequence: u64,
    /// The number of the last ended call that was written.
    written: u64,
    /// The number up to which the store has everything.
    stored: u64,
    is_urgent: bool,
    is_stopping: bool,
    /// When the last group was begun that was forced to the disk.
    forced: Option<Instant>,
}

impl Group {
    /// How long the next one that is forced to the disk has to wait.
    fn rest(&self) -> Duration {
        let since = self.forced.map_or(GROUP, |forced| forced.elapsed());
        GROUP.saturating_sub(since)
    }
}

impl JournalShared {
    /// The writer's life.
    pub(super) fn write(&self, mut files: SegmentFiles) {
        let mut group = Group::default();
        let mut tried = Instant::now();
        loop {
            self.gather(&mut group, &files);
            let written = self.commit(&mut files, &mut group, &mut tried);
            let is_written = written.is_ok();
            self.report(written);
            files.forget(group.stored);
            self.bytes.store(files.bytes(), Ordering::Relaxed);
            self.since_ms.store(ms(files.since()), Ordering::Relaxed);
            if group.is_stopping {
                break;
            }
            if !is_written {
                std::thread::sleep(RETRY);
            }
        }
        let state = self.lock();
        if group.bytes.is_empty() && state.stored == state.sequence && self.open.is_empty() {
            files.remove();
        }
    }

    /// Waits until there is something to write, and takes it.
    fn gather(&self, group: &mut Group, files: &SegmentFiles) {
        let mut state = self.lock();
        let mut first = None;
        loop {
            let is_due = first.is_some_and(|first: Instant| first.elapsed() >= LINGER);
            let has_left_over = !group.bytes.is_empty();
            if state.is_stopping || is_due || has_left_over {
                break;
            }
            if !state.waiting.is_empty() {
                // Who comes meanwhile need not wake this thread.
                drop(state);
                std::thread::sleep(group.rest());
                state = self.lock();
                break;
            }
            if first.is_none() && !state.bytes.is_empty() {
                first = Some(Instant::now());
            }
            let patience = if first.is_some() { LINGER } else { SLEEP };
            let woken = self.wake.wait_timeout(state, patience);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
            let has_news = state.stored > group.stored || files.is_old(self.renew);
            if state.bytes.is_empty() && (has_news || self.is_stuck()) {
                break;
            }
        }
        group.bytes.append(&mut state.bytes);
        group.sequence = state.sequence;
        group.stored = state.stored;
        group.is_urgent = !state.waiting.is_empty();
        group.is_stopping = state.is_stopping;
    }

    /// Writes the group, forces it where somebody waits, and lets those go.
    fn commit(
        &self,
        files: &mut SegmentFiles,
        group: &mut Group,
        tried: &mut Instant,
    ) -> io::Result<()> {
        let is_full = !files.has_room(group.bytes.len());
        let is_old = files.is_old(self.renew) && group.stored >= group.written;
        let is_due = is_full || is_old || files.fullness() > ROTATE_AT;
        let mut room = Ok(());
        if is_due && (!self.is_stuck() || tried.elapsed() >= RETRY) {
            *tried = Instant::now();
            match files.rotate(group.written, is_full) {
                Ok(()) => self.begin_anew(group),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && !is_full => {}
                Err(error) => room = Err(error),
            }
        } else if is_due {
            room = Err(io::ErrorKind::StorageFull.into());
        }
        if is_full && room.is_err() {
            return room;
        }
        if !group.bytes.is_empty() {
            files.append(&group.bytes)?;
            group.bytes.clear();
        }
        if group.is_urgent {
            group.forced = Some(Instant::now());
            files.sync()?;
            self.lock().release(group.sequence);
        }
        group.written = group.sequence;
        room
    }

    /// The first bytes of a new segment: the calls that run, which the older ones need not be kept for.
    fn begin_anew(&self, group: &mut Group) {
        let mut bytes = Vec::new();
        self.open.write(&mut bytes);
        bytes.append(&mut group.bytes);
        group.bytes = bytes;
    }

    fn is_stuck(&self) -> bool {
        self.is_stuck.load(Ordering::Relaxed)
    }

    /// Remembers whether the journal can be written; logs only when that changes.
    fn report(&self, written: io::Result<()>) {
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
