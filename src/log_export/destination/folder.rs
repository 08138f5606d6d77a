//! Batches as files of a folder.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use super::Batch;
use crate::durable;

/// Those of the user's group may read what is exported.
const MODE: u32 = 0o640;

/// The folder.
pub(super) struct Folder(pub(super) PathBuf);

impl Folder {
    /// Writes a batch to its file, which has its name once it is whole.
    ///
    /// Errors: the file system's, with the path.
    pub(super) fn write(&self, batch: &Batch) -> io::Result<()> {
        let path = self.0.join(batch.name.to_object());
        let draft = path.with_added_extension("new");
        let write = || {
            if let Some(folder) = path.parent() {
                durable::create_folders(folder)?;
            }
            let mut options = OpenOptions::new();
            let options = options.write(true).create(true).truncate(true).mode(MODE);
            let mut file = options.open(&draft)?;
            file.write_all(&batch.body)?;
            file.sync_all()?;
            durable::rename(&draft, &path)
        };
        write().map_err(|error| {
            _ = fs::remove_file(&draft);
            io::Error::new(error.kind(), format!("{}: {error}", path.display()))
        })
    }

    /// Errors: the folder cannot be written.
    pub(super) fn try_out(&self) -> io::Result<()> {
        let name = |error: io::Error| {
            io::Error::new(error.kind(), format!("{}: {error}", self.0.display()))
        };
        // A folder that is not there yet is made where its nearest one can be written.
        let nearest = self.0.ancestors().find(|above| above.is_dir());
        let nearest = nearest.map_or_else(|| PathBuf::from("."), PathBuf::from);
        let draft = nearest.join(format!(".weirgate-{}", std::process::id()));
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&draft)
            .map_err(name)?;
        fs::remove_file(&draft).map_err(name)
    }
}
