//! Queued events on disk, so that the next process sends the events that this one could not.
//!
//! Files are numbered and only appended to. A file is removed as soon as the backend has accepted all of its events.
//! After a kill in between, the next process sends some events twice, with the same ids.
//!
//! A process holds a lock on each of its files, and on those of an earlier process while it sends them. So a process takes
//! no events of one that still runs, as during an upgrade. What that one leaves, it finds later: [`EventSpool::find_left`].

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::de::IgnoredAny;

use crate::owned_file;

/// Beyond this size or age a new file is started, so that the old one can be removed.
const MAX_FILE_BYTES: u64 = 4 << 20;
const MAX_FILE_AGE: Duration = Duration::from_secs(10);

/// The files of one state folder.
pub(super) struct EventSpool {
    folder: PathBuf,
    next_number: u64,
    /// Oldest first. Bodies are appended to the last file.
    files: Vec<SpoolFile>,
}

struct SpoolFile {
    path: PathBuf,
    file: File,
    bytes: u64,
    since: Instant,
    last: u64,
}

impl SpoolFile {
    /// Removes the bytes of a failed write. If that fails too, the file counts as full.
    fn truncate(&mut self) {
        if self.file.set_len(self.bytes).is_err() {
            self.bytes = u64::MAX;
        }
    }
}

/// A file of an earlier process, and its bodies.
pub(super) struct LeftFile {
    pub(super) path: PathBuf,
    /// The bodies, ready to be sent.
    pub(super) bodies: Vec<Vec<u8>>,
    /// Keeps other processes from sending them too.
    _lock: File,
}

impl EventSpool {
    /// Returns the spool of a state folder, and the files that earlier processes left there, oldest first.
    pub(super) fn open(state_dir: &Path) -> (Self, Vec<LeftFile>) {
        let mut spool = Self {
            folder: state_dir.join("events"),
            next_number: 0,
            files: Vec::new(),
        };
        let left = spool.find_left();
        (spool, left)
    }

    /// Returns the files of processes that no longer run, oldest first.
    pub(super) fn find_left(&mut self) -> Vec<LeftFile> {
        let entries = fs::read_dir(&self.folder);
        if let Err(error) = &entries
            && error.kind() != io::ErrorKind::NotFound
        {
            log_failure(&self.folder, error);
        }
        let mut numbered: Vec<(u64, PathBuf)> = entries
            .into_iter()
            .flatten()
            .filter_map(|entry| {
                let path = entry.ok()?.path();
                let number = path.file_stem()?.to_str()?.parse().ok()?;
                Some((number, path))
            })
            .collect();
        numbered.sort_unstable();
        let next_number = numbered.last().map_or(0, |(number, _)| number + 1);
        self.next_number = self.next_number.max(next_number);
        // An unreadable file remains for a later start.
        let left = numbered.into_iter().filter_map(|(_, path)| {
            let read = read_left(&path);
            read.map_err(|error| log_failure(&path, &error)).ok()?
        });
        left.collect()
    }

    /// Appends bodies. `last` is the number of their last event.
    ///
    /// Errors: the disk fails.
    pub(super) fn append(&mut self, bodies: &[Vec<u8>], last: u64) -> io::Result<()> {
        let is_full =
            |file: &SpoolFile| file.bytes > MAX_FILE_BYTES || file.since.elapsed() > MAX_FILE_AGE;
        if self.files.last().is_none_or(is_full) {
            self.start_file()?;
        }
        let mut text = bodies.join(&b'\n');
        text.push(b'\n');
        if let Some(file) = self.files.last_mut() {
            if let Err(error) = file.file.write_all(&text) {
                file.truncate();
                return Err(error);
            }
            file.bytes += text.len() as u64;
            file.last = last;
        }
        Ok(())
    }

    fn start_file(&mut self) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let (path, file) = self.create_file()?;
        self.files.push(SpoolFile {
            path,
            file,
            bytes: 0,
            since: Instant::now(),
            last: 0,
        });
        Ok(())
    }

    /// Creates and locks a file under the next number that no other process has taken.
    fn create_file(&mut self) -> io::Result<(PathBuf, File)> {
        loop {
            let path = self.folder.join(format!("{:020}.jsonl", self.next_number));
            self.next_number += 1;
            if let Some(file) = owned_file::create(&path)? {
                return Ok((path, file));
            }
        }
    }

    /// Removes the files with only events up to `upto`, which the backend has accepted.
    pub(super) fn remove_taken(&mut self, upto: u64) {
        self.files.retain(|file| {
            let is_needed = file.last > upto;
            if !is_needed {
                remove(&file.path);
            }
            is_needed
        });
    }
}

/// Removes a file.
pub(super) fn remove(path: &Path) {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => log_failure(path, &error),
        _ => {}
    }
}

fn log_failure(path: &Path, error: &io::Error) {
    log::error!("events: {}: {error}", path.display());
}

/// Reads a file and its bodies, and locks it. Returns `None` if a running process has it.
fn read_left(path: &Path) -> io::Result<Option<LeftFile>> {
    let Some(lock) = owned_file::take_over(path)? else {
        return Ok(None);
    };
    let text = fs::read(path)?;
    Ok(Some(LeftFile {
        path: path.to_owned(),
        bodies: read_bodies(path, &text),
        _lock: lock,
    }))
}

