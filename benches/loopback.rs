//! Compares the gateway with a bare Pingora proxy: same upstream, same machine, interleaved rounds.
//!
//! `make bench` runs it. Every part runs in a process of its own, which has separate CPU time and memory. All processes run
//! this program; an environment variable sets the role. Figures are ratios within one run, because machines are noisy.
//!
//! The measured part has one core for all of its threads, upstream and load have the others. Before, they shared the cores,
//! and the ratio of one and the same program went from 0.59 to 0.87. Both sides use the same allocator, and write log lines.
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
#[path = "loopback/console.rs"]
mod console;
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
#[path = "loopback/rig.rs"]
mod rig;
#[path = "loopback/syscalls.rs"]
mod syscalls;
#[path = "loopback/upstream.rs"]
mod upstream;
#[path = "loopback/views.rs"]
mod views;
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

/// How often a binary is called in each way while it is trained.
const TRAINING_CALLS: usize = 10_000;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() {
    match variable("WEIRGATE_BENCH_ROLE").as_deref() {
        Some("upstream") => upstream::run(),
        Some("bare") => bare::run(),
        Some("gateway") => gateway::run(),
        Some("views") => views::run(),
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
    upstream: Part,
}

impl Lab {
    /// Starts the parts; the gateway keeps its state in this folder.
    fn start(folder: &Path) -> Self {
        let upstream = Part::start("upstream", &[]);
        let state = folder.join("state").display().to_string();
        let gateway = gateway::start(&[], &upstream.address, &state);
        let variables = [
            ("WEIRGATE_BENCH_UPSTREAM", upstream.address.clone()),
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
            upstream,
        }
    }

    /// Returns the address of the upstream.
    fn upstream(&self) -> &str {
        &self.upstream.address
    }

    /// Returns the environment of bare Pingora.
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
    if options.trains {
        return train(lab, options);
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
    if options.has(Section::Console) {
        console::print(&lab, options, folder.path());
        views::print(&lab, folder.path());
    }
    if options.has(Section::Rig) {
        rig::print(&lab, options);
    }
    if options.has(Section::Memory) {
        memory::print(&lab, &idle);
    }
    line.finish(options.keeps_result);
}

/// Calls the gateway in all ways, as often in every run, and ends it as an operator would.
fn train(lab: Lab, options: &Options) {
    for kind in options.kinds() {
        let calls = match kind {
            Kind::Vectors | Kind::Stream | Kind::TranslatedStream => TRAINING_CALLS / 10,
            _ => TRAINING_CALLS,
        };
        print_line(&format!("{calls} calls: {}", kind.label()));
        load::calls(&lab.gateway, kind, CONNECTIONS, calls);
    }
    lab.gateway.end();
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
