//! The graph service's part of the checked configuration.

use std::sync::Arc;
use std::time::Duration;

use filters::graph::Operations;
use filters::limits::Algorithm;
use http::Uri;

use crate::config::secret::Secret;

/// The graph service and its limits.
pub struct GraphConfig {
    /// The service's location.
    pub upstream: GraphUpstream,
    /// Whether paths that no operation names are refused.
    pub rejects_unknown: bool,
    /// The length of a window in seconds, at least 1.
    pub window_s: u64,
    pub in_flight: usize,
    pub algorithm: Algorithm,
    pub operations: Operations,
    pub limits: filters::graph::TenantLimits,
    /// The tenants' credentials.
    pub tenants: Vec<Tenant>,
    /// How long responses are cached, and the maximum total size; `None` disables the cache.
    pub cache: Option<(Duration, u64)>,
}

/// The location of the graph service.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum GraphUpstream {
    Sandbox,
    /// A URL with scheme, host and port.
    At(Uri),
}

/// The credentials of a tenant.
pub struct Tenant {
    pub id: Arc<str>,
    /// Its public keys.
    pub single_keys: Vec<String>,
    /// Its applications' keys, each with its secret if signatures are to be verified.
    pub app_keys: Vec<(String, Option<Secret>)>,
    pub bearer: Vec<Bearer>,
}

/// An issuer of tokens of a tenant.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Bearer {
    pub issuer: String,
    /// The required audience; `None` accepts any.
    pub audience: Option<String>,
    /// URL of its key set; without it tokens are accepted unverified.
    pub jwks_url: Option<String>,
}
