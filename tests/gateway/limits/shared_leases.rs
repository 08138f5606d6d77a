//! Windows that several processes share with leases: far fewer calls to Redis, and never more than the limit.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use filters::limits::Algorithm;
use weirgate::config::OnOutage;

use crate::support::ask::Ask;
use crate::support::client::{self, Client};
use crate::support::process::Process as Program;
use crate::support::redis::Redis;
use crate::support::until;
use crate::support::windows::{Mode, ask, key, process, runtime, three, undisturbed};

const LEASING: (OnOutage, Mode) = (OnOutage::Closed, Mode::Leasing);
const MINUTE: Duration = Duration::from_secs(60);

/// How many three processes admit of ten times the limit at once, and of what is asked until no lease is open; and the
/// calls to Redis for the first. Nothing if Redis was too slow.
fn burst(algorithm: Algorithm, mode: Mode, limit: u64) -> Option<(u64, u64, u64)> {
    let (runtime, redis) = (runtime(), Redis::start());
    let processes = three(&redis, algorithm, MINUTE, (OnOutage::Closed, mode));
    let before = redis.script_calls();
    let (admitted, unanswered) = ask(&runtime, &processes, limit, limit * 10);
    let calls = redis.script_calls() - before;
    let first: u64 = admitted.iter().sum();
    assert!(first <= limit, "{algorithm:?} {admitted:?}");
    if unanswered > 0 {
        return None;
    }
    let mut all = first;
    until("the rest of the window is admitted", || {
        let (more, _) = ask(&runtime, &processes, limit, 480);
        all += more.iter().sum::<u64>();
        all >= limit
    });
    Some((first, all, calls))
}

#[test]
fn of_ten_times_the_limit_nearly_all_of_it_is_admitted_at_once_and_never_more() {
    const LIMIT: u64 = 4_800;
    for algorithm in [Algorithm::Fixed, Algorithm::Sliding] {
        let (first, all, calls) = undisturbed(|| burst(algorithm, Mode::Leasing, LIMIT));
        assert_eq!(all, LIMIT, "{algorithm:?}: what was not needed went back");
        assert!(first >= LIMIT * 9 / 10, "{algorithm:?} {first}");
        assert!(calls * 2 < first, "{algorithm:?} {calls} calls for {first}");
    }
}

#[test]
fn without_leases_each_request_is_a_call() {
    const LIMIT: u64 = 480;
    let (first, all, calls) = undisturbed(|| burst(Algorithm::Fixed, Mode::Exact, LIMIT));
    assert_eq!((first, all), (LIMIT, LIMIT));
    assert!(calls >= LIMIT * 10, "{calls}");
}

/// The requests that were admitted under steady load: the time for a token, when it was asked for, and when it was
/// answered. The clocks are those of this process.
fn admitted(
    algorithm: Algorithm,
    window: Duration,
    limit: u64,
) -> Option<Vec<(u64, [Instant; 2])>> {
    let (redis, runtime) = (Redis::start(), runtime());
    let processes = three(&redis, algorithm, window, LEASING);
    let (admitted, key) = (Mutex::new(Vec::new()), key("tenant"));
    let until = Instant::now() + window * 20;
    let work = processes.iter().flat_map(|process| [process; 4]);
    let work = work.map(async |process| {
        while Instant::now() < until {
            let asked = Instant::now();
            let Ok(verdict) = process.counters.admit(&key, limit).await else {
                return false;
            };
            if verdict.is_allowed {
                let at_ms = verdict.refund_token.shared_ms().unwrap();
                admitted
                    .lock()
                    .unwrap()
                    .push((at_ms, [asked, Instant::now()]));
            }
            tokio::time::sleep(Duration::from_micros(200)).await;
        }
        true
    });
    let answered = runtime.block_on(futures::future::join_all(work));
    let is_undisturbed = answered.into_iter().all(|it| it);
    let taken = processes
        .iter()
        .map(|process| process.leased_units.with_label_values(&["taken"]).get());
    assert!(taken.sum::<u64>() > limit, "there were no leases");
    is_undisturbed.then(|| admitted.into_inner().unwrap())
}

