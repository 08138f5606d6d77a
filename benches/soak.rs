//! A long run while two of three providers fail again and again: no call may fail, and nothing may grow.
//!
//! `make soak` runs it for 20 minutes. The environment sets `WEIRGATE_SOAK_MINUTES`, `WEIRGATE_SOAK_RATE` (calls a second)
//! and `WEIRGATE_SOAK_STORE`, a line for `[store]`. Without minutes it makes two short rounds, so that `cargo bench` shows
//! that it works.
//!
//! The gateway has one core for all of its threads. The load and the providers have the others. A call that is not
//! answered with 200 stops the run.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    unreachable_pub,
    dead_code,
    reason = "a bench, which shares modules with another"
)]

#[path = "loopback/gateway.rs"]
mod gateway;
#[path = "loopback/kind.rs"]
mod kind;
#[path = "loopback/load.rs"]
mod load;
#[path = "loopback/message.rs"]
mod message;
#[path = "loopback/options.rs"]
mod options;
#[path = "loopback/process.rs"]
mod process;
#[path = "soak/providers.rs"]
mod providers;

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use kind::Kind;
use options::{number, variable};
use process::Part;
use providers::Providers;
use weirgate::store::{Store, StoreSettings};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// The connections of the load.
const CONNECTIONS: usize = 64;
/// A tenth more attempts than calls is what failing providers may cost.
const MAX_ATTEMPTS_PER_CALL: f64 = 1.10;
/// How much memory and time per call may have grown from the second quarter of the run to its last.
const MAX_GROWTH: f64 = 1.15;

fn main() {
    match variable("WEIRGATE_BENCH_ROLE").as_deref() {
        Some("gateway") => serve(),
        _ => drive(),
    }
}

fn print_line(line: &str) {
    println!("{line}");
    std::io::stdout().flush().unwrap();
}

/// Runs the gateway.
fn serve() {
    let folder = variable("WEIRGATE_BENCH_FOLDER").unwrap();
    let addresses = variable("WEIRGATE_BENCH_UPSTREAM").unwrap();
    let configuration = configuration(&folder, &addresses, "127.0.0.1:0");
    gateway::serve(&folder, &models(&addresses), &configuration)
}

/// Starts the gateway: this program, or the binary that `WEIRGATE_BENCH_BINARY` names.
fn start(folder: &str, addresses: &str) -> Part {
    let configuration = |address: &str| configuration(folder, addresses, address);
    gateway::start_binary(&[], folder, &models(addresses), configuration).unwrap_or_else(|| {
        let variables = [
            ("WEIRGATE_BENCH_FOLDER", folder),
            ("WEIRGATE_BENCH_UPSTREAM", addresses),
        ];
        Part::start("gateway", &variables)
    })
}

/// Returns the catalogue. The two providers that fail are the cheap ones, so that routing wants them.
fn models(addresses: &str) -> String {
    let of_provider = |(number, _): (usize, &str)| {
        let price = if number == 0 { "3" } else { "1" };
        format!(
            "[[models.providers]]\nprovider = \"p{number}\"\nname = \"up\"\ninput_price = \"{price}\"\noutput_price = \"{price}\"\n"
        )
    };
    let providers: String = addresses.split(' ').enumerate().map(of_provider).collect();
    format!("[[models]]\nid = \"own\"\n{providers}")
}

fn configuration(folder: &str, addresses: &str, address: &str) -> String {
    let of_provider = |(number, address): (usize, &str)| {
        format!(
            "[providers.p{number}]\nkind = \"openai-compatible\"\nbase_url = \"http://{address}/v1\"\nkeys = []\n"
        )
    };
    let providers: String = addresses.split(' ').enumerate().map(of_provider).collect();
    format!(
        "[listen]\naddress = \"{address}\"\n[admin]\naddress = \"127.0.0.1:0\"\n[server]\nthreads = 1\n{}\n\
         [limits]\nrequests_per_minute = {{ chat = 0 }}\n[models]\nfile = \"{folder}/models.toml\"\n{providers}",
        store(folder)
    )
}

/// Returns the configuration's `[store]`.
fn store(folder: &str) -> String {
    let more = variable("WEIRGATE_SOAK_STORE").unwrap_or_default();
    format!("[store]\nurl = \"sqlite:{folder}/soak.db\"\nstate_dir = \"{folder}\"\n{more}\n")
}

