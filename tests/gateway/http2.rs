//! HTTP/2 connections that cost more than they bring, by raw frames.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use weirgate::app::StopMode;

use super::chat_completions::{PLAIN, reply};
use crate::support::WAIT_TIMEOUT;
use crate::support::boot::Gateway;
use crate::support::script::Reply;
use crate::support::upstream::Upstream;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// `:method: GET` and `:method: POST` in the static table of header names.
const GET: u8 = 0x82;
const POST: u8 = 0x83;

/// A connection by frames.
struct Http2 {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// A frame as received.
struct Frame {
    kind: u8,
    stream: u32,
    payload: Vec<u8>,
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// A header block: `:scheme` by its index, the rest as literals.
fn head(method: u8, path: &str, fields: &[(&str, &str)]) -> Vec<u8> {
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
    fn connect(gateway: &Gateway) -> Http2 {
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

    /// Returns the next frame; nothing once the connection has ended.
    fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some(head) = self.buffer.first_chunk::<9>().copied() {
                let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
                if self.buffer.len() >= 9 + length {
                    let payload = self.buffer[9..9 + length].to_vec();
                    self.buffer.drain(..9 + length);
                    return Some(Frame {
                        kind: head[3],
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
        // More than 20 streams that are abandoned before they are accepted would end the connection sooner.
        std::thread::sleep(Duration::from_millis(50));
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