#[test]
fn no_fixed_window_admits_more_than_its_limit_and_most_admit_nearly_all() {
    const LIMIT: u64 = 200;
    let mut windows = BTreeMap::new();
    for (start_ms, _) in
        undisturbed(|| admitted(Algorithm::Fixed, Duration::from_millis(300), LIMIT))
    {
        *windows.entry(start_ms).or_insert(0_u64) += 1;
    }
    assert!(windows.values().all(|count| *count <= LIMIT), "{windows:?}");
    let full = windows.values().filter(|count| **count >= LIMIT * 9 / 10);
    assert!(full.count() >= windows.len() / 2, "{windows:?}");
}

#[test]
fn a_sliding_window_admits_no_more_than_its_limit_in_any_span_of_its_length() {
    const LIMIT: usize = 200;
    let window = Duration::from_millis(300);
    let mut all = undisturbed(|| admitted(Algorithm::Sliding, window, LIMIT as u64));
    all.sort_unstable_by_key(|(_, [asked, _])| *asked);
    assert!(all.len() > LIMIT * 10, "{}", all.len());
    // Whenever between question and answer each was admitted, no more than the limit fit into a window. Its clock is read
    // in milliseconds.
    for span in all.windows(LIMIT + 1) {
        let last = span
            .iter()
            .map(|(_, [_, answered])| *answered)
            .max()
            .unwrap();
        let (_, [first, _]) = span[0];
        assert!(
            last - first >= window - Duration::from_millis(1),
            "{:?}",
            last - first
        );
    }
}

/// What is left of the limit after each of these requests to one process. Nothing if Redis was too slow.
fn remaining(requests: u64, limit: u64) -> Option<(Vec<u64>, u64)> {
    let (runtime, redis) = (runtime(), Redis::start());
    let one = process(&redis, Algorithm::Fixed, MINUTE, LEASING);
    let (key, mut remaining) = (key("tenant"), Vec::new());
    for _ in 0..requests {
        let verdict = runtime.block_on(one.counters.admit(&key, limit)).ok()?;
        assert_eq!((verdict.limit, verdict.is_allowed), (limit, true));
        assert!((1..=60_000).contains(&verdict.reset_ms));
        remaining.push(verdict.remaining);
    }
    let leased = one.leased_units.with_label_values(&["taken"]).get();
    Some((remaining, leased))
}

#[test]
fn a_verdict_from_memory_says_what_is_left() {
    let (remaining, leased) = undisturbed(|| remaining(200, 1_000));
    assert!(leased > 0);
    assert_eq!(remaining, (800..1_000).rev().collect::<Vec<_>>());
}

/// Whether of two units that were admitted, the other process can use one that was refunded.
fn refunded(algorithm: Algorithm) -> Option<bool> {
    const LIMIT: u64 = 100;
    let (runtime, redis) = (runtime(), Redis::start());
    let [one, other] = [(); 2].map(|()| process(&redis, algorithm, MINUTE, LEASING));
    let key = key("tenant");
    let mut last = None;
    for _ in 0..LIMIT {
        last = Some(runtime.block_on(one.counters.admit(&key, LIMIT)).ok()?);
    }
    let token = last?.refund_token;
    if runtime
        .block_on(other.counters.admit(&key, LIMIT))
        .ok()?
        .is_allowed
    {
        return Some(false);
    }
    let is_refunded = runtime.block_on(one.counters.refund(&key, token));
    until("the unit is free for all", || {
        let verdict = runtime.block_on(other.counters.admit(&key, LIMIT));
        verdict.is_ok_and(|verdict| verdict.is_allowed)
    });
    let is_full = !runtime
        .block_on(one.counters.admit(&key, LIMIT))
        .ok()?
        .is_allowed;
    Some(is_refunded && is_full)
}

#[test]
fn a_refunded_unit_is_free_for_all_processes_once() {
    for algorithm in [Algorithm::Fixed, Algorithm::Sliding] {
        assert!(undisturbed(|| refunded(algorithm)), "{algorithm:?}");
    }
}

