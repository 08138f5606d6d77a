//! Judges the head of a request before anything else reads it: two parsers must not be able to frame it in two ways.
//!
//! The head of HTTP/1 is judged by its raw bytes, because a parser has already repaired or dropped what is ambiguous: a
//! bare line feed, the `Content-Length` beside `Transfer-Encoding`. The head of HTTP/2 has no lines, and its headers are
//! judged by the same rules.
//!
//! Source: docs/security.md 1 to 5, 11, 12, 22.

use http::request::Parts;
use http::uri::Authority;

use super::byte_class::{ADDRESS, GRAPHIC, HOST, METHOD, TOKEN, are_of, count_of};
use crate::fault::{Fault, FaultKind};

/// The maximum length of a request target, in bytes.
pub const MAX_TARGET_BYTES: usize = 8 << 10;
/// The maximum number of header fields.
pub const MAX_FIELDS: usize = 100;
/// The maximum digits of a length; any such number fits into 64 bits.
const MAX_LENGTH_DIGITS: usize = 19;
/// The bytes of a header line beside name and value: `: ` and the line end.
const LINE_BYTES: usize = 4;

/// Why a head is refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HeadError {
    /// It is larger than `listen.header_bytes`, which is this many bytes.
    TooLarge(usize),
    /// It has more than [`MAX_FIELDS`] header fields.
    TooManyFields,
    /// Its target is longer than [`MAX_TARGET_BYTES`].
    TargetTooLong,
    /// A line ends without CR LF, or has a CR inside.
    LineEnd,
    /// Its first line is not method, target and version.
    RequestLine,
    /// Its method is not upper-case letters, or is one that asks for a tunnel or for the head that arrived.
    Method,
    /// Its target has a byte that must be encoded.
    TargetBytes,
    /// Its target neither starts with `/` nor with the address of this server.
    TargetForm,
    /// Its target names another host than `Host`.
    OtherHost,
    /// A header line starts with a space.
    FoldedLine,
    /// The name of a header is not a token.
    FieldName,
    /// `Host` is missing from HTTP/1.1.
    HostMissing,
    /// `Host` occurs twice.
    HostTwice,
    /// `Host` is not a host with an optional port.
    Host,
    /// `Content-Length` occurs twice, with two values.
    LengthTwice,
    /// `Content-Length` is not a number.
    Length,
    /// `Transfer-Encoding` occurs twice.
    CodingTwice,
    /// `Transfer-Encoding` is not `chunked`.
    Coding,
    /// `Content-Length` and `Transfer-Encoding` occur together.
    TwoLengths,
    /// `Transfer-Encoding` occurs in a version without it.
    CodingVersion,
}

impl HeadError {
    fn message(self) -> &'static str {
        match self {
            Self::TooLarge(_) => "the request's head is too large",
            Self::TooManyFields => "the request has more than 100 header fields",
            Self::TargetTooLong => "the request's target is longer than 8192 bytes",
            Self::LineEnd => "a line of the request's head does not end with CR LF",
            Self::RequestLine => {
                "the first line is not method, target and version with one space between them"
            }
            Self::Method => {
                "the method is not accepted: send upper-case letters, such as `POST`, but not `CONNECT` or `TRACE`"
            }
            Self::TargetBytes => {
                "the target has a space, a control byte or a byte beyond ASCII: percent-encode it"
            }
            Self::TargetForm => "the target does not start with `/`",
            Self::OtherHost => "the target names another host than `Host`",
            Self::FoldedLine => "a header line starts with a space: send each header on one line",
            Self::FieldName => "the name of a header has a character that names cannot have",
            Self::HostMissing => "`Host` is missing",
            Self::HostTwice => "`Host` occurs twice: send it once",
            Self::Host => "`Host` is not a host with an optional port",
            Self::LengthTwice => "`Content-Length` occurs with two values: send one",
            Self::Length => "`Content-Length` is not a number of bytes",
            Self::CodingTwice => "`Transfer-Encoding` occurs twice: send it once",
            Self::Coding => "`Transfer-Encoding` may only be `chunked`",
            Self::TwoLengths => {
                "`Content-Length` and `Transfer-Encoding` occur together: send one of them"
            }
            Self::CodingVersion => "`Transfer-Encoding` exists only in HTTP/1.1",
        }
    }
}

