//! The configuration as used: every value typed, in range and resolved.

mod plans;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use filters::decisions::protocol::Protocol;
use filters::graph::Operations;
use filters::limits::Algorithm;
use filters::models::wires::{Quirks, WireKind};
use http::{HeaderName, HeaderValue, Uri};

pub use self::plans::Plans;
use super::secret::{Secret, SecretBytes};
use filters::cidr::Cidr;

/// The whole configuration as used.
pub struct Config {
    /// The public listener.
    pub listen: Listen,
    /// The operator's listener.
    pub admin: AdminConfig,
    /// The process.
    pub server: Server,
    /// Where accounts live.
    pub store: StoreConfig,
    /// What several processes share.
    pub shared: SharedConfig,
    /// What one caller may ask for.
    pub limits: Limits,
    /// How attempts are chosen and how long they may take.
    pub routing: Routing,
    /// The catalogue.
    pub models: ModelsConfig,
    /// What plans allow.
    pub plans: Plans,
    /// Providers that are on, in order of their names.
    pub providers: Vec<ProviderConfig>,
    /// Providers that are configured but off, by name, with the reason.
    pub off_providers: Vec<(String, String)>,
    /// Those of them that only lack a key: whoever has one of their own is served there.
    pub keyless_providers: Vec<ProviderConfig>,
    /// The decision endpoints; none: they are off.
    pub decisions: Option<DecisionsConfig>,
    /// The graph service; none: it is off.
    pub graph: Option<GraphConfig>,
    /// What is logged.
    pub log: Log,
}

/// The decision endpoints.
pub struct DecisionsConfig {
    /// Headers that carry the SDK key.
    pub sdk_key_headers: Vec<HeaderName>,
    /// The protocol of requests and responses.
    pub protocol: &'static dyn Protocol,
    /// Projects from files, by SDK key.
    pub projects: Vec<(Box<str>, Datafile)>,
    /// Where other projects' datafiles are fetched, with `%s` for the SDK key.
    pub datafile_url: Option<String>,
    /// For how long a key that the source refused is remembered.
    pub unknown_key_ttl: Duration,
    /// How often datafiles are looked at.
    pub poll_interval: Duration,
    /// The most bytes of a datafile.
    pub datafile_max_bytes: u64,
    /// Where events go; none: nowhere.
    pub event_url: Option<String>,
    /// The most events of one dispatch.
    pub event_batch: usize,
    /// After how long fewer are sent.
    pub event_flush: Duration,
    /// The most events that wait.
    pub event_queue: usize,
    /// The most operations of a batch.
    pub batch_max_operations: usize,
    /// The most of them at once.
    pub batch_concurrency: usize,
    /// Whether overrides may be set.
    pub overrides: bool,
    /// Where user profiles are kept; none: nowhere.
    pub profiles: Option<ProfilesIn>,
    /// Whether who listens is told what is decided.
    pub notifications: bool,
    /// Where the keys of foreign tokens are published.
    pub jwks_url: Option<String>,
    /// Where segments are asked for in place of the datafile's host.
    pub odp_host: Option<String>,
    /// Whether they are kept in Redis.
    pub shares_segments: bool,
    /// Where predictions are asked for, with `%s` for the experiment's id.
    pub cmab_endpoint: String,
    /// How long a token is good, in seconds.
    pub token_ttl_s: u64,
    /// Keys of tokens; the first signs.
    pub token_keys: Vec<SecretBytes>,
    /// Who may ask for tokens.
    pub clients: Vec<Client>,
    /// Who may announce new datafiles.
    pub webhooks: Vec<Webhook>,
}

/// Where user profiles are kept.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ProfilesIn {
    /// In this process, the newest of them.
    Memory,
    /// In the Redis that is shared.
    Redis,
}

/// Who may announce new datafiles.
#[derive(Clone)]
pub struct Webhook {
    /// The project's id.
    pub project_id: Box<str>,
    /// Signs the announcements; without it they are refused.
    pub secret: Option<Secret>,
    /// What the keys begin with whose datafiles are looked at again.
    pub sdk_keys: Vec<String>,
}

