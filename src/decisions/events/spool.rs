//! Events that wait for the backend, on disk: what a process could not send before it ended, the next one does.
//!
//! Files are numbered and only ever appended to; one goes as soon as all that it holds has been taken. A kill between
//! the backend's word and that makes the next start send some twice, under the same ids.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::de::IgnoredAny;

/// A file is not appended to any more above this size or age, so that it can go while others come.
const MOST_BYTES: u64 = 4 << 20;
const MOST_AGE: Duration = Duration::from_secs(10);

/// The files of one state folder.
pub(super) struct Spool {
    folder: PathBuf,
    next_number: u64,
    /// Oldest first; the last one is appended to.
    files: Vec<SpoolFile>,
}

struct SpoolFile {
    path: PathBuf,
    file: File,
    bytes: u64,
    since: Instant,
    /// The last event in it.
    last: u64,
}

impl SpoolFile {
    /// Takes back what was written in part; where that cannot be, nothing more is written behind it.
    fn mend(&mut self) {
        if self.file.set_len(self.bytes).is_err() {
            self.bytes = u64::MAX;
        }
    }
}

/// What an earlier process left: the file, and the bodies in it.
pub(super) struct Left {
    /// Where they stand.
    pub(super) path: PathBuf,
    /// As they are to be sent.
    pub(super) bodies: Vec<Vec<u8>>,
}

impl Spool {
    /// The spool in a state folder, and what an earlier process left there, oldest first.
    pub(super) fn open(state_dir: &Path) -> (Self, Vec<Left>) {
        let folder = state_dir.join("events");
        let entries = fs::read_dir(&folder);
        if let Err(error) = &entries
            && error.kind() != io::ErrorKind::NotFound
        {
            tell(&folder, error);
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
        // What cannot be read stays where it is, for a start that can.
        let left = numbered.into_iter().filter_map(|(_, path)| {
            let text = fs::read(&path).map_err(|error| tell(&path, &error)).ok()?;
            let bodies = whole(&path, &text);
            Some(Left { path, bodies })
        });
        let left = left.collect();
        let spool = Self {
            folder,
            next_number,
            files: Vec::new(),
        };
        (spool, left)
    }

    /// Appends bodies; `last` is the number of the last event in them.
    ///
    /// Errors: the disk's.
    pub(super) fn append(&mut self, bodies: &[Vec<u8>], last: u64) -> io::Result<()> {
        let is_worn = |kept: &SpoolFile| kept.bytes > MOST_BYTES || kept.since.elapsed() > MOST_AGE;
        if self.files.last().is_none_or(is_worn) {
            self.begin()?;
        }
        let mut text = bodies.join(&b'\n');
        text.push(b'\n');
        if let Some(kept) = self.files.last_mut() {
            if let Err(error) = kept.file.write_all(&text) {
                kept.mend();
                return Err(error);
            }
            kept.bytes += text.len() as u64;
            kept.last = last;
        }
        Ok(())
    }

    fn begin(&mut self) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let path = self.folder.join(format!("{:020}.jsonl", self.next_number));
        let file = OpenOptions::new()
            .create_new(true)
            .append(true)
            .open(&path)?;
        self.next_number += 1;
        self.files.push(SpoolFile {
            path,
            file,
            bytes: 0,
            since: Instant::now(),
            last: 0,
        });
        Ok(())
    }

    /// Everything up to this event has been taken.
    pub(super) fn taken(&mut self, upto: u64) {
        self.files.retain(|kept| {
            let is_needed = kept.last > upto;
            if !is_needed {
                remove(&kept.path);
            }
            is_needed
        });
    }
}

/// Removes a file all of which has been taken.
pub(super) fn remove(path: &Path) {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => tell(path, &error),
        _ => {}
    }
}

fn tell(path: &Path, error: &io::Error) {
    log::error!("events: {}: {error}", path.display());
}

/// The bodies of a file: a line without an end was being written when the process was killed.
fn whole(path: &Path, text: &[u8]) -> Vec<Vec<u8>> {
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
    use super::*;

    fn texts(folder: &Path) -> Vec<Vec<Vec<u8>>> {
        let left = Spool::open(folder).1.into_iter();
        left.map(|left| left.bodies).collect()
    }

    fn bodies(texts: &[&str]) -> Vec<Vec<u8>> {
        texts.iter().map(|text| text.as_bytes().to_vec()).collect()
    }

    #[test]
    fn what_was_not_taken_is_there_for_the_next_process_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let (mut spool, left) = Spool::open(folder.path());
        assert!(left.is_empty());
        spool.append(&bodies(&["1", "2"]), 2).unwrap();
        spool.append(&bodies(&["3"]), 3).unwrap();
        spool.taken(2);
        drop(spool);
        let (mut next, left) = Spool::open(folder.path());
        assert_eq!(left[0].bodies, bodies(&["1", "2", "3"]));
        next.append(&bodies(&["4"]), 1).unwrap();
        next.taken(1);
        remove(&left[0].path);
        assert!(Spool::open(folder.path()).1.is_empty());
    }

    #[test]
    fn a_line_cut_by_a_kill_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let (mut spool, _) = Spool::open(folder.path());
        spool.append(&bodies(&["\"whole\""]), 1).unwrap();
        spool.files[0].file.write_all(b"{\"cut").unwrap();
        assert_eq!(
            Spool::open(folder.path()).1[0].bodies,
            bodies(&["\"whole\""])
        );
    }

    #[test]
    fn a_line_that_is_no_json_is_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let (mut spool, _) = Spool::open(folder.path());
        spool.append(&bodies(&["1", "{\"cut{}", "2"]), 3).unwrap();
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
        let (mut spool, left) = Spool::open(folder.path());
        assert!(left.is_empty());
        spool.append(&bodies(&["1"]), 1).unwrap();
        assert_eq!(texts(folder.path()), [bodies(&["1"])]);
    }

    #[test]
    fn what_was_written_in_part_is_taken_back() {
        let folder = tempfile::tempdir().unwrap();
        let (mut spool, _) = Spool::open(folder.path());
        spool.append(&bodies(&["1"]), 1).unwrap();
        spool.files[0].file.write_all(b"{\"half").unwrap();
        spool.files[0].mend();
        spool.append(&bodies(&["2"]), 2).unwrap();
        assert_eq!(texts(folder.path()), [bodies(&["1", "2"])]);
    }

    #[test]
    fn where_a_write_failed_and_cannot_be_taken_back_another_file_is_begun() {
        let folder = tempfile::tempdir().unwrap();
        let (mut spool, _) = Spool::open(folder.path());
        spool.append(&bodies(&["1"]), 1).unwrap();
        let full = OpenOptions::new().append(true).open("/dev/full").unwrap();
        spool.files[0].file = full;
        spool.append(&bodies(&["2"]), 2).unwrap_err();
        spool.append(&bodies(&["2"]), 2).unwrap();
        assert_eq!(texts(folder.path()), [bodies(&["1"]), bodies(&["2"])]);
    }
}
