//! Compares the gateway with a bare Pingora proxy: same upstream, same machine, interleaved rounds.
//!
//! `make bench` runs it. Every part runs in a process of its own, which has separate CPU time and memory. All processes run
//! this program; an environment variable sets the role. Figures are ratios within one run, because machines are noisy.
//!
//! The measured part has one core for all of its threads, upstream and load have the others. Before, they shared the cores,
//! and the ratio of one and the same program went from 0.59 to 0.87. Both sides use mimalloc, which is worth a quarter of
//! the rate, and write log lines. Instructions of a bare decision: 9 % more with the allocator of the system, 2 % fewer
//! without the log line.
//!
//! `cargo bench --bench loopback -- --only rates,json,stream` measures some sections and kinds only. The environment sets
//! `WEIRGATE_BENCH_SECONDS` and `WEIRGATE_BENCH_ROUNDS`; `WEIRGATE_BENCH_KEEP=1` adds the run's line to `RESULTS.md`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    unreachable_pub,
    reason = "a bench"
)]

#[path = "loopback/bare.rs"]
mod bare;
#[path = "loopback/gateway.rs"]
mod gateway;
#[path = "loopback/kind.rs"]
mod kind;
#[path = "loopback/load.rs"]
mod load;
#[path = "loopback/memory.rs"]
mod memory;
#[path = "loopback/message.rs"]
mod message;
#[path = "loopback/options.rs"]
mod options;
#[path = "loopback/process.rs"]
mod process;
#[path = "loopback/rates.rs"]
mod rates;
#[path = "loopback/report.rs"]
mod report;
#[path = "loopback/syscalls.rs"]
mod syscalls;
#[path = "loopback/upstream.rs"]
mod upstream;
#[path = "loopback/work.rs"]
mod work;

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use kind::Kind;
use memory::Idle;
use options::{Options, Section, number, variable};
use process::{Cores, Part};
use rates::CONNECTIONS;
use report::{ResultLine, figure, median};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    match variable("WEIRGATE_BENCH_ROLE").as_deref() {
        Some("upstream") => upstream::run(),
        Some("bare") => bare::run(),
        Some("gateway") => gateway::run(),
        _ => drive(&Options::from_process()),
    }
}

fn print_line(line: &str) {
    println!("{line}");
    std::io::stdout().flush().unwrap();
}

/// The running parts.
struct Lab {
    bare: Part,
    gateway: Part,
    /// The environment of the two.
    variables: [(&'static str, String); 3],
    _upstream: Part,
}

impl Lab {
    /// Starts the parts; the gateway keeps its state in this folder.
    fn start(folder: &Path) -> Self {
        let upstream = Part::start("upstream", &[]);
        let upstream_address = ("WEIRGATE_BENCH_UPSTREAM", upstream.address.clone());
        let state = folder.join("state").display().to_string();
        let environment = [
            (upstream_address.0, upstream_address.1.as_str()),
            ("WEIRGATE_BENCH_FOLDER", state.as_str()),
        ];
        let gateway = Part::start("gateway", &environment);
        let variables = [
            upstream_address,
            (
                "WEIRGATE_BENCH_DECISION",
                load::body(&gateway, Kind::Decide),
            ),
            ("WEIRGATE_BENCH_HIT", load::body(&gateway, Kind::Hit)),
        ];
        Self {
            bare: Part::start("bare", &borrowed(&variables)),
            gateway,
            variables,
            _upstream: upstream,
        }
    }

    /// Returns the environment of a part. The gateway needs a folder besides.
    fn environment(&self) -> Vec<(&'static str, &str)> {
        borrowed(&self.variables)
    }
}

fn borrowed<'a>(variables: &'a [(&'static str, String)]) -> Vec<(&'static str, &'a str)> {
    let borrow = |(name, value): &'a (&'static str, String)| (*name, value.as_str());
    variables.iter().map(borrow).collect()
}

fn drive(options: &Options) {
    // The upstream inherits the cores of this process, so the cores are divided first.
    let cores = Cores::of_process();
    let folder = tempfile::tempdir().unwrap();
    let lab = Lab::start(folder.path());
    if let Some(seconds) = number("WEIRGATE_BENCH_PROFILE") {
        return profile(&lab, Duration::from_secs_f64(seconds));
    }
    if cores.count() == 1 {
        print_line("one core: proxy, upstream and load share it, and ratios come out too high");
    }
    let (idle, mut line) = (Idle::of(&lab), ResultLine::new());
    let mut rounds = Vec::new();
    if options.has(Section::Rates) {
        rounds = rates::measure(&lab, options);
        rates::print(&rounds, &mut line);
    }
    if options.has(Section::Latency) {
        rates::print_latency(&lab, options, rounds, &mut line);
    }
    if options.has(Section::Instructions) {
        work::print(&lab, options, folder.path(), &mut line);
    }
    if options.has(Section::Syscalls) {
        syscalls::print(&lab, options, folder.path(), &mut line);
    }
    if options.has(Section::Sdk) {
        sdk(&lab.gateway, options);
    }
    if options.has(Section::Memory) {
        memory::print(&lab, &idle);
    }
    line.finish(options.keeps_result);
}

/// Loads only one part, `gateway` or `bare`, as a profiler needs it.
fn profile(lab: &Lab, time: Duration) {
    let is_bare = variable("WEIRGATE_BENCH_PART").is_some_and(|part| part == "bare");
    let part = if is_bare { &lab.bare } else { &lab.gateway };
    let kind = variable("WEIRGATE_BENCH_KIND").map_or(Kind::Json, |name| {
        Kind::from_name(&name).unwrap_or_else(|| panic!("WEIRGATE_BENCH_KIND: {name}"))
    });
    print_line(&format!("process {}", part.id()));
    let round = match number("WEIRGATE_BENCH_RATE") {
        Some(rate) => load::paced(part, kind, CONNECTIONS, rate, time),
        None => load::closed(part, kind, CONNECTIONS, time),
    };
    print_line(&format!("{round:?}"));
}

/// Measures the same decisions by the public npm SDK.
fn sdk(gateway: &Part, options: &Options) {
    let Some(sdk) = Part::sdk() else {
        return print_line("\nskipped: the npm SDK is not installed (`make bench` installs it)");
    };
    let measure = |part| load::closed(part, Kind::Decide, CONNECTIONS, options.time).per_second;
    let pairs: Vec<_> = (0..options.rounds)
        .map(|_| (measure(&sdk), measure(gateway)))
        .collect();
    let ratio = median(pairs.iter().map(|(sdk, ours)| ours / sdk));
    print_line(&format!(
        "\ndecide: npm SDK behind node:http {}/s, ours {}/s: ratio {} (goal: at least 5)",
        figure(median(pairs.iter().map(|(sdk, _)| *sdk))),
        figure(median(pairs.iter().map(|(_, ours)| *ours))),
        figure(ratio),
    ));
}
