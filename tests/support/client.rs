//! A client that sends exact bytes and records exact bytes, with times.
//!
//! HTTP/1.1 over one blocking connection: keep-alive, chunked decoding with the time of every chunk,
//! early hang-up.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketType};
use serde_json::Value;

use super::WAIT_TIMEOUT;
pub use super::ask::Ask;
use super::{described, sse};

/// A status line and headers.
#[derive(Clone, Debug)]
pub struct Head {
    /// The status.
    pub status: u16,
    /// Every header in order, names as sent.
    pub headers: Vec<(String, String)>,
    /// When the head was complete.
    pub at: Instant,
}

impl Head {
    /// The first header of that name, case ignored.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self
            .headers
            .iter()
            .find(|(given, _)| given.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// How many headers have that name.
    pub fn count(&self, name: &str) -> usize {
        self.headers
            .iter()
            .filter(|(given, _)| given.eq_ignore_ascii_case(name))
            .count()
    }
}

/// A piece of a body: one chunk of chunked framing, or the result of one read.
#[derive(Clone, Debug)]
pub struct Chunk {
    /// When it was complete.
    pub at: Instant,
    /// Its bytes, framing removed.
    pub bytes: Vec<u8>,
}

/// How a reply ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// As its framing announced.
    Complete,
    /// The peer closed before that. A reply without framing has no other end.
    Closed,
    /// The peer reset the connection.
    Reset,
}

/// A whole reply.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The informational heads before it.
    pub informational: Vec<Head>,
    /// Its head.
    pub head: Head,
    /// Its body piece by piece.
    pub chunks: Vec<Chunk>,
    /// Its body.
    pub body: Vec<u8>,
    /// How it ended.
    pub end: End,
}

impl Answer {
    /// The status.
    pub fn status(&self) -> u16 {
        self.head.status
    }

    /// The first header of that name, case ignored.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.header(name)
    }

    /// The body as text.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("the body is UTF-8")
    }

    /// The body as JSON; fails the test when it is not.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.text()))
    }

    /// The body as an event stream.
    pub fn events(&self) -> sse::Stream {
        sse::parse(&self.body)
    }
}

#[derive(Clone, Copy)]
enum Framing {
    Nothing,
    Length(usize),
    Chunks,
    UntilClose,
}

/// One connection; dropping it hangs up.
pub struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
    framing: Framing,
    ended: Option<End>,
    asked_head: bool,
}

/// Sends one request on a new connection and reads the whole reply.
pub fn ask(address: SocketAddr, ask: &Ask) -> Answer {
    Client::connect(address).ask(ask)
}

/// Sends this many requests at once, to the servers in turn. Returns how many were served and how many had no credit.
pub fn ask_at_once(servers: &[SocketAddr], request: &Ask, count: usize) -> (usize, usize) {
    let threads: Vec<_> = (0..count)
        .map(|n| {
            let (address, request) = (servers[n % servers.len()], request.clone());
            let small = std::thread::Builder::new().stack_size(256 << 10);
            small
                .spawn(move || ask(address, &request).status())
                .unwrap()
        })
        .collect();
    let statuses: Vec<u16> = threads.into_iter().map(|it| it.join().unwrap()).collect();
    let of = |status| statuses.iter().filter(|it| **it == status).count();
    (of(200), of(402))
}

impl Client {
    /// Connects; a read that waits longer than [`WAIT_TIMEOUT`] fails the test, and a write ends.
    pub fn connect(address: SocketAddr) -> Client {
        super::watchdog::watch_this_test();
        Self::over(TcpStream::connect(address).expect("connecting to loopback"))
    }

