//! The scenarios of two open benchmarks of gateways, rebuilt. Of onthebench.ai: the rate that a limit on p99 allows, and many
//! slow streams at once. Of AIGatewayBench: small calls beside what holds others up, a flood of keys among it, and the
//! session of a coding agent, whose prompt grows with each turn.
//!
//! The first has four cores for the gateway and a machine each for load and upstream. Here each has a core or less, so
//! figures stand beside those of bare Pingora under the same load. Pieces come every 20 ms; a stream has stalled if one comes
//! ten times as late.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::Lab;
use crate::kind::{Kind, STREAM};
use crate::load;
use crate::options::Options;
use crate::print_line;
use crate::process::Part;
use crate::rates::CONNECTIONS;
use crate::report::{Table, figure, median, ms};

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

/// The turns of a session.
const TURNS: usize = 40;
/// The bytes that a tool returns in each turn: some 2,500 tokens.
const TOOL_BYTES: usize = 10 << 10;
/// The turns that one row of the table sums up.
const TURNS_IN_ROW: usize = 10;

/// Measures and prints all of it.
pub fn print(lab: &Lab, options: &Options) {
    print_frontier(lab, options);
    print_streams(lab);
    print_beside(lab, options);
    print_session(lab);
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
            let (round, ()) = beside(part, options.time, |is_over| {
                while let Some(kind) = kind.filter(|_| !is_over.load(Ordering::Relaxed)) {
                    load::calls(part, kind, BESIDE, 2 * BESIDE);
                }
            });
            [ms(round.p50_ms), ms(round.p99_ms)]
        });
        table.row(name, cells.into_iter().flatten());
    }
    let part = &lab.gateway;
    let (round, refused) = beside(part, options.time, |is_over| {
        load::key_flood(part, BESIDE, is_over)
    });
    let dash = || "–".to_owned();
    let cells = [dash(), dash(), ms(round.p50_ms), ms(round.p99_ms)];
    table.row("8 connections of mistyped keys", cells);
    table.print();
    print_line(&format!(
        "{refused} keys were refused: after 60 in a minute each of an address waits a second"
    ));
}

/// Makes small calls while others run on a thread of their own, until they hear that it is over. Returns what these return, too.
fn beside<T: Send>(
    part: &Part,
    time: Duration,
    others: impl FnOnce(&AtomicBool) -> T + Send,
) -> (load::Round, T) {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let others = scope.spawn(|| others(&is_over));
        let round = load::paced(part, Kind::Json, CONNECTIONS, BESIDE_RATE, time);
        is_over.store(true, Ordering::Relaxed);
        (round, others.join().unwrap())
    })
}

/// Prints how long the turns of a session take: each sends all turns before it, with what their tools returned.
fn print_session(lab: &Lab) {
    let columns = [
        "bare: first",
        "end",
        "ours: first",
        "end",
        "translated: first",
        "end",
    ];
    let title = "Turns of a session, ms to the first piece and to the end, median";
    let mut table = Table::new(title, &columns);
    let parts = [
        (&lab.bare, "own"),
        (&lab.gateway, "own"),
        (&lab.gateway, "translated"),
    ];
    let sessions = parts.map(|(part, model)| {
        let turns = (1..=TURNS).map(|turn| load::turn(part, &session(model, turn)));
        turns.collect::<Vec<_>>()
    });
    for from in (0..TURNS).step_by(TURNS_IN_ROW) {
        let row = from..from + TURNS_IN_ROW;
        let cells = sessions.iter().flat_map(|turns| {
            let of = |time: fn(&load::Turn) -> Duration| {
                let times = turns[row.clone()].iter().map(time);
                ms(median(times.map(|time| time.as_secs_f64() * 1e3)))
            };
            [of(|turn| turn.first), of(|turn| turn.whole)]
        });
        let kb = session("own", from + TURNS_IN_ROW).len() >> 10;
        table.row(
            &format!("{} to {}, up to {kb} KB", from + 1, from + TURNS_IN_ROW),
            cells,
        );
    }
    table.print();
}

/// Returns the request of a turn, from 1.
fn session(model: &str, turn: usize) -> String {
    let result = "fn main() {\\n    let it = \\\"x\\\";\\n}\\n";
    let result = result.repeat(TOOL_BYTES / result.len());
    let before: String = (1..turn)
        .map(|turn| {
            format!(
                r#",{{"role":"assistant","content":"I read file {turn}.","tool_calls":[{{"id":"call_{turn}","type":"function","function":{{"name":"read","arguments":"{{\"path\":\"src/{turn}.rs\"}}"}}}}]}},{{"role":"tool","tool_call_id":"call_{turn}","content":"{result}"}}"#
            )
        })
        .collect();
    format!(
        r#"{{"model":"{model}",{STREAM},"messages":[{{"role":"user","content":"Mend the test."}}{before}],"tools":[{{"type":"function","function":{{"name":"read","parameters":{{"type":"object","properties":{{"path":{{"type":"string"}}}}}}}}}}]}}"#
    )
}
