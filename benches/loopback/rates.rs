//! Rates, CPU time and latencies, ours beside bare Pingora's in interleaved rounds.

use crate::Lab;
use crate::kind::Kind;
use crate::load::{self, Round};
use crate::options::Options;
use crate::process::Cpu;
use crate::report::{Goal, ResultLine, Table, figure, median, ms};

/// The number of the load's connections.
pub const CONNECTIONS: usize = 32;
/// The share of its core that a proxy uses if nothing else is the limit.
const BUSY: f64 = 0.9;

/// The rounds of one kind of requests. Those of bare Pingora are missing if it cannot do the same.
pub struct Rounds {
    kind: Kind,
    bare: Vec<Round>,
    ours: Vec<Round>,
}

impl Rounds {
    /// Returns the median of our rate in parts of bare Pingora's.
    fn ratio(&self) -> Option<f64> {
        let pairs = self.ours.iter().zip(&self.bare);
        let ratios = pairs.map(|(ours, bare)| ours.per_second / bare.per_second);
        (!self.bare.is_empty()).then(|| median(ratios))
    }
}

/// Returns the median of a figure of rounds, or a dash.
fn cell(rounds: &[Round], figure_of: fn(&Round) -> f64, write: fn(f64) -> String) -> String {
    if rounds.is_empty() {
        return "–".to_owned();
    }
    write(median(rounds.iter().map(figure_of)))
}

fn rate(round: &Round) -> f64 {
    round.per_second
}

fn cpu(round: &Round) -> f64 {
    round.cpu_us.sum()
}

fn p50(round: &Round) -> f64 {
    round.p50_ms
}

fn p99(round: &Round) -> f64 {
    round.p99_ms
}

/// Measures all kinds over a closed loop. Rounds alternate, so that a slow second of the machine meets all.
pub fn measure(lab: &Lab, options: &Options) -> Vec<Rounds> {
    let empty = |kind| Rounds {
        kind,
        bare: Vec::new(),
        ours: Vec::new(),
    };
    let mut all: Vec<Rounds> = options.kinds().map(empty).collect();
    for _ in 0..options.rounds {
        for it in &mut all {
            let round = |part| load::closed(part, it.kind, CONNECTIONS, options.time);
            if it.kind.has_bare() {
                it.bare.push(round(&lab.bare));
            }
            it.ours.push(round(&lab.gateway));
        }
    }
    all
}

/// Prints the rates and the CPU time by thread.
pub fn print(all: &[Rounds], line: &mut ResultLine) {
    let columns = [
        "bare/s",
        "ours/s",
        "÷ bare",
        "goal",
        "µs CPU bare",
        "ours",
        "p50 ms bare",
        "ours",
        "p99 ms bare",
        "ours",
    ];
    let mut table = Table::new("A call, 32 connections in a closed loop", &columns);
    for it in all {
        let ratio = it.ratio();
        let goal = it.kind.goal().zip(ratio);
        let mut cells = vec![
            cell(&it.bare, rate, figure),
            cell(&it.ours, rate, figure),
            ratio.map_or("–".to_owned(), figure),
            goal.map_or("–".to_owned(), |(goal, ratio)| {
                Goal::AtLeast(goal).with(ratio)
            }),
        ];
        for (figure_of, write) in [
            (cpu as fn(&Round) -> f64, figure as fn(f64) -> String),
            (p50, ms),
            (p99, ms),
        ] {
            cells.push(cell(&it.bare, figure_of, write));
            cells.push(cell(&it.ours, figure_of, write));
        }
        table.row(it.kind.label(), cells);
        if let (Some(column), Some(ratio)) = (column(it.kind), ratio) {
            line.set(column, figure(ratio));
        }
    }
    table.print();
    print_limits(all);
    print_replay(all);
    print_graph(all);
    print_threads(all, line);
}

/// Returns the column of a kind in `RESULTS.md`.
fn column(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Json => Some("1 KB"),
        Kind::Free => Some("no price"),
        Kind::Large => Some("50 KB"),
        Kind::Stream => Some("SSE"),
        Kind::Decide => Some("decide"),
        Kind::Hit => Some("hit"),
        Kind::Pass => Some("pass"),
        Kind::Vectors
        | Kind::Replay
        | Kind::Translated
        | Kind::TranslatedStream
        | Kind::Messages
        | Kind::Responses
        | Kind::Unknown
        | Kind::Refused => None,
    }
}

