//! Client connections: how many, how large a head, how long it may take.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;

use super::chat_completions::{PLAIN, STREAM, chunk, reply};
use crate::support::PATIENCE;
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
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Reads until the connection ends; answers how long that took.
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
fn a_slow_answer_is_no_slow_head() {
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
fn a_connection_over_the_limit_is_closed_and_its_place_is_free_again() {
    let (_first, gateway) = gateway("max_connections = 2");
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
    .take_while(|_| started.elapsed() < PATIENCE)
    .find(|answer| !answer.is_empty());
    assert!(answered.unwrap().starts_with(b"HTTP/1.1 200"));
}
