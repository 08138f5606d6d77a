//! A thousand clients that send or read slowly, and one that does not: it is served as if it were alone.
//!
//! Source: docs/security.md 14.

use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::chat_completions::{PLAIN, STREAM, chunk, reply};
use crate::support::boot::Gateway;
use crate::support::client::Client;
use crate::support::script::Reply;
use crate::support::upstream::Upstream;

const SLOW: usize = 1_000;
/// The calls of the healthy client in a round.
const CALLS: usize = 200;

/// A gateway with room for all, in front of a provider whose streams never end.
fn gateway() -> (Upstream, Gateway) {
    let provider = Upstream::answering(|request| {
        if request.json()["stream"] == true {
            let text = "x".repeat(4096);
            let event = chunk(serde_json::json!({"content": text}), None);
            let begun = Reply::stream();
            (0..64)
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

/// Opens the slow connections; each sends the same bytes and then nothing.
fn slow(gateway: &Gateway, bytes: &[u8]) -> Vec<TcpStream> {
    let open = || {
        let mut stream = TcpStream::connect(gateway.address()).unwrap();
        stream.write_all(bytes).unwrap();
        stream
    };
    (0..SLOW).map(|_| open()).collect()
}

fn head(gateway: &Gateway, length: usize) -> String {
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n",
        gateway.key
    )
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
    let (_provider, gateway) = gateway();
    let _slow = slow(&gateway, format!("{}{{", head(&gateway, 1000)).as_bytes());
    is_served(&gateway, "slow bodies");
}

#[test]
fn among_a_thousand_slow_readers_a_client_is_served() {
    let (provider, gateway) = gateway();
    let request = format!("{}{STREAM}", head(&gateway, STREAM.len()));
    let _slow = slow(&gateway, request.as_bytes());
    provider.wait_requests(SLOW);
    is_served(&gateway, "slow readers");
}
