//! The scenarios of onthebench.ai, an open benchmark of gateways, rebuilt: the rate that a limit on p99 allows, many slow
//! streams at once, and small calls beside what holds others up.
//!
//! That benchmark has four cores for the gateway and a machine each for load and upstream. Here each has a core or less, so
//! figures stand beside those of bare Pingora under the same load. Pieces come every 20 ms; a stream has stalled if one comes
//! ten times as late.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::Lab;
use crate::kind::Kind;
use crate::load;
use crate::options::Options;
use crate::process::Part;
use crate::rates::CONNECTIONS;
use crate::report::{Table, figure, ms};

/// The limits on p99, in milliseconds.
const LIMITS_MS: [f64; 3] = [1.0, 5.0, 20.0];
/// How often the range of possible rates is halved.
const HALVINGS: usize = 5;
/// The streams that are open at once.
const STREAMS: usize = 512;
/// The connections that hold others up.
const BESIDE: usize = 8;
/// The rate of small calls beside them.
const BESIDE_RATE: f64 = 500.0;

/// Measures and prints all of it.
pub fn print(lab: &Lab, options: &Options) {
    print_frontier(lab, options);
    print_streams(lab);
    print_beside(lab, options);
}

/// Prints the highest rates whose p99 stays within the limits.
fn print_frontier(lab: &Lab, options: &Options) {
    let columns: Vec<String> = LIMITS_MS
        .iter()
        .map(|it| format!("p99 ≤ {it} ms"))
        .collect();
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let mut table = Table::new(
        "Calls a second within a limit on p99, none failed",
        &columns,
    );
    for (name, part, kind) in [
        ("bare", &lab.bare, Kind::Json),
        ("ours", &lab.gateway, Kind::Json),
        ("ours, translated", &lab.gateway, Kind::Translated),
    ] {
        let most = load::closed(part, kind, CONNECTIONS, options.time).per_second;
        let rates = LIMITS_MS.map(|limit| {
            figure(highest(most, |rate| {
                let round = load::paced(part, kind, CONNECTIONS, rate, options.time);
                round.p99_ms <= limit
            }))
        });
        table.row(name, rates);
    }
    table.print();
}

/// Returns the highest rate that holds, between none and the most.
fn highest(most: f64, holds: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, most);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        match holds(middle) {
            true => low = middle,
            false => high = middle,
        }
    }
    low
}

/// Prints what many streams at once see of their pieces.
fn print_streams(lab: &Lab) {
    let columns = ["first piece p99 ms", "largest gap ms", "stalled"];
    let mut table = Table::new("512 streams of 64 pieces, one each 20 ms", &columns);
    for (name, part) in [("bare", &lab.bare), ("ours", &lab.gateway)] {
        let seen = load::slow_streams(part, STREAMS);
        let stalled = seen.stalled.to_string();
        table.row(
            name,
            [ms(seen.first_p99_ms), ms(seen.largest_gap_ms), stalled],
        );
    }
    table.print();
}

/// Prints how small calls fare beside others.
fn print_beside(lab: &Lab, options: &Options) {
    let columns = ["bare p50", "p99", "ours p50", "p99"];
    let mut table = Table::new("500 small calls a second, ms, beside", &columns);
    for (name, kind) in [
        ("nothing", None),
        ("8 connections of 50 KB replies", Some(Kind::Large)),
        ("8 connections of 1 MB of vectors", Some(Kind::Vectors)),
    ] {
        let cells = [&lab.bare, &lab.gateway].map(|part| {
            let round = beside(part, kind, options.time);
            [ms(round.p50_ms), ms(round.p99_ms)]
        });
        table.row(name, cells.into_iter().flatten());
    }
    table.print();
}

fn beside(part: &Part, kind: Option<Kind>, time: Duration) -> load::Round {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        if let Some(kind) = kind {
            let is_over = &is_over;
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    load::calls(part, kind, BESIDE, 2 * BESIDE);
                }
            });
        }
        let round = load::paced(part, Kind::Json, CONNECTIONS, BESIDE_RATE, time);
        is_over.store(true, Ordering::Relaxed);
        round
    })
}
