//! A process of the fleet that is frozen, and a store whose host is gone without a word: credit is back within 15 seconds,
//! and calls on own keys never stop. Source: docs/promises-tests.md.

use std::time::{Duration, Instant};

use crate::ledger::money::Place;
use crate::models::fronts::chat_completions::{PLAIN, reply};
use crate::support::ask::Ask;
use crate::support::boot::CENT;
use crate::support::client;
use crate::support::own_postgres::Postgres;
use crate::support::postgres_proxy::PostgresProxy;
use crate::support::server::Server;
use crate::support::upstream::Upstream;
use crate::support::{WAIT_TIMEOUT, every, until};

/// How long credit may be refused. Source: docs/promises-tests.md.
const OUTAGE: Duration = Duration::from_secs(15);
/// The time between calls on an own key: it has a limit of 500.
const PACE: Duration = Duration::from_millis(50);

/// How long credit waits at least for what a frozen process has locked: PostgreSQL ends its transaction after 5 s.
const LOCKED: Duration = Duration::from_secs(2);

fn chat(key: &str) -> Ask {
    Ask::post("/v1/chat/completions", PLAIN).key(key)
}

/// Asks until credit is spent again, and asserts that it took no longer than promised, and that own keys serve meanwhile. Returns
/// how long it took.
fn credit_is_back(server: &Server, paid: &Ask, own: &Ask) -> Duration {
    let began = Instant::now();
    let is_back = |_| {
        let status = client::ask(server.address, paid).status();
        assert_eq!(client::ask(server.address, own).status(), 200);
        assert!([200, 503].contains(&status), "{status}");
        status == 200
    };
    assert!(every(PACE, OUTAGE).any(is_back), "credit is not back");
    began.elapsed()
}

/// Freezes one of two processes in the middle of what it has locked. On a busy machine it may have given up just before, and
/// then another one is frozen.
fn freeze_at(words: &str) {
    let mut took = (0..3).map(|_| freeze_once(words));
    assert!(took.any(|it| it > LOCKED), "no frozen process held a lock");
}

/// Freezes one of two processes once it sends a statement with these words. Returns how long the other one had no credit.
fn freeze_once(words: &str) -> Duration {
    let postgres = Postgres::start();
    let proxy = PostgresProxy::before(&postgres.url());
    let upstream = Upstream::always(reply());
    let places = [proxy.url(), &postgres.url()].map(|url| Place::new(url, &upstream, CENT));
    let (key, own) = (places[1].fund("1"), places[1].own_key());
    let frozen = Server::start(places[0].path());
    let other = Server::start(places[1].path());
    proxy.freeze_at(words, frozen.id());
    let (paid, own) = (chat(&key), chat(&own));
    let (address, of_frozen) = (frozen.address, paid.clone());
    let mut asking = client::Client::connect(address);
    asking.send(&of_frozen);
    until("the process is frozen", || proxy.has_frozen());
    let took = credit_is_back(&other, &paid, &own);
    // What the frozen one began has had no part in it, and nothing of it stays on the server.
    assert_eq!(client::ask(other.address, &paid).status(), 200);
    frozen.signal("CONT");
    until("the frozen one serves again", || {
        client::ask(frozen.address, &paid).status() == 200
    });
    took
}

#[test]
fn credit_is_back_though_a_process_is_frozen_in_a_change_of_leases() {
    freeze_at("INSERT INTO leases");
}

#[test]
fn credit_is_back_though_a_process_is_frozen_in_a_post() {
    freeze_at("INSERT INTO call_batches");
}

/// A store that serves, is gone in one way or another, and serves again.
fn lose_store(lose: impl FnOnce(&PostgresProxy)) {
    let postgres = Postgres::start();
    let proxy = PostgresProxy::before(&postgres.url());
    let upstream = Upstream::always(reply());
    let place = Place::new(proxy.url(), &upstream, CENT);
    let (key, own) = (place.fund("1000"), place.own_key());
    let server = Server::start(place.path());
    let (paid, own) = (chat(&key), chat(&own));
    for ask in [&paid, &own] {
        assert_eq!(client::ask(server.address, ask).status(), 200);
    }
    lose(&proxy);
    let is_refused = |_| {
        let status = client::ask(server.address, &paid).status();
        assert_eq!(client::ask(server.address, &own).status(), 200);
        status == 503
    };
    assert!(
        every(PACE, WAIT_TIMEOUT).any(is_refused),
        "credit is spent on"
    );
    for _ in 0..20 {
        assert_eq!(client::ask(server.address, &own).status(), 200);
    }
    proxy.speak();
    credit_is_back(&server, &paid, &own);
}

#[test]
fn credit_is_back_after_the_stores_host_was_gone_without_a_word() {
    lose_store(PostgresProxy::fall_silent);
}

#[test]
fn credit_is_back_after_the_stores_host_took_no_connection() {
    lose_store(PostgresProxy::fill_backlog);
}

#[test]
fn a_pooler_that_drops_the_options_of_a_connection_is_refused_with_words() {
    let postgres = Postgres::start();
    let proxy = PostgresProxy::pooling(&postgres.url());
    let upstream = Upstream::always(reply());
    let place = Place::new(proxy.url(), &upstream, CENT);
    let said = Server::launch(place.path()).err().expect("it is refused");
    assert!(said.contains("store.url leads to a pooler"), "{said}");
}

/// The first call of an organization needs the store, which is silent. As many as may run at once wait for it.
#[test]
fn who_waits_for_credit_takes_no_permit_from_own_keys_and_waits_once() {
    let postgres = Postgres::start();
    let proxy = PostgresProxy::before(&postgres.url());
    let upstream = Upstream::always(reply());
    let mut place = Place::new(proxy.url(), &upstream, CENT);
    place.set("[server]", "[limits]\nin_flight = 8\n[server]");
    let (key, own) = (place.fund("1"), place.own_key());
    let server = Server::start(place.path());
    let (paid, own) = (chat(&key), chat(&own));
    assert_eq!(client::ask(server.address, &own).status(), 200);
    proxy.fall_silent();
    let address = server.address;
    let waiting: Vec<_> = (0..8)
        .map(|_| {
            let paid = paid.clone();
            std::thread::spawn(move || {
                let began = Instant::now();
                (client::ask(address, &paid).status(), began.elapsed())
            })
        })
        .collect();
    let is_over = |_| {
        assert_eq!(client::ask(server.address, &own).status(), 200);
        waiting.iter().all(|thread| thread.is_finished())
    };
    assert!(every(PACE, WAIT_TIMEOUT).any(is_over), "they wait on");
    for thread in waiting {
        let (status, took) = thread.join().unwrap();
        assert_eq!(status, 503);
        assert!(took < Duration::from_secs(8), "{took:?}");
    }
}