/// What one round showed.
struct Sample {
    resident_kib: u64,
    cpu_us: f64,
}

fn drive() {
    let minutes = number("WEIRGATE_SOAK_MINUTES");
    let rate =
        number("WEIRGATE_SOAK_RATE").unwrap_or(if minutes.is_some() { 3000.0 } else { 500.0 });
    let (rounds, time) = match minutes {
        Some(minutes) => ((minutes * 2.0).ceil() as usize, Duration::from_secs(30)),
        None => (2, Duration::from_secs(4)),
    };
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("state");
    let folder = folder.to_str().unwrap();
    let providers = Providers::start();
    let upstream = providers.addresses.join(" ");
    let part = start(folder, &upstream);
    print_line(&format!(
        "{rounds} rounds of {time:?} at {rate} calls a second, two of three providers flapping"
    ));
    print_line(
        "round | calls/s | attempts/call | p50 ms | p99 ms | µs CPU/call | resident MiB | disk MiB",
    );
    let (mut samples, mut calls) = (Vec::new(), 0);
    for round in 1..=rounds {
        let before = providers.attempts();
        let paced = load::paced(&part, Kind::Json, CONNECTIONS, rate, time);
        let sent = load::paced_calls(rate, time);
        calls += sent;
        let sample = Sample {
            resident_kib: part.resident_kib(),
            cpu_us: paced.cpu_us.sum(),
        };
        print_line(&format!(
            "{round} | {:.0} | {:.3} | {:.2} | {:.2} | {:.1} | {:.1} | {:.1}",
            paced.per_second,
            (providers.attempts() - before) as f64 / sent as f64,
            paced.p50_ms,
            paced.p99_ms,
            sample.cpu_us,
            sample.resident_kib as f64 / 1024.0,
            bytes_in(Path::new(folder)) as f64 / f64::from(1 << 20),
        ));
        samples.push(sample);
    }
    judge(&samples, &providers, calls, minutes.is_some());
    // What is not stored yet is in the journal, which the killed process leaves to the next start. So it gets a moment.
    std::thread::sleep(Duration::from_secs(3));
    drop(part);
    let stored = stored_calls(folder);
    print_line(&format!("{calls} calls answered, {stored} in the ledger"));
    assert_eq!(stored, calls as i64, "the ledger has every call once");
}

/// Checks what the whole run showed. Short runs say nothing about growth.
fn judge(samples: &[Sample], providers: &Providers, calls: u64, is_long: bool) {
    let attempts = providers.attempts() as f64 / calls as f64;
    print_line(&format!(
        "{attempts:.3} attempts a call; faults met: {}",
        providers.faults()
    ));
    if !is_long {
        return;
    }
    assert!(attempts <= MAX_ATTEMPTS_PER_CALL, "too many attempts");
    let quarter = (samples.len() / 4).max(1);
    let mean = |of: fn(&Sample) -> f64, samples: &[Sample]| {
        samples.iter().map(of).sum::<f64>() / samples.len() as f64
    };
    let second = &samples[quarter..(2 * quarter).max(quarter + 1).min(samples.len())];
    let last = &samples[samples.len() - quarter..];
    for (name, of) in [
        (
            "memory",
            (|it| it.resident_kib as f64) as fn(&Sample) -> f64,
        ),
        ("CPU", |it| it.cpu_us),
    ] {
        let growth = mean(of, last) / mean(of, second);
        print_line(&format!(
            "{name}: last quarter ÷ second quarter {growth:.2}"
        ));
        assert!(growth <= MAX_GROWTH, "{name} grows");
    }
}

/// Returns the size of all files in a folder.
fn bytes_in(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).unwrap();
    let sizes = entries.map(|entry| {
        let entry = entry.unwrap();
        // A file may be deleted meanwhile.
        match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => bytes_in(&entry.path()),
            Ok(metadata) => metadata.len(),
            Err(_) => 0,
        }
    });
    sizes.sum()
}

/// Returns the number of calls in the ledger.
fn stored_calls(folder: &str) -> i64 {
    let toml = store(folder);
    let loaded = weirgate::config::from_str(&toml, []).unwrap_or_else(|it| panic!("{}", it[0]));
    let settings = StoreSettings::from_config(&loaded.config.store).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let opened = Store::open(&settings).await.unwrap();
        let rows = opened.store.usage("bench", 0, None).await.unwrap();
        opened.store.close().await;
        rows.iter().map(|row| row.requests).sum()
    })
}
