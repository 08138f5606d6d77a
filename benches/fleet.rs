//! Three processes on one PostgreSQL and one Redis, with many organizations and keys and a skewed load. Each key has limits,
//! a member with a budget, and 32 days of spending behind it. One process is frozen for a while; then a process is killed
//! three times.
//!
//! `make fleet` runs it with 10,000 organizations and 100,000 keys. The environment sets `WEIRGATE_FLEET_ORGANIZATIONS`,
//! `WEIRGATE_FLEET_RATE` (calls a second of all processes) and `WEIRGATE_FLEET_SECONDS`. Without the first the numbers are
//! small, so that `cargo bench` shows that it works.
//!
//! All processes, both servers and the load share the machine, so latencies stand beside those of the bare upstream in the
//! same run. The database does not force its files to the disk.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    unreachable_pub,
    dead_code,
    clippy::duplicate_mod,
    reason = "a bench, which shares modules with another"
)]

#[path = "fleet/accounts.rs"]
mod accounts;
#[path = "fleet/callers.rs"]
mod callers;
#[path = "loopback/kind.rs"]
mod kind;
#[path = "../tests/support/loopback.rs"]
mod loopback;
#[path = "loopback/message.rs"]
mod message;
#[path = "loopback/options.rs"]
mod options;
#[path = "../tests/support/postgres.rs"]
mod postgres;
#[path = "loopback/process.rs"]
mod process;
#[path = "../tests/support/redis.rs"]
mod redis;
#[path = "loopback/upstream.rs"]
mod upstream;

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use accounts::Accounts;
use callers::{Load, Seen};
use options::{number, variable};
use process::Part;
use rustix::process::{Pid, Signal};
use sqlx::{AssertSqlSafe, Connection, PgConnection, Row};
use tokio::runtime::Runtime;
use weirgate::config;
use weirgate::telemetry::logging::AccessLog;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const PROCESSES: usize = 3;
const KEYS_PER_ORGANIZATION: usize = 10;
const KILLS: usize = 3;
/// The longest pause of the fleet's other processes while one of them is frozen. Source: docs/promises-tests.md.
const FROZEN_PAUSE: Duration = Duration::from_secs(15);

const MODELS: &str = "[[models]]\nid = \"own\"\n[[models.providers]]\nprovider = \"own\"\nname = \"own-up\"\n\
    input_price = \"1\"\noutput_price = \"2\"\n";

fn main() {
    match variable("WEIRGATE_BENCH_ROLE").as_deref() {
        Some("gateway") => serve(),
        Some("upstream") => upstream::run(),
        _ => drive(),
    }
}

fn print_line(line: &str) {
    println!("{line}");
    std::io::stdout().flush().unwrap();
}

/// Runs one process of the fleet.
fn serve() {
    let loaded = config::from_str(&variable("WEIRGATE_FLEET_TOML").unwrap(), []);
    let loaded = loaded.unwrap_or_else(|problems| panic!("{}", problems[0]));
    let running = weirgate::app::boot(loaded, |metrics| {
        AccessLog::start(std::io::sink(), metrics.log_dropped.clone())
    })
    .unwrap();
    print_line(&running.public.to_string());
    loop {
        std::thread::park();
    }
}

/// What all processes share.
struct Fleet {
    root: tempfile::TempDir,
    store_url: String,
    redis_url: String,
    upstream: String,
}

impl Fleet {
    fn start_process(&self, number: usize) -> Part {
        let folder = self.root.path().join(number.to_string());
        std::fs::create_dir_all(&folder).unwrap();
        let models = self.root.path().join("models.toml");
        std::fs::write(&models, MODELS).unwrap();
        let toml = format!(
            "[listen]\naddress = \"127.0.0.1:0\"\n[admin]\naddress = \"127.0.0.1:0\"\n[server]\nthreads = 1\n\
             {}[shared]\nredis = \"{}\"\n[limits]\nrequests_per_minute = {{ chat = 0 }}\n[models]\nfile = \"{}\"\n\
             [providers.own]\nkind = \"openai-compatible\"\nbase_url = \"http://{}/v1\"\nkeys = []\n",
            self.store(folder.to_str().unwrap()),
            self.redis_url,
            models.display(),
            self.upstream,
        );
        Part::start("gateway", &[("WEIRGATE_FLEET_TOML", &toml)])
    }

