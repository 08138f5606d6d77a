//! The lock of a SQLite file: one server at a time works on it.
//!
//! Two servers on one file would starve each other, because SQLite has one writer. Commands beside a server need no lock:
//! their transactions are short. The lock is on a file of its own, because closing any handle of the database would give
//! up the locks that SQLite has on it.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::open::folder_of;
use super::secret::file_error;
use super::{StoreError, StoreUrl};

/// Keeps other servers off a SQLite file until it is dropped. The kernel gives the lock up if the process dies.
pub struct StoreLock {
    _file: File,
}

impl StoreLock {
    /// Locks the file of a SQLite store; returns `None` for PostgreSQL, which several servers may share.
    ///
    /// Errors: [`StoreError::InUse`] if another server holds the lock, and errors of the file system.
    pub fn acquire(url: &StoreUrl) -> Result<Option<Self>, StoreError> {
        let StoreUrl::Sqlite(database) = url else {
            return Ok(None);
        };
        let folder = folder_of(database);
        fs::create_dir_all(folder).map_err(|error| file_error(folder, error))?;
        let database = real_path(database);
        let path = lock_path(&database);
        let mut file = open(&path).map_err(|error| file_error(&path, error))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let pid = read_pid(&mut file);
                return Err(StoreError::InUse { database, pid });
            }
            Err(TryLockError::Error(error)) => return Err(file_error(&path, error)),
        }
        write_pid(&mut file).map_err(|error| file_error(&path, error))?;
        Ok(Some(Self { _file: file }))
    }
}

/// Returns the path without links, so that two names of one file have one lock.
fn real_path(database: &Path) -> PathBuf {
    if let Ok(path) = database.canonicalize() {
        return path;
    }
    match (folder_of(database).canonicalize(), database.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => database.to_owned(),
    }
}

fn lock_path(database: &Path) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push(".lock");
    path.into()
}

fn open(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true).create(true).truncate(false);
    options.mode(0o600).open(path)
}

/// Returns the process that holds the lock; `None` if it has not written its id yet.
fn read_pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

fn write_pid(file: &mut File) -> std::io::Result<()> {
    file.set_len(0)?;
    writeln!(file, "{}", std::process::id())
}
