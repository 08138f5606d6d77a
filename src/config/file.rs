//! The configuration file: the only table of keys.
//!
//! A field is a key. Its type, bounds, default and first line of documentation are what `config schema` prints
//! and what the document is checked against. `format` names a check of `format.rs`.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) mod console;
pub(super) mod decisions;
pub(super) mod graph;
pub(super) mod log_export;
pub(super) mod providers;
pub(super) mod quotas;
pub(super) mod routing;
pub(super) mod server;
pub(super) mod telemetry;
pub(super) mod time;
pub(super) mod usd;

pub use console::ConsoleConfig;
pub(super) use decisions::DecisionsConfig;
pub(super) use filters::secret_ref::SecretRef;
pub(super) use graph::GraphConfig;
pub(super) use log_export::LogExportConfig;
pub(super) use providers::ProviderConfig;
pub(super) use routing::ModelsConfig;
pub use routing::{BodyBytes, Limits, Routing, Weights};
pub use server::Server;
pub(super) use telemetry::TelemetryConfig as TelemetryFile;
pub use telemetry::{OtlpProtocol, Semconv};
pub(super) use usd::Usd;

/// The configuration of Weirgate.
#[derive(Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct File {
    /// The public listener.
    pub listen: Listen,
    /// The operator's listener: metrics, health, console.
    pub admin: AdminConfig,
    /// The console of the operator's listener.
    pub console: ConsoleConfig,
    /// The process.
    pub server: Server,
    /// Where accounts live.
    pub store: StoreConfig,
    /// What several processes share.
    pub shared: SharedConfig,
    /// What callers may ask for.
    pub limits: Limits,
    /// How attempts are chosen, and how long they may take.
    pub routing: Routing,
    /// The cache of replies of models.
    pub cache: CacheConfig,
    /// Images that requests name by address, fetched for providers that take none.
    pub media: MediaConfig,
    /// Jobs of videos.
    pub videos: VideosConfig,
    /// Responses that clients ask to be kept.
    pub responses: ResponsesConfig,
    /// The catalogue of models.
    pub models: ModelsConfig,
    /// Model providers, by name: the prefix of `provider/model`.
    #[schemars(extend("x-names" = "name"))]
    pub providers: BTreeMap<String, ProviderConfig>,
    /// The decision agent; without this section it is off.
    pub decisions: Option<DecisionsConfig>,
    /// The graph service behind its limits; without this section it is off.
    pub graph: Option<GraphConfig>,
    /// Allowances of plans, by name.
    #[schemars(extend("x-names" = "name"))]
    pub plans: BTreeMap<String, Plan>,
    /// Managed prompts.
    pub prompts: Prompts,
    /// What the gateway does for Claude Code.
    pub claude_code: ClaudeCode,
    /// The MCP server.
    pub mcp: Mcp,
    /// Traces of requests.
    pub telemetry: TelemetryFile,
    /// What is logged.
    pub log: Log,
    /// The export of a line of each call; without this section it is off.
    pub log_export: Option<LogExportConfig>,
}

#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Listen {
    /// Address and port of the public APIs.
    #[schemars(extend("format" = "address"))]
    pub address: String,
    /// TLS on the public listener; the files are read again when they change.
    pub tls: Option<Tls>,
    /// Whether HTTP/2 is spoken beside HTTP/1.1.
    pub http2: bool,
    /// The most client connections at once.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_connections: usize,
    /// The most connections at once of one address, or of one /64 of IPv6; 0: no such limit. Loopback and trusted proxies are exempt.
    #[schemars(range(max = 1_000_000))]
    pub max_connections_per_ip: usize,
    /// Seconds a client may take to send its request head.
    #[schemars(range(min = 1, max = 3600))]
    pub header_timeout_s: u64,
    /// The most bytes of a request head.
    #[schemars(range(min = 1024, max = 1_048_576))]
    pub header_bytes: usize,
    /// The header that carries the client's address, believed from trusted_proxies alone; empty: the socket's.
    #[schemars(extend("format" = "header-or-empty"))]
    pub client_ip_header: String,
    /// The header that holds an API key and nothing else. Beside it, the usual headers may have a credential that the client has of
    /// a vendor itself.
    #[schemars(extend("format" = "header"))]
    pub key_header: String,
    /// Blocks of addresses whose client_ip_header is believed.
    #[schemars(extend("items" = {"type": "string", "format": "cidr"}, "uniqueItems" = true))]
    pub trusted_proxies: Vec<String>,
}

