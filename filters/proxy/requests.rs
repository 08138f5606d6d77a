//! Follows the requests of an HTTP/1 connection in its raw bytes: it tells which bytes belong to the running request,
//! and refuses requests whose framing has two meanings.
//!
//! Source: docs/hostile-input.md 1 to 9, 11, 12.

use memchr::memmem;

use super::byte_class::{METHOD, is_in_class};
use super::chunks::{ChunkError, Chunks};
use super::framing::{BodyFraming, check_http1};
use super::head_error::HeadError;

/// The end of a head: the end of its last line, and an empty line.
const HEAD_END: &[u8] = b"\r\n\r\n";

/// The reason for which the bytes of a request are refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RequestRefusal {
    Head(HeadError),
    Body(ChunkError),
}

/// The part of the connection to which the next byte belongs.
#[derive(Debug)]
enum RequestPart {
    /// A head whose first bytes, this many, do not contain its end.
    Head(usize),
    /// A body with this many bytes left.
    Length(u64),
    /// A chunked body.
    Chunks(Chunks),
    Behind,
    /// The bytes after a refused request.
    Refused(RequestRefusal),
}

/// The requests of a connection, one after the other.
#[derive(Debug)]
pub struct RequestFollower {
    place: RequestPart,
    max_head_bytes: usize,
}

impl RequestFollower {
    /// Returns the follower of a connection on which no byte has arrived.
    pub fn new(max_head_bytes: usize) -> Self {
        Self {
            place: RequestPart::Head(0),
            max_head_bytes,
        }
    }

    /// Returns whether the whole request has arrived.
    pub fn is_whole(&self) -> bool {
        matches!(self.place, RequestPart::Behind)
    }

    /// Returns whether the head of the request is incomplete.
    pub fn is_in_head(&self) -> bool {
        matches!(self.place, RequestPart::Head(_))
    }

