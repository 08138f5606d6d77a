//! Finds the events of an event stream.
//!
//! The reader accepts chunks that are cut anywhere, LF, CR, CRLF and mixtures, a byte-order mark, comments and
//! several `data` lines. If the only `data` line of an event lies inside one chunk, the event borrows a slice of that
//! chunk.
//!
//! Source: the WHATWG HTML standard, server-sent events. Our choice: an event that the end of the stream cuts before
//! its blank line is still delivered, because some providers omit the last blank line.

use memchr::memchr2;

/// A comment, which clients skip: it keeps the connection of a silent stream alive.
pub const KEEPALIVE: &str = ": keepalive\n\n";
/// Maximum size of one event. Source: docs/decisions.md 17.
pub const MAX_EVENT_BYTES: usize = 16 << 20;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// An event of a stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SseEvent<'a> {
    /// The `event` field, or empty.
    pub name: &'a str,
    /// The `data` lines joined by LF.
    pub data: &'a [u8],
}

/// An event is longer than [`MAX_EVENT_BYTES`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TooLong;

/// Makes one line of JSON, for the data of an event. Values of a provider come as it wrote them, and between the tokens of JSON a
/// line end is white space; but it would end the line here.
pub fn join_lines(json: &mut [u8]) {
    for byte in json {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
}

/// Writes the name of an event, which may be a provider's, as a line.
pub fn write_name(name: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"event: ");
    let start = out.len();
    out.extend_from_slice(name.as_bytes());
    join_lines(out.get_mut(start..).unwrap_or_default());
    out.push(b'\n');
}

/// An incremental reader of one event stream.
#[derive(Debug, Default)]
pub struct EventReader {
    /// The start of a line that has not ended yet.
    line: Vec<u8>,
    /// The `data` lines of the current event that came in earlier chunks, or several of them.
    data: Vec<u8>,
    has_data: bool,
    name: String,
    after_cr: bool,
    has_started: bool,
}