impl Default for Listen {
    fn default() -> Self {
        Self {
            address: "127.0.0.1:8080".to_owned(),
            tls: None,
            http2: true,
            max_connections: 10_000,
            max_connections_per_ip: 1_024,
            header_timeout_s: 10,
            header_bytes: 32_768,
            client_ip_header: String::new(),
            key_header: "x-weirgate-key".to_owned(),
            trusted_proxies: Vec::new(),
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tls {
    /// The file of the certificate chain, PEM; a bare name is also looked for in $CREDENTIALS_DIRECTORY.
    #[schemars(length(min = 1), extend("x-file" = "certificate"))]
    pub cert: String,
    /// The file of the private key, PEM; a bare name is also looked for in $CREDENTIALS_DIRECTORY.
    #[schemars(length(min = 1), extend("x-file" = "certificate"))]
    pub key: String,
}

#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct AdminConfig {
    /// Address and port of metrics, health and console; loopback unless told otherwise.
    #[schemars(extend("format" = "address"))]
    pub address: String,
    /// The bearer token that everything but /livez and /readyz requires; unset: none.
    pub token: Option<SecretRef>,
    /// Whether people may change accounts in the console.
    pub write: bool,
}

impl Default for AdminConfig {
    fn default() -> Self {
        Self {
            address: "127.0.0.1:8081".to_owned(),
            token: None,
            write: false,
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct StoreConfig {
    /// Where accounts live: sqlite:PATH or postgres://user@host/db.
    #[schemars(extend("format" = "store-url"))]
    pub url: String,
    /// The folder of journal, spools and secret.key; unset: the SQLite file's folder, $STATE_DIRECTORY, var.
    #[schemars(length(min = 1))]
    pub state_dir: Option<String>,
    /// Replaces secret.key; required with PostgreSQL.
    pub secret: Option<SecretRef>,
    /// What the charge of a call survives before its last byte goes out: a kill of the process, or a power cut too.
    pub durability: Durability,
    /// The most bytes of the journal of money; beyond it calls on credit wait for the store with 503.
    #[schemars(range(min = 4_194_304))]
    pub journal_bytes: u64,
    /// Days that single calls stay in the ledger; 0: for ever. The sums of hours are always kept.
    #[schemars(range(max = 36_500))]
    pub usage_retention_days: u64,
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self {
            url: "sqlite:var/weirgate.db".to_owned(),
            state_dir: None,
            secret: None,
            durability: Durability::default(),
            journal_bytes: 256 << 20,
            usage_retention_days: 7,
        }
    }
}

/// What the charge of a call survives, before the last byte of its response goes out.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    #[default]
    Process,
    Power,
}

#[derive(Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct SharedConfig {
    /// redis://… shares windows, caches, sessions and health of providers between processes; empty: nothing is shared.
    #[schemars(extend("format" = "redis-url-or-empty"))]
    pub redis: String,
    /// What limits do while Redis is away: each process alone, its part of the limit, or 503.
    pub on_outage: OnOutage,
}

/// How limits behave while Redis is unavailable. Source: docs/interface.md, `shared.on_outage`.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OnOutage {
    Open,
    #[default]
    Local,
    Closed,
}

#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct CacheConfig {
    /// The most bytes of memory that cached replies take; 0: nothing is cached.
    pub max_bytes: u64,
}

impl Default for CacheConfig {
    fn default() -> Self {
        Self {
            max_bytes: 268_435_456,
        }
    }
}

/// Images that are fetched for providers that take no addresses.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct MediaConfig {
    /// Whether they are fetched; if not, such providers are left out for such requests.
    pub fetch: bool,
    /// The most bytes of one image.
    #[schemars(range(min = 1024, max = 104_857_600))]
    pub max_bytes: usize,
    /// Seconds that one image may take.
    #[serde(rename = "timeout_s", with = "time::seconds")]
    #[schemars(with = "u64", range(min = 1, max = 300))]
    pub timeout: Duration,
    /// The most fetches at once.
    #[schemars(range(min = 1, max = 10_000))]
    pub max_fetches: usize,
    /// The most bytes of memory that fetched images take; 0: none is used again.
    pub cache_bytes: usize,
    /// Your own origins, such as `https://pictures.internal:8443`: their addresses may be private, and plain http is
    /// spoken where it is written so. All others have to be public, and https.
    #[schemars(extend("items" = {"type": "string", "format": "url"}, "uniqueItems" = true))]
    pub origins: Vec<String>,
}

/// Jobs of videos.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct VideosConfig {
    /// Seconds after which a job that has not ended is given up; it costs nothing then.
    #[serde(rename = "timeout_s", with = "time::seconds")]
    #[schemars(with = "u64", range(min = 1, max = 604_800))]
    pub timeout: Duration,
    /// Your own origins of callbacks, such as `https://hooks.internal:8443`: their addresses may be private, and plain http
    /// is spoken where it is written so. All others have to be public, and https.
    #[schemars(extend("items" = {"type": "string", "format": "url"}, "uniqueItems" = true))]
    pub callback_origins: Vec<String>,
}

