//! Follows the chunks of a body in its raw bytes, to find its end and to make sure that every parser finds the same
//! end.
//!
//! Pingora's parser takes a size line without digits for the last chunk. Another parser may not, and would then see
//! another next request.
//!
//! Source: RFC 9112, 7.1; docs/hostile-input.md 6.

use super::byte_class::{TEXT, TOKEN, is_in_class};
use crate::fault::{Fault, FaultKind};

/// The maximum digits of a size. Sizes stay below 2^60, so sums with them do not overflow.
const MAX_SIZE_DIGITS: u8 = 15;
/// The maximum bytes of a body's extensions and trailers, which no code reads.
const MAX_UNREAD_BYTES: usize = 4 << 10;

/// Why the chunks of a body are refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ChunkError {
    /// A size is not one to 15 hexadecimal digits.
    Size,
    /// A chunk or a line does not end with CR LF where it must.
    LineEnd,
    /// An extension has a control byte.
    Extension,
    Trailer,
    /// Extensions and trailers are longer than [`MAX_UNREAD_BYTES`].
    TooLong,
}

impl ChunkError {
    fn message(self) -> &'static str {
        match self {
            Self::Size => "the size of a chunk is not one to 15 hexadecimal digits",
            Self::LineEnd => "a chunk of the body does not end with CR LF",
            Self::Extension => "the extension of a chunk has a control byte",
            Self::Trailer => "a trailer of the body is not a name and a value",
            Self::TooLong => {
                "the extensions and trailers of the body's chunks are longer than 4096 bytes"
            }
        }
    }
}

impl From<ChunkError> for Fault {
    fn from(error: ChunkError) -> Self {
        Self::new(FaultKind::Invalid, error.message())
    }
}

/// The part of the body to which the next byte belongs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ChunkPart {
    /// The size of a chunk, after this many digits.
    Size(u8),
    /// The blanks between the size and its extension.
    Blank,
    /// The extension of a size.
    Extension,
    /// The LF after a size.
    SizeEnd,
    Data,
    /// The CR after the data.
    DataCr,
    /// The LF after the data.
    DataEnd,
    /// A trailer, or the empty line that ends the body.
    Line,
    /// The name of a trailer.
    Name,
    /// The value of a trailer.
    Value,
    /// The LF after a trailer.
    ValueEnd,
    /// The LF of the empty line.
    End,
    /// The next request.
    Behind,
}

/// A chunked body, as far as it has arrived.
#[derive(Debug)]
pub struct Chunks {
    place: ChunkPart,
    /// The bytes of data left in the chunk, or the size so far while the size is read.
    left: u64,
    /// The bytes of extensions and trailers so far.
    unread_bytes: usize,
}

impl Chunks {
    /// Returns a body of which no byte has arrived.
    pub fn new() -> Self {
        Self {
            place: ChunkPart::Size(0),
            left: 0,
            unread_bytes: 0,
        }
    }

    /// Returns whether the whole body has arrived.
    pub fn is_whole(&self) -> bool {
        self.place == ChunkPart::Behind
    }

    /// Follows the body through the next bytes. Returns how many of them belong to the body.
    ///
    /// Errors: [`ChunkError`]; after one, do not call this again. Cost: data is skipped without a look at its bytes.
    pub fn follow(&mut self, bytes: &[u8]) -> Result<usize, ChunkError> {
        let mut rest = bytes;
        while self.place != ChunkPart::Behind {
            if self.place == ChunkPart::Data {
                rest = self.skip_data(rest);
            }
            let Some((byte, behind)) = rest.split_first() else {
                break;
            };
            self.place = self.advance(*byte)?;
            rest = behind;
        }
        Ok(bytes.len() - rest.len())
    }

    /// Returns the bytes after the data of the chunk.
    fn skip_data<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let count = bytes
            .len()
            .min(usize::try_from(self.left).unwrap_or(usize::MAX));
        self.left -= count as u64;
        if self.left == 0 {
            self.place = ChunkPart::DataCr;
        }
        bytes.get(count..).unwrap_or_default()
    }

    /// Reads one byte outside of the data. Returns the part to which the next byte belongs.
    fn advance(&mut self, byte: u8) -> Result<ChunkPart, ChunkError> {
        Ok(match (self.place, byte) {
            (ChunkPart::Size(digits), _) if byte.is_ascii_hexdigit() => {
                return self.add_digit(digits, byte);
            }
            (ChunkPart::Size(1..) | ChunkPart::Extension, b'\r') => ChunkPart::SizeEnd,
            (ChunkPart::Size(1..) | ChunkPart::Blank, b';') => ChunkPart::Extension,
            (ChunkPart::Size(1..) | ChunkPart::Blank, b' ' | b'\t') => {
                self.count_unread(ChunkPart::Blank)?
            }
            (ChunkPart::Extension, _) if is_in_class(byte, TEXT) => {
                self.count_unread(ChunkPart::Extension)?
            }
            (ChunkPart::SizeEnd, b'\n') if self.left == 0 => ChunkPart::Line,
            (ChunkPart::SizeEnd, b'\n') => ChunkPart::Data,
            (ChunkPart::DataCr, b'\r') => ChunkPart::DataEnd,
            (ChunkPart::DataEnd, b'\n') => ChunkPart::Size(0),
            (ChunkPart::Line, b'\r') => ChunkPart::End,
            (ChunkPart::Line | ChunkPart::Name, _) if is_in_class(byte, TOKEN) => {
                self.count_unread(ChunkPart::Name)?
            }
            (ChunkPart::Name, b':') => ChunkPart::Value,
            (ChunkPart::Value, b'\r') => ChunkPart::ValueEnd,
            (ChunkPart::Value, _) if is_in_class(byte, TEXT) => {
                self.count_unread(ChunkPart::Value)?
            }
            (ChunkPart::ValueEnd, b'\n') => ChunkPart::Line,
            (ChunkPart::End, b'\n') => ChunkPart::Behind,
            (place, _) => return Err(error_at(place)),
        })
    }

    fn add_digit(&mut self, digits: u8, byte: u8) -> Result<ChunkPart, ChunkError> {
        let digit = char::from(byte).to_digit(16).ok_or(ChunkError::Size)?;
        if digits == MAX_SIZE_DIGITS {
            return Err(ChunkError::Size);
        }
        self.left = self.left << 4 | u64::from(digit);
        Ok(ChunkPart::Size(digits + 1))
    }

    /// Counts a byte of an extension or a trailer.
    fn count_unread(&mut self, place: ChunkPart) -> Result<ChunkPart, ChunkError> {
        self.unread_bytes += 1;
        match self.unread_bytes <= MAX_UNREAD_BYTES {
            true => Ok(place),
            false => Err(ChunkError::TooLong),
        }
    }
}

