//! The lines on disk: segments of one process, in the order of their beginnings.
//!
//! Lines are appended to the open segment. It is sealed when it is large or old enough, and when the hour changes, and then sent as a
//! whole. A process owns its segments by locks (`owned_file`), and takes over those of processes that no longer run, so two
//! processes of an upgrade neither write one file nor send one twice. A line that was written survives a kill; a sealed segment
//! survives a power cut.

use std::collections::VecDeque;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::segment::{Segment, SegmentName};
use crate::config::LogExportConfig;
use crate::{durable, owned_file};

/// The name of the folder in the state folder.
const FOLDER: &str = "log_export";

/// While so many segments wait, the open one is not sealed for its age any more, and later not for the hour either: a destination
/// that is away for days does not leave a file for each minute. Each segment is an open file.
const MAX_SEALED_BY_AGE: usize = 64;
const MAX_SEALED_BY_HOUR: usize = 512;
/// No more segments of other processes are taken over while so many wait.
const MAX_SEALED: usize = 1024;

/// The segments of this process.
#[derive(Debug)]
pub(super) struct Spool {
    folder: PathBuf,
    open: Option<OpenSegment>,
    /// Oldest first, but for those that could not be sent.
    sealed: VecDeque<Segment>,
    /// The size of all segments, also of the one that is being sent.
    bytes: u64,
    /// When the segment was begun that is being sent.
    sending_s: Option<u64>,
}

/// The segment to which lines are appended.
#[derive(Debug)]
struct OpenSegment {
    segment: Segment,
    since: Instant,
}

/// What became of lines.
#[derive(Debug, Default)]
pub(super) struct Appended {
    /// Lines that were written.
    pub(super) spooled: u64,
    /// Lines for which there was no room.
    pub(super) dropped: u64,
    /// Lines that the disk refused, and why.
    pub(super) failed: Option<(u64, io::Error)>,
}

impl Spool {
    /// Returns the spool of a state folder. Nothing of it is read or made.
    pub(super) fn new(state_dir: &Path) -> Self {
        Self {
            folder: state_dir.join(FOLDER),
            open: None,
            sealed: VecDeque::new(),
            bytes: 0,
            sending_s: None,
        }
    }

    /// Appends whole lines. `now_s` is unix seconds. What finds no room is dropped: all that was written before is sent.
    pub(super) fn append(
        &mut self,
        mut lines: &[u8],
        config: &LogExportConfig,
        now_s: u64,
    ) -> Appended {
        let mut appended = Appended::default();
        while !lines.is_empty() {
            self.seal_if_due(config, now_s);
            let room = config.spool_bytes.saturating_sub(self.bytes);
            let first = line_end(lines, 0);
            if first as u64 > room {
                appended.dropped += count_lines(lines);
                break;
            }
            let held = self.open.as_ref().map_or(0, |open| open.segment.bytes);
            let wanted = config.batch_bytes.saturating_sub(held).min(room);
            let (chunk, rest) = lines.split_at(first.max(whole_lines(lines, wanted)));
            if let Err(error) = self.write(chunk, config) {
                appended.failed = Some((count_lines(lines), error));
                break;
            }
            appended.spooled += count_lines(chunk);
            lines = rest;
        }
        appended
    }

    fn write(&mut self, lines: &[u8], config: &LogExportConfig) -> io::Result<()> {
        let open = match &mut self.open {
            Some(open) => open,
            none => none.insert(begin(&self.folder, config)?),
        };
        let segment = &mut open.segment;
        if let Err(error) = segment.file.write_all(lines) {
            // What was written in part is taken back. Where that fails, too, the rest of the file is not read.
            if segment.file.set_len(segment.bytes).is_err() {
                self.seal();
            }
            return Err(error);
        }
        segment.bytes += lines.len() as u64;
        self.bytes += lines.len() as u64;
        Ok(())
    }

    /// Seals the open segment if it is large enough, or is old enough or of an earlier hour, and not too many wait.
    pub(super) fn seal_if_due(&mut self, config: &LogExportConfig, now_s: u64) {
        let sealed = self.sealed.len();
        let is_due = |OpenSegment { segment, since }: &OpenSegment| {
            let is_old = since.elapsed() >= config.batch_interval;
            let is_past = segment.name.begun_s() / 3600 != now_s / 3600;
            segment.bytes >= config.batch_bytes
                || (is_old && sealed < MAX_SEALED_BY_AGE)
                || (is_past && sealed < MAX_SEALED_BY_HOUR)
        };
        if self.open.as_ref().is_some_and(is_due) {
            self.seal();
        }
    }

