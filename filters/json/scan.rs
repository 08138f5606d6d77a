//! Skips strings and numbers: the inner loops of [`Walker`].

use super::error::{Error, ErrorKind};
use super::text::{find_special_in_string, short_string_length};
use super::walk::Walker;

/// The shortest array, in bytes, whose numbers are skipped without being parsed.
const LONG_BYTES: usize = 512;
/// The bytes of a long array that are checked together.
const BLOCK_BYTES: usize = 256;

impl Walker<'_> {
    /// Skips a string. Returns whether it has escapes.
    pub(super) fn skip_string(&mut self) -> Result<bool, Error> {
        self.at += 1;
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        if let Some(length) = short_string_length(rest) {
            self.at += length + 1;
            return Ok(false);
        }
        self.skip_long_string()
    }

    fn skip_long_string(&mut self) -> Result<bool, Error> {
        let mut has_escapes = false;
        loop {
            let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
            let Some(clean) = find_special_in_string(rest) else {
                return Err(Error {
                    at: self.text.len(),
                    kind: ErrorKind::Truncated,
                });
            };
            self.at += clean;
            match rest.get(clean) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(has_escapes);
                }
                Some(b'\\') => {
                    has_escapes = true;
                    self.skip_escape()?;
                }
                _ => return Err(self.syntax_error()),
            }
        }
    }

    fn skip_escape(&mut self) -> Result<(), Error> {
        let start = self.at;
        self.at += 1;
        match self.byte() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 1;
                Ok(())
            }
            Some(b'u') => {
                let lone = Error {
                    at: start,
                    kind: ErrorKind::LoneSurrogate,
                };
                match self.read_code_unit()? {
                    0xD800..=0xDBFF => {
                        if self.byte() != Some(b'\\') {
                            return Err(lone);
                        }
                        self.at += 1;
                        if self.byte() != Some(b'u')
                            || !(0xDC00..=0xDFFF).contains(&self.read_code_unit()?)
                        {
                            return Err(lone);
                        }
                        Ok(())
                    }
                    0xDC00..=0xDFFF => Err(lone),
                    _ => Ok(()),
                }
            }
            _ => Err(self.syntax_error()),
        }
    }

    /// Reads the code unit of `uXXXX` at the cursor.
    fn read_code_unit(&mut self) -> Result<u32, Error> {
        let digits = self
            .text
            .get(self.at + 1..self.at + 5)
            .ok_or_else(|| self.syntax_error())?;
        if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(self.syntax_error());
        }
        self.at += 5;
        u32::from_str_radix(digits, 16).map_err(|_| self.syntax_error())
    }

    /// Skips a long array that holds only numbers, commas and white space. Returns false for a short array, and then
    /// stays at its start.
    pub(super) fn skip_number_bytes(&mut self) -> Result<bool, Error> {
        let rest = self.text.as_bytes().get(self.at + 1..).unwrap_or_default();
        let Some(length) = memchr::memchr(b']', rest).filter(|length| *length >= LONG_BYTES) else {
            return Ok(false);
        };
        let inside = rest.get(..length).unwrap_or_default();
        // Whole blocks are checked without a branch, so that the compiler checks many bytes at once.
        let clean = |all: bool, byte: &u8| all & is_number_byte(*byte);
        let is_clean = |block: &[u8]| block.iter().fold(true, clean);
        if !inside.chunks(BLOCK_BYTES).all(is_clean) {
            let wrong = inside.iter().position(|byte| !is_number_byte(*byte));
            self.at += 1 + wrong.unwrap_or_default();
            return Err(self.syntax_error());
        }
        self.at += length + 2;
        Ok(true)
    }

    pub(super) fn skip_number(&mut self) -> Result<(), Error> {
        if self.byte() == Some(b'-') {
            self.at += 1;
        }
        match self.byte() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.skip_digits()?,
            _ => return Err(self.type_error()),
        }
        if self.byte() == Some(b'.') {
            self.at += 1;
            self.skip_digits()?;
        }
        if matches!(self.byte(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.byte(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.skip_digits()?;
        }
        Ok(())
    }

    fn skip_digits(&mut self) -> Result<(), Error> {
        let start = self.at;
        while matches!(self.byte(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start {
            Err(self.syntax_error())
        } else {
            Ok(())
        }
    }
}

/// Returns whether a byte may stand in an array of numbers.
fn is_number_byte(byte: u8) -> bool {
    // `+`, `,`, `-`, `.`, `/` and the digits follow each other.
    (byte.wrapping_sub(b'+') <= b'9' - b'+') & (byte != b'/')
        | (byte | 0x20 == b'e')
        | (byte == b' ')
        | (byte == b'\n')
        | (byte == b'\r')
        | (byte == b'\t')
}
