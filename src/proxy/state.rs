//! The state that all requests of a configuration share in the core: settings, services and the router. The start builds
//! it, and each reload builds another one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::address_limits::AddressLimits;
use super::body_budget::BodyBudget;
use super::clock::Clock;
use super::drain::Drain;
use super::permits::Permits;
use super::progress::WorkerProgress;
use super::router::Router;
use super::stream_resets::StreamResets;
use super::upload::Spool;
use crate::accounts::AccountsHandle;
use crate::accounts::access_tokens::AccessTokens;
use crate::config::{Cidr, Config};
use crate::limits::Quotas;
use crate::log_export::LogExport;
use crate::tasks::Tasks;
use crate::telemetry::calls::RecentCalls;
use crate::telemetry::logging::AccessLog;
use crate::telemetry::metrics::{Metrics, RouteMetrics};
use crate::telemetry::traces::Traces;
use arc_swap::ArcSwap;
use filters::accounts::Pepper;
use http::HeaderName;

/// What is said of a process whose threads are stuck.
pub const STALLED: &str = "all threads that serve requests are stuck";

/// The shared state of the core.
pub struct ProxyState {
    pub settings: ProxySettings,
    pub metrics: Arc<Metrics>,
    /// Writes the log lines of requests.
    pub access_log: Arc<AccessLog>,
    /// Takes the lines of calls, if they are exported.
    pub log_export: Arc<LogExport>,
    /// The calls in memory.
    pub calls: Arc<RecentCalls>,
    pub accounts: AccountsHandle,
    /// Hashes API keys.
    pub pepper: Pepper,
    /// Reads the access tokens that stand for API keys.
    pub tokens: Arc<AccessTokens>,
    /// The quotas of organizations, in requests per minute.
    pub quotas: Quotas,
    /// The permits of concurrent model gateway requests.
    pub permits: Arc<Permits>,
    /// The memory of request bodies.
    pub body_budget: Arc<BodyBudget>,
    /// The folder for the files of forms.
    pub spool: Arc<Spool>,
    /// The counters of abandoned streams of HTTP/2 connections.
    pub stream_resets: Arc<StreamResets>,
    pub address_limits: Arc<AddressLimits>,
    pub router: Router,
    pub route_metrics: RouteMetrics,
    pub clock: Clock,
    /// The traces of requests, unless there are none.
    pub traces: Option<Arc<Traces>>,
    /// The tasks that must run until the process stops.
    pub tasks: Tasks,
    /// Whether the threads that serve requests run.
    pub progress: WorkerProgress,
    /// The end of the process.
    pub drain: Drain,
    /// Whether the process accepts requests. It is set once everything is loaded, and cleared when the process stops.
    pub is_serving: Arc<AtomicBool>,
}

/// The state for new requests. A request takes it once and ends on it, whatever is reloaded meanwhile. Clones share it.
#[derive(Clone)]
pub struct CurrentState(Arc<ArcSwap<ProxyState>>);

impl CurrentState {
    /// Starts with this state.
    pub fn new(state: Arc<ProxyState>) -> Self {
        Self(Arc::new(ArcSwap::new(state)))
    }

    /// Returns the state for a new request.
    pub fn get(&self) -> Arc<ProxyState> {
        self.0.load_full()
    }

    /// Replaces the state for new requests.
    pub fn replace(&self, state: Arc<ProxyState>) {
        self.0.store(state);
    }
}

impl ProxyState {
    /// Returns whether the process accepts requests: it has started and is not stopping.
    pub fn accepts_requests(&self) -> bool {
        self.is_serving.load(Ordering::Relaxed)
    }

    /// Checks that the process accepts requests, and its threads and tasks run. The health of upstreams and of the store does not
    /// count.
    ///
    /// Errors: the reason for which the process is not ready.
    pub fn check_ready(&self) -> Result<(), String> {
        if !self.accepts_requests() {
            return Err("starting or stopping".to_owned());
        }
        if self.progress.is_stalled() {
            return Err(STALLED.to_owned());
        }
        match self.tasks.find_ended() {
            Some(name) => Err(format!("the task `{name}` has ended")),
            None => Ok(()),
        }
    }
}

/// The settings of the configuration that the request path reads.
pub struct ProxySettings {
    /// The maximum size of a request head.
    pub header_bytes: usize,
    pub writes_access_log: bool,
    pub client_ip: ClientIp,
    /// The header that only holds API keys.
    pub key_header: HeaderName,
}

/// The source of the client's address.
#[derive(Clone)]
pub struct ClientIp {
    /// The header that names the address, or `None` if the socket's address counts.
    pub header: Option<HeaderName>,
    pub trusted_proxies: Vec<Cidr>,
}

impl ProxySettings {
    /// Returns the settings of a configuration.
    pub fn from_config(config: &Config) -> Self {
        Self {
            header_bytes: config.listen.header_bytes,
            writes_access_log: config.log.access,
            client_ip: ClientIp {
                header: config.listen.client_ip_header.clone(),
                trusted_proxies: config.listen.trusted_proxies.clone(),
            },
            key_header: config.listen.key_header.clone(),
        }
    }
}
