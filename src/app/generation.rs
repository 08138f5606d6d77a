//! A generation: all that is built from one configuration. The start builds the first one, and each reload the next.
//!
//! A request ends on the generation with which it began, so a generation lives until its last request has ended. Its
//! background tasks stop when it is replaced.

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::background;
use super::boot::{BootError, failed};
use super::build::{Previous, build};
use super::process::ProcessServices;
use super::state::AppState;
use crate::admin::{AdminSettings, token_hash};
use crate::config::{Config, LoadedConfig};
use crate::console::ConsoleSettings;
use crate::decisions::{DecisionService, Dispatchers};
use crate::graph::Graph;
use crate::models::planner::{self, Planner};
use crate::models::providers::{Provider, providers};
use crate::models::shared_health::HealthSharing;
use crate::models::unknown_names::known_providers;
use crate::telemetry::traces::export::SpanExport;
use filters::models::routing::catalog::Catalog;

/// All that is built from one configuration.
pub(super) struct Generation {
    pub(super) app: Arc<AppState>,
    pub(super) loaded: LoadedConfig,
    providers: Arc<[Arc<Provider>]>,
    /// The last flag decisions, even if they are off in this generation.
    decisions: Option<Arc<DecisionService>>,
    /// The last graph service, even if it is off in this generation.
    graph: Option<Arc<Graph>>,
    /// Stops its background tasks.
    stop: watch::Sender<bool>,
    parts: Parts,
}

/// The background parts that start with a generation.
struct Parts {
    dispatchers: Option<Dispatchers>,
    health_sharing: Option<HealthSharing>,
    span_export: Option<SpanExport>,
}

impl Generation {
    /// Builds the generation of a configuration and its catalogue. Nothing serves it yet. What the generation before
    /// knows lives on.
    ///
    /// Errors: a part cannot be built. Nothing has changed then.
    pub(super) fn build(
        loaded: LoadedConfig,
        catalog: Catalog,
        process: &ProcessServices,
        previous: Option<&Self>,
    ) -> Result<Self, BootError> {
        let config = &loaded.config;
        let fingerprint = process.store.pepper().fingerprint();
        let providers = providers(
            planner::enabled_providers(config),
            (&config.routing, config.media.fetch),
            (&fingerprint[..], &process.metrics),
            previous.map_or(&[][..], |previous| &previous.providers),
        );
        let providers = providers.map_err(|error| failed("providers", error))?;
        let before = previous.map(Self::known).unwrap_or_default();
        let known = before.models.map(|models| &models.planner);
        let planner = Planner::new(config, &providers, catalog, &process.metrics, known);
        let built = build(config, process, planner, &before)?;
        Ok(Self {
            decisions: last(&built.app.decisions, previous, |it| &it.decisions),
            graph: last(&built.app.graph, previous, |it| &it.graph),
            app: Arc::new(built.app),
            loaded,
            providers,
            stop: watch::channel(false).0,
            parts: Parts {
                dispatchers: built.dispatchers,
                health_sharing: built.health_sharing,
                span_export: built.span_export,
            },
        })
    }

    /// Returns what goes on in the next generation.
    fn known(&self) -> Previous<'_> {
        Previous {
            models: Some(&self.app.models),
            quotas: Some(&self.app.proxy.quotas),
            traces: self.app.proxy.traces.as_ref(),
            decisions: self.decisions.as_deref(),
            graph: self.graph.as_deref(),
        }
    }

    /// Starts its background tasks. Returns what the operator's listener shows, and the tasks that send events and traces
    /// until `process_stop`.
    pub(super) fn start(
        &mut self,
        background: &Handle,
        process_stop: &watch::Receiver<bool>,
    ) -> (AdminSettings, Vec<JoinHandle<()>>) {
        let stopped = self.stop.subscribe();
        let sources = background::refresh(background, &self.providers, &self.app, &stopped);
        background::work(background, &self.app, &stopped);
        if let Some(sharing) = self.parts.health_sharing.take() {
            background.spawn(sharing.run(stopped));
        }
        if let Some(decisions) = &self.app.decisions {
            decisions.take_over();
        }
        let dispatchers = self.parts.dispatchers.take();
        let dispatchers = dispatchers.filter(|dispatchers| !dispatchers.are_none());
        let dispatching = dispatchers.map(|it| background.spawn(it.run(process_stop.clone())));
        if let Some(task) = &dispatching {
            self.app.proxy.tasks.watch_task("events", task);
        }
        let span_export = self.parts.span_export.take();
        let exporting = span_export.map(|it| background.spawn(it.run(process_stop.clone())));
        let token = self.loaded.config.admin.token.as_ref();
        let sending = dispatching.into_iter().chain(exporting).collect();
        (AdminSettings::new(token, sources), sending)
    }

    /// Returns what the console shows and allows.
    pub(super) fn console(&self) -> ConsoleSettings {
        let admin = &self.loaded.config.admin;
        ConsoleSettings {
            app: Arc::clone(&self.app),
            token_hash: admin.token.as_ref().map(token_hash),
            is_writable: admin.write,
            is_encrypted: self.loaded.config.listen.tls.is_some(),
            providers: known_providers(&self.loaded.config),
        }
    }

    /// Stops its background tasks. Requests that run on it are not affected.
    pub(super) fn stop(&self) {
        self.stop.send_replace(true);
    }
}

/// Returns the catalogue of a configuration.
///
/// Errors: its problems, one per line.
pub(super) fn catalog(config: &Config) -> Result<Catalog, BootError> {
    planner::load_catalog(config).map_err(super::boot::misconfigured)
}

/// Returns what a generation has, or else what the generation before had last.
fn last<T>(
    own: &Option<Arc<T>>,
    previous: Option<&Generation>,
    of: fn(&Generation) -> &Option<Arc<T>>,
) -> Option<Arc<T>> {
    own.clone().or_else(|| of(previous?).clone())
}
