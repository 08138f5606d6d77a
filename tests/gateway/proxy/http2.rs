//! HTTP/2 connections that cost more than they bring, by raw frames.

use std::io::ErrorKind::{TimedOut, WouldBlock};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use weirgate::app::StopMode;

use crate::models::fronts::chat_completions::{PLAIN, reply};
use crate::support::boot::Gateway;
use crate::support::script::Reply;
use crate::support::upstream::Upstream;
use crate::support::{POLL, WAIT_TIMEOUT, every};

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
pub const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;
/// `:method: GET` and `:method: POST` in the static table of header names.
const GET: u8 = 0x82;
pub const POST: u8 = 0x83;

/// A connection by frames.
pub struct Http2 {
    pub stream: TcpStream,
    buffer: Vec<u8>,
}

/// A frame as received.
pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// A header block: `:scheme` by its index, the rest as literals.
pub fn head(method: u8, path: &str, fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = vec![method, 0x86, 0x04, u8::try_from(path.len()).unwrap()];
    block.extend(path.bytes());
    block.extend([0x01, 1, b'a']);
    for (name, value) in fields {
        block.push(0);
        for part in [name, value] {
            block.push(u8::try_from(part.len()).unwrap());
            block.extend(part.bytes());
        }
    }
    block
}

impl Http2 {
    pub fn connect(gateway: &Gateway) -> Http2 {
        let mut stream = TcpStream::connect(gateway.address()).unwrap();
        stream.set_read_timeout(Some(WAIT_TIMEOUT)).unwrap();
        stream
            .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            .unwrap();
        stream.write_all(&frame(SETTINGS, 0, 0, &[])).unwrap();
        Http2 {
            stream,
            buffer: Vec::new(),
        }
    }

    /// Sends the head of a request without a body.
    fn get(&mut self, stream: u32, path: &str) {
        let flags = END_HEADERS | END_STREAM;
        let head = frame(HEADERS, flags, stream, &head(GET, path, &[]));
        self.stream.write_all(&head).unwrap();
    }

    /// Returns whether the server ends the connection within the time of a read.
    fn has_ended(&mut self) -> bool {
        loop {
            match self.stream.read(&mut [0; 4096]) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) => return !matches!(error.kind(), WouldBlock | TimedOut),
            }
        }
    }

    /// Returns the next frame; nothing once the connection has ended.
    pub fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some(head) = self.buffer.first_chunk::<9>().copied() {
                let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
                if self.buffer.len() >= 9 + length {
                    let payload = self.buffer[9..9 + length].to_vec();
                    self.buffer.drain(..9 + length);
                    return Some(Frame {
                        kind: head[3],
                        flags: head[4],
                        stream: u32::from_be_bytes([head[5], head[6], head[7], head[8]]),
                        payload,
                    });
                }
            }
            let mut more = [0; 4096];
            match self.stream.read(&mut more) {
                Ok(0) | Err(_) => return None,
                Ok(read) => self.buffer.extend_from_slice(&more[..read]),
            }
        }
    }
}

fn gateway(service: &Upstream) -> Gateway {
    let more = format!("[graph]\nupstream = \"{}\"", service.url());
    let provider = Upstream::always(reply());
    Gateway::with(&provider.url(), &provider.url(), &more)
}

#[test]
fn a_client_that_abandons_streams_loses_its_connection() {
    const BATCHES: u32 = 80;
    const BATCH: u32 = 19;
    let service = Upstream::always(Reply::hang());
    let gateway = gateway(&service);
    let mut connection = Http2::connect(&gateway);
    let block = head(GET, "/content/v2", &[]);
    let started = Instant::now();
    for batch in 0..BATCHES {
        let ids = (0..BATCH).map(|number| (batch * BATCH + number) * 2 + 1);
        let heads = ids
            .clone()
            .flat_map(|id| frame(HEADERS, END_HEADERS | END_STREAM, id, &block));
        let heads: Vec<u8> = heads.collect();
        let resets: Vec<u8> = ids
            .flat_map(|id| frame(RST_STREAM, 0, id, &8_u32.to_be_bytes()))
            .collect();
        let is_sent = connection.stream.write_all(&heads).is_ok();
        // More than 20 streams that are abandoned before they are accepted would end the connection sooner. The service
        // does not see all of those that are.
        let all = (batch as usize + 1) * BATCH as usize;
        _ = every(POLL, Duration::from_millis(50)).any(|_| service.requests().len() >= all);
        if !is_sent || connection.stream.write_all(&resets).is_err() {
            break;
        }
    }
    while connection.next().is_some() {
        assert!(started.elapsed() < WAIT_TIMEOUT, "still open");
    }
    let reached = service.requests().len();
    assert!(reached <= 1_100, "{reached} reached the service");
    assert_eq!(Http2::connect(&gateway).next().unwrap().kind, SETTINGS);
}