/// Returns the bodies of a file. An incomplete last line is dropped: a kill interrupted its write.
fn read_bodies(path: &Path, text: &[u8]) -> Vec<Vec<u8>> {
    let end = text.iter().rposition(|&b| b == b'\n').unwrap_or_default();
    let lines = text.get(..end).unwrap_or_default().split(|&b| b == b'\n');
    let (bodies, broken): (Vec<&[u8]>, Vec<&[u8]>) = lines
        .filter(|line| !line.is_empty())
        .partition(|line| serde_json::from_slice::<IgnoredAny>(line).is_ok());
    if !broken.is_empty() {
        log::error!(
            "events: {}: {} lines are no JSON",
            path.display(),
            broken.len()
        );
    }
    bodies.into_iter().map(<[u8]>::to_vec).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use std::fs::OpenOptions;
    use std::os::unix::fs::MetadataExt;

    use super::*;

    fn texts(folder: &Path) -> Vec<Vec<Vec<u8>>> {
        let left = EventSpool::open(folder).1.into_iter();
        left.map(|left| left.bodies).collect()
    }

    fn bodies(texts: &[&str]) -> Vec<Vec<u8>> {
        texts.iter().map(|text| text.as_bytes().to_vec()).collect()
    }

    #[test]
    fn what_was_not_taken_is_there_for_the_next_process_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let (mut spool, left) = EventSpool::open(folder.path());
        assert!(left.is_empty());
        spool.append(&bodies(&["1", "2"]), 2).unwrap();
        spool.append(&bodies(&["3"]), 3).unwrap();
        let mode = fs::metadata(&spool.files[0].path).unwrap().mode();
        assert_eq!(mode & 0o777, 0o600);
        spool.remove_taken(2);
        drop(spool);
        let (mut next, left) = EventSpool::open(folder.path());
        assert_eq!(left[0].bodies, bodies(&["1", "2", "3"]));
        next.append(&bodies(&["4"]), 1).unwrap();
        next.remove_taken(1);
        remove(&left[0].path);
        drop(next);
        assert!(EventSpool::open(folder.path()).1.is_empty());
    }

    #[test]
    fn what_a_running_process_has_is_its_own_until_it_ends() {
        let folder = tempfile::tempdir().unwrap();
        let (mut old, _) = EventSpool::open(folder.path());
        old.append(&bodies(&["1"]), 1).unwrap();
        let (mut new, left) = EventSpool::open(folder.path());
        assert!(left.is_empty());
        new.append(&bodies(&["2"]), 1).unwrap();
        old.files[0].since -= MAX_FILE_AGE * 2;
        old.append(&bodies(&["3"]), 2).unwrap();
        assert!(
            new.find_left().is_empty(),
            "each has its files, and they do not share a number"
        );
        drop(old);
        let left = new.find_left();
        let found: Vec<_> = left.iter().map(|left| left.bodies.clone()).collect();
        assert_eq!(found, [bodies(&["1"]), bodies(&["3"])]);
        assert!(new.find_left().is_empty(), "they are found once");
        drop((new, left));
        assert_eq!(texts(folder.path()).len(), 3);
    }

    #[test]
    fn a_line_cut_by_a_kill_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let (mut spool, _) = EventSpool::open(folder.path());
        spool.append(&bodies(&["\"whole\""]), 1).unwrap();
        spool.files[0].file.write_all(b"{\"cut").unwrap();
        drop(spool);
        assert_eq!(
            EventSpool::open(folder.path()).1[0].bodies,
            bodies(&["\"whole\""])
        );
    }

    #[test]
    fn a_line_that_is_no_json_is_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let (mut spool, _) = EventSpool::open(folder.path());
        spool.append(&bodies(&["1", "{\"cut{}", "2"]), 3).unwrap();
        drop(spool);
        assert_eq!(texts(folder.path()), [bodies(&["1", "2"])]);
    }

    #[test]
    fn what_cannot_be_read_is_not_taken_for_empty() {
        let folder = tempfile::tempdir().unwrap();
        let unreadable = folder
            .path()
            .join("events")
            .join("00000000000000000007.jsonl");
        fs::create_dir_all(unreadable).unwrap();
        let (mut spool, left) = EventSpool::open(folder.path());
        assert!(left.is_empty());
        spool.append(&bodies(&["1"]), 1).unwrap();
        drop(spool);
        assert_eq!(texts(folder.path()), [bodies(&["1"])]);
    }

    #[test]
    fn what_was_written_in_part_is_taken_back() {
        let folder = tempfile::tempdir().unwrap();
        let (mut spool, _) = EventSpool::open(folder.path());
        spool.append(&bodies(&["1"]), 1).unwrap();
        spool.files[0].file.write_all(b"{\"half").unwrap();
        spool.files[0].truncate();
        spool.append(&bodies(&["2"]), 2).unwrap();
        drop(spool);
        assert_eq!(texts(folder.path()), [bodies(&["1", "2"])]);
    }

    #[test]
    fn where_a_write_failed_and_cannot_be_taken_back_another_file_is_begun() {
        let folder = tempfile::tempdir().unwrap();
        let (mut spool, _) = EventSpool::open(folder.path());
        spool.append(&bodies(&["1"]), 1).unwrap();
        let full = OpenOptions::new().append(true).open("/dev/full").unwrap();
        spool.files[0].file = full;
        spool.append(&bodies(&["2"]), 2).unwrap_err();
        spool.append(&bodies(&["2"]), 2).unwrap();
        drop(spool);
        assert_eq!(texts(folder.path()), [bodies(&["1"]), bodies(&["2"])]);
    }
}
