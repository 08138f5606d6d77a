//! The providers of the checked configuration.

use std::time::Duration;

use filters::models::hosts::ProviderKind;
use filters::models::routing::providers::{ProviderDefaults, ProviderNames};
use filters::models::wires::Quirks;
use http::{HeaderName, HeaderValue};

use crate::config::secret::Secret;

/// A provider.
#[derive(Clone)]
pub struct ProviderConfig {
    /// Its name: the prefix of `provider/model`.
    pub name: String,
    pub kind: ProviderKind,
    /// Those of its endpoints, `http` or `https`, without a slash at the end; all have the same path. Never empty; the
    /// sandbox gets its own when it is bound.
    pub base_urls: Vec<String>,
    /// Whether the base URL is the kind's own, which the operator did not write.
    pub is_base_url_built_in: bool,
    /// How the health of its endpoints is checked; `None`: it is not.
    pub health: Option<HealthConfig>,
    /// Its keys in the order in which they are tried; empty if it needs none, or only serves BYOK keys.
    pub keys: Vec<Secret>,
    pub regions: Vec<RegionConfig>,
    /// Whether calls without a region serve only callers with a BYOK key.
    pub is_byok_only: bool,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Its preference among equal providers; 1 is neutral.
    pub priority: f64,
    pub quirks: Quirks,
    /// What its mappings have where the catalogue says nothing else.
    pub defaults: ProviderDefaults,
}

/// Health checks of endpoints.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HealthConfig {
    /// The path that is asked; `None`: a connection is enough.
    pub path: Option<String>,
    /// The time between two checks.
    pub interval: Duration,
}

/// A region of a provider.
#[derive(Clone)]
pub struct RegionConfig {
    pub name: String,
    /// Its address, without a slash at the end; `None`: that of the provider.
    pub base_url: Option<String>,
    /// Its keys, empty if none is present; `None`: those of the provider.
    pub keys: Option<Vec<Secret>>,
}

/// Returns the names of providers, whose order gives them their numbers, with what their mappings have where the catalogue
/// says nothing else.
pub fn provider_names<'p>(providers: impl Iterator<Item = &'p ProviderConfig>) -> ProviderNames {
    let named = |provider: &'p ProviderConfig| (provider.name.as_str(), provider.defaults.clone());
    ProviderNames::new(providers.map(named))
}
