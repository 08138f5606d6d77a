//! What belongs to the process, whatever its configuration says. Reloads leave it alone.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use prometheus::IntGauge;
use tokio::runtime::Handle;

use super::boot::{BootError, failed, misconfigured};
use super::open_store::ReadyStore;
use crate::accounts::AccountsHandle;
use crate::config::{Config, LoadedConfig, Secret};
use crate::ledger::{Ledger, StoreTurns};
use crate::log_export::LogExport;
use crate::mcp::McpMemory;
use crate::mcp::oauth::documents::ClientDocuments;
use crate::mcp::oauth::store_turns;
use crate::models::store_snapshots::StoreSnapshots;
use crate::proxy::address_limits::AddressLimits;
use crate::proxy::body_budget::BodyBudget;
use crate::proxy::clock::Clock;
use crate::proxy::drain::Drain;
use crate::proxy::permits::Permits;
use crate::proxy::progress::WorkerProgress;
use crate::proxy::stream_resets::StreamResets;
use crate::proxy::upload::Spool;
use crate::redis::{Heartbeat, Purpose, Redis};
use crate::store::Store;
use crate::telemetry::calls::RecentCalls;
use crate::telemetry::logging::AccessLog;
use crate::telemetry::metrics::Metrics;

/// The purpose of the key of the configuration's hash.
const CONFIG_HASH_PURPOSE: &str = "hash of the configuration, version 1";

/// The services of the process, which all generations share.
pub(super) struct ProcessServices {
    pub(super) store: Store,
    pub(super) accounts: AccountsHandle,
    pub(super) snapshots: StoreSnapshots,
    pub(super) ledger: Arc<Ledger>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) access_log: Arc<AccessLog>,
    pub(super) log_export: Arc<LogExport>,
    /// The calls in memory.
    pub(super) calls: Arc<RecentCalls>,
    pub(super) clock: Clock,
    /// The Redis that processes share.
    pub(super) redis: Option<Redis>,
    /// The Redis of agent mode.
    pub(super) agent_redis: Option<Redis>,
    /// The permits of concurrent model gateway requests.
    pub(super) permits: Arc<Permits>,
    /// The memory of request bodies.
    pub(super) body_budget: Arc<BodyBudget>,
    /// The folder for the files of forms.
    pub(super) spool: Arc<Spool>,
    pub(super) address_limits: Arc<AddressLimits>,
    pub(super) stream_resets: Arc<StreamResets>,
    /// What the MCP server knows of its clients.
    pub(super) mcp: McpMemory,
    /// The documents by which clients of OAuth name themselves.
    pub(super) client_documents: ClientDocuments,
    /// The turns that requests of OAuth take at the store.
    pub(super) store_turns: StoreTurns,
    pub(super) is_serving: Arc<AtomicBool>,
    pub(super) progress: WorkerProgress,
    pub(super) drain: Drain,
    /// The runtime of the background services.
    pub(super) background: Handle,
}

impl ProcessServices {
    /// Makes the services, and connects to Redis, if it is configured. Returns the services, and the heartbeats of the connections.
    ///
    /// Errors: a URL is invalid, or the folder of uploads or an HTTP client cannot be made.
    pub(super) fn start(
        config: &Config,
        opened: &ReadyStore,
        (metrics, access_log): (Arc<Metrics>, AccessLog),
        background: &Handle,
    ) -> Result<(Self, Vec<Heartbeat>), BootError> {
        let (redis, heartbeat) = redis(config, &metrics)?.unzip();
        let (agent_redis, agent_heartbeat) = agent_redis(config)?.unzip();
        let (limits, listen) = (&config.limits, &config.listen);
        let max_connections = listen.max_connections_per_ip;
        let spool = Spool::new(&config.store.state_dir, limits.spooled_bytes);
        let spool =
            spool.map_err(|error| failed("the folder of uploads in store.state_dir", error))?;
        let documents = ClientDocuments::new(background.clone(), []);
        let log_export = log_export(config, &metrics, background)?;
        let services = Self {
            store: opened.store.clone(),
            accounts: opened.late.accounts.clone(),
            snapshots: opened.snapshots.clone(),
            ledger: Arc::clone(&opened.late.ledger),
            metrics,
            access_log: Arc::new(access_log),
            log_export: Arc::new(log_export),
            calls: Arc::new(RecentCalls::new(config.console.keep_calls)),
            clock: Clock::start(),
            redis,
            agent_redis,
            permits: Arc::new(Permits::new(limits.in_flight)),
            body_budget: Arc::new(BodyBudget::new(limits.buffered_bytes)),
            spool: Arc::new(spool),
            address_limits: Arc::new(AddressLimits::new(max_connections, &listen.trusted_proxies)),
            stream_resets: Arc::default(),
            mcp: McpMemory::default(),
            client_documents: documents.map_err(|error| failed("documents of clients", error))?,
            store_turns: store_turns(Arc::clone(&opened.late.ledger)),
            is_serving: Arc::new(AtomicBool::new(false)),
            progress: WorkerProgress::default(),
            drain: Drain::default(),
            background: background.clone(),
        };
        Ok((
            services,
            heartbeat.into_iter().chain(agent_heartbeat).collect(),
        ))
    }

    /// Returns the hash of a configuration, which says nothing about its secrets.
    pub(super) fn config_hash(&self, loaded: &LoadedConfig) -> String {
        let key = self.store.pepper().derive(CONFIG_HASH_PURPOSE);
        loaded.effective.hash(&key)
    }

    /// Sets the limits of a configuration. What runs stays admitted.
    pub(super) fn set_limits(&self, config: &Config) {
        let (limits, listen) = (&config.limits, &config.listen);
        self.permits.set_total(limits.in_flight);
        self.body_budget.set_max_bytes(limits.buffered_bytes);
        self.spool.set_max_bytes(limits.spooled_bytes);
        self.calls.set(config.console.keep_calls);
        self.address_limits
            .set(listen.max_connections_per_ip, &listen.trusted_proxies);
    }

    /// Puts the export of logs of a configuration in force.
    ///
    /// Errors: its threads cannot be started. Nothing has changed then.
    pub(super) fn set_log_export(&self, config: &Config) -> Result<(), BootError> {
        let set = self.log_export.set(config.log_export.as_ref());
        set.map_err(|error| failed("starting the log export", error))
    }
}

/// Returns the export of logs, with the settings of a configuration.
fn log_export(
    config: &Config,
    metrics: &Metrics,
    background: &Handle,
) -> Result<LogExport, BootError> {
    let counted = (&metrics.log_export, &metrics.credential_fetches);
    let export = LogExport::new(&config.store.state_dir, counted, background.clone());
    let set = export.set(config.log_export.as_ref());
    set.map_err(|error| failed("starting the log export", error))?;
    Ok(export)
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
