//! Compares the gateway with a bare Pingora proxy: same upstream, same machine, interleaved rounds.
//!
//! `make bench` runs it. Every part runs in a process of its own, which has separate CPU time and memory. All processes run
//! this program; an environment variable sets the role. Figures are ratios within one run, because machines are noisy.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    missing_docs,
    unreachable_pub,
    reason = "a bench"
)]

#[path = "loopback/load.rs"]
mod load;
#[path = "loopback/parts.rs"]
mod parts;
#[path = "loopback/process.rs"]
mod process;

use std::time::Duration;

use load::{Kind, Round};
use process::Part;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The number of the load's connections.
const CONNECTIONS: usize = 64;
/// The number of events that the upstream sends in one stream.
const EVENTS: f64 = 200.0;

fn main() {
    match std::env::var("WEIRGATE_BENCH_ROLE").as_deref() {
        Ok("upstream") => parts::upstream(),
        Ok("bare") => parts::bare(),
        Ok("gateway") => parts::gateway(),
        _ => drive(),
    }
}

fn drive() {
    let seconds = setting("WEIRGATE_BENCH_SECONDS", 2.0);
    let rounds = setting("WEIRGATE_BENCH_ROUNDS", 5.0) as usize;
    let upstream = Part::start("upstream", &[]);
    let variables = [("WEIRGATE_BENCH_UPSTREAM", upstream.address.as_str())];
    let gateway = Part::start("gateway", &variables);
    let decision = load::body(&gateway, Kind::Decide);
    let hit = load::body(&gateway, Kind::Hit);
    let variables = [
        variables[0],
        ("WEIRGATE_BENCH_DECISION", decision.as_str()),
        ("WEIRGATE_BENCH_HIT", hit.as_str()),
    ];
    let bare = Part::start("bare", &variables);
    if let Ok(seconds) = std::env::var("WEIRGATE_BENCH_PROFILE") {
        // A profiler needs load on only one part, `gateway` or `bare`.
        let seconds = Duration::from_secs_f64(seconds.parse().unwrap());
        let is_bare = std::env::var("WEIRGATE_BENCH_PART").is_ok_and(|part| part == "bare");
        let part = if is_bare { &bare } else { &gateway };
        let kind = match std::env::var("WEIRGATE_BENCH_KIND").as_deref() {
            Ok("stream") => Kind::Stream,
            Ok("decide") => Kind::Decide,
            Ok("pass") => Kind::Pass,
            Ok("hit") => Kind::Hit,
            Ok("refused") => Kind::Refused,
            _ => Kind::Json,
        };
        match std::env::var("WEIRGATE_BENCH_RATE") {
            Ok(rate) => println!(
                "{:?}",
                load::paced(part, CONNECTIONS, rate.parse().unwrap(), seconds)
            ),
            Err(_) => println!("{:?}", load::closed(part, kind, CONNECTIONS, seconds)),
        }
        return;
    }
    let idle = (bare.resident_kib(), gateway.resident_kib());
    println!(
        "idle resident: bare {} MiB, gateway {} MiB (target: under 60)",
        mib(idle.0),
        mib(idle.1)
    );
    for (kind, per_request, unit, target) in [
        (Kind::Json, 1.0, "requests/s", 0.75),
        (Kind::Stream, EVENTS, "events/s", 0.75),
        // Bare Pingora reads the body, sends a constant response of the same size, and writes a log line too.
        (Kind::Decide, 1.0, "decisions/s", 0.8),
        (Kind::Pass, 1.0, "queries/s", 0.85),
        (Kind::Hit, 1.0, "hits/s", 0.8),
    ] {
        let mut results: [Vec<Round>; 2] = [Vec::new(), Vec::new()];
        for round in 0..rounds * 2 {
            let part = if round % 2 == 0 { &bare } else { &gateway };
            let result = load::closed(part, kind, CONNECTIONS, Duration::from_secs_f64(seconds));
            results[round % 2].push(result);
        }
        let [bare_median, gateway_median] = results.map(median);
        println!(
            "{kind:?}: bare {:.0} {unit} at {:.1} us CPU, gateway {:.0} {unit} at {:.1} us CPU: ratio {:.2} (target {target}), CPU ratio {:.2}",
            bare_median.per_second * per_request,
            bare_median.cpu_us,
            gateway_median.per_second * per_request,
            gateway_median.cpu_us,
            gateway_median.per_second / bare_median.per_second,
            bare_median.cpu_us / gateway_median.cpu_us,
        );
        if kind == Kind::Json {
            latency(&bare, &gateway, gateway_median.per_second / 2.0, seconds);
        }
    }
    money(&gateway, rounds, Duration::from_secs_f64(seconds));
    refusals(&gateway, rounds, Duration::from_secs_f64(seconds));
    sdk(&gateway, rounds, seconds);
    large(&gateway);
    streams(&bare, &gateway);
}

