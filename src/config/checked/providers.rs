//! The providers of the checked configuration.

use std::sync::Arc;
use std::time::Duration;

use filters::accounts::Vendor;
use filters::models::cloud_credentials::Cloud;
use filters::models::cloud_credentials::aws::Environment;
use filters::models::hosts::ProviderKind;
use filters::models::routing::places::{ProviderPlaces, RegionTurn};
use filters::models::routing::providers::{ProviderDefaults, ProviderNames};
use filters::models::wires::Quirks;
use http::{HeaderName, HeaderValue};

use crate::config::Config;
use crate::config::secret::Secret;

/// A provider.
#[derive(Clone, PartialEq)]
pub struct ProviderConfig {
    /// The name, which is the prefix in `provider/model`.
    pub name: String,
    pub kind: ProviderKind,
    /// The URLs of its endpoints, `http` or `https`, without a slash at the end, and all with the same path. The list
    /// is never empty; the sandbox gets its URL when it is bound.
    pub base_urls: Vec<String>,
    /// Whether the base URL is the default of the kind, which the operator did not write.
    pub is_base_url_built_in: bool,
    /// The vendor that its addresses lead to, if the operator says so; else their hosts tell.
    pub vendor: Option<Vendor>,
    /// The health checks of its endpoints, if there are any.
    pub health: Option<HealthConfig>,
    /// The keys in the order in which they are tried. The list is empty if the provider needs none or only serves
    /// BYOK keys.
    pub keys: Vec<Secret>,
    /// Its sign-in to a cloud, in place of keys.
    pub cloud: Option<CloudSettings>,
    /// How it signs in with the JSON that an organization may give as its key; `None`: its keys are texts.
    pub own_key_cloud: Option<CloudSettings>,
    /// What its paths name beside models.
    pub place: ProviderPlace,
    pub regions: Vec<RegionConfig>,
    /// Whether calls without a region serve only callers with a BYOK key.
    pub is_byok_only: bool,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The preference among equal providers; 1 is neutral.
    pub priority: f64,
    pub quirks: Quirks,
    /// The options of its mappings where the catalogue sets none.
    pub defaults: ProviderDefaults,
}

/// How a provider signs in to a cloud.
///
/// It has no `Debug`, because the environment holds secrets.
#[derive(Clone, Eq, PartialEq)]
pub struct CloudSettings {
    pub cloud: Cloud,
    /// The variables that sources read.
    pub environment: Arc<Environment>,
    /// The region of AWS; empty for other clouds.
    pub region: Box<str>,
    /// The service that signatures name.
    pub service: Box<str>,
    /// The scope of tokens.
    pub scope: Box<str>,
}

/// What the paths of a cloud name beside models. What a kind does not name is empty.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ProviderPlace {
    pub project: Box<str>,
    pub region: Box<str>,
    /// The dated version of the API; empty: the newest.
    pub api: Box<str>,
}

/// Health checks of endpoints.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HealthConfig {
    /// The requested path, or `None` if a connection suffices.
    pub path: Option<String>,
    /// The time between two checks.
    pub interval: Duration,
}

/// A region of a provider.
#[derive(Clone, Eq, PartialEq)]
pub struct RegionConfig {
    pub name: String,
    /// The address, without a slash at the end, or `None` for that of the provider.
    pub base_url: Option<String>,
    /// The keys, empty if none is present, or `None` for those of the provider.
    pub keys: Option<Vec<Secret>>,
    /// Its turn for requests that name no region; `None`: it serves none of them.
    pub turn: Option<RegionTurn>,
}

/// Returns the names of providers, whose order gives them their numbers, with what their mappings have where the catalogue
/// says nothing else.
pub fn provider_names<'p>(providers: impl Iterator<Item = &'p ProviderConfig>) -> ProviderNames {
    let providers: Vec<_> = providers.collect();
    let named = |provider: &&'p ProviderConfig| (provider.name.as_str(), provider.defaults.clone());
    let names = ProviderNames::new(providers.iter().map(named));
    names.at(providers.into_iter().map(to_places))
}

fn to_places(provider: &ProviderConfig) -> ProviderPlaces {
    let home = &*provider.place.region;
    let regions = provider.regions.iter();
    let turns = regions.filter_map(|it| Some((it.name.as_str().into(), it.turn?)));
    ProviderPlaces {
        home: (!home.is_empty()).then(|| home.into()),
        turns: turns.collect(),
        residence: provider.kind.host().residence,
    }
}

impl ProviderConfig {
    /// Returns the cloud whose JSON an organization may give as its key.
    pub fn own_key_form(&self) -> Option<Cloud> {
        self.own_key_cloud.as_ref().map(|settings| settings.cloud)
    }
}

impl Config {
    /// Returns the base URLs of providers that the operator wrote, those of regions among them.
    pub fn written_provider_urls(&self) -> impl Iterator<Item = &str> {
        let providers = self.providers.iter();
        let written = providers.filter(|provider| !provider.is_base_url_built_in);
        let urls = written.flat_map(|provider| {
            let regions = provider.regions.iter();
            let regional = regions.filter_map(|region| region.base_url.as_ref());
            provider.base_urls.iter().chain(regional)
        });
        urls.map(String::as_str)
    }
}
