//! Windows that several processes share: exact while Redis answers, bounded while it does not.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use filters::limits::Algorithm;
use tokio::runtime::Runtime;
use weirgate::config::OnOutage;

use crate::support::redis::Redis;
use crate::support::until;
use crate::support::windows::{Mode, Process, ask, key, process, runtime, three, undisturbed};

#[test]
fn of_ten_times_the_limit_three_processes_admit_exactly_the_limit() {
    let runtime = runtime();
    for algorithm in [Algorithm::Fixed, Algorithm::Sliding] {
        let admitted = undisturbed(|| {
            let (redis, minute) = (Redis::start(), Duration::from_secs(60));
            let processes = three(&redis, algorithm, minute, (OnOutage::Closed, Mode::Exact));
            let (admitted, unanswered) = ask(&runtime, &processes, 500, 4_800);
            (unanswered == 0).then_some(admitted)
        });
        let sum: u64 = admitted.iter().sum();
        assert_eq!(sum, 500, "{algorithm:?} {admitted:?}");
    }
}

/// Requests that are refused must not extend the refusal.
#[test]
fn a_full_window_does_not_last_until_a_clock_that_was_set_back_has_caught_up() {
    const AHEAD_MS: i64 = 3_600_000;
    let (runtime, redis) = (runtime(), Redis::start());
    let (minute, key) = (Duration::from_secs(60), key("tenant"));
    let process = process(
        &redis,
        Algorithm::Fixed,
        minute,
        (OnOutage::Closed, Mode::Exact),
    );
    let admit = || {
        let mut verdict = None;
        until("an answer", || {
            verdict = runtime.block_on(process.counters.admit(&key, 1)).ok();
            verdict.is_some()
        });
        verdict.unwrap().is_allowed
    };
    assert!(admit());
    let mut connection = redis.connect();
    let windows: Vec<String> = redis::cmd("KEYS")
        .arg("weirgate:fixed:*")
        .query(&mut connection)
        .unwrap();
    let [window] = &windows[..] else {
        panic!("{windows:?}")
    };
    let mut start = |by_ms: i64| -> i64 {
        let mut command = redis::cmd("HINCRBY");
        command
            .arg(window)
            .arg("start")
            .arg(by_ms)
            .query(&mut connection)
            .unwrap()
    };
    let ahead = start(AHEAD_MS);
    redis::cmd("PEXPIRE")
        .arg(window)
        .arg(AHEAD_MS)
        .exec(&mut redis.connect())
        .unwrap();
    assert!(!admit());
    assert!(start(0) < ahead, "the window still starts in an hour");
    let left: i64 = redis::cmd("PTTL")
        .arg(window)
        .query(&mut redis.connect())
        .unwrap();
    assert!(left <= 61_000, "{left}");
}

/// The moments that three processes are given under steady load for as long as 100 windows take, each with whether the
/// request was admitted.
fn tickets(algorithm: Algorithm, window: Duration, limit: u64) -> Option<Vec<(u64, bool)>> {
    let (redis, runtime) = (Redis::start(), runtime());
    let processes = three(&redis, algorithm, window, (OnOutage::Closed, Mode::Exact));
    let (tickets, key) = (Mutex::new(Vec::new()), key("tenant"));
    let until = Instant::now() + window * 100;
    let work = processes.iter().flat_map(|process| [process; 8]);
    let work = work.map(async |process| {
        while Instant::now() < until {
            let Ok(verdict) = process.counters.admit(&key, limit).await else {
                return false;
            };
            let at_ms = verdict.refund_token.shared_ms().unwrap();
            tickets.lock().unwrap().push((at_ms, verdict.is_allowed));
            tokio::task::yield_now().await;
        }
        true
    });
    let answered = runtime.block_on(futures::future::join_all(work));
    let tickets = tickets.into_inner().unwrap();
    answered.into_iter().all(|it| it).then_some(tickets)
}

/// Source: docs/hostile-input.md 44, 49.
#[test]
fn every_fixed_window_admits_exactly_its_limit() {
    const LIMIT: u64 = 20;
    let mut windows = BTreeMap::new();
    let window = Duration::from_millis(40);
    for (start_ms, is_admitted) in undisturbed(|| tickets(Algorithm::Fixed, window, LIMIT)) {
        let [admitted, refused] = windows.entry(start_ms).or_insert([0_u64; 2]);
        *(if is_admitted { admitted } else { refused }) += 1;
    }
    // On a busy machine a window may get fewer requests than its limit; then it refuses none.
    let is_exact =
        |[admitted, refused]: &[u64; 2]| *admitted == LIMIT || (*admitted < LIMIT && *refused == 0);
    assert!(windows.values().all(is_exact), "{windows:?}");
    let full = windows.values().filter(|[admitted, _]| *admitted == LIMIT);
    assert!(full.count() >= 50, "{windows:?}");
    let starts: Vec<u64> = windows.into_keys().collect();
    assert!(starts.windows(2).all(|pair| pair[1] - pair[0] >= 40));
}

