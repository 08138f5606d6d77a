//! The checked configuration: every value typed, in range and resolved.

mod decisions;
mod graph;
mod log_export;
mod plans;
mod providers;
mod telemetry;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use filters::mcp::origin::Origins;
use filters::models::routing::CatalogFile;
use http::HeaderName;

pub use self::decisions::{Client, Datafile, DecisionsConfig, ProfileStore, Webhook};
pub use self::graph::{Bearer, GraphConfig, GraphUpstream, Tenant};
pub use self::log_export::{
    ClickHouseConfig, Compression, DestinationConfig, LogExportConfig, S3Config, S3Keys,
};
pub use self::plans::Plans;
pub use self::providers::{
    CloudSettings, HealthConfig, ProviderConfig, ProviderPlace, RegionConfig, provider_names,
};
pub use self::telemetry::TelemetryConfig;
use super::certificate::CertificateFiles;
pub use super::file::{
    BodyBytes, ConsoleConfig, Durability, Limits, Log, LogFormat, LogLevel, MediaConfig, OnOutage,
    OtlpProtocol, ResponsesConfig, Routing, Semconv, Server, VideosConfig, Weights,
};
use super::problem::Problem;
use super::secret::{Secret, SecretBytes};
use filters::cidr::Cidr;

/// The whole checked configuration.
pub struct Config {
    pub listen: Listen,
    pub admin: AdminConfig,
    pub console: ConsoleConfig,
    pub server: Server,
    pub store: StoreConfig,
    /// State shared by several processes.
    pub shared: SharedConfig,
    pub limits: Limits,
    /// The selection of attempts, and timeouts.
    pub routing: Routing,
    /// Images that are fetched for providers.
    pub media: MediaConfig,
    pub videos: VideosConfig,
    pub responses: ResponsesConfig,
    /// The maximum bytes of cached model replies; 0 disables the cache.
    pub reply_cache_bytes: u64,
    pub models: ModelsConfig,
    pub plans: Plans,
    pub prompts_enabled: bool,
    /// The model that judges calls in auto mode of Claude Code.
    pub judge_model: Option<Arc<str>>,
    /// The MCP server, or `None` if it is off.
    pub mcp: Option<McpConfig>,
    /// Providers that are on, sorted by name.
    pub providers: Vec<ProviderConfig>,
    /// Providers that are off, sorted by name.
    pub off_providers: Vec<OffProvider>,
    /// The providers that are off only for lack of a platform key. They serve callers with BYOK keys.
    pub byok_only_providers: Vec<ProviderConfig>,
    pub decisions: Option<DecisionsConfig>,
    pub graph: Option<GraphConfig>,
    /// Where traces go, or `None` if there are none.
    pub telemetry: Option<TelemetryConfig>,
    pub log: Log,
    /// The export of a line of each call, or `None` if it is off.
    pub log_export: Option<LogExportConfig>,
}

impl Config {
    /// Returns the path of the socket over which the process is reloaded and upgraded.
    pub fn upgrade_socket(&self) -> PathBuf {
        match self.server.upgrade_socket.as_str() {
            "" => self.store.state_dir.join("control.sock"),
            path => PathBuf::from(path),
        }
    }
}

/// The public listener.
#[derive(Clone, PartialEq)]
pub struct Listen {
    /// The listening address. With port 0 the system chooses a port.
    pub address: SocketAddr,
    pub tls: Option<CertificateFiles>,
    /// How long a client may take to send its request head.
    pub header_timeout: Duration,
    /// Maximum size of a request head.
    pub header_bytes: usize,
    pub max_connections: usize,
    /// The maximum number of concurrent connections of one address; 0 means no limit.
    pub max_connections_per_ip: usize,
    /// Whether HTTP/2 is accepted beside HTTP/1.1.
    pub http2: bool,
    /// The header with the client's address, trusted only from `trusted_proxies`.
    pub client_ip_header: Option<HeaderName>,
    /// The header that only holds API keys.
    pub key_header: HeaderName,
    pub trusted_proxies: Vec<Cidr>,
}

/// The operator's listener.
pub struct AdminConfig {
    /// The listening address.
    pub address: SocketAddr,
    /// The bearer token that everything but the probes requires, if it requires one.
    pub token: Option<Secret>,
    /// Whether people may change accounts in the console.
    pub write: bool,
}

/// The store of accounts.
#[derive(Clone)]
pub struct StoreConfig {
    /// `sqlite:PATH` or `postgres://…`. It has no password unless the file contains one.
    pub url: String,
    /// The folder of journal, spools and `secret.key`.
    pub state_dir: PathBuf,
    /// The pepper of stored keys, if it is not in `secret.key`; at least 32 bytes.
    pub secret: Option<SecretBytes>,
    /// The failures that the charge of a call survives once the last byte of its response is sent.
    pub durability: Durability,
    pub journal_bytes: u64,
    /// How long calls stay in the ledger; `None` means without end.
    pub usage_retention: Option<Duration>,
}

/// State shared by several processes.
pub struct SharedConfig {
    /// The URL of the shared Redis, which may contain a password; `None` shares nothing.
    pub redis: Option<Secret>,
    /// The behaviour of limits while Redis is unavailable.
    pub on_outage: OnOutage,
}

/// A provider that is off.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OffProvider {
    pub name: String,
    pub why: String,
    pub cure: String,
    /// Whether it has an address all the same, so that it serves callers with a key of their own.
    pub serves_own_keys: bool,
}

/// The MCP server.
#[derive(Clone, Debug)]
pub struct McpConfig {
    /// The web pages that may call.
    pub origins: Origins,
    pub session_lifetime: Duration,
    pub streams_per_key: usize,
    /// How long a call runs without its client, and how long its answer is kept.
    pub resume_timeout: Duration,
    /// The lifetime of an access token of OAuth.
    pub access_token_ttl: Duration,
    /// The lifetime of a refresh token of OAuth.
    pub refresh_token_ttl: Duration,
}

/// The catalogue of models.
#[derive(Clone, Debug)]
pub struct ModelsConfig {
    /// The file of the catalogue, which exists; `None` means an empty catalogue.
    pub file: Option<PathBuf>,
    /// Whether `/v1/models` requires a key.
    pub require_key: bool,
    pub catalog: Result<CatalogFile, Vec<Problem>>,
}