/// Where a project's datafile is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Datafile {
    /// The built-in one.
    Sandbox,
    /// A file, watched.
    File(PathBuf),
}

/// Who may ask for tokens.
#[derive(Clone, Debug)]
pub struct Client {
    /// The client's id.
    pub id: Box<str>,
    /// The hash of its secret.
    pub secret_hash: Box<str>,
    /// What its tokens are good for.
    pub sdk_keys: Vec<String>,
}

/// The graph service behind its limits.
pub struct GraphConfig {
    /// Where it is.
    pub upstream: GraphUpstream,
    /// Whether paths that no operation names are refused.
    pub rejects_unknown: bool,
    /// The length of a window in seconds, at least 1.
    pub window_s: u64,
    /// How windows are counted.
    pub algorithm: Algorithm,
    /// The table of operations.
    pub operations: Operations,
    /// What each tenant may do.
    pub limits: filters::graph::TenantLimits,
    /// Who the tenants are.
    pub tenants: Vec<Tenant>,
    /// For how long answers are kept, and the most bytes of them; none: not at all.
    pub cache: Option<(Duration, u64)>,
}

/// Where the graph service is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum GraphUpstream {
    /// Built in.
    Sandbox,
    /// Scheme, host and port.
    At(Uri),
}

/// The credentials of a tenant.
pub struct Tenant {
    /// Its id.
    pub id: Arc<str>,
    /// Its public keys.
    pub single_keys: Vec<String>,
    /// Its applications' keys, each with its secret where it is to be verified.
    pub app_keys: Vec<(String, Option<Secret>)>,
    /// Who issues its tokens.
    pub bearer: Vec<Bearer>,
}

/// Who issues tokens of a tenant.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Bearer {
    /// The issuer.
    pub issuer: String,
    /// For whom; none: for anybody.
    pub audience: Option<String>,
    /// Where its keys are published; none: its tokens are believed unseen.
    pub jwks_url: Option<String>,
}

/// The public listener.
pub struct Listen {
    /// Where it listens; port 0 lets the system choose.
    pub address: SocketAddr,
    /// How long a client may take to send its request head.
    pub header_timeout: Duration,
    /// The most bytes of a request head.
    pub header_bytes: usize,
    /// The most connections at once.
    pub max_connections: usize,
    /// Whether HTTP/2 without TLS is spoken beside HTTP/1.1.
    pub http2: bool,
    /// The header that carries the client's address; only believed from `trusted_proxies`.
    pub client_ip_header: Option<HeaderName>,
    /// Whose `client_ip_header` is believed.
    pub trusted_proxies: Vec<Cidr>,
}

/// The operator's listener.
pub struct AdminConfig {
    /// Where it listens.
    pub address: SocketAddr,
    /// The bearer token of the console, where one is asked for.
    pub token: Option<Secret>,
}

/// The process.
pub struct Server {
    /// Worker threads, at least 1.
    pub threads: usize,
    /// How long requests in flight may take after SIGTERM.
    pub grace_period: Duration,
}

/// Where accounts live.
pub struct StoreConfig {
    /// `sqlite:PATH` or `postgres://…`; without a secret in it unless the file says so.
    pub url: String,
    /// The folder of journal, spools and `secret.key`.
    pub state_dir: PathBuf,
    /// The pepper of stored keys, where it does not come from `secret.key`; at least 32 bytes.
    pub secret: Option<SecretBytes>,
    /// The most bytes of the journal of money.
    pub journal_bytes: u64,
    /// How long calls stay in the ledger; none: for ever.
    pub usage_retention: Option<Duration>,
}

/// What several processes share.
pub struct SharedConfig {
    /// The URL of their Redis, which may hold a password; none: nothing is shared.
    pub redis: Option<Secret>,
    /// What limits do while Redis is gone.
    pub on_outage: OnOutage,
}

