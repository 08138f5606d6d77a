//! Uploaded files. They are on disk while their requests run, and never completely in memory.
//!
//! A file has no name, so it disappears with its request, even if the process is killed. Workers read and write it
//! themselves, as they do the journal: it exists for seconds and seldom leaves the page cache. Another thread would
//! cost the memory that this saves.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use filters::fault::{Fault, FaultKind};
use filters::multipart::Form;
use filters::spooled_json::SpooledJson;
use uuid::Uuid;

use super::body_budget::{BodyBudget, BodyOwner, BodyReservation};

/// The folder under `store.state_dir`.
const FOLDER: &str = "uploads";
/// The bytes that are read at once.
const READ_BYTES: u64 = 64 << 10;

/// The folder of uploads, and their common budget.
pub struct Spool {
    folder: PathBuf,
    budget: Arc<BodyBudget>,
}

/// A complete body that is not completely in memory.
pub struct UploadedBody {
    /// The part in memory.
    pub content: UploadedContent,
    /// The rest: files or data, one after the other.
    pub upload: Arc<Upload>,
}

/// The part of an uploaded body that is in memory.
pub enum UploadedContent {
    /// A form without the bytes of its files.
    Form(Form),
    /// JSON without the long data of data URLs.
    Json(SpooledJson),
}

/// Uploaded bytes of a client.
pub struct Upload {
    file: File,
    /// The reserved disk space, until the upload is dropped.
    _reservation: BodyReservation,
}

/// An upload that is arriving.
pub struct UploadWriter {
    file: File,
    reservation: BodyReservation,
    /// Bytes that are not written yet.
    pending: Vec<u8>,
}

impl Spool {
    /// Creates the folder. All uploads together may take `max_bytes`.
    ///
    /// Errors: the file system failed.
    pub fn new(state_dir: &Path, max_bytes: usize) -> io::Result<Self> {
        let folder = state_dir.join(FOLDER);
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)?;
        // A killed process may have left the name of an empty file.
        for left in fs::read_dir(&folder)? {
            remove(&left?.path())?;
        }
        Ok(Self {
            folder,
            budget: Arc::new(BodyBudget::new(max_bytes)),
        })
    }

    /// Sets how many bytes all uploads together may take. Running uploads keep theirs.
    pub fn set_max_bytes(&self, max_bytes: usize) {
        self.budget.set_max_bytes(max_bytes);
    }

    /// Returns the bytes reserved by the uploads of running requests.
    pub fn reserved_bytes(&self) -> usize {
        self.budget.reserved_bytes()
    }

    /// Begins an upload of this owner.
    ///
    /// Errors: 529 if no file can be created.
    pub fn begin(&self, owner: BodyOwner) -> Result<UploadWriter, Fault> {
        let path = self.folder.join(Uuid::now_v7().simple().to_string());
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .and_then(|file| remove(&path).map(|()| file))
            .map_err(|error| no_place(&error))?;
        Ok(UploadWriter {
            file,
            reservation: self.budget.reservation(owner),
            pending: Vec::new(),
        })
    }
}

impl UploadWriter {
    /// Reserves disk space for this many bytes in total.
    ///
    /// Errors: 529 if other uploads take the space.
    pub fn reserve(&mut self, bytes: usize) -> Result<(), Fault> {
        self.reservation.grow_to(bytes).map_err(|_| {
            let message = "other uploads take all place for them: try again in a second";
            Fault::new(FaultKind::Overloaded, message).with_retry_after_s(1)
        })
    }

    /// Returns the buffer of bytes that the next [`Self::write`] writes.
    pub fn pending(&mut self) -> &mut Vec<u8> {
        &mut self.pending
    }

    /// Writes the pending bytes.
    ///
    /// Errors: 529 if the disk is full or fails.
    pub fn write(&mut self) -> Result<(), Fault> {
        let written = self.file.write_all(&self.pending);
        self.pending.clear();
        written.map_err(|error| no_place(&error))
    }

    /// Ends the upload after all bytes were written.
    pub fn finish(self) -> Upload {
        Upload {
            file: self.file,
            _reservation: self.reservation,
        }
    }
}

/// Removes a name. Another starting process may have removed it already.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn no_place(error: &io::Error) -> Fault {
    let message = "uploads cannot be taken at the moment: try again in a second";
    let fault = Fault::new(FaultKind::Overloaded, message).with_retry_after_s(1);
    fault.with_detail(format!("the file of an upload: {error}"))
}

