#![allow(clippy::unwrap_used, reason = "tests")]
use std::future::Future;

use futures::FutureExt;
use tokio::io::{DuplexStream, duplex};

use super::super::connection_state::{
    CONNECTION, ConnectionState, body_fault, expect_next_head, take_head_verdict,
};
use super::*;

const GET: &[u8] = b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n";
const POST: &[u8] = b"POST /b HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc";

/// Runs a test on the task of a connection, with the client's side and Pingora's side.
fn on_connection<T>(test: impl AsyncFnOnce(DuplexStream, FramedStream) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let (client, server) = duplex(1 << 20);
        let stream = FramedStream::new(Box::new(server), 1 << 10);
        let state = ConnectionState::new(false, Duration::from_secs(10));
        CONNECTION.scope(state, test(client, stream)).await
    })
}

/// Returns the bytes of one read with this much room, or `None` if the read waits.
fn read(stream: &mut FramedStream, room: usize) -> Option<io::Result<Vec<u8>>> {
    let mut bytes = vec![0; room];
    let count = stream.read(&mut bytes).now_or_never()?;
    Some(count.map(|count| {
        bytes.truncate(count);
        bytes
    }))
}

fn end_request() {
    expect_next_head(tokio::time::Instant::now());
}

/// Waits until a task that was woken has run.
fn now<T>(future: impl Future<Output = T>) -> T {
    future.now_or_never().unwrap()
}

#[test]
fn what_comes_early_waits_for_its_turn() {
    on_connection(async |mut client, mut stream| {
        let all = [GET, POST, GET].concat();
        now(client.write_all(&all)).unwrap();
        for request in [GET, POST, GET] {
            assert_eq!(read(&mut stream, 4096).unwrap().unwrap(), request);
            take_head_verdict().unwrap();
            assert!(read(&mut stream, 1).is_none());
            assert!(read(&mut stream, 1).is_none());
            end_request();
        }
        assert!(read(&mut stream, 4096).is_none());
        drop(client);
        assert_eq!(read(&mut stream, 4096).unwrap().unwrap(), b"");
    });
}

#[test]
fn what_waits_is_bounded_and_all_of_it_arrives() {
    on_connection(async |mut client, mut stream| {
        let body = vec![b'x'; 100_000];
        let head = format!(
            "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        now(client.write_all(GET)).unwrap();
        assert_eq!(read(&mut stream, 4096).unwrap().unwrap(), GET);
        now(client.write_all(head.as_bytes())).unwrap();
        now(client.write_all(&body)).unwrap();
        assert!(read(&mut stream, 1).is_none());
        assert!(read(&mut stream, 1).is_none());
        let held = stream.held.len();
        assert!((MAX_EARLY_BYTES..MAX_EARLY_BYTES + EARLY_PIECE_BYTES).contains(&held));
        end_request();
        let mut arrived = Vec::new();
        while let Some(piece) = read(&mut stream, 4096) {
            arrived.extend(piece.unwrap());
        }
        assert_eq!(arrived, [head.as_bytes(), &body].concat());
        assert_eq!(stream.held.capacity(), 0);
    });
}

#[test]
fn a_client_that_leaves_is_noticed_behind_what_came_early() {
    on_connection(async |mut client, mut stream| {
        now(client.write_all(&[GET, GET].concat())).unwrap();
        assert_eq!(read(&mut stream, 4096).unwrap().unwrap(), GET);
        assert!(read(&mut stream, 1).is_none());
        drop(client);
        assert_eq!(read(&mut stream, 1).unwrap().unwrap(), b"");
    });
}

#[test]
fn a_refused_head_is_replaced_and_nothing_follows_it() {
    on_connection(async |mut client, mut stream| {
        let bad = b"GET /a?\x01 HTTP/1.1\r\nHost: x\r\n\r\n";
        now(client.write_all(&[bad, GET].concat())).unwrap();
        let head = read(&mut stream, 4096).unwrap().unwrap();
        assert!(head.starts_with(b"GET /a HTTP/1.1\r\n"));
        assert_eq!(take_head_verdict().unwrap_err().status(), 400);
        end_request();
        assert!(read(&mut stream, 4096).is_none());
        assert!(stream.held.is_empty());
    });
}

#[test]
fn a_refused_body_ends_with_an_error_and_stays_refused() {
    on_connection(async |mut client, mut stream| {
        let head = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
        let bytes = [&head[..], b"3\r\nabc\r\n\r\n\r\n", GET].concat();
        now(client.write_all(&bytes)).unwrap();
        assert_eq!(read(&mut stream, 4096).unwrap().unwrap(), head);
        take_head_verdict().unwrap();
        for _ in 0..3 {
            let error = read(&mut stream, 4096).unwrap().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidData);
            end_request();
        }
        assert_eq!(body_fault().unwrap().status(), 400);
    });
}

#[test]
fn a_head_that_nobody_saw_is_not_served() {
    assert_eq!(take_head_verdict().unwrap_err().status(), 500);
}
