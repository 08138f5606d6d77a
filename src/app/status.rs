//! What this process is doing, for `weirgate status`.

use std::time::Instant;

use filters::money::PricePoint;
use jiff::Timestamp;

use super::health::STORE_OUTAGE_TIMEOUT;
use super::reload::Reloader;
use super::state::AppState;
use crate::control::status::{
    HeldCredit, JournalState, ProcessLoad, ProcessStatus, ProviderState, SERVES, StoreState,
};
use crate::telemetry::metrics::Metrics;
use crate::telemetry::reload::whole_second;

/// When the process began to answer commands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Started {
    at: Timestamp,
    since: Instant,
}

impl Started {
    /// Begins now.
    pub(super) fn now() -> Self {
        Self {
            at: Timestamp::now(),
            since: Instant::now(),
        }
    }
}

/// Gathers what is known. Cost: no query.
pub(super) fn gather(reloader: &Reloader, started: Started) -> ProcessStatus {
    let app = reloader.app();
    let metrics = &app.proxy.metrics;
    let state = app.proxy.check_ready();
    let (public, admin) = reloader.addresses();
    ProcessStatus {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        process: std::process::id(),
        state: state.map_or_else(|why| why, |()| SERVES.to_owned()),
        started_at: whole_second(started.at).to_string(),
        uptime_s: started.since.elapsed().as_secs(),
        listeners: [public, admin].map(|it| it.to_string()).to_vec(),
        load: ProcessLoad {
            requests: metrics.ended_requests(),
            in_flight: metrics.in_flight.get(),
            streams: metrics.streams_open.get(),
            connections: metrics.connections.get(),
            memory_bytes: memory(),
        },
        store: store(&app, reloader.store_url()),
        redis: reloader.is_redis_available().map(|is_available| {
            let state = if is_available {
                "answers"
            } else {
                "does not answer"
            };
            state.to_owned()
        }),
        journal: JournalState {
            bytes: metrics.journal_bytes.get(),
            lag_s: metrics.journal_lag.get(),
            refused: metrics.ledger_refused.get(),
        },
        leases: leases(&app),
        providers: providers(&app, metrics),
        configuration: serde_json::to_value(metrics.reloads.status()).unwrap_or_default(),
    }
}

fn store(app: &AppState, url: String) -> StoreState {
    let age = app.proxy.accounts.age();
    let state = match (age > STORE_OUTAGE_TIMEOUT, app.ledger.is_store_down()) {
        (true, _) => "does not answer",
        (false, true) => "takes no writes",
        (false, false) => "answers",
    };
    StoreState {
        url,
        state: state.to_owned(),
        confirmed_s: (age.as_secs_f64() * 10.0).round() / 10.0,
    }
}

fn leases(app: &AppState) -> HeldCredit {
    let held = app.ledger.held_leases();
    HeldCredit {
        organizations: held.organizations,
        free: held.free.to_string(),
        reserved: held.reserved.to_string(),
    }
}

/// Tells of the providers that can serve a model.
fn providers(app: &AppState, metrics: &Metrics) -> Vec<ProviderState> {
    let now_ms = app.proxy.clock.now_ms();
    let attempts = metrics.attempts_by_provider();
    let standings = app.models.planner.standings(now_ms, PricePoint::default());
    let serving = standings.into_iter().filter(|it| it.candidates > 0);
    let serving = serving.map(|standing| {
        let counts = attempts.get(&*standing.name).copied().unwrap_or_default();
        let uptime = standing.stats.map(|stats| stats.uptime);
        ProviderState {
            provider: standing.name.to_string(),
            candidates: standing.candidates,
            resting: standing.resting,
            uptime: uptime.map(|uptime| (uptime * 10.0).round() / 10.0),
            attempts: counts.all,
            failed: counts.failed,
        }
    });
    let mut serving: Vec<ProviderState> = serving.collect();
    serving.sort_by(|a, b| a.provider.cmp(&b.provider));
    serving
}

/// Returns the memory of this process, in bytes.
fn memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kilobytes * 1024)
}
