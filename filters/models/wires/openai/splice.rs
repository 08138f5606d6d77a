//! A body put together from slices of another one and new bytes.

use std::ops::Range;

use bytes::Bytes;

/// Below this a body goes out as one piece: one write costs less than the copy.
const FLAT_BYTES: usize = 64 << 10;

/// A body in the making. Neighbouring slices of the source become one.
#[derive(Debug)]
pub(super) struct Splice<'a> {
    source: &'a Bytes,
    pieces: Vec<SplicePiece>,
}

#[derive(Debug)]
enum SplicePiece {
    Slice(Range<usize>),
    New(Vec<u8>),
}

impl<'a> Splice<'a> {
    pub(super) fn new(source: &'a Bytes) -> Self {
        Self {
            source,
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
        match self.pieces.last_mut() {
            Some(SplicePiece::New(last)) => last.extend_from_slice(bytes),
            _ => self.pieces.push(SplicePiece::New(bytes.to_vec())),
        }
    }

    /// The text of a range of the source.
    pub(super) fn text(&self, range: Range<usize>) -> &'a str {
        std::str::from_utf8(self.source.get(range).unwrap_or_default()).unwrap_or_default()
    }

    /// The finished body.
    pub(super) fn finish(self) -> Vec<Bytes> {
        let source = self.source;
        let bytes = |piece: SplicePiece| match piece {
            SplicePiece::Slice(range) => source.slice(range),
            SplicePiece::New(bytes) => Bytes::from(bytes),
        };
        let pieces: Vec<Bytes> = self.pieces.into_iter().map(bytes).collect();
        if pieces.iter().map(Bytes::len).sum::<usize>() <= FLAT_BYTES && pieces.len() > 1 {
            return vec![Bytes::from(pieces.concat())];
        }
        pieces
    }
}
