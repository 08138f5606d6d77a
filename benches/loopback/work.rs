//! Instructions, allocations and cache misses of one call, counted by callgrind.
//!
//! Misses are those of modelled caches ([`CACHES`]), so they do not depend on the machine and its other programs: what a
//! call touches, and how far that lies apart. All threads of a process share the caches, as on one core.
//!
//! callgrind counts allocations too: it knows the calls of every function. dhat would miss those of jemalloc, which is
//! linked into the program and has no symbol that valgrind replaces. Under callgrind a process is some fifty times slower,
//! so threads that wake by the clock count for more calls than usual; the worker's own figures are exact. valgrind has no
//! SHA instructions: the key of a cache hit is hashed by 60,000 instructions that a processor does not need.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::Lab;
use crate::gateway;
use crate::kind::{EVENTS, Kind};
use crate::load;
use crate::options::Options;
use crate::print_line;
use crate::process::{Part, is_installed};
use crate::report::{ResultLine, Table, figure};

/// The connections of counted calls.
const CONNECTIONS: usize = 8;
/// The number of counted calls.
const CALLS: usize = 400;
/// A core of 32 KB of the first level for code and for data each, and 512 KB of the second for both.
const CACHES: [&str; 4] = [
    "--cache-sim=yes",
    "--I1=32768,8,64",
    "--D1=32768,8,64",
    "--LL=524288,8,64",
];
/// The columns of misses, and callgrind's events that count them. It calls its last level LL.
const MISSES: [(&str, &[&str]); 4] = [
    ("L1 code", &["I1mr"]),
    ("L2 code", &["ILmr"]),
    ("L1 data", &["D1mr", "D1mw"]),
    ("L2 data", &["DLmr", "DLmw"]),
];
/// What Rust calls in jemalloc, and SQLite in the C library. None of these calls another one.
const ALLOCATING: [&str; 8] = [
    "_rjem_malloc",
    "_rjem_mallocx",
    "_rjem_calloc",
    "_rjem_realloc",
    "_rjem_rallocx",
    "malloc",
    "calloc",
    "realloc",
];

/// What one call takes.
#[derive(Clone, Copy, Debug, Default)]
struct Work {
    /// Instructions and allocations of the worker.
    worker: Counted,
    /// Instructions and allocations of all threads.
    all: Counted,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    instructions: f64,
    allocations: f64,
    /// In the order of [`MISSES`].
    misses: [f64; MISSES.len()],
}

/// Counts and prints the work of each kind of calls.
pub fn print(lab: &Lab, options: &Options, folder: &Path, line: &mut ResultLine) {
    if !is_installed("valgrind") {
        return print_line("\nskipped: instructions and allocations (valgrind is not installed)");
    }
    let (bare_folder, ours_folder) = (folder.join("bare"), folder.join("ours"));
    let bare = start("bare", lab, &bare_folder);
    let ours = start("gateway", lab, &ours_folder);
    let columns = [
        "bare",
        "ours",
        "÷ bare",
        "ours, all threads",
        "allocations bare",
        "ours",
        "ours, all threads",
    ];
    let mut table = Table::new(
        "Instructions (thousands) and allocations of a call, of the worker",
        &columns,
    );
    let mut counted = Vec::new();
    for kind in options.kinds() {
        let of_bare = kind.has_bare().then(|| count(&bare, &bare_folder, kind));
        let of_ours = count(&ours, &ours_folder, kind);
        let ratio = of_bare.map(|bare| of_ours.worker.instructions / bare.worker.instructions);
        let or_dash = |number: Option<f64>| number.map_or("–".to_owned(), figure);
        table.row(
            kind.label(),
            [
                or_dash(of_bare.map(|bare| bare.worker.instructions / 1e3)),
                figure(of_ours.worker.instructions / 1e3),
                or_dash(ratio),
                figure(of_ours.all.instructions / 1e3),
                or_dash(of_bare.map(|bare| bare.worker.allocations)),
                figure(of_ours.worker.allocations),
                figure(of_ours.all.allocations),
            ],
        );
        if let (Kind::Json, Some(ratio)) = (kind, ratio) {
            let allocations = figure(of_ours.all.allocations);
            line.set("instructions", format!("{} ×", figure(ratio)));
            line.set("allocations", allocations);
        }
        counted.push((kind, of_bare, of_ours));
    }
    table.print();
    print_misses(&counted, line);
}

