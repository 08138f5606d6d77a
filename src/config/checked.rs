//! The checked configuration: every value typed, in range and resolved.

mod decisions;
mod graph;
mod plans;
mod providers;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use filters::limits::{QuotaGroup, QuotaLimit};
use filters::mcp::origin::Origins;
use filters::models::routing::CatalogFile;
use http::HeaderName;

pub use self::decisions::{Client, Datafile, DecisionsConfig, ProfileStore, Webhook};
pub use self::graph::{Bearer, GraphConfig, GraphUpstream, Tenant};
pub use self::plans::Plans;
pub use self::providers::{
    HealthConfig, ProviderConfig, ProviderKind, RegionConfig, provider_names,
};
use super::certificate::CertificateFiles;
use super::problem::Problem;
use super::secret::{Secret, SecretBytes};
use filters::cidr::Cidr;

/// The whole checked configuration.
pub struct Config {
    pub listen: Listen,
    pub admin: AdminConfig,
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
    /// How many bytes of replies of models are cached; 0: none.
    pub reply_cache_bytes: u64,
    pub models: ModelsConfig,
    pub plans: Plans,
    pub prompts_enabled: bool,
    /// The MCP server; `None`: it is off.
    pub mcp: Option<McpConfig>,
    /// Providers that are on, sorted by name.
    pub providers: Vec<ProviderConfig>,
    /// Providers that are off, sorted by name.
    pub off_providers: Vec<OffProvider>,
    /// Those of them that only lack a platform key. They serve callers with BYOK keys.
    pub byok_only_providers: Vec<ProviderConfig>,
    pub decisions: Option<DecisionsConfig>,
    pub graph: Option<GraphConfig>,
    pub log: Log,
}

/// The public listener.
pub struct Listen {
    /// The listening address. With port 0 the system chooses a port.
    pub address: SocketAddr,
    pub tls: Option<CertificateFiles>,
    /// How long a client may take to send its request head.
    pub header_timeout: Duration,
    /// Maximum size of a request head.
    pub header_bytes: usize,
    pub max_connections: usize,
    /// Maximum number of concurrent connections of one address; 0: no such limit.
    pub max_connections_per_ip: usize,
    /// Whether HTTP/2 is accepted beside HTTP/1.1.
    pub http2: bool,
    /// The header with the client's address, trusted only from `trusted_proxies`.
    pub client_ip_header: Option<HeaderName>,
    pub trusted_proxies: Vec<Cidr>,
}

/// The operator's listener.
pub struct AdminConfig {
    /// The listening address.
    pub address: SocketAddr,
    /// The bearer token that everything but the probes requires, if it requires one.
    pub token: Option<Secret>,
}

/// The process settings.
pub struct Server {
    /// Worker threads, at least 1.
    pub threads: usize,
    /// How long requests in flight may take after SIGTERM.
    pub grace_period: Duration,
}

/// The store of accounts.
#[derive(Clone)]
pub struct StoreConfig {
    /// `sqlite:PATH` or `postgres://…`. It has no password unless the file has one.
    pub url: String,
    /// The folder of journal, spools and `secret.key`.
    pub state_dir: PathBuf,
    /// The pepper of stored keys, if it is not in `secret.key`; at least 32 bytes.
    pub secret: Option<SecretBytes>,
    /// What the charge of a call survives, before the last byte of its response goes out.
    pub durability: Durability,
    pub journal_bytes: u64,
    /// How long calls stay in the ledger; `None` means for ever.
    pub usage_retention: Option<Duration>,
}

/// What the charge of a call survives, before the last byte of its response goes out.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Durability {
    /// The end of the process: the charge is in the kernel.
    #[default]
    Process,
    /// A power cut: the charge is on the disk.
    Power,
}

/// State shared by several processes.
pub struct SharedConfig {
    /// The URL of the shared Redis, which may hold a password; `None` shares nothing.
    pub redis: Option<Secret>,
    /// How limits behave while Redis is unavailable.
    pub on_outage: OnOutage,
}

/// How limits behave while Redis is unavailable. Source: docs/interface.md, `shared.on_outage`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum OnOutage {
    /// Each process applies the whole limit.
    Open,
    /// Each process applies its share of the limit.
    #[default]
    Local,
    /// Requests are refused with 503.
    Closed,
}

/// Images that are fetched for providers that take no addresses.
#[derive(Clone, Debug)]
pub struct MediaConfig {
    /// Whether they are fetched.
    pub fetch: bool,
    /// Maximum size of one image.
    pub max_bytes: usize,
    /// Timeout of one image.
    pub timeout: Duration,
    /// Maximum number of fetches at once.
    pub max_fetches: usize,
    /// Maximum size of the cache.
    pub cache_bytes: usize,
    /// The operator's own origins.
    pub origins: Vec<String>,
}

