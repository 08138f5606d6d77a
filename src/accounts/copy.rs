//! A copy of the accounts on disk. A process starts from it while a store on another machine does not respond.
//!
//! The file has a line per row, as in the store: keys are hashes, and BYOK keys are encrypted. Changes are appended,
//! and the last row of an id counts, so a revocation is in the file as soon as it is in force. A line with the
//! revision makes the lines before it valid.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, ErrorKind, IntoInnerError, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::durable;
use crate::store::{AccountRecord, LoadedAccounts, RecordedAccounts};

/// The name of the file in the state folder.
const FILE: &str = "accounts.jsonl";
/// The version of the format, in the first line. A file of a later version is not read: a row that this one does not know may
/// end what is known of a key.
const FORM: u32 = 2;
/// The file is rewritten once more lines were appended than this, and than it began with.
const MIN_APPENDED: usize = 10_000;

/// The first line: the format, and the store of the accounts.
#[derive(Deserialize, Serialize)]
struct Head {
    form: u32,
    store: String,
}

/// The copy of one store.
pub struct AccountsCopy {
    path: PathBuf,
    store: String,
    file: Option<File>,
    base_lines: usize,
    appended_lines: usize,
}

/// A file that is being written, or the error that ended the writing.
pub(super) struct Draft {
    path: PathBuf,
    out: io::Result<BufWriter<File>>,
    lines: usize,
}

impl AccountsCopy {
    /// Makes the copy in a folder. `store` identifies the store; the copy of another store is not read.
    pub fn new(state_dir: &Path, store: &str) -> Self {
        Self {
            path: state_dir.join(FILE),
            store: store.to_owned(),
            file: None,
            base_lines: 0,
            appended_lines: 0,
        }
    }

    /// Reads the accounts, or returns `None` if there is no complete copy of this store.
    pub(super) fn read(&self) -> Option<LoadedAccounts> {
        let mut lines = BufReader::new(File::open(&self.path).ok()?).split(b'\n');
        let head: Head = serde_json::from_slice(&lines.next()?.ok()?).ok()?;
        if head.store != self.store || head.form > FORM {
            return None;
        }
        let mut recorded = RecordedAccounts::default();
        let mut pending = Vec::new();
        let mut has_revision = false;
        // A line that was cut short ends the copy before it.
        while let Some(Ok(line)) = lines.next() {
            let Ok(record) = serde_json::from_slice::<AccountRecord>(&line) else {
                break;
            };
            let is_revision = matches!(record, AccountRecord::Revision(_));
            pending.push(record);
            if is_revision {
                has_revision = true;
                pending.drain(..).for_each(|record| recorded.add(record));
            }
        }
        has_revision.then(|| recorded.load())
    }

    /// Begins a new copy. [`Self::replace`] puts it in place of this one.
    pub(super) fn begin(&self) -> Draft {
        let path = self.path.with_extension("new");
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(true).mode(0o600);
        let mut draft = Draft {
            out: options.open(&path).map(BufWriter::new),
            path,
            lines: 0,
        };
        draft.write(&self.head());
        draft
    }

    /// Replaces this copy by a new one.
    ///
    /// Errors: the file system failed, now or at an earlier line. Then there is no copy at all: the old one lacks
    /// recent changes, and could make a revoked key valid again.
    pub(super) fn replace(&mut self, draft: Draft) -> io::Result<()> {
        let path = draft.path.clone();
        let replaced = self.try_replace(draft);
        if replaced.is_err() {
            _ = fs::remove_file(path);
            self.remove();
        }
        replaced
    }

    fn try_replace(&mut self, draft: Draft) -> io::Result<()> {
        let file = draft.out?.into_inner();
        let file = file.map_err(IntoInnerError::into_error)?;
        durable::rename(&draft.path, &self.path)?;
        self.file = Some(file);
        (self.base_lines, self.appended_lines) = (draft.lines, 0);
        Ok(())
    }

