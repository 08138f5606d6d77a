//! What processes tell each other of providers, over Redis.

use std::sync::atomic::Ordering;
use std::time::Duration;

use filters::models::routing::health::Measurements;

use crate::redis::fleet::Fleet;
use crate::support::redis::Redis;
use crate::support::{WAIT_TIMEOUT, every, until};

const STATES: &str = "weirgate:{health}:states";
const CHANGES: &str = "weirgate:{health}:changes";

fn count(fleet: &Fleet, process: usize, outcome: &str) -> u64 {
    let name = format!("shared_measurements_total{{outcome=\"{outcome}\"}}");
    fleet.metric(process, &name)
}

/// The names and states in Redis.
fn states(redis: &Redis) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut all = redis::cmd("HGETALL");
    let fields: Vec<Vec<u8>> = all.arg(STATES).query(&mut redis.connect()).unwrap();
    let pairs = fields
        .chunks_exact(2)
        .map(|it| (it[0].clone(), it[1].clone()));
    pairs.filter(|(name, _)| name != b"began").collect()
}

/// Whether a process has told that a provider cools down.
fn cools_down(redis: &Redis) -> bool {
    states(redis).into_iter().any(|(_, state)| {
        let measured = Measurements::from_bytes(&state).expect("a state");
        format!("{measured:?}").contains("cool_down: Some")
    })
}

/// Waits until each process has exchanged states again.
fn exchanged(redis: &Redis) {
    let before = redis.script_calls();
    until("more exchanges", || redis.script_calls() >= before + 9);
}

#[test]
fn a_provider_that_fails_for_one_process_is_avoided_by_the_others_and_by_new_ones() {
    // Each script touches keys of one slot.
    let redis = Redis::start_cluster();
    let mut fleet = Fleet::start(&[&redis.url(), &redis.url()]);
    (0..2).for_each(|process| fleet.warm(process));
    fleet.fails.store(true, Ordering::SeqCst);
    let mut sent = 0;
    let mut ask = |fleet: &Fleet, process: usize| {
        sent += 1;
        fleet.provider(process, &format!("more {sent}"))
    };
    // A call has to fail again and again, and each may be told to the others behind it.
    let fails = |_| {
        assert_eq!(ask(&fleet, 0), "second");
        cools_down(&redis)
    };
    assert!(every(Duration::from_millis(50), WAIT_TIMEOUT).any(fails));
    exchanged(&redis);
    let failed = fleet.first.requests().len();
    assert_eq!(ask(&fleet, 1), "second");
    assert_eq!(
        fleet.first.requests().len(),
        failed,
        "it was not even tried"
    );
    // After a trial has failed there are ten seconds for the start of another process.
    until("a failed trial", || {
        assert_eq!(ask(&fleet, 0), "second");
        fleet.first.requests().len() > failed
    });
    exchanged(&redis);
    let new = fleet.add(&redis.url());
    until("states", || count(&fleet, new, "taken_in") >= 1);
    let failed = fleet.first.requests().len();
    assert_eq!(ask(&fleet, new), "second");
    assert_eq!(
        fleet.first.requests().len(),
        failed,
        "it was not even tried"
    );
    fleet.fails.store(false, Ordering::SeqCst);
    until("a good trial", || ask(&fleet, 0) == "first");
    until("the recovery", || ask(&fleet, 1) == "first");
    // What Redis keeps names no organization and no caller.
    for (name, state) in states(&redis) {
        assert_eq!(name.len(), 32);
        assert!(state.len() < 400, "{}", state.len());
    }
    let mut ttl = redis::cmd("TTL");
    let ttl: i64 = ttl.arg(STATES).query(&mut redis.connect()).unwrap();
    assert!((3500..=3600).contains(&ttl), "{ttl}");
}

#[test]
fn garbage_in_redis_teaches_nothing_and_stops_no_process() {
    let redis = Redis::start();
    let fleet = Fleet::start(&[&redis.url(), &redis.url()]);
    (0..2).for_each(|process| fleet.warm(process));
    until("states of others", || count(&fleet, 1, "taken_in") >= 1);
    let mut connection = redis.connect();
    let time = redis::cmd("TIME");
    let (seconds, _): (u64, u64) = time.query(&mut connection).unwrap();
    let mut names: Vec<Vec<u8>> = states(&redis).into_iter().map(|(name, _)| name).collect();
    names.push(b"short".to_vec());
    let mut change_us = seconds * 1_000_000 + 5_000_000;
    for garbage in [vec![0_u8; 1 << 20], b"garbage".to_vec(), vec![255; 300]] {
        let before = count(&fleet, 1, "unusable");
        // Later than what the processes themselves have written since.
        change_us += 1_000_000;
        for name in &names {
            let mut set = redis::cmd("HSET");
            let set = set.arg(STATES).arg(name).arg(&garbage);
            set.exec(&mut connection).unwrap();
            let mut add = redis::cmd("ZADD");
            let add = add.arg(CHANGES).arg(change_us).arg(name);
            add.exec(&mut connection).unwrap();
            change_us += 1;
        }
        until("what cannot be read", || {
            count(&fleet, 1, "unusable") > before
        });
        assert_eq!(
            fleet.provider(1, &format!("garbage until {change_us}")),
            "first"
        );
    }
    // A key of another type is nothing that a script can use.
    let mut set = redis::cmd("SET");
    set.arg(STATES).arg("text").exec(&mut connection).unwrap();
    until("a failure", || count(&fleet, 1, "failed") >= 1);
    assert_eq!(fleet.provider(1, "with a key of another type"), "first");
    redis::cmd("DEL").arg(STATES).exec(&mut connection).unwrap();
    let before = count(&fleet, 1, "taken_in");
    assert_eq!(fleet.provider(0, "again"), "first");
    until("states again", || count(&fleet, 1, "taken_in") > before);
}
