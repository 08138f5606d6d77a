//! Finds the frames of an event stream of AWS, `application/vnd.amazon.eventstream`.
//!
//! A frame is a length of all, a length of its headers and a checksum of both, then headers, payload and a checksum of all
//! before it. The reader accepts chunks that are cut anywhere; a frame that lies inside one chunk is read where it stands.
//! A frame with a wrong checksum is never handed out, and a length counts only once its checksum has held.
//!
//! Source: docs/facts/wire-formats.md 5.1.

use std::ops::ControlFlow;

/// The media type of such a stream.
pub const MEDIA_TYPE: &str = "application/vnd.amazon.eventstream";
/// Maximum size of one frame. Source: docs/decisions.md 17.
pub const MAX_FRAME_BYTES: usize = 16 << 20;

/// Both lengths and their checksum.
const PRELUDE_BYTES: usize = 12;
/// The checksum at the end.
const CHECKSUM_BYTES: usize = 4;

/// A frame of a stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct EventFrame<'a> {
    pub kind: FrameKind,
    /// The type of the event or the exception, or the code of the error.
    pub name: &'a str,
    /// What the frame holds; of an error its message.
    pub payload: &'a [u8],
}

/// The kind of a frame.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FrameKind {
    Event,
    /// A failure that the service describes.
    Exception,
    /// A failure that it does not.
    Error,
}

/// Why a stream cannot be read on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FrameError {
    /// A frame is longer than [`MAX_FRAME_BYTES`].
    TooLong,
    /// A checksum is wrong.
    Checksum,
    /// Lengths or headers are not what the format says.
    Malformed,
    /// The stream has ended within a frame.
    Cut,
}

/// An incremental reader of one stream.
#[derive(Debug, Default)]
pub struct FrameReader {
    /// The start of a frame that has not come whole yet.
    held: Vec<u8>,
}

impl FrameReader {
    /// Reads a chunk and calls `event` for each frame that it completes.
    ///
    /// Errors: [`FrameError`] and the errors of `event`. The reader must not be used after an error.
    ///
    /// Cost: copies the frames that are cut, and holds no more than one of them.
    pub fn feed<E: From<FrameError>>(
        &mut self,
        chunk: &[u8],
        mut event: impl FnMut(EventFrame<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rest = chunk;
        if !self.held.is_empty() {
            let ControlFlow::Continue(after) = self.complete(rest)? else {
                return Ok(());
            };
            rest = after;
            event(read_frame(&self.held)?)?;
            self.held.clear();
        }
        while let Some((frame, after)) = split_frame(rest)? {
            event(read_frame(frame)?)?;
            rest = after;
        }
        self.held.extend_from_slice(rest);
        Ok(())
    }

    /// Reads the end of the stream.
    ///
    /// Errors: [`FrameError::Cut`] within a frame.
    pub fn finish(&self) -> Result<(), FrameError> {
        match self.held.is_empty() {
            true => Ok(()),
            false => Err(FrameError::Cut),
        }
    }

    /// Appends to the frame at hand what it lacks. Returns what is left behind it, or breaks off where it is not whole yet.
    fn complete<'a>(&mut self, chunk: &'a [u8]) -> Result<ControlFlow<(), &'a [u8]>, FrameError> {
        let Some(rest) = self.fill(chunk, PRELUDE_BYTES) else {
            return Ok(ControlFlow::Break(()));
        };
        let bytes = read_lengths(&self.held)?.map_or(PRELUDE_BYTES, |lengths| lengths.all);
        Ok(match self.fill(rest, bytes) {
            Some(rest) => ControlFlow::Continue(rest),
            None => ControlFlow::Break(()),
        })
    }

    /// Appends bytes up to a length. Returns those that are left; `None`: the length is not reached.
    fn fill<'a>(&mut self, chunk: &'a [u8], bytes: usize) -> Option<&'a [u8]> {
        let lacking = bytes.saturating_sub(self.held.len());
        let (own, rest) = chunk.split_at_checked(lacking).unwrap_or((chunk, &[]));
        self.held.extend_from_slice(own);
        (own.len() == lacking).then_some(rest)
    }
}

/// The lengths of a frame.
struct Lengths {
    all: usize,
    headers: usize,
}

/// Reads the lengths at the start of `bytes`; `None`: they have not come whole yet.
fn read_lengths(bytes: &[u8]) -> Result<Option<Lengths>, FrameError> {
    let Some(prelude) = bytes.first_chunk::<PRELUDE_BYTES>() else {
        return Ok(None);
    };
    let (lengths, checksum) = prelude.split_at(PRELUDE_BYTES - CHECKSUM_BYTES);
    check(lengths, checksum)?;
    let (all, headers) = lengths.split_at(4);
    let (all, headers) = (number(all), number(headers));
    if all > MAX_FRAME_BYTES {
        return Err(FrameError::TooLong);
    }
    let least = headers.saturating_add(PRELUDE_BYTES + CHECKSUM_BYTES);
    match least <= all {
        true => Ok(Some(Lengths { all, headers })),
        false => Err(FrameError::Malformed),
    }
}

