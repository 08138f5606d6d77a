//! Shared state: Redis is available, unavailable, and available again.

use std::time::Duration;

use crate::models::fronts::chat_completions::{PLAIN, reply};
use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::ask;
use crate::support::redis::Redis;
use crate::support::until;
use crate::support::upstream::Upstream;

pub fn is_degraded(gateway: &Gateway) -> bool {
    let metrics = gateway.metrics();
    let said = metrics
        .lines()
        .find_map(|line| line.strip_prefix("weirgate_limiter_degraded "));
    said.expect("the metric") == "1"
}

fn health(gateway: &Gateway, path: &str) -> (u16, bool) {
    let answer = ask(gateway.address(), &Ask::get(path));
    let redis = &answer.json()["health"]["redis"];
    assert_eq!(redis["error"].is_string(), redis["connected"] == false);
    (answer.status(), redis["connected"].as_bool().unwrap())
}

fn gateway(redis: &Redis, first: &Upstream) -> Gateway {
    let more = format!("[shared]\nredis = \"{}\"", redis.url());
    Gateway::with(&first.url(), &first.url(), &more)
}

/// Contract: model-gateway 4 GET /
/// Contract: model-gateway 7 503
#[test]
fn health_shows_whether_redis_answers_unless_that_is_skipped() {
    let (mut redis, first) = (Redis::start(), Upstream::always(reply()));
    let gateway = gateway(&redis, &first);
    assert_eq!(health(&gateway, "/"), (200, true));
    redis.kill();
    until("gone", || health(&gateway, "/") == (503, false));
    assert_eq!(health(&gateway, "/?skip=redis"), (200, true));
    assert_eq!(
        ask(gateway.running.admin, &Ask::get("/readyz")).status(),
        200
    );
    assert_eq!(gateway.chat(PLAIN).status(), 200);
    redis.start_again();
    until("back", || health(&gateway, "/") == (200, true));
}

#[test]
fn degraded_ends_within_five_seconds_of_the_return() {
    let (mut redis, first) = (Redis::start(), Upstream::always(reply()));
    let gateway = gateway(&redis, &first);
    assert!(!is_degraded(&gateway));
    redis.kill();
    until("degraded", || is_degraded(&gateway));
    redis.start_again();
    assert!(until("not degraded", || !is_degraded(&gateway)) < Duration::from_secs(5));
    redis.pause();
    until("degraded by silence", || is_degraded(&gateway));
    redis.resume();
    assert!(until("not degraded", || !is_degraded(&gateway)) < Duration::from_secs(5));
}

#[test]
fn a_redis_that_refuses_writes_is_of_no_use() {
    let (redis, first) = (Redis::start(), Upstream::always(reply()));
    let gateway = gateway(&redis, &first);
    let mut connection = redis.connect();
    let mut replicate = |of: [&str; 2]| {
        let mut command = redis::cmd("REPLICAOF");
        command.arg(&of).exec(&mut connection).unwrap();
    };
    replicate(["127.0.0.1", "1"]);
    until("degraded", || is_degraded(&gateway));
    replicate(["NO", "ONE"]);
    until("not degraded", || !is_degraded(&gateway));
}

#[test]
fn a_process_starts_without_its_redis() {
    let (mut redis, first) = (Redis::start(), Upstream::always(reply()));
    redis.kill();
    let gateway = gateway(&redis, &first);
    assert!(is_degraded(&gateway));
    assert_eq!(gateway.chat(PLAIN).status(), 200);
    redis.start_again();
    until("not degraded", || !is_degraded(&gateway));
}

#[test]
fn a_process_that_stops_says_goodbye() {
    let (redis, first) = (Redis::start(), Upstream::always(reply()));
    let (one, other) = (gateway(&redis, &first), gateway(&redis, &first));
    let mut connection = redis.connect();
    let mut count = || -> u64 {
        redis::cmd("ZCARD")
            .arg("weirgate:processes")
            .query(&mut connection)
            .unwrap()
    };
    assert_eq!(count(), 2);
    drop(one);
    assert_eq!(count(), 1);
    drop(other);
    assert_eq!(count(), 0);
}