/// What limits do while Redis is gone. Source: docs/interface.md, `shared.on_outage`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum OnOutage {
    /// Each process applies the whole limit alone.
    Open,
    /// Each process applies its part of the limit.
    #[default]
    Local,
    /// Nothing is admitted: 503.
    Closed,
}

/// What callers may ask for.
pub struct Limits {
    /// Requests to models at once.
    pub in_flight: usize,
    /// The most bytes of a body.
    pub body_bytes: BodyBytes,
    /// Requests per minute and organization by endpoint group; absent: unlimited.
    pub requests_per_minute: BTreeMap<String, u64>,
}

/// The most bytes of a body, by endpoint.
#[derive(Clone, Copy, Debug)]
pub struct BodyBytes {
    /// Chat completions and the like.
    pub chat: usize,
    /// Images.
    pub images: usize,
    /// Decisions.
    pub decisions: usize,
    /// Batches of decisions.
    pub batch: usize,
    /// Graph queries.
    pub graph: usize,
    /// Graph data.
    pub graph_data: usize,
}

/// How attempts are chosen and how long they may take.
#[derive(Clone, Debug)]
pub struct Routing {
    /// The most providers tried for one request.
    pub attempts: u32,
    /// The share of requests that try a provider out of order, 0 to 1.
    pub exploration: f64,
    /// How long a session stays with its provider.
    pub sticky_ttl: Duration,
    /// The weights of the automatic strategy.
    pub weights: Weights,
    /// To connect to a provider.
    pub connect_timeout: Duration,
    /// From the request to the first event of a stream.
    pub first_event_timeout: Duration,
    /// Between two events of a stream.
    pub idle_timeout: Duration,
    /// For a whole reply that does not stream, per attempt.
    pub total_timeout: Duration,
    /// For a whole stream, per attempt.
    pub stream_total_timeout: Duration,
    /// For all attempts together.
    pub deadline: Duration,
    /// Silence towards a waiting client before a comment is sent.
    pub keepalive: Duration,
    /// The models that `auto` chooses from, best first.
    pub auto: Vec<String>,
}

/// The weights of the automatic strategy; none is negative, all may be zero.
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

/// The catalogue.
#[derive(Clone, Debug)]
pub struct ModelsConfig {
    /// The catalogue's file, which exists; none: an empty catalogue.
    pub file: Option<PathBuf>,
    /// Whether `/v1/models` needs a key.
    pub require_key: bool,
}

/// A provider that is on.
#[derive(Clone)]
pub struct ProviderConfig {
    /// Its name: the prefix of `provider/model`.
    pub name: String,
    /// Its wire.
    pub kind: ProviderKind,
    /// `http` or `https`, without a slash at the end.
    pub base_url: String,
    /// Its keys, in the order they are tried; empty where none is needed, or only callers have some.
    pub keys: Vec<Secret>,
    /// Whether it serves callers with a key of their own alone.
    pub needs_own_key: bool,
    /// Its region.
    pub region: Option<String>,
    /// Headers added to each request to it.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Its preference among equals; 1 is neutral.
    pub priority: f64,
    /// What is special about it.
    pub quirks: Quirks,
}

/// A provider's wire, of those that are built.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ProviderKind {
    /// OpenAI itself.
    OpenAi,
    /// Anthropic.
    Anthropic,
    /// Google AI Studio.
    Google,
    /// Any provider that speaks the OpenAI convention.
    Compatible,
    /// The built-in sandbox.
    Sandbox,
}

impl ProviderKind {
    /// The family that speaks its wire.
    pub fn family(self) -> WireKind {
        match self {
            Self::OpenAi | Self::Compatible | Self::Sandbox => WireKind::Compatible,
            Self::Anthropic => WireKind::Messages,
            Self::Google => WireKind::Contents,
        }
    }
}

/// What is logged.
#[derive(Clone, Copy, Debug)]
pub struct Log {
    /// The least severe messages that are shown on stderr.
    pub level: log::LevelFilter,
    /// Whether each request writes a line on stdout.
    pub access: bool,
}
