//! Limits of the graph service over several processes with one Redis.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::{Answer, Client, ask};
use crate::support::redis::Redis;
use crate::support::script::Reply;
use crate::support::upstream::Upstream;
use crate::support::windows::{Mode, undisturbed};

const LIMIT: usize = 30;

fn gateway(service: &Upstream, redis: &Redis, algorithm: &str, mode: Mode) -> Gateway {
    let is_exact = mode == Mode::Exact;
    let toml = format!(
        "[limits]\nshared_exact = {is_exact}\n[shared]\nredis = \"{}\"\non_outage = \"closed\"\n[graph]\nupstream = \"{}\"\nalgorithm = \"{algorithm}\"\nwindow_s = 60\n\
         [[graph.tenants]]\nid = \"t1\"\nsingle_keys = [\"k1\"]\nlimits = {{ \"POST /content/v2\" = {LIMIT} }}\n",
        redis.url(),
        service.url()
    );
    Gateway::start(&toml, "")
}

fn query() -> Ask {
    Ask::post("/content/v2?auth=k1", r#"{"query":"{ a }"}"#)
}

fn answer(status: u16, headers: &[(&str, &str)]) -> Reply {
    let mut all = vec![("Content-Type", "application/json")];
    all.extend_from_slice(headers);
    Reply::whole(status, &all, r#"{"data":{"a":1}}"#)
}

/// These statuses, if Redis answered every question: an unanswered one is a 503.
fn answered(statuses: Vec<u16>) -> Option<Vec<u16>> {
    (!statuses.contains(&503)).then_some(statuses)
}

/// How many of ten times the limit the service saw, and how many were refused.
fn burst(algorithm: &str, mode: Mode) -> Option<(usize, usize)> {
    let (redis, service) = (Redis::start(), Upstream::always(answer(200, &[])));
    let gateways = [(); 3].map(|()| gateway(&service, &redis, algorithm, mode));
    let (refused, unanswered) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for gateway in gateways.iter().flat_map(|gateway| [gateway; 4]) {
            scope.spawn(|| {
                let mut client = Client::connect(gateway.address());
                for _ in 0..LIMIT * 10 / 12 {
                    let count = match client.ask(&query()).status() {
                        200 => continue,
                        429 => &refused,
                        503 => &unanswered,
                        status => panic!("{status}"),
                    };
                    count.fetch_add(1, Ordering::Relaxed);
                    client = Client::connect(gateway.address());
                }
            });
        }
    });
    let seen = (service.requests().len(), refused.into_inner());
    (unanswered.into_inner() == 0).then_some(seen)
}

/// Source: docs/hostile-input.md 49.
#[test]
fn of_ten_times_the_limit_the_service_sees_exactly_the_limit() {
    for algorithm in ["fixed", "sliding"] {
        let (passed, refused) = undisturbed(|| burst(algorithm, Mode::Exact));
        assert_eq!((passed, refused), (LIMIT, LIMIT * 9), "{algorithm}");
        let (passed, _) = undisturbed(|| burst(algorithm, Mode::Leasing));
        assert!(
            (LIMIT / 2..=LIMIT).contains(&passed),
            "{algorithm} {passed}"
        );
    }
}

/// A hit of the service's own cache is refunded in the window of all processes. Source: docs/graph-limits.md 8.1.3.
/// Contract: graph-limits 8.1 3
#[test]
fn a_hit_of_the_services_cache_counts_nowhere() {
    let both = ["fixed", "sliding"].map(|algorithm| Mode::ALL.map(|mode| (algorithm, mode)));
    for (algorithm, mode) in both.into_iter().flatten() {
        let statuses = undisturbed(|| {
            let redis = Redis::start();
            let service = Upstream::always(answer(200, &[("X-Cache", "HIT")]));
            let gateways = [(); 2].map(|()| gateway(&service, &redis, algorithm, mode));
            let turns = gateways.iter().cycle().take(LIMIT * 2);
            let statuses = turns.map(|it| ask(it.address(), &query()).status());
            answered(statuses.collect())
        });
        assert_eq!(statuses, [200; LIMIT * 2], "{algorithm} {mode:?}");
    }
}

#[test]
fn a_refusal_tells_the_rest_of_the_window_of_all() {
    let (statuses, refused) = undisturbed(|| {
        let (redis, service) = (Redis::start(), Upstream::always(answer(200, &[])));
        let [one, other] = [(); 2].map(|()| gateway(&service, &redis, "fixed", Mode::Exact));
        let statuses = (0..LIMIT).map(|_| ask(one.address(), &query()).status());
        let statuses = answered(statuses.collect())?;
        let refused = ask(other.address(), &query());
        (refused.status() != 503).then_some((statuses, refused))
    });
    assert_eq!(statuses, [200; LIMIT]);
    assert_eq!(refused.status(), 429);
    let header = |name| Answer::header(&refused, name).unwrap();
    assert_eq!(
        (header("x-ratelimit-limit"), header("x-ratelimit-window")),
        ("30", "60")
    );
    let after: u64 = header("retry-after").parse().unwrap();
    assert!((1..=60).contains(&after), "{after}");
}

/// What a tenant has left, as a process tells; `None`: Redis did not answer.
fn told(gateway: &Gateway) -> Option<u64> {
    let request = Ask::get("/v1/graph/limits?auth=k1&operation=POST%20/content/v2");
    let answer = ask(gateway.address(), &request);
    answer.json()["data"][0]["remaining"].as_u64()
}

#[test]
fn what_is_left_is_told_over_all_processes_and_asking_counts_nowhere() {
    for algorithm in ["fixed", "sliding"] {
        let left = undisturbed(|| {
            let (redis, service) = (Redis::start(), Upstream::always(answer(200, &[])));
            let gateways = [(); 2].map(|()| gateway(&service, &redis, algorithm, Mode::Exact));
            let mut left = vec![told(&gateways[0])?];
            for gateway in gateways.iter().chain([&gateways[0]]) {
                answered(vec![ask(gateway.address(), &query()).status()])?;
            }
            for gateway in gateways.iter().cycle().take(4) {
                left.push(told(gateway)?);
            }
            Some(left)
        });
        let limit = LIMIT as u64;
        let rest = limit - 3;
        assert_eq!(left, [limit, rest, rest, rest, rest], "{algorithm}");
    }
}
