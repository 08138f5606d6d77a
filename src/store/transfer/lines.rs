//! Reads the lines of a file, each bounded, and sums them up.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek};
use std::path::Path;

use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use super::super::StoreError;
use super::super::error::TransferError;
use super::super::secret::file_error;
use super::format::{MAX_LINE_BYTES, to_hex};

/// The lines of a file, from its beginning.
pub(super) struct FileLines<'f> {
    path: &'f Path,
    reader: BufReader<&'f File>,
    /// The line that was read last, with its end.
    line: Vec<u8>,
    /// The digest of the lines before it.
    digest: Sha256,
    /// Its number, counted from 1; 0: none was read.
    number: u64,
    /// The bytes up to its end.
    pub(super) bytes: u64,
}

impl<'f> FileLines<'f> {
    /// Begins with the first line.
    pub(super) fn of_file(path: &'f Path, mut file: &'f File) -> Result<Self, StoreError> {
        file.rewind().map_err(|error| file_error(path, error))?;
        Ok(Self {
            path,
            reader: BufReader::with_capacity(1 << 16, file),
            line: Vec::new(),
            digest: Sha256::new(),
            number: 0,
            bytes: 0,
        })
    }

    /// Reads the next line, and returns it with its end.
    ///
    /// Errors: [`TransferError::CutFile`] if the file ends before the end of the line; the line is too long; the file system.
    pub(super) fn read(&mut self) -> Result<&[u8], StoreError> {
        self.digest.update(&self.line);
        self.line.clear();
        let mut bounded = (&mut self.reader).take(MAX_LINE_BYTES);
        let read = bounded.read_until(b'\n', &mut self.line);
        let read = read.map_err(|error| file_error(self.path, error))? as u64;
        if self.line.last() != Some(&b'\n') {
            return Err(match read >= MAX_LINE_BYTES {
                true => {
                    self.number += 1;
                    self.problem("is longer than 64 MiB")
                }
                false => TransferError::CutFile { lines: self.number }.into(),
            });
        }
        self.number += 1;
        self.bytes += read;
        Ok(&self.line)
    }

    /// Reads the next line as a JSON object of ours. `name` is what it has to be.
    pub(super) fn read_object<T: DeserializeOwned>(&mut self, name: &str) -> Result<T, StoreError> {
        let line = self.read()?;
        let parsed = serde_json::from_slice(line);
        parsed.map_err(|_| self.problem(&format!("is not {name}")))
    }

    /// Returns the line that was read last.
    pub(super) fn line(&self) -> &[u8] {
        &self.line
    }

    /// Returns the digest of the lines before the one that was read last.
    pub(super) fn digest(&self) -> String {
        to_hex(self.digest.clone())
    }

    /// Returns whether nothing follows.
    pub(super) fn is_at_end(&mut self) -> Result<bool, StoreError> {
        let rest = self.reader.fill_buf();
        let rest = rest.map_err(|error| file_error(self.path, error))?;
        Ok(rest.is_empty())
    }

    /// Returns an error about the line that was read last.
    pub(super) fn problem(&self, problem: &str) -> StoreError {
        let problem = problem.to_owned();
        TransferError::Line {
            number: self.number,
            problem,
        }
        .into()
    }
}