/// Responses that clients ask to be kept.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct ResponsesConfig {
    /// Whether `store: true` keeps a response, for `previous_response_id`, `background` and its own paths.
    pub store: bool,
    /// Days after which a response is deleted.
    #[schemars(range(min = 1, max = 3650))]
    pub retention_days: u32,
    /// The most bytes of one response, with the items that it answers.
    #[schemars(range(min = 1024, max = 268_435_456))]
    pub max_bytes_per_response: usize,
    /// The most bytes of all responses of an organization.
    #[schemars(range(min = 1024, max = 1_099_511_627_776_i64))]
    pub max_bytes: u64,
    /// The most responses of an organization.
    #[schemars(range(min = 1, max = 100_000_000))]
    pub max_count: u64,
}

impl Default for ResponsesConfig {
    fn default() -> Self {
        Self {
            store: false,
            retention_days: 30,
            max_bytes_per_response: 8 << 20,
            max_bytes: 1 << 30,
            max_count: 100_000,
        }
    }
}

impl Default for VideosConfig {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(3600),
            callback_origins: Vec::new(),
        }
    }
}

impl Default for MediaConfig {
    fn default() -> Self {
        Self {
            fetch: true,
            max_bytes: 10 << 20,
            timeout: Duration::from_secs(10),
            max_fetches: 32,
            cache_bytes: 64 << 20,
            origins: Vec::new(),
        }
    }
}

#[derive(Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Plan {
    /// Credit of one cycle, a month from creation, in USD; without it what is built in.
    pub cycle_usd: Option<Usd>,
    /// The share of the cycle's credit that premium models may take in a week.
    #[schemars(range(min = 0, max = 100))]
    pub weekly_premium_pct: Option<f64>,
    /// The share of the cycle's credit that one day may take.
    #[schemars(range(min = 0, max = 100))]
    pub daily_pct: Option<f64>,
}

#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Prompts {
    /// Whether requests may name managed prompts.
    pub enabled: bool,
}

impl Default for Prompts {
    fn default() -> Self {
        Self { enabled: true }
    }
}

#[derive(Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ClaudeCode {
    /// The model that says in auto mode whether calls are dangerous, where the provider of an answer does not; empty: none does.
    pub judge_model: String,
}

#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Mcp {
    /// Whether /mcp is served.
    pub enabled: bool,
    /// The URL of the listener from outside, such as `https://gateway.example.com`; then `Host` has to name it. Empty: any.
    pub public_url: String,
    /// Origins of web pages that may call, such as `https://app.example.com`, beside that of `public_url`.
    pub allowed_origins: Vec<String>,
    /// How many hours a session lasts after its `initialize`.
    #[schemars(range(min = 1, max = 8760))]
    pub session_hours: u64,
    /// How many streams of `GET /mcp` an API key may have open in one process.
    #[schemars(range(min = 1, max = 100_000))]
    pub streams_per_key: usize,
    /// How many seconds a call goes on whose client has lost the stream of its answer, and an answer is kept; 0: they end with it.
    #[schemars(range(max = 600))]
    pub resume_seconds: u64,
    /// How long an access token of OAuth is good.
    #[schemars(range(min = 60, max = 3600))]
    pub access_token_seconds: u32,
    /// How long a refresh token of OAuth is good.
    #[schemars(range(min = 1, max = 365))]
    pub refresh_token_days: u32,
}

impl Default for Mcp {
    fn default() -> Self {
        Self {
            enabled: true,
            public_url: String::new(),
            allowed_origins: Vec::new(),
            session_hours: 24,
            streams_per_key: 100,
            resume_seconds: 60,
            access_token_seconds: 900,
            refresh_token_days: 30,
        }
    }
}

/// Log settings.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Log {
    /// The least severe messages shown on stderr.
    pub level: LogLevel,
    /// Whether each request writes one line on stdout after it ended.
    pub access: bool,
    /// The form of the lines on stdout: JSON, text for people, or text on a terminal and JSON elsewhere (auto).
    pub format: LogFormat,
}

impl Default for Log {
    fn default() -> Self {
        Self {
            level: LogLevel::Warn,
            access: true,
            format: LogFormat::Auto,
        }
    }
}

/// The form of the lines on stdout; `Auto`: text on a terminal, JSON elsewhere.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    Auto,
    Json,
    Text,
}

/// The least severe level that is logged.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    Off,
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

impl From<LogLevel> for log::LevelFilter {
    fn from(level: LogLevel) -> Self {
        match level {
            LogLevel::Off => Self::Off,
            LogLevel::Error => Self::Error,
            LogLevel::Warn => Self::Warn,
            LogLevel::Info => Self::Info,
            LogLevel::Debug => Self::Debug,
            LogLevel::Trace => Self::Trace,
        }
    }
}
