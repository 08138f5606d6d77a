//! Background services. They have their own small runtime, so that they take no worker from requests.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use pingora::services::background::BackgroundService;
use tokio::runtime::{Handle, Runtime};
use tokio::sync::watch;

use super::boot::{BootError, failed};
use super::state::AppState;
use crate::cloud_credentials::CredentialSource;
use crate::cloud_credentials::refresh::CredentialRefresh;
use crate::decisions::DecisionService;
use crate::graph::Graph;
use crate::mcp::oauth::sweep;
use crate::models::providers::Provider;
use crate::models::stored_responses;
use crate::models::stored_responses::worker::ResponseWork;
use crate::models::videos::worker;
use crate::periodic::Ticks;
use crate::priority;
use crate::proxy::origin::{DnsRefresh, HealthChecks};
use crate::telemetry::calls::RecentCalls;
use crate::telemetry::load::SAMPLE_INTERVAL_MS;
use crate::telemetry::metrics::Metrics;

/// Returns the runtime of the background services. Its threads, and those that SQLite starts from them, have a lower
/// priority than the workers.
///
/// Errors: its thread cannot be started.
pub(super) fn runtime() -> Result<Runtime, BootError> {
    // All clients share one crypto provider. An earlier gateway of this process has already installed it.
    _ = rustls::crypto::ring::default_provider().install_default();
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("background")
        .on_thread_start(priority::lower)
        .enable_all()
        .build()
        .map_err(|error| failed("starting threads", error))
}

/// Returns the runtime of the console, of one thread: whatever its pages take, it takes from no request, no probe and no service.
///
/// Errors: the thread cannot be started.
pub(super) fn console_runtime() -> Result<Runtime, BootError> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .max_blocking_threads(1)
        .thread_name("console")
        .on_thread_start(priority::lower)
        .enable_all()
        .build()
        .map_err(|error| failed("starting threads", error))
}

/// Starts the services that refresh names, keys, credentials and datafiles and drop ended windows, until `stop`. Returns the
/// sources of the operator's credentials.
pub(super) fn refresh(
    runtime: &Handle,
    providers: &[Arc<Provider>],
    app: &AppState,
    stop: &watch::Receiver<bool>,
) -> Vec<Arc<CredentialSource>> {
    let graph = app.graph.as_deref();
    let (byok_only, on): (Vec<_>, Vec<_>) =
        providers.iter().partition(|it| it.home.keys.is_empty());
    let origins = on.iter().flat_map(|it| it.home.endpoints.origins());
    let origins = origins.chain(graph.map(|graph| &graph.origin));
    let dns_refresh = DnsRefresh {
        eager: origins.cloned().collect(),
        // Perhaps no caller ever has a key for these providers or names these regions. So the first request that does
        // resolves the name.
        lazy: byok_only
            .iter()
            .flat_map(|it| it.home.endpoints.origins())
            .chain(providers.iter().flat_map(|it| it.regional_origins()))
            .cloned()
            .collect(),
    };
    spawn(runtime, Some(dns_refresh), stop);
    let endpoints = providers.iter().flat_map(|it| it.home.endpoints.origins());
    let checked = endpoints.filter(|origin| origin.has_health_checks());
    let health_checks = HealthChecks {
        origins: checked.cloned().collect(),
    };
    spawn(runtime, Some(health_checks), stop);
    let sources = providers
        .iter()
        .filter_map(|provider| provider.own_source());
    let sources: Vec<_> = sources.map(Arc::clone).collect();
    let refresh = (!sources.is_empty()).then(|| CredentialRefresh(sources.clone()));
    spawn(runtime, refresh, stop);
    spawn(runtime, Some(app.proxy.quotas.sweeper()), stop);
    spawn(runtime, graph.map(Graph::sweeper), stop);
    spawn(runtime, graph.map(Graph::key_refresh), stop);
    let tasks = app
        .decisions
        .as_deref()
        .map(DecisionService::background_tasks);
    for task in tasks.unwrap_or_default() {
        let stop = stop.clone();
        runtime.spawn(async move { task.start(stop).await });
    }
    sources
}

/// Starts the services on rows of the store, until `stop`: jobs of videos and responses, and expired grants of OAuth.
pub(super) fn work(runtime: &Handle, app: &AppState, stop: &watch::Receiver<bool>) {
    let tasks = &app.proxy.tasks;
    let working = worker::run(Arc::clone(&app.models), stop.clone());
    tasks.watch_task("videos", &runtime.spawn(working));
    let work = ResponseWork {
        models: Arc::clone(&app.models),
        accounts: app.proxy.accounts.clone(),
        body_budget: Arc::clone(&app.proxy.body_budget),
    };
    let working = stored_responses::worker::run(work, stop.clone());
    tasks.watch_task("responses", &runtime.spawn(working));
    let calls = Arc::clone(&app.proxy.calls);
    let keeping = keep_load(Arc::clone(&app.proxy.metrics), calls, stop.clone());
    tasks.watch_task("load", &runtime.spawn(keeping));
    let sweeping = sweep::run(Arc::clone(&app.ledger), stop.clone());
    tasks.watch_task("oauth", &runtime.spawn(sweeping));
}

/// Keeps each minute what the counters say, and forgets bodies of calls whose time is over, until `stop`.
async fn keep_load(metrics: Arc<Metrics>, calls: Arc<RecentCalls>, stop: watch::Receiver<bool>) {
    let period = Duration::from_millis(SAMPLE_INTERVAL_MS.unsigned_abs());
    let mut ticks = Ticks::new(period, stop);
    while ticks.next().await {
        let now_ms = Timestamp::now().as_millisecond();
        metrics.load.keep(now_ms, metrics.load_sample());
        calls.forget_old_bodies(now_ms);
    }
}

/// Starts a service, if there is one, until `stop`.
pub(super) fn spawn<S>(runtime: &Handle, service: Option<S>, stop: &watch::Receiver<bool>)
where
    S: BackgroundService + Send + Sync + 'static,
{
    if let Some(service) = service {
        let stop = stop.clone();
        runtime.spawn(async move { service.start(stop).await });
    }
}