/// The meaning of a line.
enum Line<'a> {
    Blank,
    Data(&'a [u8]),
    Name(&'a [u8]),
    Other,
}

impl EventReader {
    /// Reads a chunk and calls `event` for each event that it completes.
    ///
    /// Errors: [`TooLong`] and the errors of `event`. The reader must not be used after an error.
    pub fn feed<E: From<TooLong>>(
        &mut self,
        chunk: &[u8],
        mut event: impl FnMut(SseEvent<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rest = self.strip_start(chunk);
        // The only data line of the current event, if it lies inside this chunk.
        let mut slice: Option<&[u8]> = None;
        loop {
            if slice.is_none() && self.is_between_events() {
                rest = read_plain_events(rest, &mut event)?;
            }
            let Some(at) = memchr2(b'\n', b'\r', rest) else {
                break;
            };
            let (head, tail) = rest.split_at(at);
            let is_first = !self.has_started;
            rest = self.skip_line_end(tail);
            if self.line.is_empty() {
                self.take_line(head, &mut slice, &mut event)?;
            } else {
                let mut line = std::mem::take(&mut self.line);
                line.extend_from_slice(head);
                self.append_data(slice.take());
                let mut line_slice = None;
                let whole = if is_first { strip_mark(&line) } else { &line };
                self.take_line(whole, &mut line_slice, &mut event)?;
                self.append_data(line_slice);
                line.clear();
                self.line = line;
            }
        }
        self.append_data(slice);
        self.line.extend_from_slice(rest);
        if self.line.len() + self.data.len() > MAX_EVENT_BYTES {
            Err(TooLong.into())
        } else {
            Ok(())
        }
    }

    /// Reads the end of the stream and calls `event` if an event lacks its blank line.
    pub fn finish<E>(
        &mut self,
        event: impl FnOnce(SseEvent<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let line = std::mem::take(&mut self.line);
        let whole = if self.has_started {
            &line
        } else {
            strip_mark(&line)
        };
        if let Line::Data(data) = parse_line(whole) {
            self.append_data(Some(data));
        }
        if !self.has_data {
            return Ok(());
        }
        self.has_data = false;
        event(SseEvent {
            name: &self.name,
            data: &self.data,
        })
    }

    fn take_line<'a, E: From<TooLong>>(
        &mut self,
        line: &'a [u8],
        slice: &mut Option<&'a [u8]>,
        event: &mut impl FnMut(SseEvent<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        match parse_line(line) {
            Line::Data(data) if slice.is_none() && !self.has_data => *slice = Some(data),
            Line::Data(data) => {
                self.append_data(slice.take());
                self.append_data(Some(data));
            }
            Line::Name(name) => {
                self.name.clear();
                self.name.push_str(&String::from_utf8_lossy(name));
            }
            Line::Other => {}
            Line::Blank => {
                let data = slice
                    .take()
                    .or(self.has_data.then_some(self.data.as_slice()));
                if let Some(data) = data {
                    if data.len() > MAX_EVENT_BYTES {
                        return Err(TooLong.into());
                    }
                    event(SseEvent {
                        name: &self.name,
                        data,
                    })?;
                }
                self.name.clear();
                self.data.clear();
                self.has_data = false;
            }
        }
        Ok(())
    }

    /// Returns whether no byte of the next event has arrived.
    fn is_between_events(&self) -> bool {
        self.line.is_empty() && !self.has_data && self.name.is_empty()
    }

    /// Appends a data line to the current event.
    fn append_data(&mut self, data: Option<&[u8]>) {
        let Some(data) = data else { return };
        if self.has_data {
            self.data.push(b'\n');
        }
        self.data.extend_from_slice(data);
        self.has_data = true;
    }

    /// Strips a byte-order mark, and the LF of a CRLF that was cut in two.
    fn strip_start<'a>(&mut self, chunk: &'a [u8]) -> &'a [u8] {
        let mut rest = chunk;
        if self.after_cr && !rest.is_empty() {
            self.after_cr = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        if !self.has_started && !rest.is_empty() {
            if !self.line.is_empty()
                || BYTE_ORDER_MARK.starts_with(rest) && rest.len() < BYTE_ORDER_MARK.len()
            {
                return rest;
            }
            self.has_started = true;
            rest = strip_mark(rest);
        }
        rest
    }

    /// Returns the text after a line end, and records a CR at the end of a chunk.
    fn skip_line_end<'a>(&mut self, tail: &'a [u8]) -> &'a [u8] {
        self.has_started = true;
        match tail {
            [b'\r', b'\n', after @ ..] | [b'\n', after @ ..] => after,
            [b'\r'] => {
                self.after_cr = true;
                &[]
            }
            [_, after @ ..] => after,
            [] => &[],
        }
    }
}

/// Reads the events at the start of `rest` that are one `data` line and a blank line each. Returns the rest.
///
/// Cost: one search for each event. Nearly every event of a stream of tokens is of this form.
fn read_plain_events<'a, E: From<TooLong>>(
    mut rest: &'a [u8],
    event: &mut impl FnMut(SseEvent<'_>) -> Result<(), E>,
) -> Result<&'a [u8], E> {
    while let Some((data, after)) = split_plain_event(rest) {
        if data.len() > MAX_EVENT_BYTES {
            return Err(TooLong.into());
        }
        event(SseEvent { name: "", data })?;
        rest = after;
    }
    Ok(rest)
}

fn split_plain_event(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let line = rest.strip_prefix(b"data: ")?;
    let (data, end) = line.split_at_checked(memchr2(b'\n', b'\r', line)?)?;
    Some((data, end.strip_prefix(b"\n\n")?))
}

/// Strips a byte-order mark, which only counts before the first line. If it came in pieces, it is still there.
fn strip_mark(line: &[u8]) -> &[u8] {
    line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line)
}

fn parse_line(line: &[u8]) -> Line<'_> {
    // Nearly every line is blank or data.
    if line.is_empty() {
        return Line::Blank;
    }
    if let Some(value) = line.strip_prefix(b"data: ") {
        return Line::Data(value);
    }
    let (field, value) = match memchr::memchr(b':', line) {
        None => (line, &[][..]),
        Some(at) => {
            let (field, value) = line.split_at(at);
            let value = value.get(1..).unwrap_or_default();
            (field, value.strip_prefix(b" ").unwrap_or(value))
        }
    };
    match field {
        b"data" => Line::Data(value),
        b"event" => Line::Name(value),
        _ => Line::Other,
    }
}

#[cfg(test)]
#[path = "sse_tests.rs"]
mod tests;
