//! Starts a gateway from a configuration.
//!
//! Everything that can fail at start fails here, before the first request: listeners, store, catalogue.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::watch;

use super::background;
use super::build::{SharedServices, build};
use super::listeners::Listeners;
use super::open_store::{open, store_failed};
use super::running::{BackgroundRuntime, Running, StopMode};
use super::sandboxes::Sandboxes;
use crate::config::Config;
use crate::models::planner::{self, Planner};
use crate::models::providers::Provider;
use crate::proxy::clock::Clock;
use crate::proxy::tls::{CertificateRefresh, Tls};
use crate::store::Store;
use crate::telemetry::logging::AccessLog;
use crate::telemetry::metrics::Metrics;

/// The reason for which the gateway did not start.
#[derive(Debug)]
pub struct BootError {
    /// The message for the operator.
    pub message: String,
    /// Whether the configuration has to change.
    pub is_configuration: bool,
}

impl std::fmt::Display for BootError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for BootError {}

/// Returns the error of a part that failed.
pub(super) fn failed(what: &str, error: impl std::fmt::Display) -> BootError {
    BootError {
        message: format!("{what}: {error}"),
        is_configuration: false,
    }
}

/// Returns an error that the operator can fix in the configuration.
pub(super) fn misconfigured(message: String) -> BootError {
    BootError {
        message,
        is_configuration: true,
    }
}

/// Starts a gateway.
///
/// Errors: an address is not available, the catalogue is invalid, or the store cannot be opened.
pub fn boot(
    mut config: Config,
    access_log: impl FnOnce(&Metrics) -> std::io::Result<AccessLog>,
) -> Result<Running, BootError> {
    // The listeners come first: a failed start must not create a key that it cannot show afterwards.
    let listeners = Listeners::bind(&config)?;
    let (public, admin) = (listeners.public_address, listeners.admin_address);
    let catalog = planner::load_catalog(&config).map_err(misconfigured)?;
    let tls = tls(&config)?.unzip();
    let runtime = background::runtime()?;
    let metrics = Arc::new(Metrics::new().map_err(|error| failed("metrics", error))?);
    let access_log = access_log(&metrics).map_err(|error| failed("starting the log", error))?;
    let sandboxes = Sandboxes::bind(&mut config)?;
    let opened = runtime.block_on(open(&config, sandboxes.model.is_some(), &metrics));
    let opened = opened.map_err(|error| store_failed(&error))?;
    let (late, store) = (opened.late, opened.store);
    let shared = SharedServices {
        accounts: late.accounts.clone(),
        snapshots: opened.snapshots,
        ledger: Arc::clone(&late.ledger),
        metrics,
        access_log: Arc::new(access_log),
        clock: Clock::start(),
    };
    let providers = providers(&config, &store, &shared.metrics)?;
    let planner = Planner::new(&config, &providers, catalog, &shared.metrics);
    let built = build(&config, &runtime, &store, planner, shared)?;
    let (stop_runtime, stopped) = watch::channel(false);
    let tasks = &built.app.proxy.tasks;
    tasks.watch_task("accounts", &runtime.spawn(late.follow(stopped.clone())));
    let sources = background::refresh(&runtime, &providers, &built.app, &stopped);
    sandboxes.spawn(&runtime, &stopped);
    background::spawn(&runtime, tls.1, &stopped);
    if let Some(sharing) = built.health_sharing {
        runtime.spawn(sharing.run(stopped.clone()));
    }
    background::work(&runtime, &built.app, &stopped);
    let dispatching = built.dispatchers.map(|it| runtime.spawn(it.run(stopped)));
    let of_events = dispatching.iter();
    of_events.for_each(|task| tasks.watch_task("events", task));
    let (stop, stop_mode) = watch::channel(StopMode::No);
    let server = listeners.serve(&config, (&built.app.proxy, sources), tls.0, stop_mode)?;
    built.app.proxy.is_serving.store(true, Ordering::Relaxed);
    Ok(Running {
        app: built.app,
        public,
        admin,
        first_run: opened.first_run,
        stop,
        server: Some(server),
        runtime: Some(BackgroundRuntime {
            runtime,
            stop: stop_runtime,
            dispatching,
            heartbeats: built.heartbeats,
            store,
            store_lock: opened.lock,
        }),
    })
}

/// Returns TLS and the service that refreshes its certificate, if TLS is configured.
fn tls(config: &Config) -> Result<Option<(Tls, CertificateRefresh)>, BootError> {
    let listen = &config.listen;
    let files = listen.tls.as_ref();
    let tls = files.map(|files| Tls::new(files, listen.http2)).transpose();
    tls.map_err(|error| misconfigured(error.to_string()))
}

fn providers(
    config: &Config,
    store: &Store,
    metrics: &Metrics,
) -> Result<Arc<[Arc<Provider>]>, BootError> {
    let key = store.pepper().fingerprint();
    let built: Result<Vec<_>, String> = planner::enabled_providers(config)
        .map(|provider| {
            let parts = (&key[..], metrics);
            Provider::new(provider, &config.routing, config.media.fetch, parts).map(Arc::new)
        })
        .collect();
    Ok(built.map_err(|error| failed("providers", error))?.into())
}