/// A piece of the body of an upstream request.
#[derive(Clone)]
pub enum BodyPiece {
    Bytes(Bytes),
    Upload(Arc<Upload>, Range<u64>),
}

impl From<Bytes> for BodyPiece {
    fn from(bytes: Bytes) -> Self {
        Self::Bytes(bytes)
    }
}

impl BodyPiece {
    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Upload(_, range) => {
                usize::try_from(range.end - range.start).unwrap_or(usize::MAX)
            }
        }
    }

    /// Returns whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes of a piece in memory.
    pub fn in_memory(&self) -> Option<&Bytes> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Upload(..) => None,
        }
    }

    /// Returns the bytes from `at` on, up to the number that is sent at once.
    ///
    /// Errors: an upload cannot be read.
    pub fn read(&self, at: u64) -> io::Result<Bytes> {
        let (upload, range) = match self {
            Self::Bytes(bytes) => return Ok(bytes.slice((at as usize).min(bytes.len())..)),
            Self::Upload(upload, range) => (upload, range),
        };
        let start = range.start.saturating_add(at);
        let length = range.end.saturating_sub(start).min(READ_BYTES);
        let mut bytes = vec![0; length as usize];
        upload.file.read_exact_at(&mut bytes, start)?;
        Ok(bytes.into())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn owner() -> BodyOwner {
        Some("org_1".into())
    }

    fn spool(max_bytes: usize) -> (tempfile::TempDir, Spool) {
        let folder = tempfile::tempdir().unwrap();
        let spool = Spool::new(folder.path(), max_bytes).unwrap();
        (folder, spool)
    }

    #[test]
    fn a_running_upload_keeps_its_space_under_a_smaller_maximum() {
        let (_folder, spool) = spool(1600);
        let mut running = spool.begin(owner()).unwrap();
        running.reserve(800).unwrap();
        spool.set_max_bytes(400);
        assert_eq!(spool.reserved_bytes(), 800);
        assert_eq!(running.reserve(801).unwrap_err().status(), 529);
        drop(running.finish());
        spool.begin(owner()).unwrap().reserve(100).unwrap();
    }

    #[test]
    fn an_upload_is_read_back_in_pieces_and_leaves_nothing() {
        let (folder, spool) = spool(1 << 20);
        let mut writer = spool.begin(owner()).unwrap();
        let sent: Vec<u8> = (0..300_000_u32).map(|at| at as u8).collect();
        for piece in sent.chunks(70_000) {
            writer.reserve(300_000).unwrap();
            writer.pending().extend_from_slice(piece);
            writer.write().unwrap();
            assert!(writer.pending().is_empty());
        }
        let upload = Arc::new(writer.finish());
        assert_eq!(spool.reserved_bytes(), 300_000);
        let uploads = folder.path().join(FOLDER);
        assert_eq!(fs::read_dir(&uploads).unwrap().count(), 0);
        let piece = BodyPiece::Upload(upload, 5..299_990);
        let mut read = Vec::new();
        while read.len() < piece.len() {
            let next = piece.read(read.len() as u64).unwrap();
            assert!(!next.is_empty() && next.len() as u64 <= READ_BYTES);
            read.extend_from_slice(&next);
        }
        assert_eq!(read, sent[5..299_990]);
        drop(piece);
        assert_eq!(spool.reserved_bytes(), 0);
    }

    #[test]
    fn uploads_share_their_place() {
        let (_folder, spool) = spool(100);
        let begin = || spool.begin(owner()).unwrap();
        let (mut first, mut second) = (begin(), begin());
        first.reserve(60).unwrap();
        let refused = second.reserve(60).unwrap_err();
        assert_eq!((refused.status(), refused.retry_after_s), (529, Some(1)));
        drop(first);
        second.reserve(60).unwrap();
    }

    #[test]
    fn what_a_killed_process_has_left_is_removed() {
        let (folder, spool) = spool(1);
        fs::write(spool.folder.join("left"), "").unwrap();
        drop(spool);
        Spool::new(folder.path(), 1).unwrap();
        assert_eq!(fs::read_dir(folder.path().join(FOLDER)).unwrap().count(), 0);
    }
}