/// Jobs of videos.
#[derive(Clone, Debug)]
pub struct VideosConfig {
    /// After this time a job is given up.
    pub timeout: Duration,
    /// The operator's own origins of callbacks.
    pub callback_origins: Vec<String>,
}

/// A provider that is off.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OffProvider {
    pub name: String,
    pub why: String,
    pub cure: String,
}

/// Limits of requests.
pub struct Limits {
    /// Maximum number of concurrent requests of models.
    pub in_flight: usize,
    /// Maximum number of bytes of all request bodies in memory.
    pub buffered_bytes: usize,
    /// Maximum number of bytes of all uploads on the disk.
    pub spooled_bytes: usize,
    /// Maximum size of a body.
    pub body_bytes: BodyBytes,
    /// Requests per minute and organization, by endpoint group.
    pub requests_per_minute: Vec<(QuotaGroup, QuotaLimit)>,
    /// Whether a shared window counts each request in Redis on its own.
    pub shared_exact: bool,
}

/// The maximum size of a body, by endpoint.
#[derive(Clone, Copy, Debug)]
pub struct BodyBytes {
    /// Chat completions and the like.
    pub chat: usize,
    /// Images.
    pub images: usize,
    /// OCR.
    pub ocr: usize,
    /// Forms with audio.
    pub audio: usize,
    /// Videos that providers send.
    pub video: usize,
    /// Decisions.
    pub decisions: usize,
    /// Batches of decisions.
    pub batch: usize,
    /// Graph queries.
    pub graph: usize,
    /// Graph data.
    pub graph_data: usize,
}

/// The MCP server.
#[derive(Clone, Debug)]
pub struct McpConfig {
    /// Which web pages may call.
    pub origins: Origins,
    pub session_lifetime: Duration,
    pub streams_per_key: usize,
    /// How long a call goes on without its client, and an answer is kept.
    pub resume_timeout: Duration,
    /// How long an access token of OAuth is good.
    pub access_token_ttl: Duration,
    /// How long a refresh token of OAuth is good.
    pub refresh_token_ttl: Duration,
}

/// The selection of attempts, and timeouts.
#[derive(Clone, Debug)]
pub struct Routing {
    /// Maximum number of attempts of one request.
    pub attempts: u32,
    /// The share of requests that try a provider out of order, from 0 to 1.
    pub exploration: f64,
    /// How long a session stays with its provider.
    pub sticky_ttl: Duration,
    /// The weights of the automatic strategy.
    pub weights: Weights,
    /// Timeout of a connection to a provider.
    pub connect_timeout: Duration,
    /// Timeout from the request to the first event of a stream.
    pub first_event_timeout: Duration,
    /// Timeout between two events of a stream.
    pub idle_timeout: Duration,
    /// Timeout of a whole reply that does not stream, per attempt.
    pub total_timeout: Duration,
    /// Timeout of a whole stream, per attempt.
    pub stream_total_timeout: Duration,
    /// Timeout of all attempts together.
    pub deadline: Duration,
    /// How long a waiting client gets nothing before a comment is sent.
    pub keepalive: Duration,
    /// How long a stream may say nothing until a second attempt begins beside it; `None`: for ever.
    pub hedge_after: Option<Duration>,
    /// The models that `auto` chooses from, best first.
    pub auto: Vec<String>,
    /// The models that `auto` chooses from where images are asked for.
    pub auto_images: Vec<String>,
}

/// The weights of the automatic strategy. None is negative; all may be zero.
#[derive(Clone, Copy, Debug)]
pub struct Weights {
    /// Of the price.
    pub price: f64,
    /// Of the uptime.
    pub uptime: f64,
    /// Of the throughput.
    pub throughput: f64,
    /// Of the latency.
    pub latency: f64,
}

/// The catalogue of models.
#[derive(Clone, Debug)]
pub struct ModelsConfig {
    /// The file of the catalogue, which exists; `None` means an empty catalogue.
    pub file: Option<PathBuf>,
    /// Whether `/v1/models` needs a key.
    pub require_key: bool,
    pub catalog: Result<CatalogFile, Vec<Problem>>,
}

/// Log settings.
#[derive(Clone, Copy, Debug)]
pub struct Log {
    /// The least severe level that is logged to stderr.
    pub level: log::LevelFilter,
    /// Whether each request writes a line to stdout.
    pub access: bool,
    /// The form of the lines.
    pub format: LogFormat,
}

/// The form of the lines on stdout.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LogFormat {
    /// Text on a terminal, JSON elsewhere.
    Auto,
    /// JSON.
    Json,
    /// Text for people.
    Text,
}
