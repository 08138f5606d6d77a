//! The journal's files: one folder per process, in it segments of one size, filled with zeros beforehand.
//!
//! A segment exists in full before anything is written to it: a disk that fills up is noticed one segment ahead,
//! while calls that run still have room, and forcing a record to the disk does not have to grow a file.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, SystemTime};

use filters::ledger::journal::{HEADER, header};

use super::error::{LedgerError, file};

/// The folder under `store.state_dir`.
pub const FOLDER: &str = "journal";
/// What ends the name of a segment.
pub const SUFFIX: &str = "wal";
/// The file whose lock says that the folder's process lives.
pub const LOCK: &str = "lock";
/// Bytes of a segment.
pub const SEGMENT: u64 = 2 << 20;
/// How long a full segment waits for the next one, which is being made: less than an answer waits for its record.
const SPARE_WITHIN: Duration = Duration::from_secs(3);

/// The segments of this process.
pub struct SegmentFiles {
    folder: PathBuf,
    owner: [u8; 16],
    current: Segment,
    /// Full segments with something that is not in the store yet, and the last sequence number in each.
    full: VecDeque<(Segment, u64)>,
    spares: mpsc::Receiver<io::Result<Segment>>,
    wanted: mpsc::Sender<u64>,
    maker: std::thread::JoinHandle<()>,
    next: u64,
    /// Held while the process lives.
    _lock: File,
}

struct Segment {
    file: File,
    path: PathBuf,
    offset: u64,
    begun: SystemTime,
}

impl SegmentFiles {
    /// Makes the folder and the first segment.
    ///
    /// Errors: what the file system said.
    pub fn create(state_dir: &Path, owner: [u8; 16]) -> Result<Self, LedgerError> {
        let name: String = owner.iter().map(|byte| format!("{byte:02x}")).collect();
        let folder = state_dir.join(FOLDER).join(name);
        fs::create_dir_all(&folder).map_err(file(&folder))?;
        let lock = lock(&folder)?;
        lock.try_lock()
            .map_err(|error| file(&folder)(io::Error::other(error)))?;
        let mut current = segment(&folder, 1).map_err(file(&folder))?;
        begin(&mut current, &owner).map_err(file(&folder))?;
        let (wanted, numbers) = mpsc::channel::<u64>();
        let (made, spares) = mpsc::channel();
        let place = folder.clone();
        let maker = move || {
            for number in numbers {
                if made.send(segment(&place, number)).is_err() {
                    return;
                }
            }
        };
        let maker = std::thread::Builder::new()
            .name("journal-spare".to_owned())
            .spawn(maker)
            .map_err(file(&folder))?;
        // It cannot be gone: it lives until this sender is dropped.
        _ = wanted.send(2);
        Ok(Self {
            folder,
            owner,
            current,
            full: VecDeque::new(),
            spares,
            wanted,
            maker,
            next: 3,
            _lock: lock,
        })
    }

    /// Whether `bytes` more fit into the current segment.
    pub fn has_room(&self, bytes: usize) -> bool {
        self.current.offset + bytes as u64 <= SEGMENT
    }

    /// How full the current segment is, 0 to 1.
    pub fn fullness(&self) -> f64 {
        self.current.offset as f64 / SEGMENT as f64
    }

    /// Whether something is in the current segment that was begun so long ago.
    pub fn is_old(&self, age: Duration) -> bool {
        let current = &self.current;
        // A clock that was set back says nothing.
        let is_old = current.begun.elapsed().is_ok_and(|elapsed| elapsed >= age);
        is_old && current.offset > HEADER as u64
    }

    /// When the oldest segment was begun.
    pub fn since(&self) -> SystemTime {
        let oldest = self
            .full
            .front()
            .map_or(&self.current, |(oldest, _)| oldest);
        oldest.begun
    }

    /// Bytes on disk.
    pub fn bytes(&self) -> u64 {
        (self.full.len() as u64 + 1) * SEGMENT
    }

    /// Writes behind what was written last. What fails leaves nothing behind: the next one goes to the same place.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let current = &mut self.current;
        current.file.write_all_at(bytes, current.offset)?;
        current.offset += bytes.len() as u64;
        Ok(())
    }

    /// Forces what was written to the disk.
    pub fn sync(&self) -> io::Result<()> {
        self.current.file.sync_data()
    }

    /// Begins the next segment, and waits for it where the current one is full; `sequence` is the last number in the
    /// one that ends.
    ///
    /// Errors: there is no room for a further segment, or it is not there yet; the current one stays.
    pub fn rotate(&mut self, sequence: u64, is_full: bool) -> io::Result<()> {
        self.sync()?;
        let patience = if is_full {
            SPARE_WITHIN
        } else {
            Duration::ZERO
        };
        let mut next = match self.spares.recv_timeout(patience) {
            Ok(Ok(spare)) => spare,
            Ok(Err(error)) => {
                // It is tried again, so that freed space is noticed.
                _ = self.wanted.send(self.next - 1);
                return Err(error);
            }
            Err(_) => return Err(io::ErrorKind::WouldBlock.into()),
        };
        begin(&mut next, &self.owner)?;
        _ = self.wanted.send(self.next);
        self.next += 1;
        let ended = std::mem::replace(&mut self.current, next);
        self.full.push_back((ended, sequence));
        Ok(())
    }

    /// Deletes the full segments of which everything is in the store.
    pub fn forget(&mut self, stored: u64) {
        while self.full.front().is_some_and(|(_, last)| *last <= stored) {
            if let Some((Segment { path, .. }, _)) = self.full.pop_front()
                && let Err(error) = fs::remove_file(&path)
            {
                log::warn!("{}: {error}", path.display());
            }
        }
    }

    /// Deletes everything: nothing is left that is not in the store.
    pub fn remove(self) {
        // Who makes segments would put one into the folder that goes.
        drop(self.wanted);
        _ = self.maker.join();
        remove(&self.folder);
    }
}

/// Deletes the folder of a process that is gone.
pub fn remove(folder: &Path) {
    if let Err(error) = fs::remove_dir_all(folder) {
        log::warn!("{}: {error}", folder.display());
    }
}

/// The file whose lock says that the folder's process lives.
pub fn lock(folder: &Path) -> Result<File, LedgerError> {
    let path = folder.join(LOCK);
    let mut options = OpenOptions::new();
    let options = options.write(true).create(true).truncate(false).mode(0o600);
    options.open(&path).map_err(file(&path))
}

/// Makes a segment of zeros that is on the disk, name and all.
fn segment(folder: &Path, number: u64) -> io::Result<Segment> {
    let path = folder.join(format!("{number:08}.{SUFFIX}"));
    let made = fill(&path);
    if made.is_err() {
        // Half a segment only takes the room that is missing.
        _ = fs::remove_file(&path);
    }
    let file = made?;
    File::open(folder)?.sync_all()?;
    Ok(Segment {
        file,
        path,
        offset: 0,
        begun: SystemTime::now(),
    })
}

fn fill(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let options = options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = options.open(path)?;
    let zeros = [0; 64 << 10];
    for _ in 0..SEGMENT / zeros.len() as u64 {
        file.write_all(&zeros)?;
    }
    file.sync_all()?;
    Ok(file)
}

fn begin(segment: &mut Segment, owner: &[u8; 16]) -> io::Result<()> {
    segment.file.write_all_at(&header(owner), 0)?;
    segment.offset = HEADER as u64;
    segment.begun = SystemTime::now();
    Ok(())
}
