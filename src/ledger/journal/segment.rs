//! The journal's files: one folder per process, with segments of one size that are filled with zeros in advance.
//!
//! A segment is complete before the first record goes into it. So a full disk is noticed one segment ahead, while
//! running calls still have space, and a force never has to grow a file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use filters::ledger::journal::{HEADER_BYTES, SegmentId, Watermark, header};

use super::super::clock::unix_ms;
use super::super::error::{LedgerError, file_error};
use crate::durable;

/// The folder under `store.state_dir`.
pub const JOURNAL_FOLDER: &str = "journal";
/// The file name extension of a segment.
const SUFFIX: &str = "wal";
/// The file that a live process keeps locked.
pub const LOCK_FILE: &str = "lock";
/// The size of a segment.
pub const SEGMENT_BYTES: u64 = 2 << 20;

/// The folder of this process.
pub(super) struct Folder {
    pub(super) path: PathBuf,
    pub(super) owner: [u8; 16],
    /// Held while the process lives.
    _lock: File,
}

impl Folder {
    /// Creates the folder, with the first segment of each lane.
    ///
    /// Errors: the file system failed.
    pub(super) fn create(
        state_dir: &Path,
        owner: [u8; 16],
        lanes: usize,
    ) -> Result<(Self, Vec<Segment>), LedgerError> {
        let name: String = owner.iter().map(|byte| format!("{byte:02x}")).collect();
        let path = state_dir.join(JOURNAL_FOLDER).join(name);
        durable::create_folders(&path).map_err(file_error(&path))?;
        let lock = open_lock(&path)?;
        lock.try_lock()
            .map_err(|error| file_error(&path)(io::Error::other(error)))?;
        let first = |lane| {
            let id = SegmentId {
                owner,
                lane,
                number: 1,
            };
            Spare::create(&path, id)?.begin(Watermark::default())
        };
        let lanes = 0..u32::try_from(lanes).unwrap_or(u32::MAX);
        let segments = lanes.map(first).collect::<io::Result<Vec<Segment>>>();
        let segments = segments.map_err(file_error(&path))?;
        let folder = Self {
            path,
            owner,
            _lock: lock,
        };
        Ok((folder, segments))
    }
}

/// A segment that is being written, or that is full.
pub(super) struct Segment {
    pub(super) id: SegmentId,
    pub(super) file: Arc<File>,
    path: PathBuf,
    /// The offset behind the last record.
    pub(super) end: u32,
    /// The number of the last ended call that may be in it.
    pub(super) last_sequence: u64,
    /// The number of running calls whose last record is in it.
    pub(super) running: usize,
    /// Whether the disk has to confirm a part of it.
    pub(super) needs_force: bool,
    pub(super) started_at: Instant,
    /// The same by the ledger's clock, in unix milliseconds.
    pub(super) started_ms: i64,
}

impl Segment {
    /// Returns whether it has space for this many bytes more.
    pub(super) fn has_capacity_for(&self, bytes: usize) -> bool {
        u64::from(self.end) + bytes as u64 <= SEGMENT_BYTES
    }

    /// Returns the filled part, 0 to 1.
    pub(super) fn fullness(&self) -> f64 {
        f64::from(self.end) / SEGMENT_BYTES as f64
    }

    /// Returns whether it has no record.
    pub(super) fn is_empty(&self) -> bool {
        self.end as usize == HEADER_BYTES
    }

    /// Appends bytes. A failed write does not advance the end, so the next one overwrites it.
    pub(super) fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, u64::from(self.end))?;
        self.end += u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        Ok(())
    }

    /// Returns the place behind its last record.
    pub(super) fn watermark(&self) -> Watermark {
        Watermark {
            segment: self.id.number,
            offset: self.end,
        }
    }

    /// Deletes the file.
    pub(super) fn delete(self) {
        if let Err(error) = fs::remove_file(&self.path) {
            log::warn!("{}: {error}", self.path.display());
        }
    }
}

/// A segment without a record, filled with zeros.
pub(super) struct Spare {
    id: SegmentId,
    file: File,
    path: PathBuf,
}

impl Spare {
    /// Creates a file of zeros, and syncs the file and its name to the disk.
    pub(super) fn create(folder: &Path, id: SegmentId) -> io::Result<Self> {
        let path = folder.join(format!("{:02}-{:08}.{SUFFIX}", id.lane, id.number));
        let made = write_zeros(&path);
        if made.is_err() {
            // A partial segment would only take space that is missing.
            _ = fs::remove_file(&path);
        }
        let file = made?;
        durable::sync_folder(folder)?;
        Ok(Self { id, file, path })
    }

    /// Writes the header. `before`: the place up to which earlier segments must be intact.
    pub(super) fn begin(self, before: Watermark) -> io::Result<Segment> {
        self.file.write_all_at(&header(&self.id, before), 0)?;
        Ok(Segment {
            id: self.id,
            file: Arc::new(self.file),
            path: self.path,
            end: HEADER_BYTES as u32,
            last_sequence: 0,
            running: 0,
            needs_force: true,
            started_at: Instant::now(),
            started_ms: unix_ms(),
        })
    }
}

/// Returns lane and number of a segment from the name of its file.
pub fn parse_name(path: &Path) -> Option<(u32, u32)> {
    let name = path.file_name()?.to_str()?;
    let (lane, number) = name
        .strip_suffix(SUFFIX)?
        .strip_suffix('.')?
        .split_once('-')?;
    Some((lane.parse().ok()?, number.parse().ok()?))
}

/// Deletes the folder of a process.
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