    /// Appends rows that have come into force.
    ///
    /// Errors: the file system failed. Then there is no copy at all, as with [`Self::replace`].
    pub(super) fn append(&mut self, records: &[AccountRecord]) -> io::Result<()> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        let mut bytes = Vec::new();
        for record in records {
            serde_json::to_writer(&mut bytes, record)?;
            bytes.push(b'\n');
        }
        self.appended_lines += records.len();
        let written = file.write_all(&bytes);
        if written.is_err() {
            self.remove();
        }
        written
    }

    fn remove(&mut self) {
        (self.base_lines, self.appended_lines) = (0, 0);
        self.file = None;
        if let Err(error) = fs::remove_file(&self.path)
            && error.kind() != ErrorKind::NotFound
        {
            log::warn!("{}: it may have revoked keys: {error}", self.path.display());
        }
    }

    /// Returns whether the copy should be rewritten.
    pub(super) fn is_long(&self) -> bool {
        self.appended_lines > self.base_lines.max(MIN_APPENDED)
    }

    fn head(&self) -> Head {
        Head {
            form: FORM,
            store: self.store.clone(),
        }
    }
}

impl Draft {
    /// Writes a line.
    pub(super) fn write(&mut self, record: &impl Serialize) {
        self.lines += 1;
        if let Ok(out) = &mut self.out
            && let Err(error) = write_line(out, record)
        {
            self.out = Err(error);
        }
    }

    /// Waits until the lines are on disk. Another thread does the waiting, because this one has other work.
    pub(super) async fn sync(&mut self) {
        if let Ok(out) = &mut self.out
            && let Err(error) = sync(out).await
        {
            self.out = Err(error);
        }
    }
}

fn write_line(out: &mut impl Write, record: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, record)?;
    out.write_all(b"\n")
}

async fn sync(out: &mut BufWriter<File>) -> io::Result<()> {
    out.flush()?;
    let file = out.get_ref().try_clone()?;
    let synced = tokio::task::spawn_blocking(move || file.sync_data()).await;
    synced.map_err(io::Error::other).flatten()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn read(copy: &AccountsCopy) -> Option<i64> {
        let loaded = copy.read()?;
        Some(loaded.snapshot.revision())
    }

    #[tokio::test]
    async fn what_a_revision_ends_counts_and_a_line_that_was_cut_short_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let mut copy = AccountsCopy::new(folder.path(), "postgres://a");
        assert_eq!(read(&copy), None);
        let mut draft = copy.begin();
        draft.sync().await;
        copy.replace(draft).unwrap();
        assert_eq!(read(&copy), None, "no revision");
        copy.append(&[AccountRecord::Revision(7)]).unwrap();
        assert_eq!(read(&copy), Some(7));
        let path = folder.path().join(FILE);
        let mut text = fs::read_to_string(&path).unwrap();
        text.push_str("{\"revision\":8");
        fs::write(&path, text).unwrap();
        assert_eq!(read(&copy), Some(7));
        assert_eq!(
            read(&AccountsCopy::new(folder.path(), "postgres://b")),
            None,
            "another store"
        );
    }

    #[tokio::test]
    async fn a_copy_that_cannot_follow_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let mut copy = AccountsCopy::new(folder.path(), "postgres://a");
        copy.replace(copy.begin()).unwrap();
        copy.append(&[AccountRecord::Revision(7)]).unwrap();
        assert_eq!(read(&copy), Some(7));
        // A file that is open for reading alone refuses to be written.
        copy.file = Some(File::open(folder.path().join(FILE)).unwrap());
        assert!(copy.append(&[AccountRecord::Revision(8)]).is_err());
        assert_eq!(read(&copy), None);
        copy.append(&[AccountRecord::Revision(9)]).unwrap();
        assert_eq!(read(&copy), None);
        let mut draft = copy.begin();
        draft.out = Err(ErrorKind::StorageFull.into());
        assert!(copy.replace(draft).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