impl From<HeadError> for Fault {
    fn from(error: HeadError) -> Self {
        match error {
            HeadError::TooLarge(max_bytes) => Self::new(
                FaultKind::HeadTooLarge,
                format!("the request's head is larger than {max_bytes} bytes"),
            ),
            HeadError::TooManyFields => Self::new(FaultKind::HeadTooLarge, error.message()),
            HeadError::TargetTooLong => Self::new(FaultKind::TargetTooLong, error.message()),
            _ => Self::new(FaultKind::Invalid, error.message()),
        }
    }
}

/// Judges the raw bytes of an HTTP/1 head, up to and with its empty line. One empty line in front of it is allowed.
///
/// Errors: [`HeadError`]. Cost: one pass, no allocation.
pub fn check_http1(head: &[u8], max_bytes: usize) -> Result<(), HeadError> {
    if head.len() > max_bytes {
        // A long target has a status of its own, whatever surrounds it.
        check_target_length(head.split(|byte| *byte == b'\n').next().unwrap_or_default())?;
        return Err(HeadError::TooLarge(max_bytes));
    }
    let mut lines = HeadLines(head.strip_prefix(b"\r\n").unwrap_or(head));
    let first = lines.next_line()?.ok_or(HeadError::RequestLine)?;
    let line = RequestLine::parse(first)?;
    let mut framing = Framing::default();
    while let Some((name, value)) = lines.next_field()? {
        framing.add(name, value)?;
    }
    if framing.coding_count > 0 && line.is_http1_0 {
        return Err(HeadError::CodingVersion);
    }
    match (framing.host, line.authority) {
        (None, _) if !line.is_http1_0 => return Err(HeadError::HostMissing),
        (Some(host), Some(authority)) if !host.eq_ignore_ascii_case(authority) => {
            return Err(HeadError::OtherHost);
        }
        _ => {}
    }
    framing.check()
}

/// Judges the head of an HTTP/2 request, whose parser has already refused what HTTP/2 forbids.
///
/// Errors: [`HeadError`].
pub fn check_http2(head: &Parts, max_bytes: usize) -> Result<(), HeadError> {
    let target = head.uri.path_and_query().map_or("/", |path| path.as_str());
    if target.len() > MAX_TARGET_BYTES {
        return Err(HeadError::TargetTooLong);
    }
    check_method(head.method.as_str().as_bytes())?;
    check_target_bytes(target.as_bytes())?;
    if !target.starts_with('/') {
        return Err(HeadError::TargetForm);
    }
    let mut framing = Framing::default();
    let mut bytes = target.len();
    for (name, value) in &head.headers {
        bytes += name.as_str().len() + value.len() + LINE_BYTES;
        framing.add(name.as_str().as_bytes(), value.as_bytes())?;
    }
    if bytes > max_bytes {
        return Err(HeadError::TooLarge(max_bytes));
    }
    if framing.coding_count > 0 {
        return Err(HeadError::CodingVersion);
    }
    match head.uri.authority() {
        Some(authority) if !is_host(authority.as_str().as_bytes()) => return Err(HeadError::Host),
        Some(authority)
            if framing
                .host
                .is_some_and(|host| !authority_is(authority, host)) =>
        {
            return Err(HeadError::OtherHost);
        }
        None if framing.host.is_none() => return Err(HeadError::HostMissing),
        _ => {}
    }
    framing.check()
}

fn authority_is(authority: &Authority, host: &[u8]) -> bool {
    host.eq_ignore_ascii_case(authority.as_str().as_bytes())
}

