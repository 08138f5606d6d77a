//! Streams and calls, and reloads and upgrades in between: no byte is lost, no connection is refused, no call is charged
//! twice.
//!
//! `WEIRGATE_PROOF=1000,600,5,100,5` sets another size: streams at once, events of each (one in 0.1 s), clients that ask
//! steadily, reloads, upgrades. Streams follow each other until the last upgrade; each upgrade waits until the process before has
//! ended its streams. The times of the calls are printed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::upgrade::{Installed, own_provider};
use crate::models::fronts::chat_completions::chunk;
use crate::support::ask::Ask;
use crate::support::client::Client;
use crate::support::script::Reply;
use crate::support::until;
use crate::support::upstream::Upstream;

/// How much runs at once.
struct Size {
    streams: usize,
    events: usize,
    callers: usize,
    reloads: usize,
    upgrades: usize,
}

impl Size {
    fn of_environment() -> Size {
        let given = std::env::var("WEIRGATE_PROOF").unwrap_or_default();
        let numbers: Vec<usize> = given.split(',').filter_map(|it| it.parse().ok()).collect();
        let [streams, events, callers, reloads, upgrades] = numbers[..] else {
            return Size {
                streams: 30,
                events: 60,
                callers: 3,
                reloads: 10,
                upgrades: 2,
            };
        };
        Size {
            streams,
            events,
            callers,
            reloads,
            upgrades,
        }
    }
}

/// A provider whose streams count to a number.
fn counting(events: usize) -> Upstream {
    let mut reply = Reply::stream();
    for number in 0..events {
        let pause = Duration::from_millis(100);
        let piece = chunk(json!({"content": format!("{number} ")}), None);
        reply = reply.event(&piece).pause(pause);
    }
    let reply = reply.event(&chunk(json!({}), Some("stop")));
    Upstream::always(reply.event("[DONE]").end())
}

/// Reads a stream whole, which has to count without a gap.
fn read_stream(installed: &Installed, events: usize) {
    let body = r#"{"model":"own/any","stream":true,"messages":[{"role":"user","content":"Hi"}]}"#;
    let mut client = Client::connect(installed.process.address);
    let answer = client.ask(&Ask::post("/v1/chat/completions", body).key(installed.process.key()));
    let stream = answer.events();
    assert!(stream.is_done(), "{}", answer.text());
    let expected: String = (0..events).map(|number| format!("{number} ")).collect();
    assert_eq!(stream.content(), expected);
}

/// Reads one stream after another until the proof is over. Returns how many.
fn read_streams(installed: &Installed, events: usize, is_over: &AtomicBool) -> usize {
    let mut count = 0;
    while count == 0 || !is_over.load(Ordering::Relaxed) {
        read_stream(installed, events);
        count += 1;
    }
    count
}

/// Asks steadily on connections that stay open. Returns the time of each call.
fn time_calls(installed: &Installed, stop: &AtomicBool) -> Vec<Duration> {
    let (mut times, mut client) = (Vec::new(), None);
    let request = installed.chat();
    while !stop.load(Ordering::Relaxed) {
        let began = Instant::now();
        let mut open = client
            .take()
            .unwrap_or_else(|| Client::connect(installed.process.address));
        let answer = open.ask(&request);
        assert_eq!(answer.status(), 200, "{}", answer.text());
        times.push(began.elapsed());
        if answer.header("connection") != Some("close") {
            client = Some(open);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    times
}

/// Puts another configuration in force.
fn reload(installed: &Installed, number: usize) {
    let path = installed.process.folder.path().join("weirgate.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let kept = text.split("# reloaded").next().unwrap();
    let minutes = 60 + number;
    let text = format!(
        "{kept}# reloaded\n[routing]\nsticky_ttl_s = {}\n",
        minutes * 60
    );
    std::fs::write(path, text).unwrap();
    let output = installed.command(&["reload"]);
    assert!(output.status.success(), "{output:?}");
}

/// Puts the same program in place of the running one. The process before that may still end its streams, which last as long as these
/// many events; until then an upgrade is refused.
fn upgrade(installed: &Installed, events: usize) {
    let give_up = Instant::now() + Duration::from_secs(60 + events as u64 / 5);
    while !installed.command(&["upgrade"]).status.success() {
        assert!(Instant::now() < give_up, "no upgrade in time");
        std::thread::sleep(Duration::from_millis(200));
    }
}

fn percentile(times: &mut [Duration], share: f64) -> Duration {
    times.sort_unstable();
    let at = (times.len() as f64 * share) as usize;
    times.get(at.min(times.len() - 1)).copied().unwrap()
}

/// Source: docs/promises.md, "process upgraded or stopped", "configuration reloaded, however often".
#[test]
fn streams_and_calls_run_through_reloads_and_upgrades() {
    let size = Size::of_environment();
    let upstream = counting(size.events);
    let more = "[limits]\nin_flight = 4000\n";
    let installed = Installed::start(&own_provider(&upstream, more));
    let (stop, quiet) = (AtomicBool::new(false), AtomicBool::new(false));
    let is_over = AtomicBool::new(false);
    let (installed_ref, size_ref, is_over_ref) = (&installed, &size, &is_over);
    let (mut before, mut during, streams) = std::thread::scope(|scope| {
        let times = scope.spawn(|| time_calls(installed_ref, &quiet));
        std::thread::sleep(Duration::from_secs(2));
        quiet.store(true, Ordering::Relaxed);
        let before = times.join().unwrap();
        let small = || std::thread::Builder::new().stack_size(512 << 10);
        let streams: Vec<_> = (0..size.streams)
            .map(|_| {
                let read = || read_streams(installed_ref, size_ref.events, is_over_ref);
                small().spawn_scoped(scope, read).unwrap()
            })
            .collect();
        let callers: Vec<_> = (0..size.callers)
            .map(|_| scope.spawn(|| time_calls(installed_ref, &stop)))
            .collect();
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for number in 0..size_ref.reloads.max(size_ref.upgrades) {
                if number < size_ref.reloads {
                    reload(installed_ref, number);
                }
                if number < size_ref.upgrades {
                    upgrade(installed_ref, size_ref.events);
                }
            }
        }));
        is_over.store(true, Ordering::Relaxed);
        let streams = streams
            .into_iter()
            .map(|it| it.join().unwrap())
            .sum::<usize>();
        stop.store(true, Ordering::Relaxed);
        let during: Vec<_> = callers.into_iter().map(|it| it.join().unwrap()).collect();
        outcome.unwrap();
        (before, during.concat(), streams)
    });
    let calls = before.len() + during.len() + streams;
    let p99 = [percentile(&mut before, 0.99), percentile(&mut during, 0.99)];
    println!("{calls} calls, {streams} of them streams; p99 before and during: {p99:?}");
    let requests = || {
        let output = installed.command(&["usage", "--org", "default", "--format", "json"]);
        let rows: Value = serde_json::from_slice(&output.stdout).unwrap();
        let rows = rows.as_array().unwrap().iter();
        rows.filter_map(|row| row["requests"].as_u64()).sum::<u64>()
    };
    until("each call is in the ledger", || requests() >= calls as u64);
    assert_eq!(requests(), calls as u64, "each call is charged once");
}
