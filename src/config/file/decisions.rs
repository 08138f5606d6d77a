//! `[decisions]`, as the file has it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SecretRef;

#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct DecisionsConfig {
    /// Headers that carry the SDK key.
    #[schemars(extend("items" = {"type": "string", "format": "header"}, "minItems" = 1, "uniqueItems" = true))]
    pub sdk_key_headers: Vec<String>,
    /// Which answers are given where the published document and the agent differ.
    pub compat: Compat,
    /// Where datafiles are fetched, with %s for the SDK key; empty: only projects from files.
    #[schemars(extend("format" = "url-pattern-or-empty"))]
    pub datafile_url: String,
    /// Seconds between two looks at a datafile.
    #[schemars(range(min = 1, max = 86_400))]
    pub poll_interval_s: u64,
    /// Where events are sent; empty: nowhere.
    #[schemars(extend("format" = "url-or-empty"))]
    pub event_url: String,
    /// The most events of one dispatch.
    #[schemars(range(min = 1, max = 10_000))]
    pub event_batch: u64,
    /// Seconds after which a batch that is not full is sent.
    #[schemars(range(min = 1, max = 86_400))]
    pub event_flush_interval_s: u64,
    /// The most events waiting to be sent; one of more than 16 KiB counts as several.
    #[schemars(range(min = 1, max = 10_000_000))]
    pub event_queue: u64,
    /// The most operations of one batch.
    #[schemars(range(min = 1, max = 100_000))]
    pub batch_max_operations: u64,
    /// The most operations of one batch at once.
    #[schemars(range(min = 1, max = 1000))]
    pub batch_concurrency: u64,
    /// Whether forced decisions may be set.
    pub overrides: bool,
    /// Where user profiles are kept.
    pub user_profiles: UserProfiles,
    /// Seconds for which a profile in Redis is kept after its last use; 0: for ever.
    #[schemars(range(max = 315_360_000))]
    pub user_profile_ttl_s: u64,
    /// About the most users of an SDK key whose profiles are written to shared.redis within that time.
    #[schemars(range(min = 1, max = 1_000_000_000_000_u64))]
    pub user_profiles_max: u64,
    /// redis://… for the plain keys of agent mode; a database that nothing else of this server uses.
    #[schemars(extend("format" = "redis-url-or-empty"))]
    pub agent_redis: String,
    /// Whether notifications are streamed.
    pub notifications: bool,
    /// The most open streams that tell clients of OpenFeature's protocol of changed flags; 0: none is offered, and clients poll.
    #[schemars(range(max = 1_000_000))]
    pub event_streams: usize,
    /// Seconds for which an unknown SDK key is remembered as unknown.
    #[schemars(range(max = 86_400))]
    pub unknown_key_ttl_s: u64,
    /// The most bytes of a datafile.
    #[schemars(range(min = 1024, max = 1_073_741_824))]
    pub datafile_max_bytes: u64,
    /// Where the keys of foreign tokens are published; empty: only our own tokens.
    #[schemars(extend("format" = "url-or-empty"))]
    pub jwks_url: String,
    /// Seconds for which a token is good.
    #[schemars(range(min = 1, max = 31_536_000))]
    pub token_ttl_s: u64,
    /// The issuer that tokens have to name; empty: any.
    pub token_issuer: String,
    /// The audience that tokens have to name; empty: any.
    pub token_audience: String,
    /// Keys of our tokens, at least 32 bytes in base64; the first signs, all verify.
    pub token_keys: Vec<SecretRef>,
    /// Audience segments.
    pub odp: Odp,
    /// Contextual bandits.
    pub cmab: Cmab,
    /// Projects from files.
    #[schemars(extend("x-identity" = "sdk_key"))]
    pub projects: Vec<ProjectConfig>,
    /// Who may ask for tokens.
    #[schemars(extend("x-identity" = "id"))]
    pub clients: Vec<Client>,
    /// Who may announce new datafiles.
    #[schemars(extend("x-identity" = "project_id"))]
    pub webhooks: Vec<Webhook>,
}