/// The name and the value of a header.
type Field<'h> = (&'h [u8], &'h [u8]);

/// The lines of a head that are left.
struct HeadLines<'h>(&'h [u8]);

impl<'h> HeadLines<'h> {
    /// Returns the next line without its end, or nothing after the last.
    fn next_line(&mut self) -> Result<Option<&'h [u8]>, HeadError> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let line = self.line_from(0)?;
        self.skip(line)?;
        Ok(Some(line))
    }

    /// Returns the next field, its value without the spaces around it, or nothing after the last.
    fn next_field(&mut self) -> Result<Option<Field<'h>>, HeadError> {
        // The name is read before the end of the line is looked for, so that no byte is looked at twice.
        let name_bytes = count_of(self.0, TOKEN);
        if name_bytes > 0
            && let Some((name, [b':', ..])) = self.0.split_at_checked(name_bytes)
        {
            let line = self.line_from(name_bytes)?;
            self.skip(line)?;
            let value = line.get(name_bytes + 1..).unwrap_or_default();
            return Ok(Some((name, value.trim_ascii())));
        }
        match self.next_line()? {
            None | Some([]) => Ok(None),
            Some([b' ' | b'\t', ..]) => Err(HeadError::FoldedLine),
            Some(_) => Err(HeadError::FieldName),
        }
    }

    /// Returns the next line, which does not end within its first `start` bytes.
    fn line_from(&self, start: usize) -> Result<&'h [u8], HeadError> {
        let rest = self.0.get(start..).unwrap_or_default();
        let end = memchr::memchr2(b'\r', b'\n', rest).ok_or(HeadError::LineEnd)?;
        self.0.get(..start + end).ok_or(HeadError::LineEnd)
    }

    /// Skips a line and its end.
    fn skip(&mut self, line: &[u8]) -> Result<(), HeadError> {
        let rest = self.0.get(line.len()..).unwrap_or_default();
        self.0 = rest.strip_prefix(b"\r\n").ok_or(HeadError::LineEnd)?;
        Ok(())
    }
}

/// The first line of a request.
struct RequestLine<'h> {
    /// The host that an absolute target names.
    authority: Option<&'h [u8]>,
    is_http1_0: bool,
}

impl<'h> RequestLine<'h> {
    fn parse(line: &'h [u8]) -> Result<Self, HeadError> {
        let (method, rest) = split_at_space(line).ok_or(HeadError::RequestLine)?;
        let (target, version) = split_at_space(rest).unwrap_or((rest, b""));
        if target.len() > MAX_TARGET_BYTES {
            return Err(HeadError::TargetTooLong);
        }
        if version.is_empty() || version.contains(&b' ') {
            return Err(HeadError::RequestLine);
        }
        check_method(method)?;
        check_target_bytes(target)?;
        let is_http1_0 = match version {
            b"HTTP/1.1" => false,
            b"HTTP/1.0" => true,
            _ => return Err(HeadError::RequestLine),
        };
        let authority = match target.first() {
            Some(b'/') => None,
            _ => Some(authority(target).ok_or(HeadError::TargetForm)?),
        };
        Ok(Self {
            authority,
            is_http1_0,
        })
    }
}

/// Splits a text at its first space, which belongs to neither part.
fn split_at_space(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let (before, rest) = text.split_at_checked(memchr::memchr(b' ', text)?)?;
    Some((before, rest.get(1..)?))
}

/// Returns the host and port of an absolute target.
fn authority(target: &[u8]) -> Option<&[u8]> {
    let colon = memchr::memchr(b':', target)?;
    let (scheme, rest) = target.split_at_checked(colon)?;
    if !scheme.eq_ignore_ascii_case(b"http") && !scheme.eq_ignore_ascii_case(b"https") {
        return None;
    }
    let rest = rest.strip_prefix(b"://")?;
    let ends = |byte: &u8| matches!(byte, b'/' | b'?' | b'#');
    rest.split(ends).next().filter(|host| !host.is_empty())
}