    /// Connects from this address.
    pub fn connect_from(local: Ipv4Addr, address: SocketAddr) -> Client {
        super::watchdog::watch_this_test();
        let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None);
        let socket = socket.expect("a socket");
        rustix::net::bind(&socket, &SocketAddr::from((local, 0))).expect("an own address");
        rustix::net::connect(&socket, &address).expect("connecting to loopback");
        Self::over(TcpStream::from(socket))
    }

    /// Lets each read wait for so long.
    pub fn patient(self, timeout: Duration) -> Client {
        let set = self.stream.set_read_timeout(Some(timeout));
        set.expect("a read timeout");
        self
    }

    fn over(stream: TcpStream) -> Client {
        stream.set_nodelay(true).expect("TCP_NODELAY");
        stream
            .set_read_timeout(Some(WAIT_TIMEOUT))
            .expect("a read timeout");
        stream
            .set_write_timeout(Some(WAIT_TIMEOUT))
            .expect("a write timeout");
        let (buffer, framing) = (Vec::new(), Framing::Nothing);
        Client {
            stream,
            buffer,
            framing,
            ended: None,
            asked_head: false,
        }
    }

    /// Sends a request and reads the whole reply.
    pub fn ask(&mut self, ask: &Ask) -> Answer {
        self.send(ask);
        let answer = self.answer();
        if let Ok(server) = self.stream.peer_addr() {
            described::check(server, ask, &answer);
        }
        answer
    }

    /// Sends a request. A peer that replies early and closes does not fail the test here.
    pub fn send(&mut self, ask: &Ask) {
        self.asked_head = ask.is_head();
        self.send_bytes(ask.wire());
    }

    /// Sends these bytes.
    pub fn send_bytes(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.stream.write_all(bytes.as_ref());
    }

    /// Reads the whole reply to the last request.
    pub fn answer(&mut self) -> Answer {
        let mut informational = Vec::new();
        let head = loop {
            let head = self.head();
            if head.status >= 200 {
                break head;
            }
            informational.push(head);
        };
        let mut chunks = Vec::new();
        while let Some(chunk) = self.chunk() {
            chunks.push(chunk);
        }
        let body = chunks
            .iter()
            .flat_map(|chunk| chunk.bytes.iter().copied())
            .collect();
        Answer {
            informational,
            head,
            chunks,
            body,
            end: self.end(),
        }
    }

    /// Reads the next head; fails the test when there is none.
    pub fn head(&mut self) -> Head {
        self.try_head()
            .unwrap_or_else(|end| panic!("no head: {end:?} after {:?}", self.buffer))
    }

    /// Reads the next head, or returns the end of the connection.
    pub fn try_head(&mut self) -> Result<Head, End> {
        let end = loop {
            if let Some(end) = self
                .buffer
                .windows(4)
                .position(|window| window == b"\r\n\r\n")
            {
                break end;
            }
            self.read_more()?;
        };
        let text: Vec<u8> = self.buffer.drain(..end + 4).collect();
        let head = parse_head(&String::from_utf8_lossy(&text));
        self.framing = framing(&head, self.asked_head);
        self.ended = None;
        Ok(head)
    }

    /// Reads the next piece of the body; `None` at its end (see [`Client::end`]).
    pub fn chunk(&mut self) -> Option<Chunk> {
        if self.ended.is_some() {
            return None;
        }
        match self.next_piece() {
            Ok(Some(bytes)) => Some(Chunk {
                at: Instant::now(),
                bytes,
            }),
            Ok(None) => {
                self.ended = Some(End::Complete);
                None
            }
            Err(end) => {
                self.ended = Some(end);
                None
            }
        }
    }

    /// How the reply read last ended.
    pub fn end(&self) -> End {
        self.ended.expect("the reply was read to its end")
    }

    /// Returns all bytes that the peer sends until it closes, as they are on the wire.
    pub fn rest(&mut self) -> (Vec<u8>, End) {
        let end = loop {
            if let Err(end) = self.read_more() {
                break end;
            }
        };
        (std::mem::take(&mut self.buffer), end)
    }

    /// Hangs up with a reset instead of an orderly close.
    pub fn reset(self) {
        let socket = tokio::net::TcpSocket::from_std_stream(self.stream);
        socket.set_zero_linger().expect("SO_LINGER 0");
    }

    /// Closes the sending side; replies can still be read.
    pub fn half_close(&mut self) {
        self.stream.shutdown(Shutdown::Write).expect("half close");
    }

    fn next_piece(&mut self) -> Result<Option<Vec<u8>>, End> {
        match self.framing {
            Framing::Nothing | Framing::Length(0) => Ok(None),
            Framing::Length(left) => {
                if self.buffer.is_empty() {
                    self.read_more()?;
                }
                let piece: Vec<u8> = self.buffer.drain(..left.min(self.buffer.len())).collect();
                self.framing = Framing::Length(left - piece.len());
                Ok(Some(piece))
            }
            Framing::UntilClose => {
                if self.buffer.is_empty() {
                    self.read_more()?;
                }
                Ok(Some(std::mem::take(&mut self.buffer)))
            }
            Framing::Chunks => self.next_chunk(),
        }
    }

    fn next_chunk(&mut self) -> Result<Option<Vec<u8>>, End> {
        let line = self.read_line()?;
        let size = line.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(size, 16).unwrap_or_else(|e| panic!("{e}: {line:?}"));
        if size == 0 {
            while !self.read_line()?.is_empty() {}
            return Ok(None);
        }
        while self.buffer.len() < size + 2 {
            self.read_more()?;
        }
        let mut chunk: Vec<u8> = self.buffer.drain(..size + 2).collect();
        assert!(chunk.ends_with(b"\r\n"), "a chunk ends with CRLF");
        chunk.truncate(size);
        Ok(Some(chunk))
    }

    fn read_line(&mut self) -> Result<String, End> {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|window| window == b"\r\n") {
                let line: Vec<u8> = self.buffer.drain(..end + 2).collect();
                return Ok(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            self.read_more()?;
        }
    }

    fn read_more(&mut self) -> Result<(), End> {
        let mut bytes = [0; 64 * 1024];
        match self.stream.read(&mut bytes) {
            Ok(0) => Err(End::Closed),
            Ok(read) => {
                self.buffer.extend_from_slice(&bytes[..read]);
                Ok(())
            }
            Err(e) if e.kind() == ErrorKind::ConnectionReset => Err(End::Reset),
            // The process was stopped, and goes on.
            Err(e) if e.kind() == ErrorKind::Interrupted => self.read_more(),
            Err(e) => panic!(
                "reading: {e}; so far: {:?}",
                String::from_utf8_lossy(&self.buffer)
            ),
        }
    }
}

