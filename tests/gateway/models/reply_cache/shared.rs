//! Cached replies in Redis: processes share them, and need neither it nor what is in it.

use std::time::{Duration, Instant};

use crate::support::ask::Ask;
use crate::support::client::{Answer, ask};
use crate::support::process::{Process, weirgate};
use crate::support::redis::Redis;
use crate::support::until;

/// Two processes of one store, whose project `default` caches replies for an hour.
fn two(redis: &Redis) -> [Process; 2] {
    let shared = format!("[shared]\nredis = \"{}\"", redis.url());
    let one = Process::start(&shared);
    let words = [
        "project",
        "update",
        "--org",
        "default",
        "default",
        "--cache-ttl",
        "3600",
    ];
    let done = weirgate(one.folder.path(), &words);
    assert!(done.status.success(), "{done:?}");
    let other = one.another();
    // The running one hears of the change within a second.
    until("a cache", || {
        chat(&one, one.key(), "warm");
        is_hit(&chat(&one, one.key(), "warm"))
    });
    [one, other]
}

fn chat(process: &Process, key: &str, content: &str) -> Answer {
    let body = format!(
        r#"{{"model":"sandbox-chat","messages":[{{"role":"user","content":"{content}"}}]}}"#
    );
    ask(
        process.address,
        &Ask::post("/v1/chat/completions", body).key(key),
    )
}

fn is_hit(answer: &Answer) -> bool {
    assert_eq!(answer.status(), 200, "{}", answer.text());
    answer.header("x-weirgate-cache") == Some("HIT")
}

fn metrics(process: &Process) -> String {
    ask(process.admin, &Ask::get("/metrics")).text().to_owned()
}

/// The keys of replies, once there are this many.
fn stored(redis: &Redis, count: usize) -> Vec<String> {
    let mut connection = redis.connect();
    let mut names = Vec::new();
    until("stored replies", || {
        let mut keys = redis::cmd("KEYS");
        names = keys.arg("weirgate:reply:*").query(&mut connection).unwrap();
        names.len() == count
    });
    names
}

#[test]
fn what_one_process_fetched_the_other_replays() {
    let redis = Redis::start();
    let [one, other] = two(&redis);
    let key = one.key();
    stored(&redis, 1);
    // On a busy machine Redis may take longer than a leader waits.
    let found = (0..20).find_map(|at| {
        let content = format!("Hi {at}");
        let answer = chat(&one, key, &content);
        assert!(!is_hit(&answer));
        stored(&redis, at + 2);
        let replay = chat(&other, key, &content);
        is_hit(&replay).then_some((content, answer, replay))
    });
    let (content, answer, replay) = found.expect("a reply of the other process");
    assert_eq!(answer.json()["choices"], replay.json()["choices"]);
    assert_eq!(replay.json()["metadata"]["cached"], true);
    let mut names = redis::cmd("KEYS");
    let names: Vec<String> = names
        .arg("weirgate:reply:*")
        .query(&mut redis.connect())
        .unwrap();
    let mut connection = redis.connect();
    for name in names {
        let ttl: i64 = redis::cmd("TTL").arg(&name).query(&mut connection).unwrap();
        assert!((3500..=3600).contains(&ttl), "{ttl}");
        // Nobody reads an answer there.
        let value: Vec<u8> = redis::cmd("GET").arg(&name).query(&mut connection).unwrap();
        let text = String::from_utf8_lossy(&value).into_owned();
        assert!(
            !text.contains("sandbox") && !text.contains("choices"),
            "{text}"
        );
    }
    // What it found it keeps, so the next is a hit without Redis.
    drop(redis);
    assert!(is_hit(&chat(&other, key, &content)));
}

#[test]
fn garbage_and_moved_replies_in_redis_are_no_replies() {
    let redis = Redis::start();
    let [one, other] = two(&redis);
    let key = one.key();
    let warm = stored(&redis, 1).pop().unwrap();
    let mut connection = redis.connect();
    let good: Vec<u8> = redis::cmd("GET").arg(&warm).query(&mut connection).unwrap();
    let mut flipped = good.clone();
    *flipped.last_mut().unwrap() ^= 1;
    let values: [(&str, Vec<u8>); 5] = [
        ("text", b"garbage".to_vec()),
        (
            "an answer",
            br#"{"choices":[{"message":{"content":"poison"}}]}"#.to_vec(),
        ),
        ("another key's reply", good),
        ("a flipped bit", flipped),
        ("two megabytes", vec![7; 2 << 20]),
    ];
    for (at, (name, value)) in values.into_iter().enumerate() {
        let content = format!("poison {at}");
        let before = stored(&redis, at + 1);
        assert!(!is_hit(&chat(&one, key, &content)));
        let after = stored(&redis, at + 2);
        let fresh = after
            .into_iter()
            .find(|name| !before.contains(name))
            .unwrap();
        let mut set = redis::cmd("SET");
        set.arg(&fresh).arg(&value).exec(&mut connection).unwrap();
        let answer = chat(&other, key, &content);
        assert!(!is_hit(&answer), "{name}");
        assert!(!answer.text().contains("\"poison\""));
    }
    let metrics = metrics(&other);
    let mut lines = metrics.lines();
    let count = lines.find_map(|line| line.strip_prefix("weirgate_cache_unusable_total "));
    // One that Redis did not send in time is not counted.
    assert!(
        (3..=5).contains(&count.unwrap().parse().unwrap()),
        "{count:?}"
    );
    // A value of another type is none either.
    let name = stored(&redis, 6)
        .into_iter()
        .find(|name| *name != warm)
        .unwrap();
    redis::cmd("DEL").arg(&warm).exec(&mut connection).unwrap();
    redis::cmd("LPUSH")
        .arg(&warm)
        .arg(&name)
        .exec(&mut connection)
        .unwrap();
    assert!(!is_hit(&chat(&other, key, "warm")));
    assert!(is_hit(&chat(&other, key, "warm")));
}

/// Returns how long each of some new requests takes, the shortest first.
fn times(process: &Process, key: &str, what: &str) -> Vec<Duration> {
    let mut times: Vec<Duration> = (0..15)
        .map(|at| {
            let started = Instant::now();
            assert!(!is_hit(&chat(process, key, &format!("{what} {at}"))));
            started.elapsed()
        })
        .collect();
    times.sort_unstable();
    times
}

#[test]
fn without_redis_nothing_fails_and_nothing_is_slower_than_fifty_milliseconds() {
    let mut redis = Redis::start();
    let [one, other] = two(&redis);
    let key = one.key();
    let usual = times(&one, key, "usual");
    // It hangs: the first requests wait for it in vain.
    redis.pause();
    let hanging = times(&one, key, "hanging");
    let most = usual[7] + Duration::from_millis(50);
    assert!(hanging[7] <= most, "{hanging:?} {usual:?}");
    redis.resume();
    redis.kill();
    let killed = times(&one, key, "killed");
    assert!(killed[7] <= most, "{killed:?} {usual:?}");
    for process in [&one, &other] {
        assert!(!is_hit(&chat(process, key, "alone")));
        assert!(is_hit(&chat(process, key, "alone")));
    }
    redis.start_again();
    until("shared again", || {
        metrics(&one).contains("\nweirgate_limiter_degraded 0\n")
            && metrics(&other).contains("\nweirgate_limiter_degraded 0\n")
    });
    let mut round = 0;
    until("a shared reply", || {
        round += 1;
        let content = format!("again {round}");
        assert!(!is_hit(&chat(&one, key, &content)));
        stored(&redis, round);
        is_hit(&chat(&other, key, &content))
    });
}
