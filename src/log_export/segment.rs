//! A segment: the lines of one batch in a file of the spool, under a name that its object, its insert or its file keeps.
//!
//! The name says when the segment was begun and how the batch is compressed, so every try to send it sends the same bytes under the
//! same name, also in the next process and under another configuration.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use uuid::Uuid;

use crate::config::Compression;

/// The end of the names of segments.
const SUFFIX: &str = ".jsonl";
/// How much is read at once in search of the last line.
const CHUNK_BYTES: u64 = 64 << 10;

/// The name of a segment.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct SegmentName {
    /// In the order of time.
    id: Uuid,
    pub(super) compression: Compression,
}

impl SegmentName {
    /// Returns the name of a segment that begins now.
    pub(super) fn new(compression: Compression) -> Self {
        Self {
            id: Uuid::now_v7(),
            compression,
        }
    }

    /// Reads the name of a file of the spool. `None`: it is no segment.
    pub(super) fn parse(file: &str) -> Option<Self> {
        let stem = file.strip_suffix(SUFFIX)?;
        let (id, compression) = match stem.split_once('.') {
            Some((id, "gz")) => (id, Compression::Gzip),
            Some((id, "zst")) => (id, Compression::Zstd),
            Some(_) => return None,
            None => (stem, Compression::None),
        };
        let id = Uuid::try_parse(id).ok()?;
        id.get_timestamp().map(|_| Self { id, compression })
    }

    /// Returns the name of its file in the spool.
    pub(super) fn to_file(self) -> String {
        let id = self.id;
        match self.extension() {
            "" => format!("{id}{SUFFIX}"),
            extension => format!("{id}.{extension}{SUFFIX}"),
        }
    }

    /// Returns the name of its object: `date=2026-11-28/hour=15/ID.jsonl.gz`, which tools read as partitions.
    pub(super) fn to_object(self) -> String {
        let begun = i64::try_from(self.begun_s()).unwrap_or(i64::MAX);
        let begun = Timestamp::from_second(begun).unwrap_or_default();
        let hour = begun.strftime("date=%Y-%m-%d/hour=%H");
        let (id, extension) = (self.id, self.extension());
        let dot = if extension.is_empty() { "" } else { "." };
        format!("{hour}/{id}{SUFFIX}{dot}{extension}")
    }

    /// Returns what makes a second insert of the same batch void.
    pub(super) fn to_token(self) -> String {
        self.id.to_string()
    }

    /// Returns when it was begun, in unix seconds.
    pub(super) fn begun_s(self) -> u64 {
        self.id.get_timestamp().map_or(0, |at| at.to_unix().0)
    }

    fn extension(self) -> &'static str {
        match self.compression {
            Compression::Gzip => "gz",
            Compression::Zstd => "zst",
            Compression::None => "",
        }
    }
}

/// A segment that this process owns.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) name: SegmentName,
    pub(super) path: PathBuf,
    pub(super) file: File,
    /// The length of its whole lines.
    pub(super) bytes: u64,
}

impl Segment {
    /// Returns a segment of an earlier process, whose file this one owns now, without a line that was cut.
    ///
    /// Errors: the file cannot be read.
    pub(super) fn left(name: SegmentName, path: &Path, file: File) -> io::Result<Self> {
        let length = file.metadata()?.len();
        let bytes = end_of_lines(&file, length)?;
        if bytes < length {
            file.set_len(bytes)?;
        }
        Ok(Self {
            name,
            path: path.to_owned(),
            file,
            bytes,
        })
    }

    /// Reads its lines.
    ///
    /// Errors: the file cannot be read, or is shorter than it was.
    pub(super) fn read(&self) -> io::Result<Vec<u8>> {
        let length = usize::try_from(self.bytes).map_err(io::Error::other)?;
        let mut lines = vec![0; length];
        self.file.read_exact_at(&mut lines, 0)?;
        Ok(lines)
    }
}

/// Returns where the last whole line of a file ends.
fn end_of_lines(file: &File, length: u64) -> io::Result<u64> {
    let mut end = length;
    while end > 0 {
        let start = end.saturating_sub(CHUNK_BYTES);
        let mut chunk = vec![0; usize::try_from(end - start).map_err(io::Error::other)?];
        file.read_exact_at(&mut chunk, start)?;
        if let Some(at) = memchr::memrchr(b'\n', &chunk) {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_name_says_when_it_was_begun_and_how_its_batch_is_compressed() {
        // 28 November 2026, 15:12:03.
        let id = "019acb1f-f4b8-7000-8000-000000000001";
        for (file, object) in [("", ""), (".gz", ".gz"), (".zst", ".zst")] {
            let file = format!("{id}{file}.jsonl");
            let name = SegmentName::parse(&file).unwrap();
            assert_eq!(name.to_file(), file);
            let at = Timestamp::from_second(name.begun_s().try_into().unwrap()).unwrap();
            let hour = at.strftime("date=%Y-%m-%d/hour=%H").to_string();
            assert_eq!(name.to_object(), format!("{hour}/{id}.jsonl{object}"));
            assert_eq!(name.to_token(), id);
        }
        for other in [
            "019acb1f-f4b8-7000-8000-000000000001.lz4.jsonl",
            "019acb1f-f4b8-7000-8000-000000000001.gz",
            "notes.jsonl",
            "67e55044-10b1-426f-9247-bb680e5fe0c8.jsonl",
        ] {
            assert!(SegmentName::parse(other).is_none(), "{other}");
        }
        let (first, second) = (
            SegmentName::new(Compression::Gzip),
            SegmentName::new(Compression::None),
        );
        assert!(first < second);
    }

    #[test]
    fn a_line_that_was_cut_is_taken_off_however_long_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let whole = "{\"a\":1}\n{\"b\":2}\n";
        for cut in [String::new(), "{".to_owned(), "x".repeat(200_000)] {
            std::fs::write(&path, format!("{whole}{cut}")).unwrap();
            let file = File::options().read(true).write(true).open(&path).unwrap();
            let name = SegmentName::new(Compression::None);
            let segment = Segment::left(name, &path, file).unwrap();
            assert_eq!(segment.read().unwrap(), whole.as_bytes());
            assert_eq!(std::fs::read_to_string(&path).unwrap(), whole);
        }
        std::fs::write(&path, "{\"never").unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        let segment = Segment::left(SegmentName::new(Compression::None), &path, file).unwrap();
        assert_eq!(segment.bytes, 0);
    }
}
