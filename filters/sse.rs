//! Where the events of an event stream begin and end.
//!
//! Incremental over chunks cut anywhere, for LF, CR, CRLF and mixtures, with a byte-order mark, comments and
//! several `data` lines. An event whose one `data` line lies inside a chunk is handed out as a slice of it.
//!
//! Source: the WHATWG HTML standard, server-sent events. Our choice: an event that the end of the stream cuts
//! before its blank line is still handed out, because some providers leave the last blank line out.

use memchr::memchr2;

/// How many bytes one event may have. Source: docs/decisions.md 17.
pub const MAX_EVENT_BYTES: usize = 16 << 20;

/// One event.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SseEvent<'a> {
    /// The `event` field, empty where there is none.
    pub name: &'a str,
    /// The `data` lines, joined by LF.
    pub data: &'a [u8],
}

/// An event is longer than [`MAX_EVENT_BYTES`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TooLong;

/// An incremental reader of one stream.
#[derive(Debug, Default)]
pub struct EventReader {
    /// The start of a line whose end has not come yet.
    line: Vec<u8>,
    /// The `data` lines of the event so far, from earlier chunks or when there are several.
    data: Vec<u8>,
    has_data: bool,
    name: String,
    after_cr: bool,
    begun: bool,
}

/// What a line means.
enum Line<'a> {
    Blank,
    Data(&'a [u8]),
    Name(&'a [u8]),
    Other,
}

impl EventReader {
    /// Takes a chunk; `event` is called for each event that it completes.
    ///
    /// Errors: [`TooLong`], and what `event` answers; the reader must not be used after either.
    pub fn feed<E: From<TooLong>>(
        &mut self,
        chunk: &[u8],
        mut event: impl FnMut(SseEvent<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rest = self.strip(chunk);
        // The only data line of the event so far, where it lies inside this chunk.
        let mut slice: Option<&[u8]> = None;
        while let Some(at) = memchr2(b'\n', b'\r', rest) {
            let (head, tail) = rest.split_at(at);
            rest = self.after_line_end(tail);
            if self.line.is_empty() {
                self.take_line(head, &mut slice, &mut event)?;
            } else {
                let mut line = std::mem::take(&mut self.line);
                line.extend_from_slice(head);
                self.keep(slice.take());
                let mut none = None;
                self.take_line(&line, &mut none, &mut event)?;
                self.keep(none);
                line.clear();
                self.line = line;
            }
        }
        self.keep(slice);
        self.line.extend_from_slice(rest);
        if self.line.len() + self.data.len() > MAX_EVENT_BYTES {
            Err(TooLong.into())
        } else {
            Ok(())
        }
    }

    /// Takes the end of the stream; `event` is called where an event was left without its blank line.
    pub fn finish<E>(
        &mut self,
        event: impl FnOnce(SseEvent<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let line = std::mem::take(&mut self.line);
        if let Line::Data(data) = parse(&line) {
            self.keep(Some(data));
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
        match parse(line) {
            Line::Data(data) if slice.is_none() && !self.has_data => *slice = Some(data),
            Line::Data(data) => {
                self.keep(slice.take());
                self.keep(Some(data));
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

    /// Adds a data line to those kept for the event.
    fn keep(&mut self, data: Option<&[u8]>) {
        let Some(data) = data else { return };
        if self.has_data {
            self.data.push(b'\n');
        }
        self.data.extend_from_slice(data);
        self.has_data = true;
    }

    /// What is left of a chunk without a byte-order mark and the LF of a CRLF cut in two.
    fn strip<'a>(&mut self, chunk: &'a [u8]) -> &'a [u8] {
        const MARK: &[u8] = b"\xEF\xBB\xBF";
        let mut rest = chunk;
        if self.after_cr && !rest.is_empty() {
            self.after_cr = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        if !self.begun && !rest.is_empty() {
            if !self.line.is_empty() || MARK.starts_with(rest) && rest.len() < MARK.len() {
                return rest;
            }
            self.begun = true;
            rest = rest.strip_prefix(MARK).unwrap_or(rest);
        }
        rest
    }

    /// What follows a line end; remembers a CR at the end of a chunk.
    fn after_line_end<'a>(&mut self, tail: &'a [u8]) -> &'a [u8] {
        self.begun = true;
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

fn parse(line: &[u8]) -> Line<'_> {
    // Nearly every line is one of these two.
    if line.is_empty() {
        return Line::Blank;
    }
    if let Some(value) = line.strip_prefix(b"data: ") {
        return Line::Data(value);
    }
    // A byte-order mark that came in pieces still stands at the start of the first line.
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
    let (field, value) = match memchr::memchr(b':', line) {
        None if line.is_empty() => return Line::Blank,
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