impl Default for DecisionsConfig {
    fn default() -> Self {
        Self {
            sdk_key_headers: vec![
                "X-Platform-SDK-Key".to_owned(),
                "X-Optimizely-SDK-Key".to_owned(),
            ],
            compat: Compat::default(),
            datafile_url: String::new(),
            poll_interval_s: 60,
            event_url: String::new(),
            event_batch: 10,
            event_flush_interval_s: 30,
            event_queue: 10_000,
            batch_max_operations: 500,
            batch_concurrency: 10,
            overrides: true,
            user_profiles: UserProfiles::default(),
            user_profile_ttl_s: 7_776_000,
            user_profiles_max: 10_000_000,
            agent_redis: String::new(),
            notifications: false,
            event_streams: 1000,
            unknown_key_ttl_s: 30,
            datafile_max_bytes: 33_554_432,
            jwks_url: String::new(),
            token_ttl_s: 1800,
            token_issuer: String::new(),
            token_audience: String::new(),
            token_keys: Vec::new(),
            odp: Odp::default(),
            cmab: Cmab::default(),
            projects: Vec::new(),
            clients: Vec::new(),
            webhooks: Vec::new(),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Compat {
    #[default]
    Document,
    Agent,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum UserProfiles {
    #[default]
    None,
    Memory,
    Redis,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SegmentsCache {
    #[default]
    Memory,
    Redis,
}

/// Where the vendor's datafiles say that its platform is: two names of the region US, then EU and Australia. Source: the
/// vendor's Node SDK for the platform, `configOrDefault`, and the servers in the OpenAPI documents of its API.
const ODP_HOSTS: [&str; 4] = [
    "https://api.zaius.com",
    "https://api.us1.odp.optimizely.com",
    "https://api.eu1.odp.optimizely.com",
    "https://api.au1.odp.optimizely.com",
];

impl Default for Odp {
    fn default() -> Self {
        Self {
            host: String::new(),
            hosts: ODP_HOSTS.map(str::to_owned).to_vec(),
            segments_cache: SegmentsCache::default(),
        }
    }
}

impl Odp {
    /// The hosts of the list that the operator wrote himself.
    pub(crate) fn written_hosts(&self) -> impl Iterator<Item = &String> {
        let hosts = self.hosts.iter();
        hosts.filter(|host| !ODP_HOSTS.contains(&host.as_str()))
    }
}

#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Odp {
    /// Where segments are asked for; empty: what the datafile says.
    #[schemars(extend("format" = "url-or-empty"))]
    pub host: String,
    /// The hosts that a datafile may name for it.
    #[schemars(extend("items" = {"type": "string", "format": "url"}, "uniqueItems" = true))]
    pub hosts: Vec<String>,
    /// Where segments are kept.
    pub segments_cache: SegmentsCache,
}

#[derive(Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Cmab {
    /// Where predictions are asked for, with %s for the experiment's id; empty: the usual place.
    #[schemars(extend("format" = "url-pattern-or-empty"))]
    pub endpoint: String,
}

#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProjectConfig {
    /// Its SDK key.
    #[schemars(extend("format" = "sdk-key"))]
    pub sdk_key: String,
    /// The datafile, or "sandbox".
    #[schemars(length(min = 1), extend("x-file" = "datafile"))]
    pub datafile: String,
}

#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Client {
    /// The client's id.
    #[schemars(length(min = 1))]
    pub id: String,
    /// What `weirgate decisions client-secret` printed.
    #[schemars(length(min = 1))]
    pub secret_hash: String,
    /// The SDK keys its tokens are good for.
    #[schemars(extend("items" = {"type": "string", "format": "sdk-key"}, "minItems" = 1, "uniqueItems" = true))]
    pub sdk_keys: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Webhook {
    /// The project's id.
    #[schemars(extend("format" = "id"))]
    pub project_id: ProjectId,
    /// Signs the announcements; without it they are refused.
    #[serde(default)]
    pub secret: Option<SecretRef>,
    /// The SDK keys whose datafiles are fetched anew.
    #[schemars(extend("items" = {"type": "string", "format": "sdk-key"}, "minItems" = 1, "uniqueItems" = true))]
    pub sdk_keys: Vec<String>,
}

/// An id that people write with or without quotes.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(untagged)]
#[schemars(inline)]
pub(crate) enum ProjectId {
    Number(u64),
    Text(String),
}
