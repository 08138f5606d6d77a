//! Numbers and names of packed calls.

use std::fmt::Write;

use super::InvalidCalls;

/// Names of this form are kept as 16 bytes after their prefix.
const HYPHENS: [usize; 4] = [8, 13, 18, 23];
const HYPHENATED_CHARS: usize = 36;
const HEX_CHARS: usize = 32;

/// How a name is written, in the lowest bits of its first number. The others are the length of the text.
#[derive(Clone, Copy)]
enum Form {
    Text,
    /// 32 hex digits after the text.
    Hex,
    /// A uuid with hyphens after the text.
    Hyphenated,
}

/// Writes a number, seven bits a byte.
pub(super) fn write_number(mut number: u128, out: &mut Vec<u8>) {
    while number > 0x7f {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Writes a name.
pub(super) fn write_name(name: &str, out: &mut Vec<u8>) {
    let (text, form, digits) = split(name);
    write_number((text.len() as u128) << 2 | form as u128, out);
    out.extend_from_slice(text);
    out.extend_from_slice(digits.as_ref().map_or(&[], |digits| digits.as_slice()));
}

/// Writes an optional name.
pub(super) fn write_optional_name(name: Option<&str>, out: &mut Vec<u8>) {
    out.push(u8::from(name.is_some()));
    if let Some(name) = name {
        write_name(name, out);
    }
}

/// Splits the hex digits of an id off the end of a name.
fn split(name: &str) -> (&[u8], Form, Option<[u8; 16]>) {
    let bytes = name.as_bytes();
    let hyphenated = bytes.len().checked_sub(HYPHENATED_CHARS);
    if let Some((text, id)) = hyphenated.and_then(|at| bytes.split_at_checked(at))
        && HYPHENS.iter().all(|at| id.get(*at) == Some(&b'-'))
        && let Some(digits) = parse_hex(id.iter().filter(|byte| **byte != b'-'))
    {
        return (text, Form::Hyphenated, Some(digits));
    }
    let hex = bytes.len().checked_sub(HEX_CHARS);
    if let Some((text, id)) = hex.and_then(|at| bytes.split_at_checked(at))
        && let Some(digits) = parse_hex(id.iter())
    {
        return (text, Form::Hex, Some(digits));
    }
    (bytes, Form::Text, None)
}

/// Parses exactly 32 lowercase digits.
fn parse_hex<'a>(mut digits: impl Iterator<Item = &'a u8>) -> Option<[u8; 16]> {
    let mut digit = || match *digits.next()? {
        digit @ b'0'..=b'9' => Some(digit - b'0'),
        digit @ b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let mut out = [0; 16];
    for byte in &mut out {
        *byte = digit()? << 4 | digit()?;
    }
    digits.next().is_none().then_some(out)
}

/// Reads packed calls from the first byte on.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

/// A name that is not yet text.
pub(super) struct RawName<'a> {
    text: &'a [u8],
    digits: &'a [u8],
    is_hyphenated: bool,
}

impl<'a> Reader<'a> {
    pub(super) fn byte(&mut self) -> Result<u8, InvalidCalls> {
        let (byte, rest) = self.0.split_first().ok_or(InvalidCalls)?;
        self.0 = rest;
        Ok(*byte)
    }

    pub(super) fn number(&mut self) -> Result<u128, InvalidCalls> {
        let mut number = 0;
        for shift in (0..126).step_by(7) {
            let byte = self.byte()?;
            number |= u128::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(InvalidCalls)
    }

    /// Reads an index of a list of this length, or the next one.
    pub(super) fn index(&mut self, length: usize) -> Result<usize, InvalidCalls> {
        let index = usize::try_from(self.number()?).map_err(|_| InvalidCalls)?;
        (index <= length).then_some(index).ok_or(InvalidCalls)
    }

    pub(super) fn name(&mut self) -> Result<String, InvalidCalls> {
        self.raw_name()?.to_text()
    }

    pub(super) fn optional_name(&mut self) -> Result<Option<String>, InvalidCalls> {
        match self.byte()? {
            0 => Ok(None),
            _ => self.name().map(Some),
        }
    }

    pub(super) fn raw_name(&mut self) -> Result<RawName<'a>, InvalidCalls> {
        let lead = self.number()?;
        let text = self.take(usize::try_from(lead >> 2).map_err(|_| InvalidCalls)?)?;
        let form = lead & 3;
        let has_digits = form == Form::Hex as u128 || form == Form::Hyphenated as u128;
        Ok(RawName {
            text,
            digits: self.take(if has_digits { 16 } else { 0 })?,
            is_hyphenated: form == Form::Hyphenated as u128,
        })
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], InvalidCalls> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(InvalidCalls)?;
        self.0 = rest;
        Ok(taken)
    }
}

impl RawName<'_> {
    pub(super) fn to_text(&self) -> Result<String, InvalidCalls> {
        let text = std::str::from_utf8(self.text).map_err(|_| InvalidCalls)?;
        let mut name = text.to_owned();
        for (at, byte) in self.digits.iter().enumerate() {
            if self.is_hyphenated && matches!(at, 4 | 6 | 8 | 10) {
                name.push('-');
            }
            write!(name, "{byte:02x}").map_err(|_| InvalidCalls)?;
        }
        Ok(name)
    }
}
