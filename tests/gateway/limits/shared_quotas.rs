//! Quotas over several processes of the program itself, with one Redis and one store.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::support::ask::Ask;
use crate::support::client::{Answer, Client, ask};
use crate::support::process::Process;
use crate::support::redis::Redis;
use crate::support::until;
use crate::support::windows::{Mode, undisturbed};

const LIMIT: usize = 90;

struct Fleet {
    processes: [Process; 3],
    redis: Redis,
}

impl Fleet {
    fn start(on_outage: &str, mode: Mode) -> Fleet {
        let redis = Redis::start();
        let is_exact = mode == Mode::Exact;
        let more = format!(
            "[shared]\nredis = \"{}\"\non_outage = \"{on_outage}\"\n[limits]\nrequests_per_minute = {{ chat = {LIMIT} }}\nshared_exact = {is_exact}\n[log]\naccess = false",
            redis.url()
        );
        let first = Process::start(&more);
        let others = [first.another(), first.another()];
        let [second, third] = others;
        let processes = [first, second, third];
        Fleet { processes, redis }
    }

    fn request(&self) -> Ask {
        let body = r#"{"model":"sandbox-chat","messages":[{"role":"user","content":"Hi"}]}"#;
        Ask::post("/v1/chat/completions", body).key(self.processes[0].key())
    }

    /// How many of `each` requests every process serves, all at once, each from four clients, and how many are
    /// answered 503 in all; the others are answered 429.
    fn served(&self, each: usize) -> ([usize; 3], usize) {
        let (request, unavailable) = (self.request(), AtomicUsize::new(0));
        let served = [(); 3].map(|()| AtomicUsize::new(0));
        let ask = |process: &Process, served: &AtomicUsize| {
            let mut client = Client::connect(process.address);
            for _ in 0..each / 4 {
                match client.ask(&request).status() {
                    200 => {
                        served.fetch_add(1, Ordering::Relaxed);
                        continue;
                    }
                    503 => _ = unavailable.fetch_add(1, Ordering::Relaxed),
                    status => assert_eq!(status, 429),
                }
                client = Client::connect(process.address);
            }
        };
        std::thread::scope(|scope| {
            for (process, served) in self.processes.iter().zip(&served) {
                for _ in 0..4 {
                    scope.spawn(|| ask(process, served));
                }
            }
        });
        let served = served.map(AtomicUsize::into_inner);
        (served, unavailable.into_inner())
    }

    fn are_degraded(&self, expected: bool) -> bool {
        let line = format!("\nweirgate_limiter_degraded {}\n", u8::from(expected));
        let says = |process: &Process| metrics(process).text().contains(&line);
        self.processes.iter().all(says)
    }
}

fn metrics(process: &Process) -> Answer {
    ask(process.admin, &Ask::get("/metrics"))
}

/// Source: docs/hostile-input.md 49.
/// Contract: model-gateway 8 5
#[test]
fn of_ten_times_the_quota_three_processes_serve_exactly_the_quota() {
    for mode in Mode::ALL {
        let (fleet, served) = undisturbed(|| {
            let fleet = Fleet::start("closed", mode);
            let (mut served, unavailable) = fleet.served(LIMIT * 10 / 3);
            let first: usize = served.iter().sum();
            assert!((LIMIT / 2..=LIMIT).contains(&first), "{mode:?} {served:?}");
            if mode == Mode::Leasing {
                // What no process needed goes back soon after the burst.
                until("all is served", || {
                    let more = fleet.served(4).0;
                    served
                        .iter_mut()
                        .zip(more)
                        .for_each(|(sum, more)| *sum += more);
                    served.iter().sum::<usize>() >= LIMIT
                });
            }
            (unavailable == 0).then_some((fleet, served))
        });
        assert_eq!(served.iter().sum::<usize>(), LIMIT, "{mode:?} {served:?}");
        check_refusal(&fleet);
    }
}

fn check_refusal(fleet: &Fleet) {
    let refused = ask(fleet.processes[1].address, &fleet.request());
    assert_eq!(refused.status(), 429);
    let header = |name| refused.header(name).unwrap();
    assert_eq!(
        (header("ratelimit-limit"), header("ratelimit-remaining")),
        ("90", "0")
    );
    assert_eq!(header("retry-after"), header("ratelimit-reset"));
}

/// A process hears within a second that another one has come.
fn wait_until_known(fleet: &Fleet) {
    let mut connection = fleet.redis.connect();
    let mut beats = || -> Vec<(String, u64)> {
        let mut command = redis::cmd("ZRANGE");
        command
            .arg("weirgate:processes")
            .arg(0)
            .arg(-1)
            .arg("WITHSCORES");
        command.query(&mut connection).unwrap()
    };
    let first = beats();
    assert_eq!(first.len(), 3);
    let is_later = |now: &[(String, u64)]| {
        let before = |name: &str| first.iter().find(|(one, _)| one == name).unwrap().1;
        now.iter().all(|(name, at)| *at > before(name))
    };
    until("each has beaten again", || is_later(&beats()));
}

/// The number of requests that each process serves alone, and that all serve after the return.
fn outage(on_outage: &str) -> Option<([usize; 3], usize)> {
    let mut fleet = Fleet::start(on_outage, Mode::Exact);
    wait_until_known(&fleet);
    fleet.redis.kill();
    until("degraded", || fleet.are_degraded(true));
    let (alone, unavailable) = fleet.served(100);
    let expected = if on_outage == "closed" { 300 } else { 0 };
    assert_eq!(unavailable, expected, "{on_outage}");
    fleet.redis.start_again();
    until("not degraded", || fleet.are_degraded(false));
    let (together, unavailable) = fleet.served(100);
    (unavailable == 0).then(|| (alone, together.iter().sum()))
}

#[test]
fn an_outage_is_bounded_and_its_end_exact() {
    for (on_outage, expected) in [("local", 30), ("open", 90), ("closed", 0)] {
        let (alone, together) = undisturbed(|| outage(on_outage));
        assert_eq!(alone, [expected; 3], "{on_outage}");
        assert_eq!(together, LIMIT, "{on_outage}");
    }
}

/// No request fails, whatever happens to Redis.
#[test]
fn requests_are_served_or_refused_while_redis_dies_and_returns() {
    let mut fleet = Fleet::start("local", Mode::Exact);
    wait_until_known(&fleet);
    let is_over = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        let first = &fleet.processes[0];
        let request = fleet.request();
        let clients = [(); 4].map(|()| {
            let request = request.clone();
            let address = first.address;
            scope.spawn(move || {
                let mut served = 0;
                while !is_over.load(Ordering::Relaxed) {
                    let status = ask(address, &request).status();
                    assert!(status == 200 || status == 429, "{status}");
                    served += usize::from(status == 200);
                }
                served
            })
        });
        let admin = first.admin;
        let is_degraded = move || {
            let metrics = ask(admin, &Ask::get("/metrics"));
            metrics.text().contains("\nweirgate_limiter_degraded 1\n")
        };
        fleet.redis.kill();
        until("degraded", is_degraded);
        fleet.redis.start_again();
        until("not degraded", || !is_degraded());
        is_over.store(true, Ordering::Relaxed);
        let served: usize = clients.map(|client| client.join().unwrap()).iter().sum();
        assert!(served <= LIMIT * 2 + LIMIT / 3, "{served}");
    });
}