#[test]
fn the_authority_is_the_host_that_a_page_is_held_against() {
    let provider = Upstream::always(reply());
    let gateway = Gateway::between(&provider.url(), &provider.url());
    let status = |authority: &str| {
        let mut block = vec![GET, 0x86, 0x04, 4];
        block.extend(b"/mcp");
        // `:authority` by its index, and a field with a name of its own.
        for (index, text) in [
            (Some(1), authority),
            (Some(0), "origin"),
            (None, "http://localhost:6274"),
        ] {
            block.extend(index);
            block.push(u8::try_from(text.len()).unwrap());
            block.extend(text.bytes());
        }
        let mut connection = Http2::connect(&gateway);
        let flags = END_HEADERS | END_STREAM;
        connection
            .stream
            .write_all(&frame(HEADERS, flags, 1, &block))
            .unwrap();
        let mut frames = std::iter::from_fn(|| connection.next());
        frames.find(|frame| frame.kind == HEADERS).unwrap().payload[0]
    };
    // 200 stands in the static table.
    assert_eq!(status("localhost"), 0x88);
    assert_ne!(status("gateway.example.com"), 0x88);
}

/// Contract: model-gateway 7 408
#[test]
fn a_body_that_does_not_come_ends_its_stream_alone() {
    let service = Upstream::always(Reply::hang());
    let gateway = gateway(&service);
    let mut connection = Http2::connect(&gateway);
    let key = format!("Bearer {}", gateway.key);
    let fields = [
        ("authorization", key.as_str()),
        ("content-type", "application/json"),
        ("content-length", "100"),
    ];
    let block = head(POST, "/v1/chat/completions", &fields);
    // The pause that a body may make is 30 s.
    let patience = Some(Duration::from_secs(45));
    connection.stream.set_read_timeout(patience).unwrap();
    let mut begun = frame(HEADERS, END_HEADERS, 1, &block);
    begun.extend(frame(DATA, 0, 1, &PLAIN.as_bytes()[..1]));
    connection.stream.write_all(&begun).unwrap();
    let refused = loop {
        let frame = connection.next().expect("an answer");
        if frame.kind == DATA && frame.stream == 1 {
            break frame;
        }
    };
    let text = String::from_utf8_lossy(&refused.payload).into_owned();
    assert!(text.contains("did not arrive in time"), "{text}");
    assert!(text.contains("\"type\":\"timeout_error\""), "{text}");
    connection.get(3, "/");
    while connection.next().expect("an answer").stream != 3 {}
}

#[test]
fn a_stop_says_goodbye_to_open_connections() {
    let service = Upstream::always(Reply::hang());
    let gateway = gateway(&service);
    let mut connection = Http2::connect(&gateway);
    connection.get(1, "/");
    while connection.next().expect("an answer").stream != 1 {}
    gateway.running.stop(StopMode::Gracefully);
    let mut frames = std::iter::from_fn(|| connection.next());
    assert!(frames.any(|frame| frame.kind == GOAWAY));
}

/// Sends frames until the server ends the connection or reads no more, and checks that a new client is served.
fn is_survived(gateway: &Gateway, what: &str, frames: impl IntoIterator<Item = Vec<u8>>) -> bool {
    let mut connection = Http2::connect(gateway);
    let patience = Some(Duration::from_secs(2));
    connection.stream.set_write_timeout(patience).unwrap();
    let mut frames = frames.into_iter();
    let has_ended = frames.any(|frame| connection.stream.write_all(&frame).is_err());
    let mut other = Http2::connect(gateway);
    other.get(1, "/");
    while other.next().expect(what).stream != 1 {}
    has_ended
}

#[test]
fn streams_that_the_client_makes_the_server_reset_end_the_connection() {
    let service = Upstream::always(Reply::hang());
    let gateway = gateway(&service);
    let block = head(GET, "/content/v2", &[]);
    let stream = |id: u32| {
        let mut frames = frame(HEADERS, END_HEADERS | END_STREAM, id, &block);
        // Data behind the end of the stream.
        frames.extend(frame(DATA, 0, id, b"x"));
        frames
    };
    let mut connection = Http2::connect(&gateway);
    let mut ids = (0..20_000).map(|number| number * 2 + 1);
    let is_closed = ids.any(|id| connection.stream.write_all(&stream(id)).is_err());
    while connection.next().is_some() {}
    assert!(is_closed, "20,000 resets on one connection");
    let reached = service.requests().len();
    assert!(reached <= 1_100, "{reached} reached the service");
    // A window that grows by nothing is an error of the connection.
    let no_growth = frame(WINDOW_UPDATE, 0, 1, &[0; 4]);
    let frames = [stream(1), no_growth].concat();
    let mut connection = Http2::connect(&gateway);
    while connection.stream.write_all(&frames).is_ok() && connection.next().is_some() {}
    assert!(connection.has_ended(), "windows that grow by nothing");
    is_survived(&gateway, "windows that grew by nothing", []);
}