/// Prints where bare Pingora did not have its core for itself: something else was the limit, and the ratio says little.
fn print_limits(all: &[Rounds]) {
    for it in all.iter().filter(|it| it.kind.has_bare()) {
        let busy = median(it.bare.iter().map(|round| rate(round) * cpu(round) / 1e6));
        if busy < BUSY {
            let percent = busy * 100.0;
            crate::print_line(&format!(
                "{}: bare Pingora ran for {percent:.0} % of the time only: other programs or the load were the limit",
                it.kind.label()
            ));
        }
    }
}

/// Prints the CPU time of a replayed call in parts of a call of the model, both ours.
fn print_replay(all: &[Rounds]) {
    let find = |kind| all.iter().find(|it| it.kind == kind);
    let Some((replay, call)) = find(Kind::Replay).zip(find(Kind::Json)) else {
        return;
    };
    let pairs = replay.ours.iter().zip(&call.ours);
    let ratio = median(pairs.map(|(replay, call)| cpu(replay) / cpu(call)));
    let goal = Goal::AtMost(0.5).with(ratio);
    crate::print_line(&format!(
        "CPU of a replayed call ÷ that of a call, ours: {} ({goal})",
        figure(ratio)
    ));
}

/// Prints a hit and a refusal in parts of a forwarded query, all ours: both are there to spare the upstream.
fn print_graph(all: &[Rounds]) {
    let find = |kind| all.iter().find(|it| it.kind == kind);
    let Some(pass) = find(Kind::Pass) else { return };
    for (kind, goal) in [(Kind::Hit, 2.0), (Kind::Refused, 1.0)] {
        if let Some(it) = find(kind) {
            let pairs = it.ours.iter().zip(&pass.ours);
            let ratio = median(pairs.map(|(it, pass)| it.per_second / pass.per_second));
            let goal = Goal::AtLeast(goal).with(ratio);
            crate::print_line(&format!(
                "{}, ours ÷ graph pass, ours: {} ({goal})",
                kind.name(),
                figure(ratio)
            ));
        }
    }
}

/// Prints the CPU time of one call by thread.
fn print_threads(all: &[Rounds], line: &mut ResultLine) {
    let Some(json) = all.iter().find(|it| it.kind == Kind::Json) else {
        return;
    };
    let mut rows = vec![("bare", &json.bare), ("ours", &json.ours)];
    rows.extend(
        all.iter()
            .find(|it| it.kind == Kind::Free)
            .map(|free| ("ours, no price", &free.ours)),
    );
    let of = |rounds: &[Round], thread: &str| {
        let times = rounds
            .iter()
            .map(|round| round.cpu_us.0.get(thread).copied().unwrap_or_default());
        median(times)
    };
    let Cpu(threads) = &json.ours[0].cpu_us;
    let mut threads: Vec<&str> = threads.keys().map(String::as_str).collect();
    // A thread that takes less than a tenth of a microsecond says nothing.
    threads.retain(|thread| rows.iter().any(|(_, rounds)| of(rounds, thread) >= 0.1));
    threads.sort_by(|a, b| of(&json.ours, b).total_cmp(&of(&json.ours, a)));
    let columns: Vec<&str> = ["all", "added ÷ bare", "goal"]
        .into_iter()
        .chain(threads.iter().copied())
        .collect();
    let mut table = Table::new("CPU of a 1 KB call, µs by thread", &columns);
    let whole = |rounds: &[Round]| median(rounds.iter().map(cpu));
    let bare = whole(&json.bare);
    for (name, rounds) in rows {
        let added = whole(rounds) / bare - 1.0;
        let mut cells = vec![figure(whole(rounds))];
        cells.extend(match name {
            "bare" => [String::new(), String::new()],
            _ => [figure(added), Goal::AtMost(0.5).with(added)],
        });
        cells.extend(threads.iter().map(|thread| figure(of(rounds, thread))));
        table.row(name, cells);
    }
    table.print();
    line.set("CPU µs bare", figure(bare));
    line.set("CPU µs ours", figure(whole(&json.ours)));
    line.set(
        "added CPU",
        format!("{} ×", figure(whole(&json.ours) / bare - 1.0)),
    );
}