impl Default for Chunks {
    fn default() -> Self {
        Self::new()
    }
}

fn error_at(place: ChunkPart) -> ChunkError {
    match place {
        ChunkPart::Size(_) | ChunkPart::Blank => ChunkError::Size,
        ChunkPart::Extension => ChunkError::Extension,
        ChunkPart::Line | ChunkPart::Name | ChunkPart::Value => ChunkError::Trailer,
        _ => ChunkError::LineEnd,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use super::*;

    fn follow(body: &[u8]) -> Result<(usize, bool), ChunkError> {
        let mut chunks = Chunks::new();
        let length = chunks.follow(body)?;
        Ok((length, chunks.is_whole()))
    }

    #[test]
    fn a_body_ends_behind_its_empty_line() {
        for body in [
            "0\r\n\r\n",
            "00000\r\n\r\n",
            "3\r\nabc\r\n0\r\n\r\n",
            "A\r\n0123456789\r\n00a\r\n\r\n\r\n\r\n\r\n\r\n\r\n0\r\n\r\n",
            "3;a=b\r\nabc\r\n0 \t;c=\"d\u{e9}\"\r\n\r\n",
            "0\r\nX-Sum: 1\r\nY:\t2 \r\n\r\n",
        ] {
            let next = format!("{body}GET / HTTP/1.1\r\n\r\n");
            assert_eq!(follow(next.as_bytes()), Ok((body.len(), true)), "{body:?}");
            let mut chunks = Chunks::new();
            for (at, byte) in body.bytes().enumerate() {
                assert!(!chunks.is_whole(), "{body:?} {at}");
                assert_eq!(chunks.follow(&[byte]), Ok(1), "{body:?} {at}");
            }
            assert!(chunks.is_whole(), "{body:?}");
        }
    }

    #[test]
    fn a_size_has_digits_and_every_line_ends_with_cr_lf() {
        for (body, error) in [
            ("\r\n\r\n", ChunkError::Size),
            (";a\r\n\r\n", ChunkError::Size),
            (" \r\n\r\n", ChunkError::Size),
            (" 0\r\n\r\n", ChunkError::Size),
            ("3\r\nabc\r\n\r\n\r\n", ChunkError::Size),
            ("0 \r\n\r\n", ChunkError::Size),
            ("+0\r\n", ChunkError::Size),
            ("0x0\r\n", ChunkError::Size),
            ("0_0\r\n", ChunkError::Size),
            ("0\n\n", ChunkError::Size),
            ("0000000000000000\r\n", ChunkError::Size),
            ("0\r\r\n", ChunkError::LineEnd),
            ("3\r\nabcd\r\n", ChunkError::LineEnd),
            ("3\r\nabc\n", ChunkError::LineEnd),
            ("3\r\nabc\r0", ChunkError::LineEnd),
            ("0;a\n\r\n", ChunkError::Extension),
            ("0;a\0\r\n", ChunkError::Extension),
            ("0\r\n\n", ChunkError::Trailer),
            ("0\r\nGET / HTTP/1.1\r\n", ChunkError::Trailer),
            ("0\r\nX : 1\r\n\r\n", ChunkError::Trailer),
            ("0\r\nX: 1\n\r\n", ChunkError::Trailer),
            ("0\r\n: 1\r\n\r\n", ChunkError::Trailer),
            ("0\r\nX: 1\r\n\rX", ChunkError::LineEnd),
        ] {
            assert_eq!(follow(body.as_bytes()), Err(error), "{body:?}");
        }
    }

    #[test]
    fn what_nobody_reads_is_bounded_in_all() {
        let extended = format!("1;{}\r\na\r\n", "e".repeat(1 << 10));
        let mut chunks = Chunks::new();
        for _ in 0..4 {
            assert_eq!(chunks.follow(extended.as_bytes()), Ok(extended.len()));
        }
        assert_eq!(chunks.follow(b"1;e"), Err(ChunkError::TooLong));
        let trailers = format!("0\r\n{}", "X: y\r\n".repeat(1 << 11));
        assert_eq!(follow(trailers.as_bytes()), Err(ChunkError::TooLong));
        let blanks = format!("0{}", " ".repeat(1 << 13));
        assert_eq!(follow(blanks.as_bytes()), Err(ChunkError::TooLong));
    }
}