/// The first frame, and what is behind it.
type Split<'a> = (&'a [u8], &'a [u8]);

/// Splits the first frame off; `None`: it has not come whole yet.
fn split_frame(bytes: &[u8]) -> Result<Option<Split<'_>>, FrameError> {
    let lengths = read_lengths(bytes)?;
    Ok(lengths.and_then(|lengths| bytes.split_at_checked(lengths.all)))
}

/// Reads a whole frame.
fn read_frame(frame: &[u8]) -> Result<EventFrame<'_>, FrameError> {
    let (checked, checksum) = frame
        .split_last_chunk::<CHECKSUM_BYTES>()
        .ok_or(FrameError::Malformed)?;
    check(checked, checksum)?;
    let lengths = read_lengths(frame)?.ok_or(FrameError::Malformed)?;
    let inside = checked.get(PRELUDE_BYTES..).unwrap_or_default();
    let (headers, payload) = inside
        .split_at_checked(lengths.headers)
        .ok_or(FrameError::Malformed)?;
    let headers = Headers::read(headers)?;
    let (kind, name) = match headers.message_type.ok_or(FrameError::Malformed)? {
        "event" => (FrameKind::Event, headers.event_type),
        "exception" => (FrameKind::Exception, headers.exception_type),
        "error" => (FrameKind::Error, headers.error_code),
        _ => return Err(FrameError::Malformed),
    };
    let message = headers.error_message.filter(|_| kind == FrameKind::Error);
    Ok(EventFrame {
        kind,
        name: name.unwrap_or_default(),
        payload: message.map_or(payload, str::as_bytes),
    })
}

/// The headers that say what a frame is.
#[derive(Default)]
struct Headers<'a> {
    message_type: Option<&'a str>,
    event_type: Option<&'a str>,
    exception_type: Option<&'a str>,
    error_code: Option<&'a str>,
    error_message: Option<&'a str>,
}

impl<'a> Headers<'a> {
    fn read(mut rest: &'a [u8]) -> Result<Self, FrameError> {
        let mut headers = Self::default();
        while let Some((&length, after)) = rest.split_first() {
            let (name, after) = split(after, length.into())?;
            let (&kind, after) = after.split_first().ok_or(FrameError::Malformed)?;
            let (value, after) = split_value(kind, after)?;
            rest = after;
            let slot = match name {
                b":message-type" => &mut headers.message_type,
                b":event-type" => &mut headers.event_type,
                b":exception-type" => &mut headers.exception_type,
                b":error-code" => &mut headers.error_code,
                b":error-message" => &mut headers.error_message,
                _ => continue,
            };
            let text = str::from_utf8(value).ok().filter(|_| kind == STRING);
            *slot = Some(text.ok_or(FrameError::Malformed)?);
        }
        Ok(headers)
    }
}

/// The type of headers that are texts.
const STRING: u8 = 7;

/// Splits the value of a header of this type off: those of texts and bytes have a length in front.
fn split_value(kind: u8, bytes: &[u8]) -> Result<(&[u8], &[u8]), FrameError> {
    match kind {
        // True and false.
        0 | 1 => Ok((&[], bytes)),
        2 => split(bytes, 1),
        3 => split(bytes, 2),
        4 => split(bytes, 4),
        // A number or a time.
        5 | 8 => split(bytes, 8),
        6 | STRING => {
            let (length, after) = split(bytes, 2)?;
            split(after, number(length))
        }
        // A UUID.
        9 => split(bytes, 16),
        _ => Err(FrameError::Malformed),
    }
}

fn split(bytes: &[u8], at: usize) -> Result<(&[u8], &[u8]), FrameError> {
    bytes.split_at_checked(at).ok_or(FrameError::Malformed)
}

/// Reads a number of at most four bytes, the most significant first.
fn number(bytes: &[u8]) -> usize {
    let number = bytes
        .iter()
        .fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn check(bytes: &[u8], checksum: &[u8]) -> Result<(), FrameError> {
    match crc32fast::hash(bytes).to_be_bytes() == checksum {
        true => Ok(()),
        false => Err(FrameError::Checksum),
    }
}

#[cfg(test)]
#[path = "event_frames_tests.rs"]
mod tests;
#[cfg(test)]
#[path = "tests/frames/mod.rs"]
pub(crate) mod written;