/// Prints the misses of each kind, of all threads.
fn print_misses(counted: &[(Kind, Option<Work>, Work)], line: &mut ResultLine) {
    let names = std::iter::once("instructions").chain(MISSES.map(|(name, _)| name));
    let columns: Vec<String> = names
        .flat_map(|name| [format!("{name}: bare"), "ours".to_owned()])
        .collect();
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let mut table = Table::new(
        "Instructions and cache misses of a call, all threads",
        &columns,
    );
    let cells = |work: &Counted| {
        let counts = std::iter::once(work.instructions).chain(work.misses);
        counts.map(figure).collect::<Vec<_>>()
    };
    for (kind, bare, ours) in counted {
        let ours = cells(&ours.all);
        let bare = bare.as_ref().map(|bare| cells(&bare.all));
        let bare = bare.unwrap_or_else(|| vec!["–".to_owned(); ours.len()]);
        if *kind == Kind::Json {
            line.set("L2 misses", format!("code {}, data {}", ours[2], ours[4]));
        }
        let pairs = bare.into_iter().zip(ours);
        table.row(kind.label(), pairs.flat_map(|(bare, ours)| [bare, ours]));
    }
    table.print();
}

/// Starts a part under callgrind, whose files go to this folder.
fn start(role: &str, lab: &Lab, folder: &Path) -> Part {
    std::fs::create_dir(folder).unwrap();
    let mut tool: Vec<String> = [
        "valgrind",
        "-q",
        "--tool=callgrind",
        "--separate-threads=yes",
        "--compress-strings=no",
    ]
    .map(str::to_owned)
    .into();
    tool.extend(CACHES.map(str::to_owned));
    tool.push(format!(
        "--callgrind-out-file={}",
        folder.join("callgrind").display()
    ));
    // The pipes through which `vgdb` gives orders.
    tool.push(format!("--vgdb-prefix={}", folder.join("vgdb").display()));
    match role {
        "gateway" => {
            let state = folder.join("state").display().to_string();
            gateway::start(&tool, lab.upstream(), &state)
        }
        _ => Part::start_under(&tool, role, &lab.environment()),
    }
}

/// Counts a kind of calls on a part under callgrind.
fn count(part: &Part, folder: &Path, kind: Kind) -> Work {
    let calls = if kind.is_stream() {
        CALLS / EVENTS * 10
    } else {
        CALLS
    };
    load::calls(part, kind, CONNECTIONS, calls);
    vgdb(part, folder, "zero");
    load::calls(part, kind, CONNECTIONS, calls);
    vgdb(part, folder, "dump");
    let mut work = Work::default();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !name.starts_with("callgrind.") {
            continue;
        }
        let dump = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        let thread = Counted::from_dump(&dump, calls as f64);
        work.all.instructions += thread.instructions;
        work.all.allocations += thread.allocations;
        let misses = work.all.misses.iter_mut().zip(thread.misses);
        misses.for_each(|(sum, misses)| *sum += misses);
        // The worker is the thread that does most.
        if thread.instructions > work.worker.instructions {
            work.worker = thread;
        }
    }
    work
}

fn vgdb(part: &Part, folder: &Path, order: &str) {
    let status = Command::new("vgdb")
        .arg(format!("--vgdb-prefix={}", folder.join("vgdb").display()))
        .arg(format!("--pid={}", part.id()))
        .arg(order)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    assert!(status.unwrap().success(), "vgdb {order}");
}

impl Counted {
    /// Reads the counts of one thread since the last order.
    fn from_dump(text: &str, calls: f64) -> Self {
        let mut counted = Self::default();
        let mut is_allocating = false;
        let mut events = Vec::new();
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("cfn=") {
                // callgrind marks recursions with an apostrophe and a number.
                is_allocating = ALLOCATING.contains(&name.split('\'').next().unwrap());
            } else if let Some(count) = line.strip_prefix("calls=") {
                if is_allocating {
                    counted.allocations += first_number(count) / calls;
                }
            } else if let Some(names) = line.strip_prefix("events:") {
                events = names.split_whitespace().collect();
            } else if let Some(totals) = line.strip_prefix("totals:") {
                let totals = totals.split_whitespace().map(first_number);
                let totals: BTreeMap<_, _> = events.iter().copied().zip(totals).collect();
                let per_call = |event: &str| totals.get(event).copied().unwrap_or_default() / calls;
                counted.instructions = per_call("Ir");
                counted.misses =
                    MISSES.map(|(_, events)| events.iter().map(|it| per_call(it)).sum());
            }
        }
        counted
    }
}

fn first_number(text: &str) -> f64 {
    text.split_whitespace().next().unwrap().parse().unwrap()
}
