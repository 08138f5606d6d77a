//! Measures limits: nanoseconds per admission, bytes per window, and how both grow.
//!
//! `make bench` runs it in one process without sockets. Figures are printed beside their targets. Machines are noisy,
//! so the best of several rounds counts.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a bench"
)]

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use filters::graph::Operations;
use filters::graph::headers;
use filters::limits::{Algorithm, RowId, Subject, WindowKey, Windows};
use filters::proxy::{check_http1, normalise};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const LIMIT: u64 = 1_500;
const OPERATIONS: u64 = 4_000_000;
const ROUNDS: usize = 5;

fn main() {
    let operations = Operations::parse([], &BTreeMap::new()).unwrap();
    // Memory comes first, while the process has allocated little else.
    memory(&operations);
    for algorithm in [Algorithm::Fixed, Algorithm::Sliding] {
        speed(algorithm);
        contention(algorithm);
    }
    requests(&operations);
    framing();
}

fn tenant(number: usize) -> Subject {
    Subject::Named(format!("tenant-{number:08}").into())
}

fn key(number: usize) -> WindowKey {
    WindowKey {
        subject: tenant(number),
        row: RowId::from_name("POST /content/v2"),
    }
}

fn memory(operations: &Operations) {
    let mut rows: Vec<RowId> = operations.all().map(|operation| operation.id).collect();
    rows.sort();
    rows.dedup();
    let tenants: Vec<Subject> = (0..100_000).map(tenant).collect();
    let windows = Windows::new(Algorithm::Fixed, 10_000);
    let before = resident_bytes();
    for subject in &tenants {
        for &row in &rows[..10] {
            let subject = subject.clone();
            windows.admit(&WindowKey { subject, row }, LIMIT, 0);
        }
    }
    let full = resident_bytes() - before;
    let start = Instant::now();
    (0..windows.shard_count()).for_each(|shard| windows.sweep(shard, 10_000));
    println!(
        "memory: {} pairs in {} MB (target: 1000000 under 150); swept in {} ms, {} left",
        tenants.len() * 10,
        full / 1_000_000,
        start.elapsed().as_millis(),
        windows.len(),
    );
}

/// Returns the nanoseconds of one operation, in the best of several rounds.
fn best(mut operation: impl FnMut(u64)) -> f64 {
    let round = |_| {
        let start = Instant::now();
        (0..OPERATIONS).for_each(&mut operation);
        start.elapsed().as_nanos() as f64 / OPERATIONS as f64
    };
    (0..ROUNDS).map(round).fold(f64::MAX, f64::min)
}

fn speed(algorithm: Algorithm) {
    let windows = Windows::new(algorithm, 10_000);
    let hot = key(0);
    let mut now = 0;
    let one = best(|_| {
        now += 1;
        black_box(windows.admit(black_box(&hot), LIMIT, now / 1_000));
    });
    let keys: Vec<WindowKey> = (0..4_096).map(key).collect();
    let many = best(|number| {
        now += 1;
        let key = &keys[number.wrapping_mul(2_654_435_761) as usize % keys.len()];
        black_box(windows.admit(black_box(key), LIMIT, now / 1_000));
    });
    println!(
        "{algorithm:?}: one admit {one:.0} ns on one key, {many:.0} ns on 4096 (target: under 150)"
    );
}

fn contention(algorithm: Algorithm) {
    let windows = Windows::new(algorithm, 10_000);
    let hot = Arc::new(key(0));
    let run = |threads: u64| {
        let start = Instant::now();
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    for number in 0..OPERATIONS / threads {
                        black_box(windows.admit(&hot, LIMIT, number / 1_000));
                    }
                });
            }
        });
        start.elapsed().as_nanos() as f64 / OPERATIONS as f64
    };
    let figures = [1, 2, 4, 64].map(|threads| format!("{threads}: {:.0} ns", run(threads)));
    println!(
        "{algorithm:?}: one hot key, wall time of one admit by threads: {} (target: no worse than the first)",
        figures.join(", ")
    );
}

/// Measures a whole decision up to the headers, and the same with the body of a refusal.
fn requests(operations: &Operations) {
    let windows = Windows::new(Algorithm::Fixed, 10_000);
    let subject = tenant(0);
    let decide = |limit| {
        let path = normalise(black_box("/content/v2")).unwrap();
        let operation = operations.find("POST", &path).operation;
        let key = WindowKey {
            subject: subject.clone(),
            row: operation.id,
        };
        let verdict = windows.admit(&key, limit, 0);
        black_box(headers::limit_headers(limit, 10));
        verdict
    };
    let admitted = best(|_| {
        black_box(decide(u64::MAX));
    });
    let refused = best(|_| {
        let verdict = decide(0);
        black_box(headers::refusal_headers(&verdict));
        black_box(headers::refusal_body(0, 10, "tenant-00000000"));
    });
    println!(
        "a whole decision: {admitted:.0} ns where admitted, {refused:.0} ns with a refusal's answer"
    );
}

/// The head that an SDK sends.
const HEAD: &[u8] = b"POST /v1/chat/completions HTTP/1.1\r\n\
    Host: gateway.example.com:8080\r\nAccept-Encoding: gzip, deflate\r\nConnection: keep-alive\r\n\
    Accept: application/json\r\nContent-Type: application/json\r\nUser-Agent: OpenAI/Python 2.8.0\r\n\
    X-Stainless-Lang: python\r\nX-Stainless-OS: Linux\r\nX-Stainless-Arch: x64\r\nX-Stainless-Retry-Count: 0\r\n\
    Authorization: Bearer wg_0000000000000000000000000000000000000000000\r\nContent-Length: 1042\r\n\r\n";

fn framing() {
    check_http1(HEAD, 32 << 10).unwrap();
    let judged = best(|_| {
        _ = black_box(check_http1(black_box(HEAD), 32 << 10));
    });
    println!(
        "a head of {} bytes judged: {judged:.0} ns (target: under 300)",
        HEAD.len()
    );
}

/// Returns the resident memory of this process.
fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = text.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4_096
}