    /// Returns the configuration's `[store]`.
    fn store(&self, folder: &str) -> String {
        let secret = self.root.path().join("secret");
        std::fs::write(&secret, accounts::SECRET).unwrap();
        format!(
            "[store]\nurl = \"{}\"\nstate_dir = \"{folder}\"\nsecret = {{ file = \"{}\" }}\n",
            self.store_url,
            secret.display()
        )
    }
}

fn drive() {
    let organizations = number("WEIRGATE_FLEET_ORGANIZATIONS").unwrap_or(50.0) as usize;
    let rate = number("WEIRGATE_FLEET_RATE").unwrap_or(300.0);
    let time = Duration::from_secs_f64(number("WEIRGATE_FLEET_SECONDS").unwrap_or(9.0));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let database = postgres::database();
    let redis = redis::Redis::start();
    let upstream = Part::start("upstream", &[]);
    let fleet = Fleet {
        root: tempfile::tempdir().unwrap(),
        store_url: database.url.clone(),
        redis_url: redis.url(),
        upstream: upstream.address.clone(),
    };
    runtime.block_on(async {
        let mut server = PgConnection::connect(&database.server_url).await.unwrap();
        sqlx::query(AssertSqlSafe(database.create.clone()))
            .execute(&mut server)
            .await
            .unwrap();
    });
    let accounts = Accounts::new(organizations, KEYS_PER_ORGANIZATION);
    let filled = Instant::now();
    let store = fleet.store(fleet.root.path().to_str().unwrap());
    runtime.block_on(accounts.fill(&store, &fleet.store_url));
    print_line(&format!(
        "{organizations} organizations, {} keys: filled in {:.1?}",
        accounts.keys(),
        filled.elapsed()
    ));
    let started = Instant::now();
    let mut parts: Vec<Part> = (0..PROCESSES)
        .map(|number| fleet.start_process(number))
        .collect();
    print_line(&format!(
        "{PROCESSES} processes started in {:.1?}",
        started.elapsed()
    ));
    let addresses: Vec<String> = parts.iter().map(|part| part.address.clone()).collect();
    let addresses = Arc::new(Mutex::new(addresses));

    let bare = Load::new(
        &accounts,
        &Arc::new(Mutex::new(vec![upstream.address.clone()])),
    );
    let bare = runtime.block_on(bare.run(rate, time / 4));
    let load = Load::new(&accounts, &addresses);
    runtime.block_on(load.run(rate, time / 4));
    let resident = parts.iter().map(Part::resident_kib).max().unwrap();
    let before = runtime.block_on(Work::read(&fleet.store_url));
    let calm = runtime.block_on(load.run(rate, time));
    let after = runtime.block_on(Work::read(&fleet.store_url));
    report(&bare, &calm, resident, &before, &after, time);
    assert_eq!(calm.refused().0, 0, "the store answers in time");

    let frozen = freeze_meanwhile(&runtime, &load, &addresses, &parts[0], (rate, time));
    let (refused, refused_for) = frozen.refused();
    print_line(&format!(
        "1 process frozen: {} answered, {} cut off, {refused} refused in {refused_for:.1?}; slowest {:.0} ms, p99 {:.2} ms",
        frozen.answered,
        frozen.cut,
        frozen.percentile_ms(100),
        frozen.percentile_ms(99),
    ));
    assert!(frozen.percentile_ms(100) < FROZEN_PAUSE.as_secs_f64() * 1e3);
    assert!(refused_for < FROZEN_PAUSE, "credit is back");

    let killed = kill_meanwhile(
        &runtime,
        &fleet,
        &load,
        &addresses,
        &mut parts,
        (rate, time),
    );
    print_line(&format!(
        "{KILLS} kills: {} answered, {} cut off, {} refused",
        killed.answered,
        killed.cut,
        killed.refused().0,
    ));
    // Records of the killed processes are posted by those that followed them.
    std::thread::sleep(Duration::from_secs(4));
    drop(parts);
    let stored = runtime.block_on(accounts::stored(&store));
    let (answered, cut) = load.totals();
    print_line(&format!(
        "answered {answered} ≤ ledger {} ≤ answered and cut off {}; charged {}, granted − balances {}",
        stored.calls,
        answered + cut,
        stored.cost,
        stored.used,
    ));
    assert!(answered <= stored.calls && stored.calls <= answered + cut);
    assert_eq!(stored.cost, stored.used, "balance + ledger = credit");
}