fn parse_head(text: &str) -> Head {
    let mut lines = text.trim_end().split("\r\n");
    let status_line = lines.next().unwrap_or_default();
    let status = status_line
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    let header = |line: &str| {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        (name.to_owned(), value.trim().to_owned())
    };
    let head = Head {
        status: status.unwrap_or_else(|| panic!("not a status line: {status_line:?}")),
        headers: lines.map(header).collect(),
        at: Instant::now(),
    };
    check_once(&head);
    head
}

/// Fails the test if a 429 lacks a header that tells of its limit, or has one twice. Source: docs/model-gateway.md 8.3.
pub fn check_limit_headers(refused: &Answer) {
    assert_eq!(refused.status(), 429);
    for name in [
        "retry-after",
        "retry-after-ms",
        "ratelimit",
        "ratelimit-policy",
        "ratelimit-limit",
        "ratelimit-remaining",
        "ratelimit-reset",
        "x-ratelimit-limit",
        "x-ratelimit-remaining",
        "x-ratelimit-reset",
    ] {
        assert_eq!(refused.head.count(name), 1, "{name}: {:?}", refused.head);
    }
}

/// Headers that the gateway writes, each at most once in a response: clients fail on two `Retry-After`.
const OWN_HEADERS: [&str; 25] = [
    "x-request-id",
    "request-id",
    "content-type",
    "content-length",
    "retry-after",
    "retry-after-ms",
    "x-should-retry",
    "www-authenticate",
    "cache-control",
    "allow",
    "location",
    "etag",
    "age",
    "date",
    "server",
    "deprecation",
    "sunset",
    "mcp-session-id",
    "x-accel-buffering",
    "access-control-allow-origin",
    "access-control-expose-headers",
    "access-control-allow-methods",
    "access-control-allow-headers",
    "access-control-max-age",
    "content-security-policy",
];
/// Beginnings of further ones.
const OWN_PREFIXES: [&str; 3] = ["ratelimit", "x-ratelimit-", "x-weirgate-"];

/// Fails the test if a header of the gateway comes twice.
pub fn check_once(head: &Head) {
    for (name, _) in &head.headers {
        let name = name.to_ascii_lowercase();
        let is_own = OWN_HEADERS.contains(&&*name)
            || OWN_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
        let count = head.count(&name);
        assert!(!is_own || count == 1, "{count} times `{name}`: {head:?}");
    }
}

fn framing(head: &Head, asked_head: bool) -> Framing {
    if asked_head || head.status < 200 || head.status == 204 || head.status == 304 {
        Framing::Nothing
    } else if head.header("transfer-encoding").is_some() {
        Framing::Chunks
    } else if let Some(length) = head.header("content-length") {
        Framing::Length(length.parse().expect("a content-length"))
    } else {
        Framing::UntilClose
    }
}
