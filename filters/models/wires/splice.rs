//! A body put together from slices of another one and new bytes.

use std::ops::Range;

use bytes::Bytes;

use super::codec::BodySlice;
use crate::fault::{Fault, FaultKind};
use crate::json::{Error, Str, Walker};
use crate::spooled_json::SpooledData;

/// Below this a body goes out as one piece: one write costs less than the copy.
const FLAT_BYTES: usize = 64 << 10;

/// Skips a value of a text that begins at `base` in the source; returns its range there.
pub(super) fn span(walk: &mut Walker<'_>, base: usize) -> Result<Range<usize>, Error> {
    let length = walk.skip()?.len();
    let end = base + walk.at();
    Ok(end - length..end)
}

/// A checked part of the body walked again does not fail; where it does all the same, that is ours.
pub(super) fn internal(error: Error) -> Fault {
    Fault::new(FaultKind::Internal, "the request could not be rewritten")
        .with_detail(format!("checked body does not walk: {error}"))
}

/// A body in the making. Neighbouring slices of the source become one.
#[derive(Debug)]
pub(super) struct Splice<'a> {
    source: &'a Bytes,
    /// The new bytes of all pieces.
    new: Vec<u8>,
    pieces: Vec<SplicePiece>,
}

#[derive(Debug)]
enum SplicePiece {
    /// A range of the source.
    Slice(Range<usize>),
    /// A range of the new bytes.
    New(Range<usize>),
}

impl<'a> Splice<'a> {
    pub(super) fn new(source: &'a Bytes) -> Self {
        Self {
            source,
            new: Vec::with_capacity(128),
            pieces: Vec::with_capacity(8),
        }
    }

    /// Adds a range of the source.
    pub(super) fn slice(&mut self, range: Range<usize>) {
        match self.pieces.last_mut() {
            Some(SplicePiece::Slice(last)) if last.end == range.start => last.end = range.end,
            _ => self.pieces.push(SplicePiece::Slice(range)),
        }
    }

    /// Adds new bytes.
    pub(super) fn new_bytes(&mut self, bytes: &[u8]) {
        let start = self.new.len();
        self.new.extend_from_slice(bytes);
        let end = self.new.len();
        match self.pieces.last_mut() {
            Some(SplicePiece::New(last)) => last.end = end,
            _ => self.pieces.push(SplicePiece::New(start..end)),
        }
    }

    /// Adds a new string, as JSON.
    pub(super) fn new_string(&mut self, text: &str) {
        let mut quoted = Vec::with_capacity(text.len() + 2);
        Str::Plain(text).write(&mut quoted);
        self.new_bytes(&quoted);
    }

    /// The text of a range of the source.
    pub(super) fn text(&self, range: Range<usize>) -> &'a str {
        std::str::from_utf8(self.source.get(range).unwrap_or_default()).unwrap_or_default()
    }

    /// The text of the source.
    pub(super) fn whole(&self) -> &'a str {
        self.text(0..self.source.len())
    }

    /// The members of the object in a range of the source.
    ///
    /// Errors: it is none.
    pub(super) fn members(
        &self,
        range: Range<usize>,
    ) -> Result<Vec<(String, Range<usize>)>, Error> {
        let mut walk = Walker::over(self.text(range.clone()));
        let mut members = Vec::new();
        walk.object(|walk, key| {
            members.push((key.into_owned(), span(walk, range.start)?));
            Ok::<(), Error>(())
        })?;
        Ok(members)
    }

    /// The items of the array in a range of the source.
    ///
    /// Errors: it is none.
    pub(super) fn items(&self, range: Range<usize>) -> Result<Vec<Range<usize>>, Error> {
        let mut walk = Walker::over(self.text(range.clone()));
        let mut items = Vec::new();
        walk.array(|walk, _| {
            items.push(span(walk, range.start)?);
            Ok::<(), Error>(())
        })?;
        Ok(items)
    }

    /// Adds the comma before a member or an item, unless it is the first.
    pub(super) fn separate(&mut self, is_first: &mut bool) {
        if !std::mem::take(is_first) {
            self.new_bytes(b",");
        }
    }

    /// Adds the name of a member, behind a comma unless it is the first.
    pub(super) fn write_name(&mut self, name: &str, is_first: &mut bool) {
        self.separate(is_first);
        self.new_string(name);
        self.new_bytes(b":");
    }

    /// The finished body, with the data that is not in memory in the slices where it belongs.
    pub(super) fn finish_with(mut self, spooled: &[SpooledData]) -> Vec<BodySlice> {
        if spooled.is_empty() {
            return self.finish();
        }
        let new = Bytes::from(std::mem::take(&mut self.new));
        let mut out = Vec::with_capacity(self.pieces.len() + 2 * spooled.len());
        for piece in self.pieces {
            let range = match piece {
                SplicePiece::New(range) => {
                    out.push(new.slice(range).into());
                    continue;
                }
                SplicePiece::Slice(range) => range,
            };
            let mut from = range.start;
            for data in spooled.iter().filter(|data| range.contains(&data.at)) {
                out.push(self.source.slice(from..data.at).into());
                out.push(BodySlice::Upload(data.range.clone()));
                from = data.at;
            }
            out.push(self.source.slice(from..range.end).into());
        }
        out
    }

    /// The finished body.
    pub(super) fn finish(self) -> Vec<BodySlice> {
        let Self {
            source,
            new,
            pieces,
        } = self;
        let length = |piece: &SplicePiece| match piece {
            SplicePiece::Slice(range) | SplicePiece::New(range) => range.len(),
        };
        let bytes = pieces.iter().map(length).sum();
        if bytes <= FLAT_BYTES && pieces.len() > 1 {
            let mut flat = Vec::with_capacity(bytes);
            for piece in pieces {
                let piece = match piece {
                    SplicePiece::Slice(range) => source.get(range),
                    SplicePiece::New(range) => new.get(range),
                };
                flat.extend_from_slice(piece.unwrap_or_default());
            }
            return vec![flat.into()];
        }
        let new = Bytes::from(new);
        let slice = |piece: SplicePiece| match piece {
            SplicePiece::Slice(range) => source.slice(range).into(),
            SplicePiece::New(range) => new.slice(range).into(),
        };
        pieces.into_iter().map(slice).collect()
    }
}
