//! What people and strangers at the operator's listener take from probes and metrics: nothing.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use super::live::{Follower, ask_as};
use super::{Browser, field, form};
use crate::ledger::money::Place;
use crate::models::fronts::chat_completions::{PLAIN, chunk, reply};
use crate::support::WAIT_TIMEOUT;
use crate::support::ask::Ask;
use crate::support::boot::{CENT, Gateway};
use crate::support::client::{Client, ask};
use crate::support::own_postgres::Postgres;
use crate::support::postgres_proxy::PostgresProxy;
use crate::support::script::{Gate, Reply};
use crate::support::server::Server;
use crate::support::until;
use crate::support::upstream::Upstream;

/// The connections of the listener.
const CONNECTIONS: usize = 128;
/// More connections than there may be.
const MORE: usize = 40;
/// The requests to the console that are answered at once.
const REQUESTS: usize = 32;
/// The answers of the playground that are made at once.
const ANSWERS: usize = 8;
/// How long a probe may take on a machine with other work.
const PROBE: Duration = Duration::from_secs(2);

/// Asks for what the listener is there for.
fn probe(admin: SocketAddr) {
    for path in ["/livez", "/readyz", "/metrics"] {
        let began = Instant::now();
        assert_eq!(ask(admin, &Ask::get(path)).status(), 200, "{path}");
        let took = began.elapsed();
        assert!(took < PROBE, "{path} took {took:?}");
    }
}

/// Opens connections that send this and read nothing.
fn strangers(admin: SocketAddr, count: usize, sent: &str) -> Vec<TcpStream> {
    let open = |_| {
        let mut stream = TcpStream::connect(admin).unwrap();
        stream.write_all(sent.as_bytes()).unwrap();
        stream.set_nonblocking(true).unwrap();
        stream
    };
    (0..count).map(open).collect()
}

/// How many of them the other side has closed.
fn closed(all: &mut [TcpStream]) -> usize {
    let is_closed = |stream: &mut TcpStream| {
        let read = stream.read_to_end(&mut Vec::new());
        read.map_or_else(|error| error.kind() != ErrorKind::WouldBlock, |_| true)
    };
    all.iter_mut().map(is_closed).filter(|it| *it).count()
}

#[test]
fn probes_are_answered_however_many_connections_stand_open() {
    let gateway = Gateway::start("", "");
    let admin = gateway.running.admin;
    let asked = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
    for sent in ["", "GET /livez HTTP/1.1\r\nHo", asked] {
        let mut all = strangers(admin, CONNECTIONS + MORE, sent);
        probe(admin);
        until("others have lost their places", || closed(&mut all) >= MORE);
    }
}

#[test]
fn a_form_that_does_not_come_holds_up_nobody() {
    let gateway = Gateway::start("", "");
    let admin = gateway.running.admin;
    let head =
        "POST /console/sign-out HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\ncsrf=";
    let mut all = strangers(admin, CONNECTIONS + MORE, head);
    probe(admin);
    until("others have lost their places", || closed(&mut all) >= MORE);
}

#[test]
fn streams_stay_open_while_strangers_come_and_each_bound_is_named() {
    let gate = Gate::default();
    let begun = Reply::stream().event(&chunk(json!({"content": "hel"}), None));
    let end = begun
        .wait(&gate)
        .event(&chunk(json!({}), Some("stop")))
        .event("[DONE]")
        .end();
    let upstream = Upstream::always(end);
    let gateway = Gateway::between(&upstream.url(), &upstream.url());
    let admin = gateway.running.admin;
    let mut follower = Follower::new(&gateway, "", None);
    follower.read_until("No call runs.");
    let mut browser = Browser::new(&gateway);
    let csrf = field(&browser.page("/console/playground"), "csrf").unwrap();
    let cookie = browser.cookie.clone().unwrap();
    let key = gateway.key.clone();
    let fields = [
        ("csrf", &*csrf),
        ("key", &*key),
        ("model", "chat"),
        ("prompt", "Hi"),
    ];
    let question = form("/console/playground", &fields).header("Cookie", &cookie);
    let mut answers: Vec<_> = (0..ANSWERS)
        .map(|_| {
            let mut client = Client::connect(admin);
            client.send(&question);
            assert_eq!(client.head().status, 200);
            client
        })
        .collect();
    let refused = ask(admin, &question);
    assert_eq!(
        (refused.status(), refused.header("retry-after")),
        (503, Some("10"))
    );
    assert!(
        refused.text().contains("8 answers of the playground"),
        "{}",
        refused.text()
    );
    let _strangers = strangers(admin, 2 * CONNECTIONS, "");
    probe(admin);
    gate.open();
    for client in &mut answers {
        let answer = client.rest();
        let text = String::from_utf8_lossy(&answer.0).into_owned();
        assert!(text.contains("by first"), "{text}");
    }
    follower.read_until("200 ok");
    until("an answer has made room for another one", || {
        ask(admin, &question).status() == 200
    });
}