/// Measures the cost of accounting: calls that are reserved, settled and synced to disk beside calls without a price.
fn money(gateway: &Part, rounds: usize, time: Duration) {
    let kinds = [Kind::Free, Kind::Json];
    let mut results: [Vec<Round>; 2] = Default::default();
    for round in 0..rounds * kinds.len() {
        let at = round % kinds.len();
        results[at].push(load::closed(gateway, kinds[at], CONNECTIONS, time));
    }
    let [free, paid] = results.map(median);
    println!(
        "without a price {:.0}/s at {:.1} us CPU, journalled {:.0}/s at {:.1} us: ratio {:.2} (target: at least 0.95)",
        free.per_second,
        free.cpu_us,
        paid.per_second,
        paid.cpu_us,
        paid.per_second / free.per_second,
    );
}

/// Measures the cost of a hit and of a refusal beside a forwarded query.
fn refusals(gateway: &Part, rounds: usize, time: Duration) {
    let kinds = [Kind::Pass, Kind::Hit, Kind::Refused];
    let mut results: [Vec<Round>; 3] = Default::default();
    for round in 0..rounds * kinds.len() {
        let at = round % kinds.len();
        results[at].push(load::closed(gateway, kinds[at], CONNECTIONS, time));
    }
    let [pass, hit, refused] = results.map(median);
    println!(
        "passed on {:.0}/s at {:.1} us CPU; hit {:.0}/s at {:.1} us: {:.2} x (target: at least 2); refused {:.0}/s at {:.1} us: {:.2} x (target: above 1)",
        pass.per_second,
        pass.cpu_us,
        hit.per_second,
        hit.cpu_us,
        hit.per_second / pass.per_second,
        refused.per_second,
        refused.cpu_us,
        refused.per_second / pass.per_second,
    );
}

/// Measures the same decisions by the public npm SDK.
fn sdk(gateway: &Part, rounds: usize, seconds: f64) {
    let Some(sdk) = Part::sdk() else {
        return println!("the npm SDK is not installed: `make bench` does");
    };
    let measure = |part| {
        let time = Duration::from_secs_f64(seconds);
        load::closed(part, Kind::Decide, CONNECTIONS, time)
    };
    let pairs = (0..rounds).map(|_| (measure(&sdk), measure(gateway)));
    let (sdk_rounds, gateway_rounds) = pairs.unzip();
    let (sdk, gateway) = (median(sdk_rounds), median(gateway_rounds));
    println!(
        "Decide: npm SDK behind node:http {:.0}/s at {:.1} us CPU, gateway {:.0}/s at {:.1} us CPU: ratio {:.1} (target 5)",
        sdk.per_second,
        sdk.cpu_us,
        gateway.per_second,
        gateway.cpu_us,
        gateway.per_second / sdk.per_second,
    );
}

/// Measures latencies and CPU time at half of the gateway's maximum rate. Both parts get the same rate, so that waking idle
/// peers costs both the same.
fn latency(bare: &Part, gateway: &Part, rate: f64, seconds: f64) {
    let time = Duration::from_secs_f64(seconds);
    let measure = |part| load::paced(part, CONNECTIONS, rate, time);
    let mut rounds: Vec<_> = (0..3).map(|_| (measure(bare), measure(gateway))).collect();
    rounds.sort_by(|a, b| (a.1.p99_ms - a.0.p99_ms).total_cmp(&(b.1.p99_ms - b.0.p99_ms)));
    let (bare, gateway) = &rounds[1];
    println!(
        "at {rate:.0}/s: bare p50 {:.2} p99 {:.2} ms at {:.1} us CPU, gateway p50 {:.2} p99 {:.2} ms at {:.1} us CPU: added p99 {:.2} ms (target: under 2)",
        bare.p50_ms,
        bare.p99_ms,
        bare.cpu_us,
        gateway.p50_ms,
        gateway.p99_ms,
        gateway.cpu_us,
        gateway.p99_ms - bare.p99_ms,
    );
}

/// Measures memory with a thousand open streams.
fn streams(bare: &Part, gateway: &Part) {
    let measure = |part: &Part| {
        let before = part.resident_kib();
        let open = load::hold(part, 1000);
        let with = part.resident_kib();
        drop(open);
        (before, with)
    };
    let (bare, gateway) = (measure(bare), measure(gateway));
    println!(
        "1000 open streams: bare {} MiB (from {}), gateway {} MiB (from {}): {} MiB more (target: at most 40)",
        mib(bare.1),
        mib(bare.0),
        mib(gateway.1),
        mib(gateway.0),
        mib(gateway.1.saturating_sub(bare.1)),
    );
}

/// Measures the peak memory of a body of 20 MB, passed through and translated.
fn large(gateway: &Part) {
    for (model, what, target) in [
        ("own", "passed through", 1.3),
        ("translated", "translated", 3.0),
    ] {
        let before = gateway.reset_peak_kib();
        let bytes = load::large(gateway, model);
        let peak = gateway.peak_kib();
        println!(
            "20 MB {what}: peak {:.2} x body above {} MiB (target: {target})",
            (peak.saturating_sub(before) * 1024) as f64 / bytes as f64,
            mib(before),
        );
    }
}

fn median(mut rounds: Vec<Round>) -> Round {
    rounds.sort_by(|a, b| a.per_second.total_cmp(&b.per_second));
    rounds[rounds.len() / 2]
}

fn mib(kib: u64) -> u64 {
    kib / 1024
}

fn setting(name: &str, default: f64) -> f64 {
    std::env::var(name)
        .ok()
        .and_then(|value| value.parse().ok())
        .unwrap_or(default)
}