#[test]
fn a_sliding_window_admits_its_limit_in_any_span_of_its_length() {
    const LIMIT: usize = 20;
    let window = Duration::from_millis(40);
    let mut all = undisturbed(|| tickets(Algorithm::Sliding, window, LIMIT as u64));
    all.retain(|(_, is_admitted)| *is_admitted);
    let mut at_ms: Vec<u64> = all.into_iter().map(|(at_ms, _)| at_ms).collect();
    at_ms.sort_unstable();
    assert!(at_ms.len() > LIMIT * 50, "{}", at_ms.len());
    let spans = at_ms.windows(LIMIT + 1);
    let shortest = spans.map(|span| span[LIMIT] - span[0]).min().unwrap();
    assert!(shortest >= 40, "{shortest}");
}

/// Nothing if Redis did not answer in time, or the window ended too early.
async fn one_window([one, other]: &[Process; 2], window: Duration) -> Option<()> {
    let (key, begun) = (key("tenant"), Instant::now());
    let first = one.counters.admit(&key, 2).await.ok()?;
    let second = other.counters.admit(&key, 2).await.ok()?;
    let third = one.counters.admit(&key, 2).await.ok()?;
    let is_refunded = other.counters.refund(&key, second.refund_token).await;
    let again = one.counters.admit(&key, 2).await.ok()?;
    (is_refunded && begun.elapsed() < window).then_some(())?;
    assert_eq!((first.remaining, first.reset_ms), (1, 300));
    assert_eq!((second.remaining, third.is_allowed), (0, false));
    assert!(third.reset_ms <= 300 && third.limit == 2 && again.is_allowed);
    tokio::time::sleep(window).await;
    assert!(!one.counters.refund(&key, again.refund_token).await);
    let next = other.counters.admit(&key, 2).await.ok()?;
    assert_eq!((next.is_allowed, next.remaining), (true, 1));
    Some(())
}

#[test]
fn a_window_begins_with_its_first_request_and_refunds_stay_in_it() {
    let (runtime, window) = (runtime(), Duration::from_millis(300));
    for algorithm in [Algorithm::Fixed, Algorithm::Sliding] {
        undisturbed(|| {
            let redis = Redis::start();
            let two = [(); 2]
                .map(|()| process(&redis, algorithm, window, (OnOutage::Closed, Mode::Exact)));
            runtime.block_on(one_window(&two, window))
        });
    }
}

fn are_gone(processes: &[Process]) -> [bool; 2] {
    let mut gone = processes.iter().map(|it| it.redis.is_unavailable());
    [gone.clone().all(|it| it), gone.any(|it| it)]
}

/// The numbers that three processes admit alone, and together after the return.
fn outage(runtime: &Runtime, sharing: (OnOutage, Mode), limit: u64) -> Option<(Vec<u64>, u64)> {
    let mut redis = Redis::start();
    let minute = Duration::from_secs(60);
    let processes = three(&redis, Algorithm::Fixed, minute, sharing);
    redis.kill();
    until("all miss Redis", || are_gone(&processes)[0]);
    let (alone, _) = ask(runtime, &processes, limit, 4_800);
    redis.start_again();
    until("all found Redis", || !are_gone(&processes)[1]);
    let (together, unanswered) = ask(runtime, &processes, limit, 4_800);
    (unanswered == 0).then(|| (alone, together.iter().sum()))
}

#[test]
fn while_redis_is_unavailable_each_process_follows_its_setting() {
    let runtime = runtime();
    for (sharing, expected) in [
        ((OnOutage::Local, Mode::Exact), [34, 34, 34]),
        ((OnOutage::Local, Mode::Leasing), [34, 34, 34]),
        ((OnOutage::Open, Mode::Exact), [100, 100, 100]),
        ((OnOutage::Closed, Mode::Exact), [0, 0, 0]),
    ] {
        let (alone, together) = undisturbed(|| outage(&runtime, sharing, 100));
        assert_eq!(alone, expected, "{sharing:?}");
        assert_eq!(together, 100, "{sharing:?}: nothing counts twice");
    }
}

/// The maximum time that one of 50 concurrent requests waits for a Redis that has just stopped replying, and the time of
/// the next request.
fn waits(runtime: &Runtime) -> [Duration; 2] {
    let (redis, minute) = (Redis::start(), Duration::from_secs(60));
    let [one, ..] = three(
        &redis,
        Algorithm::Fixed,
        minute,
        (OnOutage::Local, Mode::Exact),
    );
    redis.pause();
    let key = key("tenant");
    let waited = runtime.block_on(async {
        let asked = (0..50).map(async |_| {
            let started = Instant::now();
            one.counters.admit(&key, 1_000).await.unwrap();
            started.elapsed()
        });
        futures::future::join_all(asked).await
    });
    let started = Instant::now();
    runtime.block_on(one.counters.admit(&key, 1_000)).unwrap();
    let next = started.elapsed();
    redis.resume();
    [waited.into_iter().max().unwrap(), next]
}

