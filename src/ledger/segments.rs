//! The journal's files: one folder per process with segments of one size, filled with zeros in advance.
//!
//! A segment is complete before the first record goes into it. So a full disk is noticed one segment ahead, while
//! running calls still have space, and a sync never has to grow a file.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, SystemTime};

use filters::ledger::journal::{HEADER_BYTES, header};

use super::error::{LedgerError, file_error};

/// The folder under `store.state_dir`.
pub const JOURNAL_FOLDER: &str = "journal";
/// The file name extension of a segment.
pub const SEGMENT_SUFFIX: &str = "wal";
/// The file that a live process keeps locked.
pub const LOCK_FILE: &str = "lock";
/// The size of a segment.
pub const SEGMENT_BYTES: u64 = 2 << 20;
/// How long a full segment waits for the next one. It is shorter than a response waits for its record.
const SPARE_TIMEOUT: Duration = Duration::from_secs(3);

/// The segments of this process.
pub struct SegmentFiles {
    folder: PathBuf,
    owner: [u8; 16],
    current: Segment,
    /// Full segments that are not stored completely, each with its last sequence number.
    full: VecDeque<(Segment, u64)>,
    spares: mpsc::Receiver<io::Result<Segment>>,
    requests: mpsc::Sender<u64>,
    maker: std::thread::JoinHandle<()>,
    next_number: u64,
    /// Held while the process lives.
    _lock: File,
}

struct Segment {
    file: File,
    path: PathBuf,
    offset: u64,
    started_at: SystemTime,
}

impl SegmentFiles {
    /// Creates the folder and the first segment.
    ///
    /// Errors: the file system failed.
    pub fn create(state_dir: &Path, owner: [u8; 16]) -> Result<Self, LedgerError> {
        let name: String = owner.iter().map(|byte| format!("{byte:02x}")).collect();
        let folder = state_dir.join(JOURNAL_FOLDER).join(name);
        fs::create_dir_all(&folder).map_err(file_error(&folder))?;
        let lock = open_lock(&folder)?;
        lock.try_lock()
            .map_err(|error| file_error(&folder)(io::Error::other(error)))?;
        let mut current = create_segment(&folder, 1).map_err(file_error(&folder))?;
        write_header(&mut current, &owner).map_err(file_error(&folder))?;
        let (requests, numbers) = mpsc::channel::<u64>();
        let (made, spares) = mpsc::channel();
        let spare_folder = folder.clone();
        let maker = move || {
            for number in numbers {
                if made.send(create_segment(&spare_folder, number)).is_err() {
                    return;
                }
            }
        };
        let maker = std::thread::Builder::new()
            .name("journal-spare".to_owned())
            .spawn(maker)
            .map_err(file_error(&folder))?;
        // The receiver exists until this sender is dropped.
        _ = requests.send(2);
        Ok(Self {
            folder,
            owner,
            current,
            full: VecDeque::new(),
            spares,
            requests,
            maker,
            next_number: 3,
            _lock: lock,
        })
    }

    /// Returns whether the current segment has space for `bytes` more.
    pub fn has_capacity_for(&self, bytes: usize) -> bool {
        self.current.offset + bytes as u64 <= SEGMENT_BYTES
    }

    /// Returns the filled part of the current segment, 0 to 1.
    pub fn fullness(&self) -> f64 {
        self.current.offset as f64 / SEGMENT_BYTES as f64
    }

    /// Returns whether the current segment has records and is at least this old.
    pub fn is_older_than(&self, age: Duration) -> bool {
        let current = &self.current;
        // If the clock was set back, the age is unknown and the segment counts as young.
        let is_old = current
            .started_at
            .elapsed()
            .is_ok_and(|elapsed| elapsed >= age);
        is_old && current.offset > HEADER_BYTES as u64
    }

    /// Returns when the oldest segment was started.
    pub fn started_at(&self) -> SystemTime {
        let oldest = self
            .full
            .front()
            .map_or(&self.current, |(oldest, _)| oldest);
        oldest.started_at
    }

