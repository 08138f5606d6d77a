//! Background responses of processes that are killed: real processes, real signals.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use sqlx::{Connection, Executor, SqliteConnection};

use super::SOON;
use crate::ledger::money::{Place, TOKENS, rows};
use crate::support::ask::Ask;
use crate::support::client;
use crate::support::every;
use crate::support::own_postgres::Postgres;
use crate::support::script::{Gate, Reply};
use crate::support::server::Server;
use crate::support::upstream::Upstream;

/// A provider whose first calls, as many as these, never end, and whose others cost 0.0035.
fn provider(silent: usize) -> Upstream {
    let count = AtomicUsize::new(0);
    let never = Gate::default();
    Upstream::answering(move |_| {
        let body = json!({"id": "c", "object": "chat.completion", "created": 5, "model": "m",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": "there"}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}});
        let reply = Reply::json(200, body.to_string());
        match count.fetch_add(1, Ordering::SeqCst) < silent {
            true => Reply::empty().wait(&never).then(reply),
            false => reply,
        }
    })
}

fn place(store_url: &str, upstream: &Upstream) -> Place {
    let mut place = Place::new(store_url, upstream, TOKENS);
    place.set("[server]", "[responses]\nstore = true\n[server]");
    place
}

fn queue(address: SocketAddr, key: &str, id: &str) -> Value {
    let asked =
        json!({"model": "chat", "input": "one", "background": true, "max_output_tokens": 2000});
    let asked = Ask::post("/v1/responses", asked.to_string()).key(key);
    let answer = client::ask(address, &asked.header("x-request-id", id));
    assert_eq!(answer.status(), 200, "{}", answer.text());
    answer.json()
}

fn get(address: SocketAddr, key: &str, response: &Value) -> Value {
    let path = format!("/v1/responses/{}", response["id"].as_str().unwrap());
    client::ask(address, &Ask::get(&path).key(key)).json()
}

fn wait_for(address: SocketAddr, key: &str, response: &Value, status: &str) -> Value {
    let mut looks =
        every(Duration::from_millis(100), SOON * 3).map(|_| get(address, key, response));
    let found = looks.find(|now| now["status"] == status);
    found.unwrap_or_else(|| panic!("{status} never comes: {}", get(address, key, response)))
}

#[test]
fn a_response_of_a_killed_process_is_made_after_its_restart_and_paid_once() {
    let upstream = provider(1);
    let place = place("", &upstream);
    let key = place.fund("1");
    let server = Server::start(place.path());
    let queued = queue(server.address, &key, "first");
    wait_for(server.address, &key, &queued, "in_progress");
    upstream.request(0);
    server.kill();
    let server = Server::start(place.path());
    let done = wait_for(server.address, &key, &queued, "completed");
    assert_eq!(done["output"][0]["content"][0]["text"], "there");
    server.stop();
    assert_eq!(upstream.requests().len(), 2);
    let rows = rows(&place);
    assert_eq!(rows, [("first".to_owned(), 3_500_000)]);
    let credit = place.credit();
    assert_eq!(
        (credit.used.to_string(), credit.reserved.to_string()),
        ("0.0035".to_owned(), "0".to_owned())
    );
}

#[test]
fn a_response_that_waits_where_none_are_kept_any_more_frees_its_credit() {
    let upstream = provider(usize::MAX);
    let mut place = place("", &upstream);
    let key = place.fund("1");
    let server = Server::start(place.path());
    let queued = queue(server.address, &key, "first");
    wait_for(server.address, &key, &queued, "in_progress");
    server.kill();
    assert!(place.credit().reserved > filters::money::Usd::ZERO);
    place.set("store = true", "store = false");
    // It has waited for a while.
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let database = place.path().join("weirgate.db");
    runtime.block_on(async {
        let url = format!("sqlite:{}", database.display());
        let mut database = SqliteConnection::connect(&url).await.unwrap();
        let age = "UPDATE response_jobs SET created_at = created_at - 60000";
        database.execute(age).await.unwrap();
    });
    let server = Server::start(place.path());
    let mut looks = every(Duration::from_millis(100), SOON * 3).map(|_| place.credit());
    assert!(looks.any(|credit| credit.reserved == filters::money::Usd::ZERO));
    server.stop();
    assert_eq!(place.credit().used.to_string(), "0");
    assert_eq!(upstream.requests().len(), 1);
}

#[test]
fn a_response_that_kills_processes_again_and_again_fails() {
    let upstream = provider(usize::MAX);
    let place = place("", &upstream);
    let key = place.fund("1");
    let mut server = Server::start(place.path());
    let queued = queue(server.address, &key, "bad");
    for run in 0..3 {
        upstream.request(run);
        server.kill();
        server = Server::start(place.path());
    }
    let failed = wait_for(server.address, &key, &queued, "failed");
    assert!(
        failed["error"]["message"]
            .as_str()
            .unwrap()
            .contains("never came to its end"),
        "{failed}"
    );
    server.stop();
    assert_eq!(place.credit().used.to_string(), "0");
}

#[test]
fn another_process_makes_the_response_of_a_killed_one() {
    let postgres = Postgres::start();
    let upstream = provider(1);
    let place = place(&postgres.url(), &upstream);
    let key = place.fund("1");
    let server = Server::start(place.path());
    let queued = queue(server.address, &key, "first");
    wait_for(server.address, &key, &queued, "in_progress");
    upstream.request(0);
    let other = Server::start(place.path());
    server.kill();
    let done = wait_for(other.address, &key, &queued, "completed");
    assert_eq!(done["output"][0]["content"][0]["text"], "there");
    other.stop();
    assert_eq!(rows(&place), [("first".to_owned(), 3_500_000)]);
    assert_eq!(place.credit().used.to_string(), "0.0035");
}
