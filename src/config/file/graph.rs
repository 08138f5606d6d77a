//! `[graph]`, as the file has it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SecretRef;

#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct GraphConfig {
    /// The graph service, scheme, host and port without a path, or "sandbox"; empty: off.
    #[schemars(extend("format" = "origin-or-sandbox"))]
    pub upstream: String,
    /// What happens to paths that no operation names.
    pub unknown_paths: UnknownPaths,
    /// The most requests at once; more are refused with 503.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub in_flight: usize,
    /// Seconds of one window.
    #[schemars(range(min = 1, max = 86_400))]
    pub window_s: u64,
    /// How windows are counted.
    pub algorithm: Algorithm,
    /// The ladder of limits, requests per window, ascending.
    #[schemars(inner(range(min = 1)), extend("minItems" = 1, "uniqueItems" = true))]
    pub levels: Vec<u64>,
    /// The cache of responses.
    pub cache: GraphCache,
    /// Operations matched before the built-in table; the first match wins.
    pub operations: Vec<OperationConfig>,
    /// Limits of a category of operations, requests per window.
    #[schemars(extend("x-names" = "name"))]
    pub categories: BTreeMap<String, Category>,
    /// Tenants.
    #[schemars(extend("x-identity" = "id"))]
    pub tenants: Vec<Tenant>,
}

impl Default for GraphConfig {
    fn default() -> Self {
        Self {
            upstream: String::new(),
            unknown_paths: UnknownPaths::default(),
            in_flight: 10_000,
            window_s: 10,
            algorithm: Algorithm::default(),
            levels: vec![10, 50, 500, 1000, 1500, 3000],
            cache: GraphCache::default(),
            operations: Vec::new(),
            categories: BTreeMap::new(),
            tenants: Vec::new(),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum UnknownPaths {
    #[default]
    Forward,
    Reject,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Algorithm {
    #[default]
    Fixed,
    Sliding,
}

#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct GraphCache {
    /// Seconds for which a response is kept; 0: not at all.
    #[schemars(range(max = 31_536_000))]
    pub ttl_s: u64,
    /// The most bytes of memory the responses take.
    pub max_bytes: u64,
}

impl Default for GraphCache {
    fn default() -> Self {
        Self {
            ttl_s: 0,
            max_bytes: 67_108_864,
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OperationConfig {
    /// Its methods.
    #[schemars(extend("items" = {"type": "string", "format": "method"}, "minItems" = 1, "uniqueItems" = true))]
    pub methods: Vec<String>,
    /// Its path, with {name} for a segment.
    #[schemars(extend("format" = "path"))]
    pub path: String,
    /// Its category.
    #[schemars(length(min = 1))]
    pub category: String,
}

#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Category {
    /// The limit without an allocation.
    #[schemars(range(min = 1))]
    pub default: u64,
    /// The highest limit an allocation can reach.
    #[schemars(range(min = 1))]
    pub maximum: u64,
}

#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tenant {
    /// The tenant's id.
    #[schemars(length(min = 1))]
    pub id: String,
    /// Its allocation in requests per second.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub allocation_qps: Option<f64>,
    /// Its public keys.
    #[serde(default)]
    #[schemars(inner(length(min = 1)), extend("uniqueItems" = true))]
    pub single_keys: Vec<String>,
    /// Its keys with secrets.
    #[serde(default)]
    #[schemars(extend("x-identity" = "key"))]
    pub app_keys: Vec<AppKey>,
    /// Issuers of its tokens.
    #[serde(default)]
    pub bearer: Vec<Bearer>,
    /// Limits arranged out of band, requests per window, by `METHOD pattern`.
    #[serde(default)]
    #[schemars(extend("x-names" = "operation"))]
    pub limits: BTreeMap<String, u64>,
}

#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AppKey {
    /// The key.
    #[schemars(length(min = 1))]
    pub key: String,
    /// Its secret; without one the key is not verified.
    #[serde(default)]
    pub secret: Option<SecretRef>,
}

#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bearer {
    /// Who issues the tokens.
    #[schemars(length(min = 1))]
    pub issuer: String,
    /// For whom they are issued.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub audience: Option<String>,
    /// Where the issuer's keys are published.
    #[serde(default)]
    #[schemars(extend("format" = "url"))]
    pub jwks_url: Option<String>,
}
