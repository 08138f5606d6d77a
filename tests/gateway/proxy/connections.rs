//! Client connections: their number, the size of a head and the time that it may take.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::models::fronts::chat_completions::{PLAIN, STREAM, chunk, reply};
use crate::support::WAIT_TIMEOUT;
use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::{Client, ask};
use crate::support::script::Reply;
use crate::support::upstream::Upstream;

fn gateway(listen: &str) -> (Upstream, Gateway) {
    let first = Upstream::always(reply());
    let gateway = Gateway::with(&first.url(), &first.url(), &format!("[listen]\n{listen}"));
    (first, gateway)
}

fn connect(gateway: &Gateway) -> TcpStream {
    let stream = TcpStream::connect(gateway.address()).unwrap();
    stream.set_read_timeout(Some(WAIT_TIMEOUT)).unwrap();
    stream
}

/// Reads until the connection ends; returns how long that took.
fn until_closed(stream: &mut TcpStream) -> Duration {
    let started = Instant::now();
    let mut rest = Vec::new();
    // A reset is an end too.
    _ = stream.read_to_end(&mut rest);
    assert!(rest.is_empty(), "{}", String::from_utf8_lossy(&rest));
    started.elapsed()
}

#[test]
fn a_head_that_comes_too_slowly_ends_its_connection() {
    let (_first, gateway) = gateway("header_timeout_s = 1");
    let mut slow = connect(&gateway);
    slow.write_all(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n")
        .unwrap();
    let silent = connect(&gateway);
    for mut stream in [slow, silent] {
        assert!(until_closed(&mut stream) < Duration::from_secs(5));
    }
    assert_eq!(gateway.chat(PLAIN).status(), 200);
}

#[test]
fn a_connection_that_hardly_begins_is_closed_in_time() {
    let (_first, gateway) = gateway("header_timeout_s = 1");
    for start in [&b"P"[..], b"PRI * HTTP/2.0", b"GET / HTT"] {
        let mut stream = connect(&gateway);
        stream.write_all(start).unwrap();
        assert!(
            until_closed(&mut stream) < Duration::from_secs(5),
            "{start:?}"
        );
    }
}

/// Requests that are shorter than HTTP/2's preface, or that close their connection.
#[test]
fn a_request_that_ends_its_connection_is_answered_and_does() {
    let (_first, gateway) = gateway("header_timeout_s = 1");
    for request in [
        "GET / HTTP/1.0\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    ] {
        let mut stream = connect(&gateway);
        stream.write_all(request.as_bytes()).unwrap();
        let (started, mut answer) = (Instant::now(), String::new());
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.contains(" 200 OK\r\n"), "{request:?}: {answer}");
        assert!(started.elapsed() < Duration::from_secs(5), "{request:?}");
    }
}

#[test]
fn a_connection_of_http2_may_be_idle_for_longer_than_a_head_may_take() {
    let (_first, gateway) = gateway("header_timeout_s = 1");
    let mut stream = connect(&gateway);
    // The preface and empty settings; later a ping, to which the server replies with a ping.
    stream
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        .unwrap();
    stream.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).unwrap();
    // Its settings come, and then nothing, not even the end.
    stream
        .set_read_timeout(Some(Duration::from_millis(1500)))
        .unwrap();
    let end = stream.read_to_end(&mut Vec::new()).unwrap_err();
    assert_eq!(end.kind(), ErrorKind::WouldBlock);
    stream.set_read_timeout(Some(WAIT_TIMEOUT)).unwrap();
    let ping = [
        0, 0, 8, 6, 0, 0, 0, 0, 0, b'w', b'e', b'i', b'r', b'g', b'a', b't', b'e',
    ];
    stream.write_all(&ping).unwrap();
    let mut seen = Vec::new();
    while !seen.windows(8).any(|eight| eight == b"weirgate") {
        let mut buffer = [0; 256];
        let read = stream.read(&mut buffer).unwrap();
        assert!(read > 0, "the connection was closed");
        seen.extend_from_slice(&buffer[..read]);
    }
}

#[test]
fn a_slow_response_is_no_slow_head() {
    let slow = Reply::stream()
        .pause(Duration::from_millis(1500))
        .event(&chunk(json!({"content": "late"}), Some("stop")))
        .event("[DONE]")
        .end();
    let first = Upstream::always(slow);
    let listen = "[listen]\nheader_timeout_s = 1";
    let gateway = Gateway::with(&first.url(), &first.url(), listen);
    assert!(gateway.chat(STREAM).events().is_done());
}

#[test]
fn a_head_over_its_limit_is_refused() {
    let (first, gateway) = gateway("header_bytes = 2048");
    let large = "h".repeat(2048);
    let answer = ask(
        gateway.address(),
        &gateway.chat_ask(PLAIN).header("X-Large", &large),
    );
    assert_eq!(answer.status(), 431);
    assert_eq!(answer.json()["error"]["code"], "headers_too_large");
    let path = format!("/v1/{large}");
    assert_eq!(ask(gateway.address(), &Ask::get(&path)).status(), 431);
    assert_eq!(first.requests().len(), 0);
}

#[test]
fn a_connection_over_a_limit_is_closed_and_its_place_is_free_again() {
    over_the_limit("max_connections = 2");
}

#[test]
fn this_machine_may_have_more_connections_than_one_address() {
    let (_first, gateway) = gateway("max_connections_per_ip = 1");
    let mut open: Vec<Client> = (0..3).map(|_| Client::connect(gateway.address())).collect();
    for client in &mut open {
        assert_eq!(client.ask(&gateway.chat_ask(PLAIN)).status(), 200);
    }
}

fn over_the_limit(listen: &str) {
    let (_first, gateway) = gateway(listen);
    let mut open: Vec<Client> = (0..2).map(|_| Client::connect(gateway.address())).collect();
    for client in &mut open {
        assert_eq!(client.ask(&gateway.chat_ask(PLAIN)).status(), 200);
    }
    assert!(until_closed(&mut connect(&gateway)) < Duration::from_secs(5));
    assert_eq!(open[0].ask(&gateway.chat_ask(PLAIN)).status(), 200);
    drop(open);
    let started = Instant::now();
    let answered = std::iter::repeat_with(|| {
        let mut stream = connect(&gateway);
        _ = stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        let mut answer = Vec::new();
        _ = stream.read_to_end(&mut answer);
        answer
    })
    .take_while(|_| started.elapsed() < WAIT_TIMEOUT)
    .find(|answer| !answer.is_empty());
    assert!(answered.unwrap().starts_with(b"HTTP/1.1 200"));
}
