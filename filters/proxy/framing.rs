//! Checks the head of a request before any other code reads it: two parsers must not frame the request in two ways.
//!
//! HTTP/1 heads are checked as raw bytes, because a parser has already repaired or dropped the ambiguous parts, such
//! as a bare line feed or a `Content-Length` beside `Transfer-Encoding`. HTTP/2 heads have no lines; the same rules
//! hold for their headers.
//!
//! Source: docs/hostile-input.md 1 to 5, 11, 12, 22.

use http::request::Parts;
use http::uri::Authority;

use super::byte_class::{
    ADDRESS, GRAPHIC, HOST, METHOD, PATH, QUERY, TOKEN, are_in_class, count_in_class,
};
use super::head_error::HeadError;

/// The maximum length of a request target, in bytes.
pub const MAX_TARGET_BYTES: usize = 8 << 10;
/// The maximum number of header fields.
pub const MAX_FIELDS: usize = 100;
/// The maximum digits of a length; any such number fits into 64 bits.
const MAX_LENGTH_DIGITS: usize = 19;
/// The maximum number of names in `Connection`. Pingora refuses more without a response.
const MAX_OPTIONS: usize = 9;
/// The headers that `Connection` must not name, because they have a meaning beyond this connection.
const END_TO_END: [&[u8]; 4] = [
    b"host",
    b"x-forwarded-for",
    b"x-forwarded-host",
    b"x-forwarded-proto",
];
/// The bytes of a header line beside name and value: `: ` and the line end.
const LINE_BYTES: usize = 4;

/// How the body of a request is framed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BodyFraming {
    /// By its length in bytes, which is 0 without a stated length.
    Length(u64),
    Chunks,
}

/// Checks the raw bytes of an HTTP/1 head, including its empty line. One empty line in front of the head is allowed.
///
/// Returns how the head frames the body. Errors: [`HeadError`]. Cost: two passes, no allocation.
pub fn check_http1(head: &[u8], max_bytes: usize) -> Result<BodyFraming, HeadError> {
    if head.len() > max_bytes {
        // A long target has its own status, so it is checked first.
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
        // Pingora compares host and authority byte by byte.
        (Some(host), Some(authority)) if host != authority => return Err(HeadError::OtherHost),
        _ => {}
    }
    if has_control_byte(head) {
        return Err(HeadError::FieldValue);
    }
    framing.check()
}

/// Returns whether a head has a control byte other than CR and LF.
fn has_control_byte(head: &[u8]) -> bool {
    // Without a branch per byte, the compiler compares many bytes at once.
    let is_control =
        |byte: u8| (byte < b' ') & !matches!(byte, b'\t' | b'\r' | b'\n') | (byte == 0x7f);
    head.iter()
        .fold(false, |found, byte| found | is_control(*byte))
}

/// Checks the head of an HTTP/2 request. Its parser has already refused everything that HTTP/2 forbids.
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
                .is_some_and(|host| !is_authority(authority, host)) =>
        {
            return Err(HeadError::OtherHost);
        }
        None if framing.host.is_none() => return Err(HeadError::HostMissing),
        _ => {}
    }
    framing.check().map(|_| ())
}

fn is_authority(authority: &Authority, host: &[u8]) -> bool {
    host.eq_ignore_ascii_case(authority.as_str().as_bytes())
}

/// The name and the value of a header.
type HeaderField<'h> = (&'h [u8], &'h [u8]);

/// The remaining lines of a head.
struct HeadLines<'h>(&'h [u8]);

impl<'h> HeadLines<'h> {
    /// Returns the next line without its end, or `None` after the last line.
    fn next_line(&mut self) -> Result<Option<&'h [u8]>, HeadError> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let line = self.find_line(0)?;
        self.skip_line(line)?;
        Ok(Some(line))
    }

    /// Returns the next field with a trimmed value, or `None` after the last field.
    fn next_field(&mut self) -> Result<Option<HeaderField<'h>>, HeadError> {
        // The name is read before the search for the end of the line, so that no byte is read twice.
        let name_bytes = count_in_class(self.0, TOKEN);
        if name_bytes > 0
            && let Some((name, [b':', ..])) = self.0.split_at_checked(name_bytes)
        {
            let line = self.find_line(name_bytes)?;
            self.skip_line(line)?;
            let value = line.get(name_bytes + 1..).unwrap_or_default();
            return Ok(Some((name, value.trim_ascii())));
        }
        match self.next_line()? {
            None | Some([]) => Ok(None),
            Some([b' ' | b'\t', ..]) => Err(HeadError::FoldedLine),
            Some(_) => Err(HeadError::FieldName),
        }
    }

    /// Returns the next line. Its first `start` bytes are known to contain no line end.
    fn find_line(&self, start: usize) -> Result<&'h [u8], HeadError> {
        let rest = self.0.get(start..).unwrap_or_default();
        let end = memchr::memchr2(b'\r', b'\n', rest).ok_or(HeadError::LineEnd)?;
        self.0.get(..start + end).ok_or(HeadError::LineEnd)
    }

    /// Skips a line and its end.
    fn skip_line(&mut self, line: &[u8]) -> Result<(), HeadError> {
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
            _ => Some(find_authority(target).ok_or(HeadError::TargetForm)?),
        };
        Ok(Self {
            authority,
            is_http1_0,
        })
    }
}

