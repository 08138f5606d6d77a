//! Windows of several processes with one Redis, as parts of this process.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use filters::limits::{Algorithm, RowId, Subject, WindowKey};
use prometheus::{IntCounterVec, IntGauge, Opts};
use tokio::runtime::Runtime;
use weirgate::config::OnOutage;
use weirgate::limits::Sharing;
use weirgate::limits::counters::WindowCounters;
use weirgate::redis::{Heartbeat, Purpose, Redis as Connection};

use super::redis::Redis;
use super::until;

/// The part of one process: a connection and windows.
pub struct Process {
    /// The connection.
    pub redis: Connection,
    /// The windows.
    pub counters: WindowCounters,
    /// The metric of leases.
    pub leased_units: IntCounterVec,
    _heart: Heartbeat,
}

/// Whether each request is counted in Redis on its own, or units of hot windows are leased.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mode {
    /// `limits.shared_exact = true`.
    Exact,
    /// `limits.shared_exact = false`.
    Leasing,
}

impl Mode {
    /// Both.
    pub const ALL: [Mode; 2] = [Mode::Exact, Mode::Leasing];
}

/// One of them, which may not know the others yet.
pub fn process(
    redis: &Redis,
    algorithm: Algorithm,
    window: Duration,
    (on_outage, mode): (OnOutage, Mode),
) -> Process {
    let gauge = IntGauge::new("degraded", "for a test").unwrap();
    let options = Opts::new("leased", "for a test");
    let (connection, heart) = Connection::start(&redis.url(), Purpose::Shared, gauge).unwrap();
    let sharing = Sharing {
        redis: connection.clone(),
        on_outage,
        is_exact: mode == Mode::Exact,
        leased_units: IntCounterVec::new(options, &["state"]).unwrap(),
    };
    Process {
        counters: WindowCounters::with_sharing(algorithm, window, Some(&sharing), None),
        redis: connection,
        leased_units: sharing.leased_units,
        _heart: heart,
    }
}

/// Three that know of each other.
pub fn three(
    redis: &Redis,
    algorithm: Algorithm,
    window: Duration,
    sharing: (OnOutage, Mode),
) -> [Process; 3] {
    let three = [(); 3].map(|()| process(redis, algorithm, window, sharing));
    let know = || three.iter().all(|it| it.redis.processes() == 3);
    until("all processes are known", know);
    three
}

/// A runtime for their requests.
pub fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
}

/// The window of a subject.
pub fn key(subject: &str) -> WindowKey {
    WindowKey {
        subject: Subject::Named(subject.into()),
        row: RowId::from_name("GET /a"),
    }
}

/// How many of `asked` requests each process admits, put to all of them at once by 16 tasks each, and how many
/// questions Redis did not answer.
pub fn ask(runtime: &Runtime, processes: &[Process], limit: u64, asked: u64) -> (Vec<u64>, u64) {
    const TASKS: u64 = 16;
    let (key, unanswered) = (key("tenant"), AtomicU64::new(0));
    let share = asked / TASKS / processes.len() as u64;
    let work = processes.iter().map(async |process| {
        let tasks = (0..TASKS).map(async |_| {
            let mut count = 0;
            for _ in 0..share {
                let verdict = process.counters.admit(&key, limit).await.ok();
                let shared = verdict.and_then(|verdict| verdict.refund_token.shared_ms());
                unanswered.fetch_add(u64::from(shared.is_none()), Ordering::Relaxed);
                count += u64::from(verdict.is_some_and(|verdict| verdict.is_allowed));
            }
            count
        });
        futures::future::join_all(tasks).await.into_iter().sum()
    });
    let admitted = runtime.block_on(futures::future::join_all(work));
    (admitted, unanswered.into_inner())
}

/// The result of a run in which Redis answered every question in time. On a busy machine it may take longer than a
/// request waits: such runs are repeated for up to two minutes.
pub fn undisturbed<T>(run: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + Duration::from_secs(120);
    let runs = std::iter::repeat_with(run).take_while(|it| it.is_some() || Instant::now() < until);
    runs.flatten()
        .next()
        .expect("a run in which Redis answers in time")
}
