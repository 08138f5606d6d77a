//! Instructions and allocations of one call, counted by callgrind.
//!
//! callgrind counts allocations too: it knows the calls of every function. dhat would miss those of mimalloc, which is
//! linked into the program and has no symbol that valgrind replaces. Under callgrind a process is some fifty times slower,
//! so threads that wake by the clock count for more calls than usual; the worker's own figures are exact. valgrind has no
//! SHA instructions: the key of a cache hit is hashed by 60,000 instructions that a processor does not need.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::Lab;
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
/// What Rust calls in mimalloc, and SQLite in the C library. None of these calls another one.
const ALLOCATING: [&str; 6] = [
    "mi_malloc_aligned",
    "mi_zalloc_aligned",
    "mi_realloc_aligned",
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
    tool.push(format!(
        "--callgrind-out-file={}",
        folder.join("callgrind").display()
    ));
    // The pipes through which `vgdb` gives orders.
    tool.push(format!("--vgdb-prefix={}", folder.join("vgdb").display()));
    let state = folder.join("state").display().to_string();
    let mut variables = lab.environment();
    variables.push(("WEIRGATE_BENCH_FOLDER", &state));
    Part::start_under(&tool, role, &variables)
}

/// Counts a kind of calls on a part under callgrind.
fn count(part: &Part, folder: &Path, kind: Kind) -> Work {
    let calls = if kind == Kind::Stream {
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
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("cfn=") {
                // callgrind marks recursions with an apostrophe and a number.
                is_allocating = ALLOCATING.contains(&name.split('\'').next().unwrap());
            } else if let Some(count) = line.strip_prefix("calls=") {
                if is_allocating {
                    counted.allocations += first_number(count) / calls;
                }
            } else if let Some(total) = line.strip_prefix("totals:") {
                counted.instructions = first_number(total) / calls;
            }
        }
        counted
    }
}

fn first_number(text: &str) -> f64 {
    text.split_whitespace().next().unwrap().parse().unwrap()
}