    /// Returns the size on disk in bytes.
    pub fn bytes(&self) -> u64 {
        (self.full.len() as u64 + 1) * SEGMENT_BYTES
    }

    /// Appends bytes. A failed write does not advance the offset, so the next one overwrites it.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let current = &mut self.current;
        current.file.write_all_at(bytes, current.offset)?;
        current.offset += bytes.len() as u64;
        Ok(())
    }

    /// Syncs the written bytes to the disk.
    pub fn sync(&self) -> io::Result<()> {
        self.current.file.sync_data()
    }

    /// Starts the next segment. If the current one is full, it waits for the next one. `sequence` is the last number in
    /// the segment that ends.
    ///
    /// Errors: the disk has no space for another segment, or the next one does not exist yet. The current segment
    /// stays.
    pub fn rotate(&mut self, sequence: u64, is_full: bool) -> io::Result<()> {
        self.sync()?;
        let timeout = if is_full {
            SPARE_TIMEOUT
        } else {
            Duration::ZERO
        };
        let mut next = match self.spares.recv_timeout(timeout) {
            Ok(Ok(spare)) => spare,
            Ok(Err(error)) => {
                // Request it again, so that freed space is noticed.
                _ = self.requests.send(self.next_number - 1);
                return Err(error);
            }
            Err(_) => return Err(io::ErrorKind::WouldBlock.into()),
        };
        write_header(&mut next, &self.owner)?;
        _ = self.requests.send(self.next_number);
        self.next_number += 1;
        let ended = std::mem::replace(&mut self.current, next);
        self.full.push_back((ended, sequence));
        Ok(())
    }

    /// Deletes the full segments that are stored completely.
    pub fn delete_stored(&mut self, stored: u64) {
        while self.full.front().is_some_and(|(_, last)| *last <= stored) {
            if let Some((Segment { path, .. }, _)) = self.full.pop_front()
                && let Err(error) = fs::remove_file(&path)
            {
                log::warn!("{}: {error}", path.display());
            }
        }
    }

    /// Deletes the folder. All calls are stored.
    pub fn delete_all(self) {
        // A running maker thread would add a segment to the folder during its deletion.
        drop(self.requests);
        _ = self.maker.join();
        delete_folder(&self.folder);
    }
}

/// Deletes the folder of a dead process.
pub fn delete_folder(folder: &Path) {
    if let Err(error) = fs::remove_dir_all(folder) {
        log::warn!("{}: {error}", folder.display());
    }
}

/// Opens the file that a live process keeps locked.
pub fn open_lock(folder: &Path) -> Result<File, LedgerError> {
    let path = folder.join(LOCK_FILE);
    let mut options = OpenOptions::new();
    let options = options.write(true).create(true).truncate(false).mode(0o600);
    options.open(&path).map_err(file_error(&path))
}

/// Creates a segment of zeros, and syncs the file and its name to the disk.
fn create_segment(folder: &Path, number: u64) -> io::Result<Segment> {
    let path = folder.join(format!("{number:08}.{SEGMENT_SUFFIX}"));
    let made = write_zeros(&path);
    if made.is_err() {
        // A partial segment would only take space that is missing.
        _ = fs::remove_file(&path);
    }
    let file = made?;
    File::open(folder)?.sync_all()?;
    Ok(Segment {
        file,
        path,
        offset: 0,
        started_at: SystemTime::now(),
    })
}

fn write_zeros(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let options = options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = options.open(path)?;
    let zeros = [0; 64 << 10];
    for _ in 0..SEGMENT_BYTES / zeros.len() as u64 {
        file.write_all(&zeros)?;
    }
    file.sync_all()?;
    Ok(file)
}

fn write_header(segment: &mut Segment, owner: &[u8; 16]) -> io::Result<()> {
    segment.file.write_all_at(&header(owner), 0)?;
    segment.offset = HEADER_BYTES as u64;
    segment.started_at = SystemTime::now();
    Ok(())
}