#[test]
fn heads_without_an_end_and_heads_that_unpack_to_megabytes_are_refused() {
    let service = Upstream::always(Reply::hang());
    let gateway = gateway(&service);
    let begun = frame(HEADERS, 0, 1, &head(GET, "/content/v2", &[]));
    let more = frame(CONTINUATION, 0, 1, &[0; 1]);
    let endless = std::iter::once(begun).chain(std::iter::repeat_n(more, 100_000));
    assert!(is_survived(&gateway, "a head without an end", endless));
    // A field that the table of the connection keeps, then 4,000 times by its number: 16 MB in a frame of 8 KB.
    let mut bomb = head(GET, "/content/v2", &[]);
    bomb.extend([0x40, 1, b'x', 0x7f, 0xa1, 0x1e]);
    bomb.extend([b'a'; 4000]);
    bomb.extend([0xbe; 4000]);
    let mut connection = Http2::connect(&gateway);
    let bomb = frame(HEADERS, END_HEADERS | END_STREAM, 1, &bomb);
    connection.stream.write_all(&bomb).unwrap();
    while let Some(frame) = connection.next() {
        if frame.stream == 1 || frame.kind == GOAWAY {
            break;
        }
    }
    assert!(service.requests().is_empty());
}

#[test]
fn floods_of_frames_that_say_nothing_starve_nobody() {
    let service = Upstream::always(Reply::hang());
    let gateway = gateway(&service);
    let many = |frame: Vec<u8>| std::iter::repeat_n(frame.repeat(1_000), 100);
    is_survived(&gateway, "settings", many(frame(SETTINGS, 0, 0, &[])));
    is_survived(&gateway, "pings", many(frame(PING, 0, 0, &[7; 8])));
    let begun = frame(HEADERS, END_HEADERS, 1, &head(POST, "/content/v2", &[]));
    let empty = many(frame(DATA, 0, 1, &[]));
    is_survived(&gateway, "empty data", std::iter::once(begun).chain(empty));
}

#[test]
fn a_head_that_http2_forbids_reaches_nobody() {
    let service = Upstream::always(reply());
    let gateway = gateway(&service);
    let get = |path: &str, fields: &[(&str, &str)]| (head(GET, path, fields), Vec::new());
    let post = |length: &str, body: &[u8]| {
        let fields = [("content-length", length)];
        (head(POST, "/content/v2", &fields), body.to_vec())
    };
    for (what, (block, body)) in [
        ("a line end in the path", get("/content/v2\r\nx: 1", &[])),
        ("a space in the path", get("/content /v2", &[])),
        ("no path", get("", &[])),
        ("a path without a slash", get("content/v2", &[])),
        ("capitals", get("/content/v2", &[("X-A", "1")])),
        (
            "a line end in a value",
            get("/content/v2", &[("x-a", "1\r\ny: 2")]),
        ),
        ("connection", get("/content/v2", &[("connection", "close")])),
        (
            "transfer-encoding",
            get("/content/v2", &[("transfer-encoding", "chunked")]),
        ),
        ("te", get("/content/v2", &[("te", "chunked")])),
        ("another host", get("/content/v2", &[("host", "b")])),
        (
            "two hosts",
            get("/content/v2", &[("host", "a"), ("host", "b")]),
        ),
        (
            "two lengths",
            get(
                "/content/v2",
                &[("content-length", "0"), ("content-length", "1")],
            ),
        ),
        ("a length that is none", post("+1", b"x")),
        ("more than the length", post("1", b"xyz")),
        ("less than the length", post("5", b"x")),
    ] {
        let flags = if body.is_empty() {
            END_HEADERS | END_STREAM
        } else {
            END_HEADERS
        };
        let mut connection = Http2::connect(&gateway);
        let mut request = frame(HEADERS, flags, 1, &block);
        if !body.is_empty() {
            request.extend(frame(DATA, END_STREAM, 1, &body));
        }
        connection.stream.write_all(&request).unwrap();
        connection.get(3, "/");
        let mut frames = std::iter::from_fn(|| connection.next());
        // What the library cannot unpack is an error of the whole connection.
        let is_over = |frame: &Frame| frame.kind == GOAWAY;
        let is_other = |frame: &Frame| frame.stream == 3 && frame.kind == HEADERS;
        assert!(
            frames.any(|frame| is_over(&frame) || is_other(&frame)),
            "{what}"
        );
    }
    let whole = service
        .requests()
        .into_iter()
        .filter(|seen| seen.is_complete);
    assert_eq!(whole.count(), 0, "{:?}", service.requests());
}