/// Splits a text at its first space, and drops the space.
fn split_at_space(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let (before, rest) = text.split_at_checked(memchr::memchr(b' ', text)?)?;
    Some((before, rest.get(1..)?))
}

/// Returns the host and port of an absolute target.
fn find_authority(target: &[u8]) -> Option<&[u8]> {
    let colon = memchr::memchr(b':', target)?;
    let (scheme, rest) = target.split_at_checked(colon)?;
    if !scheme.eq_ignore_ascii_case(b"http") && !scheme.eq_ignore_ascii_case(b"https") {
        return None;
    }
    let rest = rest.strip_prefix(b"://")?;
    let ends = |byte: &u8| matches!(byte, b'/' | b'?' | b'#');
    // Pingora parses the host of an absolute target, but not the value of `Host`.
    rest.split(ends)
        .next()
        .filter(|host| is_host(host) && Authority::try_from(*host).is_ok())
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
    match !is_refused && are_in_class(method, METHOD) {
        true => Ok(()),
        false => Err(HeadError::Method),
    }
}

fn check_target_bytes(target: &[u8]) -> Result<(), HeadError> {
    let mut rest = skip_class(target, PATH);
    if let [b'?', query @ ..] = rest {
        rest = skip_class(query, QUERY);
    }
    let is_fragment = rest.first() == Some(&b'#') && are_in_class(rest, GRAPHIC);
    match rest.is_empty() || is_fragment {
        true => Ok(()),
        false => Err(HeadError::TargetBytes),
    }
}

/// Returns the rest after the leading bytes of a class.
fn skip_class(bytes: &[u8], class: u8) -> &[u8] {
    bytes
        .get(count_in_class(bytes, class)..)
        .unwrap_or_default()
}

/// The fields that frame a request.
#[derive(Default)]
struct Framing<'h> {
    field_count: usize,
    host: Option<&'h [u8]>,
    length: Option<&'h [u8]>,
    coding_count: usize,
    /// The number of names in `Connection`.
    option_count: usize,
}

impl<'h> Framing<'h> {
    fn add(&mut self, name: &[u8], value: &'h [u8]) -> Result<(), HeadError> {
        self.field_count += 1;
        if self.field_count > MAX_FIELDS {
            return Err(HeadError::TooManyFields);
        }
        // Almost all other names have other lengths.
        match name.len() {
            4 if name.eq_ignore_ascii_case(b"host") => self.add_host(value),
            10 if name.eq_ignore_ascii_case(b"connection") => self.add_options(value),
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

    /// Counts the names in `Connection`. Pingora refuses too many of them without a response.
    fn add_options(&mut self, value: &[u8]) -> Result<(), HeadError> {
        let names = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
        for name in names.filter(|name| !name.is_empty()) {
            self.option_count += 1;
            let is_kept = END_TO_END
                .iter()
                .any(|kept| name.eq_ignore_ascii_case(kept));
            if is_kept || self.option_count > MAX_OPTIONS || !are_in_class(name, TOKEN) {
                return Err(HeadError::ConnectionOption);
            }
        }
        Ok(())
    }

    /// Checks the fields together. Returns how they frame the body.
    fn check(&self) -> Result<BodyFraming, HeadError> {
        match (self.length, self.coding_count) {
            (Some(_), 1..) => Err(HeadError::TwoLengths),
            (None, 1..) => Ok(BodyFraming::Chunks),
            (length, 0) => {
                let digits = length.unwrap_or(b"0");
                let digits = str::from_utf8(digits).ok();
                let number = digits.and_then(|digits| digits.parse().ok());
                number.map(BodyFraming::Length).ok_or(HeadError::Length)
            }
        }
    }
}

/// Returns whether a text is a name or an address with an optional port. Source: RFC 3986, 3.2.2.
fn is_host(text: &[u8]) -> bool {
    let (host, port) = match text.iter().rposition(|byte| *byte == b':') {
        // Colons inside brackets belong to the address.
        Some(colon) if !text.ends_with(b"]") => {
            let (host, port) = text.split_at(colon);
            (host, port.get(1..).unwrap_or_default())
        }
        _ => (text, &b""[..]),
    };
    let is_port = port.len() <= 5 && port.iter().all(u8::is_ascii_digit);
    let is_address = |inner: &[u8]| !inner.is_empty() && are_in_class(inner, ADDRESS);
    let bracketed = host
        .strip_prefix(b"[")
        .and_then(|inner| inner.strip_suffix(b"]"));
    is_port && !host.is_empty() && bracketed.map_or_else(|| are_in_class(host, HOST), is_address)
}

#[cfg(test)]
#[path = "framing_tests.rs"]
mod tests;