fn report(
    bare: &Seen,
    calm: &Seen,
    resident_kib: u64,
    before: &Work,
    after: &Work,
    time: Duration,
) {
    let per_second = |of: fn(&Work) -> i64| (of(after) - of(before)) as f64 / time.as_secs_f64();
    print_line(&format!(
        "calls/s {:.0}; p50 {:.2} ms, p99 {:.2} ms (bare upstream {:.2}, {:.2}); resident at most {:.1} MiB",
        calm.answered as f64 / time.as_secs_f64(),
        calm.percentile_ms(50),
        calm.percentile_ms(99),
        bare.percentile_ms(50),
        bare.percentile_ms(99),
        resident_kib as f64 / 1024.0,
    ));
    print_line(&format!(
        "store, per second: {:.1} posts, {:.1} changes of leases, {:.1} transactions, {:.1} rows written",
        per_second(|it| it.posts),
        per_second(|it| it.leases),
        per_second(|it| it.transactions),
        per_second(|it| it.rows),
    ));
}

/// Freezes a process in the middle of the load for a third of its time. Its new calls go to another one.
fn freeze_meanwhile(
    runtime: &Runtime,
    load: &Load,
    addresses: &Mutex<Vec<String>>,
    part: &Part,
    (rate, time): (f64, Duration),
) -> Seen {
    std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(time / 3);
            let other = addresses.lock().unwrap()[1].clone();
            let own = std::mem::replace(&mut addresses.lock().unwrap()[0], other);
            signal(part, Signal::STOP);
            std::thread::sleep(time / 3);
            signal(part, Signal::CONT);
            addresses.lock().unwrap()[0] = own;
        });
        runtime.block_on(load.run(rate, time))
    })
}

fn signal(part: &Part, signal: Signal) {
    let pid = i32::try_from(part.id()).ok().and_then(Pid::from_raw);
    rustix::process::kill_process(pid.unwrap(), signal).unwrap();
}

/// Kills a process at intervals and starts another on its state, while the load goes on.
fn kill_meanwhile(
    runtime: &Runtime,
    fleet: &Fleet,
    load: &Load,
    addresses: &Mutex<Vec<String>>,
    parts: &mut [Part],
    (rate, time): (f64, Duration),
) -> Seen {
    std::thread::scope(|scope| {
        let pause = time / (KILLS as u32 + 1);
        scope.spawn(move || {
            for number in 0..KILLS {
                std::thread::sleep(pause);
                let number = number % PROCESSES;
                parts[number].kill();
                let next = fleet.start_process(number);
                addresses.lock().unwrap()[number].clone_from(&next.address);
                parts[number] = next;
            }
        });
        runtime.block_on(load.run(rate, time))
    })
}

/// The work of the store so far.
struct Work {
    posts: i64,
    leases: i64,
    transactions: i64,
    rows: i64,
}

impl Work {
    async fn read(url: &str) -> Self {
        // The server publishes its counts once a second at most.
        tokio::time::sleep(Duration::from_millis(1100)).await;
        let mut connection = PgConnection::connect(url).await.unwrap();
        let mut count = async |sql: &'static str| -> i64 {
            sqlx::query(sql)
                .fetch_one(&mut connection)
                .await
                .unwrap()
                .get(0)
        };
        Self {
            posts: count("SELECT n_tup_ins FROM pg_stat_user_tables WHERE relname = 'call_batches'").await,
            leases: count("SELECT n_tup_ins + n_tup_upd + n_tup_del FROM pg_stat_user_tables WHERE relname = 'leases'").await,
            transactions: count("SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()").await,
            rows: count("SELECT sum(n_tup_ins + n_tup_upd + n_tup_del)::bigint FROM pg_stat_user_tables").await,
        }
    }
}
