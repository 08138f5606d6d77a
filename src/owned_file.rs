//! Files that one process owns by a lock, so that what a process leaves behind is taken over by one other, and by none while it
//! lives. A kill frees its locks.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Creates a file that this process owns, readable by its user alone. What is written is appended. `None`: the name is taken.
///
/// Errors: the file system's.
pub fn create(path: &Path) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    let options = options.create_new(true).append(true).read(true).mode(0o600);
    match options.open(path) {
        // Another process may have found the file empty, and removes it.
        Ok(file) => lock(file),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
        Err(error) => Err(error),
    }
}

/// Takes over a file of a process that no longer runs. `None`: a running process owns it, or has just removed it.
///
/// Errors: the file system's.
pub fn take_over(path: &Path) -> io::Result<Option<File>> {
    let opened = OpenOptions::new().read(true).append(true).open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let Some(file) = lock(file)? else {
        return Ok(None);
    };
    // Its owner may have removed it between the two steps.
    let named = match fs::metadata(path) {
        Ok(named) => named,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let opened = file.metadata()?;
    let is_same = (opened.dev(), opened.ino()) == (named.dev(), named.ino());
    Ok(is_same.then_some(file))
}

fn lock(file: File) -> io::Result<Option<File>> {
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn a_file_is_taken_over_once_and_not_while_its_owner_lives() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let mut file = create(&path).unwrap().unwrap();
        file.write_all(b"text").unwrap();
        assert!(create(&path).unwrap().is_none());
        assert!(take_over(&path).unwrap().is_none());
        drop(file);
        let mut taken = take_over(&path).unwrap().unwrap();
        let mut text = String::new();
        taken.read_to_string(&mut text).unwrap();
        assert_eq!(text, "text");
        assert!(take_over(&path).unwrap().is_none());
        fs::remove_file(&path).unwrap();
        assert!(take_over(&path).unwrap().is_none());
    }
}
