//! A new file that gets its name once it is whole.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The permissions of a file that only its owner may read.
pub const PRIVATE: u32 = 0o600;
/// The permissions of other files, as far as the process's mask leaves them.
pub const SHARED: u32 = 0o666;

/// A file that is being written. Dropped before [`Self::publish`], it leaves nothing.
#[derive(Debug)]
pub struct NewFile {
    path: PathBuf,
    /// Under this name it is written: a file that fails halfway must not look like a whole one.
    draft: PathBuf,
    file: File,
}

impl NewFile {
    /// Creates the file under another name beside `path`, with these permissions.
    ///
    /// Errors: [`ErrorKind::AlreadyExists`] if `path` exists, and others of the file system.
    pub fn create(path: &Path, permissions: u32) -> io::Result<Self> {
        if path.exists() {
            return Err(ErrorKind::AlreadyExists.into());
        }
        let mut draft = path.as_os_str().to_owned();
        draft.push(format!(".{}", uuid::Uuid::now_v7()));
        let mut options = OpenOptions::new();
        let options = options.write(true).create_new(true).mode(permissions);
        Ok(Self {
            file: options.open(&draft)?,
            path: path.to_owned(),
            draft: draft.into(),
        })
    }

    /// Returns the name under which the file is written.
    pub fn draft(&self) -> &Path {
        &self.draft
    }

    /// Returns the open file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Gives the file its name and returns its size. A link never replaces a file that appeared meanwhile.
    ///
    /// Errors: [`ErrorKind::AlreadyExists`] if it did, and others of the file system.
    pub fn publish(self) -> io::Result<u64> {
        self.file.sync_all()?;
        super::link(&self.draft, &self.path)?;
        Ok(fs::metadata(&self.path)?.len())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        // A draft that stays has the same permissions as the file, so a failure is harmless.
        _ = fs::remove_file(&self.draft);
    }
}
