//! Memory: idle, with open streams, with large bodies.

use std::time::Duration;

use crate::Lab;
use crate::kind::Kind;
use crate::load;
use crate::options::variable;
use crate::print_line;
use crate::process::Part;
use crate::rates::CONNECTIONS;
use crate::report::{Goal, figure};

/// The number of open streams, where `WEIRGATE_BENCH_STREAMS` asks for no other. Each takes two files of the gateway.
const STREAMS: usize = 1000;
/// The time of load before memory is measured.
const LOAD_TIME: Duration = Duration::from_secs(3);
/// The time after which it is measured again.
const REST: Duration = Duration::from_secs(10);

/// Resident memory before any load.
pub struct Idle {
    bare_kib: u64,
    gateway_kib: u64,
}

impl Idle {
    /// Measures it.
    pub fn of(lab: &Lab) -> Self {
        Self {
            bare_kib: lab.bare.resident_kib(),
            gateway_kib: lab.gateway.resident_kib(),
        }
    }
}

/// Measures and prints the memory.
pub fn print(lab: &Lab, idle: &Idle) {
    print_line("\nMemory");
    print_line(&format!(
        "idle: bare {} MiB, ours {} MiB (goal: under 60)",
        mib(idle.bare_kib),
        mib(idle.gateway_kib)
    ));
    loaded(lab);
    large(&lab.gateway);
    streams(lab);
}

/// Measures memory under load, and some time after it.
fn loaded(lab: &Lab) {
    for (name, part) in [("bare", &lab.bare), ("ours", &lab.gateway)] {
        load::closed(part, Kind::Json, CONNECTIONS, LOAD_TIME);
        let under = part.resident_kib();
        std::thread::sleep(REST);
        print_line(&format!(
            "{name} under {CONNECTIONS} connections: {} MiB, {} s later: {} MiB",
            mib(under),
            REST.as_secs(),
            mib(part.resident_kib()),
        ));
    }
}

/// Measures memory with open streams.
fn streams(lab: &Lab) {
    let asked = variable("WEIRGATE_BENCH_STREAMS");
    let count = asked.map_or(STREAMS, |count| count.parse().unwrap());
    let measure = |part: &Part| {
        let before = part.resident_kib();
        let open = load::hold(part, count);
        let with = part.resident_kib();
        drop(open);
        (before, with)
    };
    let (bare, gateway) = (measure(&lab.bare), measure(&lab.gateway));
    let taken = |(before, with): (u64, u64)| with.saturating_sub(before);
    print_line(&format!(
        "{count} open streams: bare {} MiB (from {}), ours {} MiB (from {}): {} KiB a stream more (goal: at most 20)",
        mib(bare.1),
        mib(bare.0),
        mib(gateway.1),
        mib(gateway.0),
        taken(gateway).saturating_sub(taken(bare)) / count as u64,
    ));
}

/// Measures the peak memory of a body of 20 MB, passed through and translated.
fn large(gateway: &Part) {
    for (model, what, goal) in [
        ("own", "passed through", 1.3),
        ("translated", "translated", 3.0),
    ] {
        let before = gateway.reset_peak_kib();
        let bytes = load::large(gateway, model);
        let peak = gateway.peak_kib();
        let factor = (peak.saturating_sub(before) * 1024) as f64 / bytes as f64;
        print_line(&format!(
            "20 MB {what}: peak {} × body above {} MiB ({})",
            figure(factor),
            mib(before),
            Goal::AtMost(goal).with(factor),
        ));
    }
}

fn mib(kib: u64) -> u64 {
    kib / 1024
}
