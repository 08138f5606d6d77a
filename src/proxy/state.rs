//! What the core of every request shares: settings, services and the router. Built once at start.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use filters::accounts::Pepper;
use http::HeaderName;
use tokio::sync::Semaphore;

use super::clock::Clock;
use super::router::Router;
use crate::accounts::AccountsHandle;
use crate::config::{Cidr, Config};
use crate::limits::Quotas;
use crate::telemetry::logging::AccessLog;
use crate::telemetry::metrics::Metrics;

/// See the module.
pub struct ProxyState {
    /// What the configuration says.
    pub settings: ProxySettings,
    /// All metrics.
    pub metrics: Arc<Metrics>,
    /// Writes the log lines of requests.
    pub access_log: Arc<AccessLog>,
    /// The callers.
    pub accounts: AccountsHandle,
    /// Hashes API keys.
    pub pepper: Pepper,
    /// Requests per minute of organizations.
    pub quotas: Quotas,
    /// Limits concurrent model gateway requests.
    pub in_flight: Arc<Semaphore>,
    /// The routes.
    pub router: Router,
    /// The process's clocks.
    pub clock: Clock,
    /// Whether the process takes requests: set once everything is loaded, cleared when it stops.
    pub is_serving: AtomicBool,
}

impl ProxyState {
    /// Returns whether the process takes requests. Upstreams have no say in it.
    pub fn is_ready(&self) -> bool {
        self.is_serving.load(Ordering::Relaxed)
    }
}

/// What the configuration says, in the form the request path reads it.
pub struct ProxySettings {
    /// The maximum size of a request head.
    pub header_bytes: usize,
    /// Whether each request writes a log line.
    pub writes_access_log: bool,
    /// Where the client's address comes from.
    pub client_ip: ClientIp,
}

/// Where the client's address comes from.
#[derive(Clone)]
pub struct ClientIp {
    /// The header; none: the socket.
    pub header: Option<HeaderName>,
    /// The proxies whose header is believed.
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
        }
    }
}
