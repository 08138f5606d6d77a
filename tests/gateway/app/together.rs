//! Streams and calls, and reloads and upgrades in between: no byte is lost, no connection is refused, no call is charged
//! twice.
//!
//! `WEIRGATE_PROOF=1000,600,10,100,5` sets another size: streams at once, events of each (one in 0.1 s), clients that ask
//! steadily (fifty times a second each), reloads, upgrades. Streams follow each other until the last upgrade; each upgrade waits
//! until the process before has ended its streams. The times of the calls are printed: first beside the streams alone, then beside
//! the reloads and upgrades too. With a size of one's own the p99 may only be twice as long then.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::upgrade::{Installed, own_provider};
use crate::models::fronts::chat_completions::chunk;
use crate::support::ask::Ask;
use crate::support::client::Client;
use crate::support::script::Reply;
use crate::support::until;
use crate::support::upstream::Upstream;

/// The time between two events of a stream.
const EVENT_INTERVAL: Duration = Duration::from_millis(100);
/// The time between two calls of a client.
const CALL_INTERVAL: Duration = Duration::from_millis(20);
/// The number of the slowest calls that are printed.
const SHOWN_CALLS: usize = 20;

/// How much runs at once.
#[derive(Clone, Copy)]
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
        let pause = EVENT_INTERVAL;
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

/// What runs beside the streams and the calls.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    /// Streams begin, and nothing is timed.
    WarmUp,
    /// Nothing else.
    Steady,
    Reload,
    Upgrade,
    /// What a reload or an upgrade has left: for an upgrade a process that ends its streams.
    After,
    Over,
}

/// The phase that all threads see.
struct Phases(AtomicUsize);

impl Phases {
    const ALL: [Phase; 6] = [
        Phase::WarmUp,
        Phase::Steady,
        Phase::Reload,
        Phase::Upgrade,
        Phase::After,
        Phase::Over,
    ];

    fn get(&self) -> Phase {
        Self::ALL[self.0.load(Ordering::Relaxed)]
    }

    fn set(&self, phase: Phase) {
        self.0.store(phase as usize, Ordering::Relaxed);
    }
}

/// A call: the phase in which it began, when it began, and how long it took.
type TimedCall = (Phase, Instant, Duration);

/// Asks steadily on connections that stay open.
fn time_calls(installed: &Installed, phases: &Phases) -> Vec<TimedCall> {
    let (mut times, mut client) = (Vec::new(), None);
    let request = installed.chat();
    let mut due = Instant::now();
    loop {
        let phase = phases.get();
        if phase == Phase::Over {
            return times;
        }
        let began = Instant::now();
        let mut open = client
            .take()
            .unwrap_or_else(|| Client::connect(installed.process.address));
        let answer = open.ask(&request);
        assert_eq!(answer.status(), 200, "{}", answer.text());
        times.push((phase, began, began.elapsed()));
        if answer.header("connection") != Some("close") {
            client = Some(open);
        }
        // After a late call the next ones are not nearer to each other.
        due = (due + CALL_INTERVAL).max(began);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    }
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
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// Returns the number and the p99 of the calls that began in these phases.
fn p99(times: &[TimedCall], phases: &[Phase]) -> (usize, Duration) {
    let times = times.iter().filter(|(began, ..)| phases.contains(began));
    let mut times: Vec<Duration> = times.map(|(.., time)| *time).collect();
    times.sort_unstable();
    let at = times.len() * 99 / 100;
    (times.len(), times.get(at).copied().unwrap_or_default())
}

/// Makes all reloads and upgrades. The reloads before an upgrade take as long as the streams of the process before it.
fn change(installed: &Installed, size: Size, phases: &Phases) {
    let reloads = size.reloads / size.upgrades;
    let pause = EVENT_INTERVAL * u32::try_from(size.events / reloads).unwrap();
    for number in 0..size.upgrades {
        for of_this in 0..reloads {
            phases.set(Phase::Reload);
            reload(installed, number * reloads + of_this);
            phases.set(Phase::After);
            std::thread::sleep(pause);
        }
        phases.set(Phase::Upgrade);
        upgrade(installed, size.events);
        phases.set(Phase::After);
    }
}

/// Source: docs/promises-tests.md, "process upgraded or stopped", "configuration reloaded, however often".
#[test]
fn streams_and_calls_run_through_reloads_and_upgrades() {
    let size = Size::of_environment();
    let upstream = counting(size.events);
    let more = "[limits]\nin_flight = 4000\n";
    let installed = &Installed::start(&own_provider(&upstream, more));
    let began = Instant::now();
    let (phases, is_over) = (&Phases(AtomicUsize::new(0)), &AtomicBool::new(false));
    let (times, streams) = std::thread::scope(|scope| {
        let small = || std::thread::Builder::new().stack_size(512 << 10);
        let whole = EVENT_INTERVAL * u32::try_from(size.events).unwrap();
        let streams: Vec<_> = (0..size.streams)
            .map(|number| {
                // Streams begin one after another, here as anywhere.
                let wait = whole.mul_f64(number as f64 / size.streams as f64);
                let read = move || {
                    std::thread::sleep(wait);
                    read_streams(installed, size.events, is_over)
                };
                small().spawn_scoped(scope, read).unwrap()
            })
            .collect();
        let callers: Vec<_> = (0..size.callers)
            .map(|_| scope.spawn(|| time_calls(installed, phases)))
            .collect();
        for (phase, time) in [(Phase::WarmUp, whole), (Phase::Steady, whole / 6)] {
            phases.set(phase);
            std::thread::sleep(time);
        }
        let changed = || change(installed, size, phases);
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(changed));
        is_over.store(true, Ordering::Relaxed);
        let streams = streams.into_iter().map(|it| it.join().unwrap());
        let streams = streams.sum::<usize>();
        phases.set(Phase::Over);
        let times: Vec<_> = callers.into_iter().map(|it| it.join().unwrap()).collect();
        outcome.unwrap();
        (times.concat(), streams)
    });
    let calls = times.len() + streams;
    println!("{calls} calls, {streams} of them streams");
    for phase in Phases::ALL {
        println!("{phase:?}: calls and their p99 {:?}", p99(&times, &[phase]));
    }
    let mut slowest = times.clone();
    slowest.sort_unstable_by_key(|(.., time)| std::cmp::Reverse(*time));
    for (phase, at, time) in slowest.iter().take(SHOWN_CALLS) {
        println!("{phase:?}, after {:?}: {time:?}", *at - began);
    }
    let changes = [Phase::Reload, Phase::Upgrade, Phase::After];
    let (steady, changing) = (p99(&times, &[Phase::Steady]), p99(&times, &changes));
    let requests = || {
        let output = installed.command(&["usage", "--org", "default", "--format", "json"]);
        let rows: Value = serde_json::from_slice(&output.stdout).unwrap();
        let rows = rows.as_array().unwrap().iter();
        rows.filter_map(|row| row["requests"].as_u64()).sum::<u64>()
    };
    until("each call is in the ledger", || requests() >= calls as u64);
    assert_eq!(requests(), calls as u64, "each call is charged once");
    if std::env::var_os("WEIRGATE_PROOF").is_some() {
        assert!(
            changing.1 <= steady.1 * 2,
            "the p99 of calls: {steady:?}, {changing:?}"
        );
    }
}
