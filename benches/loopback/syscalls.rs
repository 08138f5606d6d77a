//! System calls of one call, counted by strace.
//!
//! strace slows a process down to some 2,000 calls a second. A thread that wakes every few milliseconds then wakes for
//! fewer calls: the log's writer alone makes 0.1 futex calls per call here, and 0.01 at full rate. So the goal stands at
//! chat calls only, and bare Pingora's handler with a log line shows the same for decisions.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::Lab;
use crate::kind::{EVENTS, Kind};
use crate::load;
use crate::options::Options;
use crate::print_line;
use crate::process::{Part, is_installed};
use crate::rates::CONNECTIONS;
use crate::report::{Goal, ResultLine, Table, figure};

/// The number of counted calls.
const CALLS: usize = 4000;
/// The time that strace has to start or to end.
const TOOL_TIMEOUT: Duration = Duration::from_secs(30);

/// The system calls of one call.
struct Syscalls {
    all: f64,
    /// Those that wake another thread or wait for it.
    futex: f64,
}

/// Counts and prints the system calls of each kind of calls.
pub fn print(lab: &Lab, options: &Options, folder: &Path, line: &mut ResultLine) {
    if !is_installed("strace") {
        return print_line("\nskipped: system calls (strace is not installed)");
    }
    let mut table = Table::new(
        "System calls of a call, all threads",
        &["bare", "ours", "futex bare", "ours", "goal"],
    );
    for kind in options.kinds() {
        let bare = kind.has_bare().then(|| count(&lab.bare, folder, kind));
        let ours = count(&lab.gateway, folder, kind);
        let or_dash = |number: Option<f64>| number.map_or("–".to_owned(), figure);
        table.row(
            kind.label(),
            [
                or_dash(bare.as_ref().map(|bare| bare.all)),
                figure(ours.all),
                or_dash(bare.as_ref().map(|bare| bare.futex)),
                figure(ours.futex),
                if kind.is_chat() {
                    Goal::AtMost(0.05).with(ours.futex)
                } else {
                    String::new()
                },
            ],
        );
        if kind == Kind::Json {
            line.set("futex", figure(ours.futex));
        }
    }
    table.print();
}

/// Counts the system calls of a kind of calls.
fn count(part: &Part, folder: &Path, kind: Kind) -> Syscalls {
    let calls = if kind.is_stream() {
        CALLS / EVENTS * 10
    } else {
        CALLS
    };
    let out = folder.join("strace");
    let tool = Command::new("strace")
        .args(["-c", "-f", "-p", &part.id().to_string(), "-o"])
        .arg(&out)
        .stderr(Stdio::null())
        .spawn();
    let mut tool = tool.unwrap();
    wait_for("strace", || is_traced(part));
    load::calls(part, kind, CONNECTIONS, calls);
    end(&mut tool);
    let counted = std::fs::read_to_string(&out).unwrap();
    let counted = table_rows(&counted);
    let per_call = |name| counted.get(name).copied().unwrap_or_default() / calls as f64;
    Syscalls {
        all: per_call("total"),
        futex: per_call("futex"),
    }
}

/// Returns whether every thread of a part is traced.
fn is_traced(part: &Part) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{}/task", part.id())).unwrap();
    let mut statuses = threads.map(|thread| {
        std::fs::read_to_string(thread.unwrap().path().join("status")).unwrap_or_default()
    });
    statuses.all(|status| !status.contains("TracerPid:\t0\n"))
}

/// Returns the calls by name from the table that strace writes: the number is the fourth column, the name the last.
fn table_rows(text: &str) -> BTreeMap<&str, f64> {
    let rows = text.lines().filter_map(|line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        Some((*columns.last()?, columns.get(3)?.parse().ok()?))
    });
    rows.collect()
}

/// Ends strace, which then writes its counts. The part runs on.
fn end(tool: &mut Child) {
    kill_process(Pid::from_child(tool), Signal::INT).unwrap();
    wait_for("the end of strace", || tool.try_wait().unwrap().is_some());
}

fn wait_for(what: &str, mut is_done: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_done() {
        assert!(started.elapsed() < TOOL_TIMEOUT, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
