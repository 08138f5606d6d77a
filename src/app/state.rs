//! What all requests share: settings, snapshots, organs. Built once by [`crate::app::boot`].

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use filters::accounts::Pepper;
use http::HeaderName;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::accounts::AccountsHandle;
use crate::app::health;
use crate::app::health::{HealthPart, Skip};
use crate::config::{Cidr, Config, Plans};
use crate::decisions::DecisionService;
use crate::graph::Graph;
use crate::ledger::Ledger;
use crate::limits::Quotas;
use crate::models::endpoints::models;
use crate::models::planner::Planner;
use crate::models::providers::ByokSnapshot;
use crate::proxy::buffered::state::Timeouts;
use crate::redis::Redis;
use crate::telemetry::logging::AccessLog;
use crate::telemetry::metrics::Metrics;

/// How old the store's last word may be before it counts as unreachable.
const STORE_SILENCE: Duration = Duration::from_secs(5);

/// See the module.
pub struct AppState {
    /// What the configuration says, in the form the request path reads it.
    pub settings: Settings,
    /// All metrics.
    pub metrics: Arc<Metrics>,
    /// Access lines.
    pub lines: Arc<AccessLog>,
    /// Who may call.
    pub accounts: AccountsHandle,
    /// The callers' BYOK keys.
    pub byok_keys: Arc<ByokSnapshot>,
    /// Under which keys are hashed.
    pub pepper: Pepper,
    /// Catalogue, providers and what is known of their health.
    pub routes: Planner,
    /// The decision endpoints; none: they are off.
    pub flags: Option<DecisionService>,
    /// What calls cost, and who pays.
    pub ledger: Arc<Ledger>,
    /// What is shared with other processes; none: nothing is.
    pub redis: Option<Redis>,
    /// Requests per minute of organizations.
    pub quotas: Quotas,
    /// Room for requests of the model gateway at once.
    pub room: Arc<Semaphore>,
    /// The graph service; none: it is off.
    pub graph: Option<Graph>,
    /// The start of the process's own clock.
    pub begun: Instant,
    /// Whether the process takes requests: set once everything is loaded, cleared when it stops.
    pub is_serving: AtomicBool,
}

/// What the configuration says, in the form the request path reads it.
pub struct Settings {
    /// The most bytes of a request head.
    pub header_bytes: usize,
    /// The most bytes of a chat request.
    pub chat_body_bytes: usize,
    /// The most bytes of a decision request, and of a batch of them.
    pub flags_body_bytes: (usize, usize),
    /// Whether `/v1/models` needs a key.
    pub models_require_key: bool,
    /// What plans allow.
    pub plans: Plans,
    /// Whether each request writes a line.
    pub access_log: bool,
    /// Where the client's address comes from.
    pub client_ip: ClientIp,
    stream: Timeouts,
    whole: Timeouts,
}

/// Where the client's address comes from.
pub struct ClientIp {
    /// The header; none: the socket.
    pub header: Option<HeaderName>,
    /// Who may send it.
    pub trusted_proxies: Vec<Cidr>,
}

impl Settings {
    /// The settings of a configuration.
    pub fn new(config: &Config) -> Self {
        let routing = &config.routing;
        let stream = Timeouts {
            first_event: routing.first_event_timeout,
            idle: routing.idle_timeout,
            attempt: routing.stream_total_timeout,
            request: routing.deadline,
            keepalive: routing.keepalive,
        };
        Self {
            header_bytes: config.listen.header_bytes,
            chat_body_bytes: config.limits.body_bytes.chat,
            flags_body_bytes: (
                config.limits.body_bytes.decisions,
                config.limits.body_bytes.batch,
            ),
            models_require_key: config.models.require_key,
            plans: config.plans,
            access_log: config.log.access,
            client_ip: ClientIp {
                header: config.listen.client_ip_header.clone(),
                trusted_proxies: config.listen.trusted_proxies.clone(),
            },
            stream,
            whole: Timeouts {
                attempt: routing.total_timeout,
                ..stream
            },
        }
    }

    /// How long a call may take.
    pub fn patience(&self, is_stream: bool) -> Timeouts {
        if is_stream { self.stream } else { self.whole }
    }
}

impl AppState {
    /// Milliseconds of the process's own clock, which never goes back.
    pub fn now_ms(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Seconds of the wall clock.
    pub fn unix_s(&self) -> u64 {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs())
    }

    /// Milliseconds of the wall clock.
    pub fn unix_ms(&self) -> i64 {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }

    /// Whether the process takes requests. Never depends on providers.
    pub fn is_ready(&self) -> bool {
        self.is_serving.load(Ordering::Relaxed)
    }

    /// Status and body of `GET /`. Costs no query: the snapshot's refresh asks the store four times a second, and
    /// Redis is asked every second.
    pub fn health(&self, client: Option<IpAddr>, query: Option<&str>) -> (u16, Vec<u8>) {
        let skip = Skip::parse(query.unwrap_or_default());
        let is_silent = !skip.database && self.accounts.age() > STORE_SILENCE;
        let is_full = !skip.database && self.ledger.is_store_down();
        let client = client.map(|client| client.to_string());
        let header = self
            .settings
            .client_ip
            .header
            .as_ref()
            .map_or("", HeaderName::as_str);
        let is_gone = !skip.redis && self.redis.as_ref().is_some_and(Redis::is_gone);
        let part = |fault: Option<&'static str>| HealthPart {
            connected: fault.is_none(),
            error: fault,
        };
        health::answer(
            client.as_deref(),
            header,
            part(is_gone.then_some("Redis does not answer")),
            part(match (is_silent, is_full) {
                (true, _) => Some("the store does not answer"),
                (false, true) => Some("the store takes no writes"),
                (false, false) => None,
            }),
        )
    }

    /// The body of `GET /v1/models`.
    pub fn listing(&self, query: models::Query) -> Vec<u8> {
        let (routes, now_s) = (&self.routes, self.unix_s());
        models::list_models(routes.catalog(), |name| routes.is_on(name), query, now_s)
    }
}