/// Each line of a kept call is read for the list of sessions.
#[test]
fn a_probe_is_answered_while_pages_of_ten_thousand_calls_are_made() {
    let upstream = Upstream::always(reply());
    let more = "[console]\nkeep_calls = 10000\n";
    let gateway = Gateway::with(&upstream.url(), &upstream.url(), more);
    ask_as(&gateway, "real", PLAIN, &[("x-session-id", "real")]);
    let kept = &gateway.running.app.proxy.calls;
    until("the call is kept", || kept.ended() == 1);
    let mut real = String::new();
    kept.read_newest(None, |_, line| {
        real = String::from_utf8(line.to_vec()).unwrap();
        std::ops::ControlFlow::Break(())
    });
    for number in 0..10_000 {
        let line = real.replace("\"real\"", &format!("\"session-{}\"", number % 5_000));
        kept.keep(line.as_bytes());
    }
    let (admin, pages) = (gateway.running.admin, 8);
    let made = AtomicUsize::new(0);
    let page = || {
        let began = Instant::now();
        let page = ask(admin, &Ask::get("/console/sessions"));
        assert_eq!(page.status(), 200, "{}", page.text());
        assert!(
            page.text().contains("5\u{202f}000 sessions"),
            "{}",
            page.text()
        );
        made.fetch_add(1, Ordering::Relaxed);
        began.elapsed()
    };
    let alone = page();
    let mut probes = Vec::new();
    std::thread::scope(|scope| {
        for _ in 0..pages {
            scope.spawn(page);
        }
        let began = Instant::now();
        while made.load(Ordering::Relaxed) <= pages && began.elapsed() < WAIT_TIMEOUT {
            let began = Instant::now();
            assert_eq!(ask(admin, &Ask::get("/livez")).status(), 200);
            probes.push(began.elapsed());
        }
    });
    probes.sort_unstable();
    let usual = probes[probes.len() / 2];
    println!(
        "a page takes {alone:?}, a probe beside {pages} of them {usual:?}, {} were answered",
        probes.len()
    );
    // A listener that makes pages itself answers a probe between two of them.
    assert!(probes.len() > 3 * pages, "{probes:?}");
    assert!(usual < alone / 2, "{usual:?} beside {alone:?}");
}

#[test]
fn a_store_that_is_silent_holds_so_many_requests_and_no_probe() {
    let postgres = Postgres::start();
    let proxy = PostgresProxy::before(&postgres.url());
    let upstream = Upstream::always(reply());
    let place = Place::new(proxy.url(), &upstream, CENT);
    let server = Server::start(place.path());
    let page = Ask::get("/console/audit");
    assert_eq!(ask(server.admin, &page).status(), 200);
    proxy.fall_silent();
    let more = 8;
    let mut waiting: Vec<_> = (0..REQUESTS + more)
        .map(|_| {
            let mut client = Client::connect(server.admin);
            client.send(&page);
            client
        })
        .collect();
    for path in ["/livez", "/metrics"] {
        let began = Instant::now();
        assert_eq!(ask(server.admin, &Ask::get(path)).status(), 200);
        assert!(began.elapsed() < PROBE, "{path}");
    }
    let answers = waiting.iter_mut().map(Client::answer);
    let (refused, failed): (Vec<_>, Vec<_>) =
        answers.partition(|answer| answer.header("retry-after") == Some("1"));
    assert_eq!((refused.len(), failed.len()), (more, REQUESTS));
    for answer in refused {
        assert_eq!(answer.status(), 503);
        let text = answer.text();
        assert!(text.contains("32 requests to the console"), "{text}");
    }
    for answer in failed {
        assert_eq!(answer.status(), 503);
        assert!(
            answer.text().contains("could not be shown"),
            "{}",
            answer.text()
        );
    }
    proxy.speak();
    until("pages are shown again", || {
        ask(server.admin, &page).status() == 200
    });
}
