//! A thousand clients that send or read slowly, and one that does not: it is served as if it were alone.
//!
//! Source: docs/hostile-input.md 14.

use std::io::Write;
use std::net::TcpStream;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::models::fronts::chat_completions::{PLAIN, STREAM, chunk, reply};
use crate::proxy::http2::{self, DATA, END_HEADERS, END_STREAM, HEADERS, POST, SETTINGS, frame};
use crate::support::boot::Gateway;
use crate::support::client::Client;
use crate::support::script::Reply;
use crate::support::upstream::Upstream;
use crate::support::{POLL, every};

const SLOW: usize = 1_000;
/// How many of them come at once.
const STAGE: usize = 50;
/// The calls of the healthy client in a round.
const CALLS: usize = 200;

/// Held while a test has its thousands of connections. Two such tests at once keep a machine of two cores so busy that one waits in
/// vain.
static ALONE: Mutex<()> = Mutex::new(());

/// A gateway with room for all, in front of a provider whose streams never end.
fn gateway() -> (Upstream, Gateway) {
    let provider = Upstream::answering(|request| {
        if request.json()["stream"] == true {
            // A few long events fill the buffers as well as many short ones, at a fraction of the work.
            let text = "x".repeat(64 << 10);
            let event = chunk(serde_json::json!({"content": text}), None);
            let begun = Reply::stream();
            (0..4)
                .fold(begun, |reply, _| reply.event(&event))
                .and_hang()
        } else {
            reply()
        }
    });
    let more = "[limits]\nin_flight = 4000";
    let gateway = Gateway::with(&provider.url(), &provider.url(), more);
    (provider, gateway)
}

/// Opens a slow connection, which sends these bytes and then nothing.
fn open(gateway: &Gateway, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(gateway.address()).unwrap();
    stream.write_all(bytes).unwrap();
    stream
}

/// Opens all slow connections.
fn slow(gateway: &Gateway, bytes: &[u8]) -> Vec<TcpStream> {
    (0..SLOW).map(|_| open(gateway, bytes)).collect()
}

/// Opens all slow connections of calls that come to the provider. They come in stages: all at once would be 20 s of work, behind
/// which the last of them wait in vain on a busy machine.
fn slow_calls(gateway: &Gateway, provider: &Upstream, bytes: &[u8]) -> Vec<TcpStream> {
    let mut streams = Vec::with_capacity(SLOW);
    while streams.len() < SLOW {
        streams.extend((0..STAGE).map(|_| open(gateway, bytes)));
        provider.wait_requests(streams.len());
    }
    streams
}

fn head(gateway: &Gateway, length: usize) -> String {
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n",
        gateway.key
    )
}

/// A call over HTTP/2 in stream 1 whose body has this length: what is sent of it has `flags`. The client takes one byte of
/// the response, and no more before it says so.
fn call_of_http2(gateway: &Gateway, length: usize, sent: &[u8], flags: u8) -> Vec<u8> {
    const INITIAL_WINDOW_OF_1: [u8; 6] = [0, 4, 0, 0, 0, 1];
    let (key, length) = (format!("Bearer {}", gateway.key), length.to_string());
    let fields = [
        ("authorization", key.as_str()),
        ("content-type", "application/json"),
        ("content-length", length.as_str()),
    ];
    let head = http2::head(POST, "/v1/chat/completions", &fields);
    let mut call = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    call.extend(frame(SETTINGS, 0, 0, &INITIAL_WINDOW_OF_1));
    call.extend(frame(HEADERS, END_HEADERS, 1, &head));
    call.extend(frame(DATA, flags, 1, sent));
    call
}

/// Calls as a healthy client; every call succeeds, and 99 of 100 within 50 ms.
fn is_served(gateway: &Gateway, among: &str) {
    let mut client = Client::connect(gateway.address());
    let mut round = || {
        let mut times: Vec<Duration> = (0..CALLS)
            .map(|_| {
                let started = Instant::now();
                let answer = client.ask(&gateway.chat_ask(PLAIN));
                assert_eq!(answer.status(), 200, "among {among}");
                started.elapsed()
            })
            .collect();
        times.sort();
        times[CALLS * 99 / 100]
    };
    // The machine that runs the tests may be busy elsewhere; not in each round.
    let p99 = (0..5).map(|_| round()).min().unwrap();
    assert!(p99 < Duration::from_millis(50), "{p99:?} among {among}");
}

#[test]
fn among_a_thousand_slow_heads_a_client_is_served() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (_provider, gateway) = gateway();
    let _slow = slow(
        &gateway,
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\n",
    );
    is_served(&gateway, "slow heads");
    // The head of a frame that announces a header block, and a part of it.
    let http2 =
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0\x40\x01\x04\0\0\0\x01\x83";
    let _slow_http2 = slow(&gateway, http2);
    is_served(&gateway, "slow heads of HTTP/2");
}

#[test]
fn among_a_thousand_slow_bodies_a_client_is_served() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (_provider, gateway) = gateway();
    let _slow = slow(&gateway, format!("{}{{", head(&gateway, 1000)).as_bytes());
    is_served(&gateway, "slow bodies");
    let _slow_http2 = slow(&gateway, &call_of_http2(&gateway, 1000, b"{", 0));
    is_served(&gateway, "slow bodies of HTTP/2");
}

#[test]
fn among_a_thousand_slow_readers_a_client_is_served() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (provider, gateway) = gateway();
    let request = format!("{}{STREAM}", head(&gateway, STREAM.len()));
    let _slow = slow_calls(&gateway, &provider, request.as_bytes());
    is_served(&gateway, "slow readers");
}

#[test]
fn among_a_thousand_slow_readers_of_http2_a_client_is_served() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (provider, gateway) = gateway();
    let body = STREAM.as_bytes();
    let request = call_of_http2(&gateway, body.len(), body, END_STREAM);
    let _slow = slow_calls(&gateway, &provider, &request);
    is_served(&gateway, "slow readers of HTTP/2");
}

#[test]
fn a_client_that_does_not_read_is_given_up() {
    let text = "x".repeat(64 << 10);
    let event = chunk(serde_json::json!({"content": text}), None);
    // More than the buffers of all sockets on the way hold.
    let provider = Upstream::answering(move |_| {
        let begun = Reply::stream();
        (0..512)
            .fold(begun, |reply, _| reply.event(&event))
            .and_hang()
    });
    let gateway = Gateway::with(&provider.url(), &provider.url(), "");
    let body = STREAM.as_bytes();
    let http1 = format!("{}{STREAM}", head(&gateway, body.len()));
    let http2 = call_of_http2(&gateway, body.len(), body, END_STREAM);
    let _unread = [http1.into_bytes(), http2].map(|request| {
        let mut stream = TcpStream::connect(gateway.address()).unwrap();
        stream.write_all(&request).unwrap();
        stream
    });
    provider.wait_requests(2);
    // A client may leave bytes unread for 30 s.
    let is_over = |_| provider.is_closed(0) && provider.is_closed(1);
    let mut looks = every(POLL, Duration::from_secs(60));
    assert!(looks.any(is_over), "still read from the provider");
}