#[test]
fn what_a_process_does_not_need_goes_back() {
    const LIMIT: u64 = 400;
    let admitted = undisturbed(|| {
        let (runtime, redis) = (runtime(), Redis::start());
        let [one, other] = [(); 2].map(|()| process(&redis, Algorithm::Fixed, MINUTE, LEASING));
        let (key, mut admitted) = (key("tenant"), 0);
        let returned = || one.leased_units.with_label_values(&["returned"]).get();
        // A hot window gets leases, and then no more requests.
        for _ in 0..30 {
            let verdict = runtime.block_on(one.counters.admit(&key, LIMIT)).ok()?;
            admitted += u64::from(verdict.is_allowed);
        }
        let waited = until("units go back", || returned() > 0);
        assert!(waited < Duration::from_secs(1), "{waited:?}");
        for _ in 0..LIMIT {
            let verdict = runtime.block_on(other.counters.admit(&key, LIMIT)).ok()?;
            admitted += u64::from(verdict.is_allowed);
        }
        Some(admitted)
    });
    assert_eq!(admitted, LIMIT);
}

const QUOTA: usize = 600;
const CLIENTS: usize = 4;

/// How many requests this client is answered with 200, until there is no answer.
fn served_until_the_end(address: SocketAddr, request: &Ask, served: &AtomicUsize) {
    let mut client = Client::connect(address);
    loop {
        client.send(request);
        match client.try_head() {
            Ok(head) if head.status == 200 => _ = served.fetch_add(1, Ordering::Relaxed),
            Ok(head) => assert!(head.status == 429 || head.status == 503, "{}", head.status),
            Err(_) => return,
        }
        while client.chunk().is_some() {}
    }
}

/// How many requests a process serves before it is killed, and how many another one serves until its window is full.
/// Nothing if Redis was too slow.
fn killed_and_other() -> Option<(usize, usize)> {
    let redis = Redis::start();
    let more = format!(
        "[shared]\nredis = \"{}\"\non_outage = \"closed\"\n[limits]\nrequests_per_minute = {{ chat = {QUOTA} }}\nshared_exact = false\n[log]\naccess = false",
        redis.url()
    );
    let first = Program::start(&more);
    let second = first.another();
    let body = r#"{"model":"sandbox-chat","messages":[{"role":"user","content":"Hi"}]}"#;
    let request = Ask::post("/v1/chat/completions", body).key(first.key());
    let (address, killed) = (first.address, AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| served_until_the_end(address, &request, &killed));
        }
        until("the window is hot", || {
            leased(&first) > 0 && killed.load(Ordering::Relaxed) > QUOTA / 10
        });
        first.signal("-KILL");
    });
    let (mut other, mut last, mut is_answered) = (0, Instant::now(), true);
    let mut client = Client::connect(second.address);
    // What the other process holds goes back within 100 ms, and can be admitted then.
    while last.elapsed() < Duration::from_millis(500) {
        match client.ask(&request).status() {
            200 => (other, last) = (other + 1, Instant::now()),
            status => {
                is_answered &= status == 429;
                client = Client::connect(second.address);
            }
        }
    }
    let killed = killed.into_inner();
    assert!(killed + other <= QUOTA, "{killed} {other}");
    is_answered.then_some((killed, other))
}

/// A killed process may have spent what it held, so that is never given to another.
#[test]
fn the_lease_of_a_killed_process_lapses() {
    let (killed, other) = undisturbed(killed_and_other);
    // One lease is at most a quarter of what was left; and each client may have missed an answer.
    let all = killed + other;
    assert!(all >= QUOTA - QUOTA / 4 - CLIENTS, "{killed} {other}");
}

fn leased(program: &Program) -> u64 {
    let metrics = client::ask(program.admin, &Ask::get("/metrics"));
    let said = metrics.text().lines().find_map(|line| {
        line.strip_prefix("weirgate_limiter_leased_units_total{state=\"taken\"} ")
    });
    said.map_or(0, |said| said.parse().unwrap())
}