fn check_target_length(line: &[u8]) -> Result<(), HeadError> {
    let target = line.split(|byte| *byte == b' ').nth(1);
    match target {
        Some(target) if target.len() > MAX_TARGET_BYTES => Err(HeadError::TargetTooLong),
        _ => Ok(()),
    }
}

fn check_method(method: &[u8]) -> Result<(), HeadError> {
    let is_refused = method.is_empty() || matches!(method, b"CONNECT" | b"TRACE");
    match !is_refused && are_of(method, METHOD) {
        true => Ok(()),
        false => Err(HeadError::Method),
    }
}

fn check_target_bytes(target: &[u8]) -> Result<(), HeadError> {
    match are_of(target, GRAPHIC) {
        true => Ok(()),
        false => Err(HeadError::TargetBytes),
    }
}

/// The fields by which a head is framed.
#[derive(Default)]
struct Framing<'h> {
    field_count: usize,
    host: Option<&'h [u8]>,
    length: Option<&'h [u8]>,
    coding_count: usize,
}

impl<'h> Framing<'h> {
    fn add(&mut self, name: &[u8], value: &'h [u8]) -> Result<(), HeadError> {
        self.field_count += 1;
        if self.field_count > MAX_FIELDS {
            return Err(HeadError::TooManyFields);
        }
        // The lengths tell these names from nearly all others.
        match name.len() {
            4 if name.eq_ignore_ascii_case(b"host") => self.add_host(value),
            14 if name.eq_ignore_ascii_case(b"content-length") => self.add_length(value),
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => self.add_coding(value),
            _ => Ok(()),
        }
    }

    fn add_host(&mut self, value: &'h [u8]) -> Result<(), HeadError> {
        if !is_host(value) {
            return Err(HeadError::Host);
        }
        match self.host.replace(value) {
            Some(_) => Err(HeadError::HostTwice),
            None => Ok(()),
        }
    }

    fn add_length(&mut self, value: &'h [u8]) -> Result<(), HeadError> {
        let is_number = !value.is_empty()
            && value.len() <= MAX_LENGTH_DIGITS
            && value.iter().all(u8::is_ascii_digit);
        if !is_number {
            return Err(HeadError::Length);
        }
        match self.length.replace(value) {
            Some(other) if other != value => Err(HeadError::LengthTwice),
            _ => Ok(()),
        }
    }

    fn add_coding(&mut self, value: &[u8]) -> Result<(), HeadError> {
        self.coding_count += 1;
        if self.coding_count > 1 {
            return Err(HeadError::CodingTwice);
        }
        if value.eq_ignore_ascii_case(b"chunked") {
            Ok(())
        } else {
            Err(HeadError::Coding)
        }
    }

    /// Checks the fields together.
    fn check(&self) -> Result<(), HeadError> {
        if self.length.is_some() && self.coding_count > 0 {
            return Err(HeadError::TwoLengths);
        }
        Ok(())
    }
}

/// Returns whether a text is a name or an address with an optional port. Source: RFC 3986, 3.2.2.
fn is_host(text: &[u8]) -> bool {
    let (host, port) = match text.iter().rposition(|byte| *byte == b':') {
        // The colons within brackets belong to the address.
        Some(colon) if !text.ends_with(b"]") => {
            let (host, port) = text.split_at(colon);
            (host, port.get(1..).unwrap_or_default())
        }
        _ => (text, &b""[..]),
    };
    let is_port = port.len() <= 5 && port.iter().all(u8::is_ascii_digit);
    let is_address = |inner: &[u8]| !inner.is_empty() && are_of(inner, ADDRESS);
    let bracketed = host
        .strip_prefix(b"[")
        .and_then(|inner| inner.strip_suffix(b"]"));
    is_port && !host.is_empty() && bracketed.map_or_else(|| are_of(host, HOST), is_address)
}

#[cfg(test)]
#[path = "framing_tests.rs"]
mod tests;