    /// Returns the refusal after which no bytes of the connection are forwarded, if there is one.
    pub fn refusal(&self) -> Option<RequestRefusal> {
        match self.place {
            RequestPart::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }

    /// Starts the next request if the previous one is whole.
    pub fn begin_next(&mut self) {
        if self.is_whole() {
            self.place = RequestPart::Head(0);
        }
    }

    /// Follows the request through `bytes`. Returns how many of them, from the first, belong to the request and may
    /// be forwarded. The caller passes the others again, together with the bytes that follow. No byte of a head is
    /// forwarded before the whole head has arrived.
    ///
    /// Errors: [`RequestRefusal`]. Then neither these bytes nor later ones may be forwarded. Cost: one pass over a
    /// head; bytes of body data are not read.
    pub fn follow(&mut self, bytes: &[u8]) -> Result<usize, RequestRefusal> {
        let head_bytes = match self.place {
            RequestPart::Head(searched) => match self.follow_head(bytes, searched)? {
                0 => return Ok(0),
                count => count,
            },
            _ => 0,
        };
        let behind = bytes.get(head_bytes..).unwrap_or_default();
        match self.follow_body(behind) {
            Ok(count) => Ok(head_bytes + count),
            Err(refusal) => {
                self.place = RequestPart::Refused(refusal);
                // The head is valid, so its reader can respond to the request.
                if head_bytes > 0 {
                    Ok(head_bytes)
                } else {
                    Err(refusal)
                }
            }
        }
    }

    /// Returns the length of the head if the whole head has arrived, or 0.
    fn follow_head(&mut self, bytes: &[u8], searched: usize) -> Result<usize, RequestRefusal> {
        let Some(length) = head_length(bytes, searched, self.max_head_bytes) else {
            self.place = RequestPart::Head(bytes.len());
            return Ok(0);
        };
        let head = bytes.get(..length).unwrap_or(bytes);
        let framing = check_http1(head, self.max_head_bytes).map_err(|error| {
            let refusal = RequestRefusal::Head(error);
            self.place = RequestPart::Refused(refusal);
            refusal
        })?;
        self.place = match framing {
            BodyFraming::Length(0) => RequestPart::Behind,
            BodyFraming::Length(length) => RequestPart::Length(length),
            BodyFraming::Chunks => RequestPart::Chunks(Chunks::new()),
        };
        Ok(length)
    }

    fn follow_body(&mut self, bytes: &[u8]) -> Result<usize, RequestRefusal> {
        let (count, is_whole) = match &mut self.place {
            RequestPart::Head(_) | RequestPart::Behind => return Ok(0),
            RequestPart::Refused(refusal) => return Err(*refusal),
            RequestPart::Length(left) => {
                let count = bytes
                    .len()
                    .min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= count as u64;
                (count, *left == 0)
            }
            RequestPart::Chunks(chunks) => {
                let count = chunks.follow(bytes).map_err(RequestRefusal::Body)?;
                (count, chunks.is_whole())
            }
        };
        if is_whole {
            self.place = RequestPart::Behind;
        }
        Ok(count)
    }
}

/// Returns the length of the head at the start of these bytes: up to its empty line, or all of them if they cannot
/// become a valid head any more.
fn head_length(bytes: &[u8], searched: usize, max_bytes: usize) -> Option<usize> {
    let start = searched.saturating_sub(HEAD_END.len() - 1);
    let unsearched = bytes.get(start..)?;
    if let Some(at) = memmem::find(unsearched, HEAD_END) {
        return Some(start + at + HEAD_END.len());
    }
    let begins_with_no_method = bytes
        .iter()
        .find(|byte| !matches!(byte, b'\r' | b'\n'))
        .is_some_and(|byte| !is_in_class(*byte, METHOD));
    let is_hopeless = bytes.len() > max_bytes || begins_with_no_method || has_bare_lf(unsearched);
    is_hopeless.then_some(bytes.len())
}

/// Returns whether a line ends with a bare LF. The byte before the first one is unknown, so an LF there does not
/// count.
fn has_bare_lf(bytes: &[u8]) -> bool {
    memchr::memchr_iter(b'\n', bytes).any(|at| {
        let before = at.checked_sub(1).and_then(|before| bytes.get(before));
        before.is_some_and(|byte| *byte != b'\r')
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use super::*;

    const MAX: usize = 1 << 10;

    /// Returns the requests in these bytes, which come in pieces of this size, and what was refused.
    fn requests(bytes: &[u8], piece: usize) -> (Vec<Vec<u8>>, Option<RequestRefusal>) {
        let mut follower = RequestFollower::new(MAX);
        let (mut held, mut requests) = (Vec::new(), vec![Vec::new()]);
        for piece in bytes.chunks(piece) {
            held.extend_from_slice(piece);
            loop {
                match follower.follow(&held) {
                    Ok(0) => break,
                    Ok(count) => requests.last_mut().unwrap().extend(held.drain(..count)),
                    Err(refusal) => return (requests, Some(refusal)),
                }
                if follower.is_whole() {
                    follower.begin_next();
                    requests.push(Vec::new());
                }
            }
        }
        assert!(requests.pop().unwrap().is_empty(), "{held:?}");
        (requests, None)
    }

    #[test]
    fn each_request_has_its_own_bytes_however_they_come() {
        let all = [
            "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
            "\r\nPOST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n\r\n\r\n!",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nGET\r\n0\r\nX: y\r\n\r\n",
            "POST / HTTP/1.0\r\nContent-Length: 0\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        ];
        let bytes = all.concat();
        for piece in 1..bytes.len() {
            let (requests, refusal) = requests(bytes.as_bytes(), piece);
            assert_eq!(refusal, None, "{piece}");
            assert_eq!(requests, all.map(|it| it.as_bytes().to_vec()), "{piece}");
        }
    }

    #[test]
    fn a_refused_body_lets_its_head_on_alone() {
        let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        let bytes = format!("{head}3\r\nabc\r\n\r\n\r\n");
        let (requests, refusal) = requests(bytes.as_bytes(), bytes.len());
        assert_eq!(requests, [head.as_bytes()]);
        assert_eq!(refusal, Some(RequestRefusal::Body(ChunkError::Size)));
    }

    #[test]
    fn what_becomes_no_head_is_refused_before_it_ends() {
        for (bytes, error) in [
            ("\u{16}\u{3}\u{1}", HeadError::LineEnd),
            ("\r\n{", HeadError::LineEnd),
            ("GET / HTTP/1.1\n", HeadError::LineEnd),
            ("GET / HTTP/1.1\r\nHost: a\n", HeadError::LineEnd),
            ("\r\n\r\n", HeadError::RequestLine),
        ] {
            for piece in [1, bytes.len()] {
                let refusal = requests(bytes.as_bytes(), piece).1;
                assert_eq!(refusal, Some(RequestRefusal::Head(error)), "{bytes:?}");
            }
        }
        let long = format!("GET / HTTP/1.1\r\nX: {}", "y".repeat(MAX));
        let refusal = requests(long.as_bytes(), 100).1;
        assert_eq!(
            refusal,
            Some(RequestRefusal::Head(HeadError::TooLarge(MAX)))
        );
    }
}
