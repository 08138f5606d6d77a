//! The lock of a SQLite file: one server at a time works on it.
//!
//! Two servers on one file would starve each other, because SQLite has one writer. Commands beside a server need no lock:
//! their transactions are short. The lock is on a file of its own, because closing any handle of the database would give
//! up the locks that SQLite has on it.
//!
//! An upgrade is the exception: the new process gets the open file of the old one, and both hold its lock until the old one
//! has ended, so that no third process comes between.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::open::folder_of;
use super::secret::file_error;
use super::{StoreError, StoreUrl};
use crate::durable;

/// Keeps other servers off a SQLite file until it is dropped. The kernel gives the lock up if the process dies.
pub struct StoreLock {
    file: File,
}

impl AsFd for StoreLock {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
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
        Ok(Some(Self { file }))
    }

    /// Shares the lock of the process to which this one is the successor, which has passed its open file. If the
    /// configuration names another store now, the lock of that one is acquired.
    ///
    /// Errors: as [`Self::acquire`].
    pub fn share(url: &StoreUrl, passed: File) -> Result<Option<Self>, StoreError> {
        let StoreUrl::Sqlite(database) = url else {
            return Ok(None);
        };
        let path = lock_path(&real_path(database));
        let is_same = match (fs::metadata(&path), passed.metadata()) {
            (Ok(named), Ok(passed)) => (named.dev(), named.ino()) == (passed.dev(), passed.ino()),
            _ => false,
        };
        match is_same {
            true => Ok(Some(Self { file: passed })),
            false => Self::acquire(url),
        }
    }

    /// Writes this process into the file as the one that serves.
    ///
    /// Errors: the file system's.
    pub fn name_holder(&mut self) -> std::io::Result<()> {
        write_pid(&mut self.file)
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
    let file = options.mode(0o600).open(path)?;
    durable::give_to_owner_of(folder_of(path), &file)?;
    Ok(file)
}

/// Returns the process that holds the lock; `None` if it has not written its id yet.
fn read_pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

fn write_pid(file: &mut File) -> std::io::Result<()> {
    // A passed file is where the other process has left it.
    file.rewind()?;
    file.set_len(0)?;
    writeln!(file, "{}", std::process::id())
}
