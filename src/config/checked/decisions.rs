//! The decision endpoints' part of the checked configuration.

use std::path::PathBuf;
use std::time::Duration;

use filters::auth::claims::ClaimRules;
use filters::decisions::protocol::Protocol;
use http::HeaderName;

use crate::config::secret::{Secret, SecretBytes};

/// The decision endpoints.
pub struct DecisionsConfig {
    pub sdk_key_headers: Vec<HeaderName>,
    pub protocol: &'static dyn Protocol,
    /// Projects with local datafiles, by SDK key.
    pub projects: Vec<(Box<str>, Datafile)>,
    /// URL of other projects' datafiles, with `%s` for the SDK key.
    pub datafile_url: Option<String>,
    /// How long a key is remembered that the source refused.
    pub unknown_key_ttl: Duration,
    /// How often datafiles are checked for changes.
    pub poll_interval: Duration,
    pub datafile_max_bytes: u64,
    /// The URL for events, or `None` to discard them.
    pub event_url: Option<String>,
    pub event_batch: usize,
    /// Maximum delay of an event before a smaller batch is sent.
    pub event_flush: Duration,
    /// Maximum number of queued events.
    pub event_queue: usize,
    pub batch_max_operations: usize,
    pub batch_concurrency: usize,
    pub overrides: bool,
    pub profiles: Option<ProfileStore>,
    /// How long a profile in Redis is kept after its last use; `None` means without end.
    pub profile_ttl: Option<Duration>,
    /// The approximate maximum of users of an SDK key whose profiles are written in that time.
    pub max_profiles: u64,
    /// The Redis of agent mode with the agent's keys; `None` in document mode, which uses the shared Redis.
    pub agent_redis: Option<Secret>,
    pub notifications: bool,
    /// The maximum number of open streams of changes.
    pub event_streams: usize,
    /// URL of the key set that verifies foreign tokens.
    pub jwks_url: Option<String>,
    /// Host of segments, if it differs from the datafile's.
    pub odp_host: Option<String>,
    /// URLs of the hosts of segments that a datafile may name.
    pub odp_hosts: Vec<String>,
    /// The hosts of segments that the operator wrote.
    pub own_odp_hosts: Vec<String>,
    /// Whether segments are cached in Redis.
    pub shares_segments: bool,
    /// URL of predictions, with `%s` for the experiment's id.
    pub cmab_endpoint: String,
    /// Whether the operator wrote that URL.
    pub is_cmab_written: bool,
    pub token_ttl_s: u64,
    /// The issuer and the audience that tokens have to name.
    pub claim_rules: ClaimRules,
    /// Keys of tokens. The first signs, all verify.
    pub token_keys: Vec<SecretBytes>,
    pub clients: Vec<Client>,
    /// Senders that may announce new datafiles.
    pub webhooks: Vec<Webhook>,
}

impl DecisionsConfig {
    /// Returns the hosts of segments that the operator wrote.
    pub fn written_odp_hosts(&self) -> impl Iterator<Item = &str> {
        let hosts = self.odp_host.iter().chain(&self.own_odp_hosts);
        hosts.map(String::as_str)
    }
}

/// The store of user profiles.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ProfileStore {
    /// In this process, limited to the newest.
    Memory,
    /// In Redis: the shared one, or that of agent mode.
    Redis,
}

/// A sender that may announce new datafiles.
#[derive(Clone)]
pub struct Webhook {
    pub project_id: Box<str>,
    /// The secret that signs announcements. Without it they are refused.
    pub secret: Option<Secret>,
    /// Prefixes of the keys whose datafiles are then checked.
    pub sdk_keys: Vec<String>,
}

/// The location of a project's datafile.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Datafile {
    /// The built-in datafile.
    Sandbox,
    /// A watched file.
    File(PathBuf),
}

/// A client that may request tokens.
#[derive(Clone, Debug)]
pub struct Client {
    pub id: Box<str>,
    pub secret_hash: Box<str>,
    /// The SDK keys for which its tokens are valid.
    pub sdk_keys: Vec<String>,
}
