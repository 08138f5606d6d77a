//! What belongs to the process, whatever its configuration says. Reloads leave it alone.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use prometheus::IntGauge;
use tokio::runtime::Handle;

use super::boot::{BootError, failed, misconfigured};
use super::open_store::ReadyStore;
use crate::accounts::AccountsHandle;
use crate::config::{Config, Secret};
use crate::ledger::Ledger;
use crate::models::store_snapshots::StoreSnapshots;
use crate::proxy::clock::Clock;
use crate::proxy::stream_resets::StreamResets;
use crate::redis::{Heartbeat, Purpose, Redis};
use crate::store::Store;
use crate::telemetry::logging::AccessLog;
use crate::telemetry::metrics::Metrics;

/// The services of the process, which all generations share.
pub(super) struct ProcessServices {
    pub(super) store: Store,
    pub(super) accounts: AccountsHandle,
    pub(super) snapshots: StoreSnapshots,
    pub(super) ledger: Arc<Ledger>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) access_log: Arc<AccessLog>,
    pub(super) clock: Clock,
    /// The Redis that processes share.
    pub(super) redis: Option<Redis>,
    /// The Redis of agent mode.
    pub(super) agent_redis: Option<Redis>,
    pub(super) stream_resets: Arc<StreamResets>,
    pub(super) is_serving: Arc<AtomicBool>,
    /// The runtime of the background services.
    pub(super) background: Handle,
}

impl ProcessServices {
    /// Connects to Redis, if it is configured. Returns the services, and the heartbeats of the connections.
    ///
    /// Errors: a URL is invalid.
    pub(super) fn start(
        config: &Config,
        opened: &ReadyStore,
        (metrics, access_log): (Arc<Metrics>, AccessLog),
        background: &Handle,
    ) -> Result<(Self, Vec<Heartbeat>), BootError> {
        let (redis, heartbeat) = redis(config, &metrics)?.unzip();
        let (agent_redis, agent_heartbeat) = agent_redis(config)?.unzip();
        let services = Self {
            store: opened.store.clone(),
            accounts: opened.late.accounts.clone(),
            snapshots: opened.snapshots.clone(),
            ledger: Arc::clone(&opened.late.ledger),
            metrics,
            access_log: Arc::new(access_log),
            clock: Clock::start(),
            redis,
            agent_redis,
            stream_resets: Arc::default(),
            is_serving: Arc::new(AtomicBool::new(false)),
            background: background.clone(),
        };
        Ok((
            services,
            heartbeat.into_iter().chain(agent_heartbeat).collect(),
        ))
    }
}

/// Returns the connection to Redis and its heartbeat if limits are shared.
fn redis(config: &Config, metrics: &Metrics) -> Result<Option<(Redis, Heartbeat)>, BootError> {
    let Some(url) = &config.shared.redis else {
        return Ok(None);
    };
    start_redis(url, Purpose::Shared, metrics.limiter_degraded.clone()).map(Some)
}

/// Returns the connection to the Redis of agent mode and its heartbeat, if it is configured.
fn agent_redis(config: &Config) -> Result<Option<(Redis, Heartbeat)>, BootError> {
    let decisions = config.decisions.as_ref();
    let Some(url) = decisions.and_then(|decisions| decisions.agent_redis.as_ref()) else {
        return Ok(None);
    };
    // The published gauge is about limits, so this one is not published.
    let gauge = IntGauge::new("agent_redis_degraded", "1 while it does not answer");
    let gauge = gauge.map_err(|error| failed("metrics", error))?;
    start_redis(url, Purpose::Agent, gauge).map(Some)
}

fn start_redis(
    url: &Secret,
    purpose: Purpose,
    is_degraded: IntGauge,
) -> Result<(Redis, Heartbeat), BootError> {
    let started = Redis::start(url.expose(), purpose, is_degraded);
    started.map_err(|error| misconfigured(format!("{}: {error}", purpose.setting())))
}
