//! HTTP/1.1 messages as bytes, read without allocations.

use memchr::memmem;

/// Returns the length of the head, if it has ended.
pub fn head_len(bytes: &[u8]) -> Option<usize> {
    memmem::find(bytes, b"\r\n\r\n").map(|at| at + 4)
}

/// Returns the body's length that a head declares.
pub fn content_length(head: &[u8]) -> Option<usize> {
    const NAME: &[u8] = b"content-length:";
    let mut lines = head.split(|byte| *byte == b'\n');
    let line = lines
        .find(|line| line.len() > NAME.len() && line[..NAME.len()].eq_ignore_ascii_case(NAME))?;
    let digits = line[NAME.len()..].trim_ascii();
    let add = |length, digit: &u8| length * 10 + usize::from(digit - b'0');
    Some(digits.iter().fold(0, add))
}

/// A response that arrives.
#[derive(Default)]
pub struct Response {
    /// The beginning of a head that came in parts.
    head: Vec<u8>,
    body: Option<Body>,
}

enum Body {
    /// This many bytes are missing.
    Length(usize),
    /// The last bytes of a body in chunks.
    Chunks([u8; LAST_CHUNK.len()]),
}

const LAST_CHUNK: &[u8; 7] = b"\r\n0\r\n\r\n";

impl Response {
    /// Takes the bytes that came next. Returns whether the response has ended; the next bytes begin another one.
    ///
    /// It panics if the status is another one.
    pub fn feed(&mut self, bytes: &[u8], status: &[u8]) -> bool {
        let has_ended = match &mut self.body {
            Some(body) => body.feed(bytes),
            None if self.head.is_empty() => self.begin(bytes, status),
            None => {
                let mut whole = std::mem::take(&mut self.head);
                whole.extend_from_slice(bytes);
                self.begin(&whole, status)
            }
        };
        if has_ended {
            self.body = None;
        }
        has_ended
    }

    fn begin(&mut self, bytes: &[u8], status: &[u8]) -> bool {
        let Some(length) = head_len(bytes) else {
            self.head.extend_from_slice(bytes);
            return false;
        };
        let (head, rest) = bytes.split_at(length);
        let is_expected = head[b"HTTP/1.1 ".len()..].starts_with(status);
        assert!(is_expected, "{}", String::from_utf8_lossy(bytes));
        let length = content_length(head).map(Body::Length);
        let body = self.body.insert(length.unwrap_or(Body::Chunks([0; 7])));
        body.feed(rest)
    }
}

impl Body {
    fn feed(&mut self, bytes: &[u8]) -> bool {
        match self {
            Self::Length(missing) => {
                *missing = missing
                    .checked_sub(bytes.len())
                    .expect("bytes behind the body");
                *missing == 0
            }
            Self::Chunks(last) => {
                let kept = last.len().saturating_sub(bytes.len());
                last.rotate_right(kept);
                let new = &bytes[bytes.len().saturating_sub(last.len())..];
                last[kept..].copy_from_slice(new);
                last == LAST_CHUNK
            }
        }
    }
}