/// Latencies of three subjects at one kind of load.
struct Latencies {
    name: String,
    goal: fn(&[f64; 4]) -> String,
    bare: Vec<Round>,
    priced: Vec<Round>,
    free: Vec<Round>,
}

impl Latencies {
    /// Measures the three in turn.
    fn measure(
        name: String,
        goal: fn(&[f64; 4]) -> String,
        lab: &Lab,
        rounds: usize,
        round: impl Fn(&crate::Part, Kind) -> Round,
    ) -> Self {
        let (mut bare, mut priced, mut free) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds {
            bare.push(round(&lab.bare, Kind::Json));
            priced.push(round(&lab.gateway, Kind::Json));
            free.push(round(&lab.gateway, Kind::Free));
        }
        Self {
            name,
            goal,
            bare,
            priced,
            free,
        }
    }

    /// Returns what we add: p50 and p99 with a price, p50 and p99 without.
    fn added(&self) -> [f64; 4] {
        let added = |ours: &[Round], figure: fn(&Round) -> f64| {
            let pairs = ours.iter().zip(&self.bare);
            median(pairs.map(|(ours, bare)| figure(ours) - figure(bare)))
        };
        [
            added(&self.priced, p50),
            added(&self.priced, p99),
            added(&self.free, p50),
            added(&self.free, p99),
        ]
    }
}

/// Measures and prints latencies of one connection and of 32, and at half of our maximum rate. There all get the same
/// rate, so that waking idle peers costs all the same.
pub fn print_latency(lab: &Lab, options: &Options, all: Vec<Rounds>, line: &mut ResultLine) {
    let time = options.time;
    let rounds = options.rounds;
    let closed = |connections| move |part: &_, kind| load::closed(part, kind, connections, time);
    let one = Latencies::measure(
        "1 connection".to_owned(),
        |added| Goal::AtMost(0.05).with(added[0].max(added[2])) + " (added p50)",
        lab,
        rounds,
        closed(1),
    );
    let find = |kind| {
        all.iter()
            .find(|it| it.kind == kind)
            .filter(|it| !it.ours.is_empty())
    };
    let many = match (find(Kind::Json), find(Kind::Free)) {
        (Some(json), Some(free)) => Latencies {
            name: String::new(),
            goal: |_| String::new(),
            bare: json.bare.clone(),
            priced: json.ours.clone(),
            free: free.ours.clone(),
        },
        _ => Latencies::measure(
            String::new(),
            |_| String::new(),
            lab,
            rounds,
            closed(CONNECTIONS),
        ),
    };
    let many = Latencies {
        name: format!("{CONNECTIONS} connections"),
        ..many
    };
    let half = median(many.priced.iter().map(rate)) / 2.0;
    let paced = Latencies::measure(
        format!("half the knee, {half:.0}/s"),
        |added| Goal::AtMost(0.5).with(added[1].max(added[3])) + " (added p99)",
        lab,
        rounds,
        |part, kind| load::paced(part, kind, CONNECTIONS, half, time),
    );
    let columns = [
        "bare p50",
        "p99",
        "priced p50",
        "p99",
        "free p50",
        "p99",
        "added: priced p50",
        "p99",
        "free p50",
        "p99",
        "goal",
    ];
    let mut table = Table::new("Latency of a 1 KB call, ms", &columns);
    for it in [&one, &many, &paced] {
        let mut cells = Vec::new();
        for rounds in [&it.bare, &it.priced, &it.free] {
            cells.extend([cell(rounds, p50, ms), cell(rounds, p99, ms)]);
        }
        let added = it.added();
        cells.extend(added.map(ms));
        cells.push((it.goal)(&added));
        table.row(&it.name, cells);
    }
    table.print();
    let [priced, _, free, _] = one.added().map(ms);
    line.set("added p50, 1 connection", format!("{priced}, free {free}"));
    let [_, priced, _, free] = paced.added().map(ms);
    line.set("added p99, half the knee", format!("{priced}, free {free}"));
}
