//! A new file that gets its name once it is whole.

use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::StoreError;
use super::secret::file_error;
use crate::durable;

/// A file that is being written, readable only by its owner. Dropped before [`Self::publish`], it leaves nothing.
pub(super) struct NewFile {
    path: PathBuf,
    /// Under this name it is written: a file that fails halfway must not look like a whole one.
    draft: PathBuf,
    file: File,
}

impl NewFile {
    /// Creates the file under another name beside `path`.
    ///
    /// Errors: `path` exists already, or the file system's.
    pub(super) fn create(path: &Path) -> Result<Self, StoreError> {
        if path.exists() {
            return Err(file_error(path, ErrorKind::AlreadyExists.into()));
        }
        let mut draft = path.as_os_str().to_owned();
        draft.push(format!(".{}", uuid::Uuid::now_v7()));
        let mut options = OpenOptions::new();
        let options = options.write(true).create_new(true).mode(0o600);
        let file = options.open(&draft);
        Ok(Self {
            file: file.map_err(|error| file_error(path, error))?,
            path: path.to_owned(),
            draft: draft.into(),
        })
    }

    /// Returns the name under which the file is written.
    pub(super) fn draft(&self) -> &Path {
        &self.draft
    }

    /// Returns the open file.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Gives the file its name and returns its size. A link never replaces a file that appeared meanwhile.
    pub(super) fn publish(self) -> Result<u64, StoreError> {
        let named = self.file.sync_all();
        let named = named.and_then(|()| durable::link(&self.draft, &self.path));
        let length = named.and_then(|()| fs::metadata(&self.path));
        let length = length.map_err(|error| file_error(&self.path, error))?;
        Ok(length.len())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        // A draft that stays has the same permissions as the file, so a failure is harmless.
        _ = fs::remove_file(&self.draft);
    }
}
