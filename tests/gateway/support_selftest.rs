//! The test support itself: each step of a script, seen by the raw client.

use std::time::Duration;

use crate::support::client::{Ask, Client, End, ask};
use crate::support::script::{Cut, Gate, Reply};
use crate::support::sse::{Item, parse};
use crate::support::upstream::{ClosedPort, Upstream};

#[test]
fn a_whole_reply_arrives_and_the_request_is_recorded() {
    let upstream = Upstream::always(Reply::json(200, r#"{"a":1}"#));
    let answer = ask(upstream.address(), &Ask::post("/x?y=1", "{}").key("k"));
    assert_eq!((answer.status(), answer.end), (200, End::Complete));
    assert_eq!(answer.json()["a"], 1);
    let request = upstream.request(0);
    assert_eq!(
        (request.method.as_str(), request.path.as_str()),
        ("POST", "/x?y=1")
    );
    assert_eq!(request.header("authorization"), Some("Bearer k"));
    assert_eq!(
        (request.body.as_slice(), request.is_complete),
        (b"{}".as_slice(), true)
    );
}

#[test]
fn a_connection_carries_several_requests() {
    let upstream = Upstream::sequence([Reply::json(200, "1"), Reply::sse(["2"])]);
    let mut client = Client::connect(upstream.address());
    let first = client.ask(&Ask::get("/")).text().to_owned();
    let others = [
        client.ask(&Ask::get("/")),
        client.ask(&Ask::post("/", "{}")),
    ];
    assert_eq!(first, "1");
    assert!(others.iter().all(|answer| answer.text() == "data: 2\n\n"));
    assert_eq!((upstream.connections(), upstream.requests().len()), (1, 3));
}

#[test]
fn connection_close_is_honoured() {
    let upstream = Upstream::always(Reply::json(200, "1"));
    let mut client = Client::connect(upstream.address());
    client.ask(&Ask::get("/").header("Connection", "close"));
    assert_eq!(client.rest(), (Vec::new(), End::Closed));
}

#[test]
fn a_reply_can_depend_on_the_request() {
    let upstream = Upstream::answering(|request| Reply::json(200, &request.body));
    assert_eq!(
        ask(upstream.address(), &Ask::post("/", "[7]")).text(),
        "[7]"
    );
}

#[test]
fn chunked_request_bodies_are_decoded() {
    let upstream = Upstream::always(Reply::json(200, "1"));
    ask(upstream.address(), &Ask::post("/", "abcdefgh").chunked(3));
    assert_eq!(upstream.request(0).body, b"abcdefgh");
}

#[test]
fn a_large_body_passes_both_ways() {
    let body = vec![b'x'; 5 << 20];
    let upstream = Upstream::answering(|request| Reply::whole(200, &[], &request.body));
    assert_eq!(ask(upstream.address(), &Ask::post("/", &body)).body, body);
}

#[test]
fn events_come_in_chunks_of_their_own_and_in_step_with_a_gate() {
    let gate = Gate::default();
    let reply = Reply::stream()
        .event("1")
        .wait(&gate)
        .event("2")
        .event("[DONE]")
        .end();
    let upstream = Upstream::always(reply);
    let mut client = Client::connect(upstream.address());
    client.send(&Ask::post("/", "{}"));
    assert_eq!(
        client.head().header("content-type"),
        Some("text/event-stream")
    );
    assert_eq!(client.chunk().unwrap().bytes, b"data: 1\n\n");
    gate.open();
    let rest: Vec<_> = std::iter::from_fn(|| client.chunk())
        .map(|chunk| chunk.bytes)
        .collect();
    assert_eq!(rest, [b"data: 2\n\n".as_slice(), b"data: [DONE]\n\n"]);
    assert_eq!(client.end(), End::Complete);
}

#[test]
fn a_pause_separates_the_times_of_two_chunks() {
    let pause = Duration::from_millis(30);
    let upstream = Upstream::always(Reply::stream().event("1").pause(pause).event("2").end());
    let answer = ask(upstream.address(), &Ask::get("/"));
    assert!(answer.chunks[1].at - answer.chunks[0].at > Duration::from_millis(10));
}

#[test]
fn a_reply_cut_at_every_byte_ends_there() {
    let whole = Reply::json(200, "{}");
    for bytes in 0..whole.wire_len() {
        let upstream = Upstream::always(whole.clone().cut(bytes, Cut::Close));
        let mut client = Client::connect(upstream.address());
        client.send(&Ask::get("/"));
        let (text, end) = client.rest();
        assert_eq!((text.len(), end), (bytes, End::Closed));
    }
}

#[test]
fn a_cut_with_reset_is_a_reset() {
    let upstream = Upstream::always(Reply::sse(["1", "2"]).cut(90, Cut::Reset));
    let mut client = Client::connect(upstream.address());
    client.send(&Ask::get("/"));
    assert_eq!(client.rest().1, End::Reset);
}

#[test]
fn dripped_bytes_are_the_same_bytes() {
    let upstream = Upstream::always(Reply::sse(["1", "[DONE]"]).dripped());
    assert!(ask(upstream.address(), &Ask::get("/")).events().is_done());
}

#[test]
fn a_hanging_upstream_sees_the_peer_close() {
    let hangs = [
        Reply::hang(),
        Reply::stream().and_hang(),
        Reply::stream().event("1").and_hang(),
    ];
    for reply in hangs {
        let upstream = Upstream::always(reply);
        let mut client = Client::connect(upstream.address());
        client.send(&Ask::get("/"));
        let request = upstream.request(0);
        assert!(!upstream.is_closed(request.connection));
        drop(client);
        assert!(upstream.wait_closed(request.connection) > request.at);
    }
}

#[test]
fn a_reset_by_the_peer_counts_as_closed() {
    let upstream = Upstream::always(Reply::hang());
    let mut client = Client::connect(upstream.address());
    client.send(&Ask::get("/"));
    upstream.wait_requests(1);
    client.reset();
    upstream.wait_closed(0);
}

#[test]
fn a_request_cut_in_its_body_is_recorded_as_incomplete() {
    let upstream = Upstream::always(Reply::json(200, "1"));
    let mut client = Client::connect(upstream.address());
    client.send_bytes("POST / HTTP/1.1\r\ncontent-length: 9\r\n\r\nabc");
    client.half_close();
    assert!(!upstream.request(0).is_complete);
}

#[test]
fn an_early_answer_comes_before_the_body() {
    let upstream = Upstream::early(Reply::json(429, "{}").and_hang());
    let mut client = Client::connect(upstream.address());
    client.send_bytes("POST / HTTP/1.1\r\ncontent-length: 9\r\n\r\n");
    assert_eq!(client.answer().status(), 429);
    assert!(upstream.request(0).body.is_empty());
}

#[test]
fn a_greeting_needs_no_request() {
    let garbage = Upstream::greeting(Reply::raw("\0\u{1}garbage").and_close());
    let (text, end) = Client::connect(garbage.address()).rest();
    assert_eq!(
        (text.as_slice(), end),
        (b"\0\x01garbage".as_slice(), End::Closed)
    );
    let reset = Upstream::greeting(Reply::empty().and_reset());
    assert_eq!(Client::connect(reset.address()).rest().1, End::Reset);
}

#[test]
fn informational_heads_come_first() {
    let reply = Reply::json(200, "1").after_informational(103, &[("link", "</a>")]);
    let answer = ask(Upstream::always(reply).address(), &Ask::get("/"));
    assert_eq!(
        (answer.informational[0].status, answer.status()),
        (103, 200)
    );
    assert_eq!(answer.informational[0].header("link"), Some("</a>"));
}

#[test]
fn a_wrong_content_length_is_sent_as_told() {
    let upstream = Upstream::always(Reply::claiming(200, &[], 9, "abc").and_close());
    let answer = ask(upstream.address(), &Ask::get("/"));
    assert_eq!((answer.text(), answer.end), ("abc", End::Closed));
}

#[test]
fn a_reply_without_framing_ends_with_the_connection() {
    let upstream = Upstream::always(Reply::until_close(200, &[], "abc"));
    let answer = ask(upstream.address(), &Ask::get("/"));
    assert_eq!((answer.text(), answer.end), ("abc", End::Closed));
}

#[test]
fn a_killed_upstream_resets_its_connections() {
    let upstream = Upstream::always(Reply::stream().event("1").and_hang());
    let mut client = Client::connect(upstream.address());
    client.send(&Ask::get("/"));
    client.head();
    client.chunk();
    upstream.kill();
    assert_eq!(client.rest().1, End::Reset);
}

#[test]
fn a_closed_port_refuses() {
    let port = ClosedPort::take();
    let refused = std::net::TcpStream::connect(port.address()).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
}

#[test]
fn where_a_server_was_connections_are_refused_for_good() {
    let upstream = Upstream::always(Reply::json(200, "1"));
    let gone = upstream.address();
    drop(upstream);
    let others = [(); 50].map(|()| Upstream::always(Reply::json(200, "1")));
    assert!(others.iter().all(|it| it.address().ip() != gone.ip()));
    let refused = std::net::TcpStream::connect(gone).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
}

#[test]
fn an_event_stream_is_taken_apart() {
    let stream =
        parse(": hi\r\n\r\nevent: e\r\ndata: {\"a\":1}\r\n\r\ndata:x\ndata: y\n\ndata: [DO");
    let event = |name: Option<&str>, data: &str| Item::Event {
        name: name.map(str::to_owned),
        data: data.to_owned(),
    };
    let items = [
        Item::Comment("hi".to_owned()),
        event(Some("e"), "{\"a\":1}"),
        event(None, "x\ny"),
    ];
    assert_eq!(stream.items, items);
    assert_eq!(stream.tail, "data: [DO");
    assert!(!stream.is_done());
}

#[test]
fn done_is_done_only_once_and_last() {
    assert!(parse("data: {}\n\ndata: [DONE]\n\n").is_done());
    assert!(!parse("data: [DONE]\n\ndata: {}\n\n").is_done());
    assert!(!parse("data: [DONE]\n\ndata: [DONE]\n\n").is_done());
    assert!(!parse("data: {}\n\n").is_done());
}