    /// Seals the open segment.
    pub(super) fn seal(&mut self) {
        let Some(OpenSegment { segment, .. }) = self.open.take() else {
            return;
        };
        if segment.bytes == 0 {
            return remove(&segment.path);
        }
        let synced = segment.file.sync_data();
        if let Err(error) = synced.and_then(|()| durable::sync_name(&segment.path)) {
            log_failure(&segment.path, &error);
        }
        self.sealed.push_back(segment);
    }

    /// Takes over the segments of processes that no longer run.
    pub(super) fn take_over_left(&mut self) {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => return log_failure(&self.folder, &error),
        };
        let mut left: Vec<(SegmentName, PathBuf)> = entries
            .filter_map(|entry| {
                let path = entry.ok()?.path();
                Some((SegmentName::parse(path.file_name()?.to_str()?)?, path))
            })
            .collect();
        left.sort_unstable();
        for (name, path) in left {
            if self.sealed.len() >= MAX_SEALED {
                return;
            }
            match take_over(name, &path) {
                Ok(Some(segment)) => {
                    self.bytes += segment.bytes;
                    self.sealed.push_back(segment);
                }
                Ok(None) => {}
                // It stays for a later start.
                Err(error) => log_failure(&path, &error),
            }
        }
    }

    /// Takes the segment that is to be sent next. [`Self::sent`] or [`Self::not_sent`] follows.
    pub(super) fn take_next(&mut self) -> Option<Segment> {
        let segment = self.sealed.pop_front()?;
        self.sending_s = Some(segment.name.begun_s());
        Some(segment)
    }

    /// Removes a segment that has arrived.
    pub(super) fn sent(&mut self, segment: &Segment) {
        self.sending_s = None;
        self.bytes = self.bytes.saturating_sub(segment.bytes);
        remove(&segment.path);
    }

    /// Keeps a segment that has not arrived. The others are tried before it.
    pub(super) fn not_sent(&mut self, segment: Segment) {
        self.sending_s = None;
        self.sealed.push_back(segment);
    }

    /// Returns the size of what waits.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns when the oldest segment was begun, in unix seconds.
    pub(super) fn oldest_s(&self) -> Option<u64> {
        let open = self.open.iter().map(|open| &open.segment);
        let begun = self.sealed.iter().chain(open).map(|it| it.name.begun_s());
        begun.chain(self.sending_s).min()
    }
}

fn begin(folder: &Path, config: &LogExportConfig) -> io::Result<OpenSegment> {
    durable::create_folders(folder)?;
    loop {
        let name = SegmentName::new(config.compression);
        let path = folder.join(name.to_file());
        if let Some(file) = owned_file::create(&path)? {
            let bytes = 0;
            return Ok(OpenSegment {
                segment: Segment {
                    name,
                    path,
                    file,
                    bytes,
                },
                since: Instant::now(),
            });
        }
    }
}

/// Takes over a segment. `None`: it is another process's, or has no line.
fn take_over(name: SegmentName, path: &Path) -> io::Result<Option<Segment>> {
    let Some(file) = owned_file::take_over(path)? else {
        return Ok(None);
    };
    let segment = Segment::left(name, path, file)?;
    if segment.bytes > 0 {
        return Ok(Some(segment));
    }
    // One that was created a moment ago is not locked yet, and its process makes another.
    remove(path);
    Ok(None)
}

/// Returns the length of the first line behind `from`, with its end.
fn line_end(lines: &[u8], from: usize) -> usize {
    let rest = lines.get(from..).unwrap_or_default();
    memchr::memchr(b'\n', rest).map_or(lines.len(), |at| from + at + 1)
}

/// Returns the length of the whole lines within so many bytes.
fn whole_lines(lines: &[u8], bytes: u64) -> usize {
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    let within = lines.get(..bytes).unwrap_or(lines);
    memchr::memrchr(b'\n', within).map_or(0, |at| at + 1)
}

/// Returns the number of lines.
pub(super) fn count_lines(lines: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', lines).count() as u64
}

fn remove(path: &Path) {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => log_failure(path, &error),
        _ => {}
    }
}

fn log_failure(path: &Path, error: &io::Error) {
    log::error!("log export: {}: {error}", path.display());
}

#[cfg(test)]
#[path = "spool_tests.rs"]
mod tests;
