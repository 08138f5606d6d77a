//! What the console costs: the CPU time of a call while calls are not kept, while they are and nobody looks, and while three
//! people follow them.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::Lab;
use crate::gateway;
use crate::kind::Kind;
use crate::load;
use crate::options::Options;
use crate::print_line;
use crate::process::Part;
use crate::rates::CONNECTIONS;
use crate::report::{Goal, Table, figure, median};

/// The rate of the calls.
const CALLS_PER_SECOND: f64 = 1_000.0;
/// The people who look.
const VIEWERS: usize = 3;
/// The share of the CPU time that keeping calls may add.
const GOAL_UNSEEN: f64 = 1.01;
/// The share that it may add with people who look.
const GOAL_SEEN: f64 = 1.05;

/// Measures and prints it. Rounds alternate.
pub fn print(lab: &Lab, options: &Options, folder: &Path) {
    let start = |name: &str, calls: usize| {
        let folder = folder.join(name).display().to_string();
        gateway::start_keeping(lab.upstream(), &folder, calls)
    };
    let (without, with) = (start("without", 0), start("with", 1_000));
    if with.admin.is_empty() {
        return print_line("\nskipped: the console (the gateway does not tell its admin listener)");
    }
    let round = |part: &Part| {
        let round = load::paced(
            part,
            Kind::Json,
            CONNECTIONS,
            CALLS_PER_SECOND,
            options.time,
        );
        round.cpu_us.sum()
    };
    let [mut off, mut unseen, mut seen] = [const { Vec::new() }; 3];
    let mut bytes = 0;
    for _ in 0..options.rounds {
        off.push(round(&without));
        unseen.push(round(&with));
        let viewers: Vec<Viewer> = (0..VIEWERS).map(|_| Viewer::start(&with.admin)).collect();
        seen.push(round(&with));
        bytes += viewers.into_iter().map(Viewer::end).sum::<u64>();
    }
    assert!(bytes > 0, "the viewers saw nothing");
    let columns = ["µs CPU a call", "÷ not kept", "goal"];
    let mut table = Table::new("The console, at 1,000 calls a second", &columns);
    for (name, rounds, goal) in [
        ("calls are not kept", &off, None),
        ("kept, nobody looks", &unseen, Some(GOAL_UNSEEN)),
        ("kept, three people look", &seen, Some(GOAL_SEEN)),
    ] {
        let ratio = median(rounds.iter().zip(&off).map(|(it, off)| it / off));
        let goal = goal.map_or("–".to_owned(), |goal| Goal::AtMost(goal).with(ratio));
        let cells = [figure(median(rounds.iter().copied())), figure(ratio), goal];
        table.row(name, cells);
    }
    table.print();
}

/// Somebody who follows the live calls.
pub struct Viewer {
    is_over: Arc<AtomicBool>,
    seen: Arc<AtomicU64>,
    thread: JoinHandle<()>,
}

impl Viewer {
    pub fn start(admin: &str) -> Self {
        let mut stream = TcpStream::connect(admin).unwrap();
        let head = "GET /console/live/events HTTP/1.1\r\nHost: localhost\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_millis(100)))
            .unwrap();
        let (is_over, seen) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU64::new(0)),
        );
        let (over, count) = (Arc::clone(&is_over), Arc::clone(&seen));
        let thread = std::thread::spawn(move || {
            let mut piece = [0; 16 << 10];
            while !over.load(Ordering::Relaxed) {
                // A read that finds nothing in time is none.
                let read = stream.read(&mut piece).unwrap_or(0);
                count.fetch_add(read as u64, Ordering::Relaxed);
            }
        });
        Self {
            is_over,
            seen,
            thread,
        }
    }

    /// Leaves. Returns the bytes that came.
    pub fn end(self) -> u64 {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
        self.seen.load(Ordering::Relaxed)
    }
}