#[test]
fn no_request_waits_longer_than_its_patience() {
    let (runtime, mut seen) = (runtime(), Vec::new());
    // A busy machine delays some of the five, but not all. The next request does not call an unavailable Redis.
    let is_kept = (0..5).any(|_| {
        let [longest, next] = waits(&runtime);
        seen.push([longest, next]);
        longest < Duration::from_millis(250) && next < Duration::from_millis(40)
    });
    assert!(is_kept, "{seen:?}");
}

/// The numbers that three processes admit before Redis stops replying and alone, that Redis has counted when it replies
/// again, and that they admit then.
fn silence(runtime: &Runtime, limit: u64) -> Option<[u64; 4]> {
    let redis = Redis::start();
    let minute = Duration::from_secs(60);
    let processes = three(
        &redis,
        Algorithm::Fixed,
        minute,
        (OnOutage::Local, Mode::Exact),
    );
    let (before, unanswered) = ask(runtime, &processes, limit, 48);
    redis.pause();
    let (alone, _) = ask(runtime, &processes, limit, 480);
    redis.resume();
    until("all found Redis", || !are_gone(&processes)[1]);
    let mut connection = redis.connect();
    let mut keys = redis::cmd("KEYS");
    let keys: Vec<String> = keys.arg("weirgate:fixed:*").query(&mut connection).unwrap();
    let mut count = redis::cmd("HGET");
    count.arg(&keys[0]).arg("count");
    let mut count = || -> u64 { count.query(&mut connection).unwrap() };
    until("late admissions are taken back", || count() <= 48);
    let counted = count();
    let (after, more) = ask(runtime, &processes, limit, 480);
    let [before, alone, after] = [before, alone, after].map(|it| it.iter().sum());
    (unanswered + more == 0).then_some([before, alone, counted, after])
}

/// Source: docs/hostile-input.md 50.
#[test]
fn what_redis_counted_too_late_is_taken_back() {
    let runtime = runtime();
    let seen = undisturbed(|| silence(&runtime, 100));
    assert_eq!(seen, [48, 3 * 34, 48, 100 - 48]);
}

/// The numbers that were admitted in each window of Redis and alone in all, and the duration in windows: Redis is killed
/// and restarted three times, in the middle of windows, under load from three processes.
fn under_load(runtime: &Runtime, window: Duration, limit: u64, mode: Mode) -> (Vec<u64>, u64, u64) {
    let mut redis = Redis::start();
    let processes = three(&redis, Algorithm::Fixed, window, (OnOutage::Local, mode));
    let (key, is_over, alone) = (key("tenant"), AtomicBool::new(false), AtomicU64::new(0));
    let windows = Mutex::new(BTreeMap::new());
    let begun = Instant::now();
    let ask = async |process: &Process| {
        while !is_over.load(Ordering::Relaxed) {
            let verdict = process.counters.admit(&key, limit).await.unwrap();
            let admitted = u64::from(verdict.is_allowed);
            match verdict.refund_token.shared_ms() {
                Some(start_ms) => {
                    *windows.lock().unwrap().entry(start_ms).or_insert(0) += admitted;
                }
                None => _ = alone.fetch_add(admitted, Ordering::Relaxed),
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let pass_windows = || {
        let seen = windows.lock().unwrap().len();
        let more = || windows.lock().unwrap().len() > seen + 3;
        until("windows pass", more);
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let work = processes.iter().flat_map(|process| [process; 8]).map(ask);
            runtime.block_on(futures::future::join_all(work));
        });
        for _ in 0..3 {
            pass_windows();
            redis.kill();
            until("all miss Redis", || are_gone(&processes)[0]);
            redis.start_again();
            until("all found Redis", || !are_gone(&processes)[1]);
        }
        pass_windows();
        is_over.store(true, Ordering::Relaxed);
    });
    let room = begun.elapsed().as_millis() / window.as_millis() + 1;
    let windows = windows.into_inner().unwrap().into_values().collect();
    (windows, alone.into_inner(), room as u64)
}

#[test]
fn under_load_an_outage_is_bounded_and_the_return_exact() {
    const LIMIT: u64 = 50;
    let (runtime, window) = (runtime(), Duration::from_millis(200));
    for mode in Mode::ALL {
        let (windows, alone, room) = undisturbed(|| {
            let seen = under_load(&runtime, window, LIMIT, mode);
            assert!(
                seen.0.iter().all(|count| *count <= LIMIT),
                "{mode:?} {seen:?}"
            );
            // A window that a kill cut short, and the last one, may have admitted less.
            let short = seen.0.iter().filter(|count| **count < LIMIT).count();
            (short <= 4).then_some(seen)
        });
        assert!(windows.len() >= 12, "{mode:?} {windows:?}");
        // Alone a process admits 17 in a window.
        assert!(alone <= room * 3 * 17, "{mode:?} {alone} in {room}");
    }
}
