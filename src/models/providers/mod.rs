//! The providers as the proxy calls them: wire, credentials, origin.

mod byok;
mod credentials;
pub mod endpoints;
mod inherited;

use std::sync::Arc;

use filters::accounts::Vendor;
use filters::fault::Fault;
use filters::models::cloud_credentials::Cloud;
use filters::models::cloud_credentials::sigv4::SigningScope;
use filters::models::hosts::{Host, PathNames, ProviderKind, bearer};
use filters::models::operation::Operation;
use filters::models::routing::catalog::Mapping;
use filters::models::routing::wire_limits::WireLimits;
use filters::models::wires::Quirks;
use http::{HeaderName, HeaderValue};
use prometheus::IntCounterVec;

pub use self::byok::{ByokKeys, ByokSnapshot, ProviderKeys};
use self::credentials::FormId;
pub use self::credentials::{ByokKey, Credential, KeyPool};
use self::endpoints::Endpoints;
pub use self::inherited::providers;
use self::inherited::{Basis, InheritedSite};
use crate::cloud_credentials::CredentialSource;
use crate::config::{self, CloudSettings, Secret};
use crate::proxy::origin::{ConnectTimeouts, Origin, Reach};
use crate::telemetry::metrics::Metrics;

/// A shorter header value or path behind the host, such as `/v1`, says nothing about an account.
const MIN_REVEALING_BYTES: usize = 8;

/// One provider.
pub struct Provider {
    pub name: Arc<str>,
    pub is_sandbox: bool,
    /// Whether it is the vendor of its wire's dialect, at the vendor's own address.
    pub is_vendor: bool,
    /// The row of its kind.
    pub host: &'static Host,
    /// Its deviations from the wire.
    pub quirks: Quirks,
    /// Where it is called if no region is named.
    pub home: Arc<Site>,
    regions: Vec<(Box<str>, Arc<Site>)>,
    /// Its preference among equal providers; 1 is neutral.
    pub priority: f64,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// How it signs in with the JSON of an organization, if it takes one.
    own_key_cloud: Option<CloudSettings>,
    credential_fetches: IntCounterVec,
    /// How it takes credentials.
    form: FormId,
    basis: Basis,
}

/// Where a provider is called, and with which keys.
pub struct Site {
    pub endpoints: Arc<Endpoints>,
    /// The path of the base URLs, which precedes the wire's path; it does not end with a slash.
    base_path: String,
    /// The platform keys. The pool holds one credential without a secret if the provider needs none, and is empty if only
    /// BYOK keys are used.
    pub keys: Arc<KeyPool>,
    /// What requests to AWS are signed for.
    pub signing: Option<SigningScope>,
    /// Whether the address stands for one region, so that requests need not name it.
    pub is_regional: bool,
    /// The vendor to which all its addresses lead; `None`: they are of another party.
    pub vendor: Option<Vendor>,
}

/// Where a site is.
struct BaseUrls<'a> {
    /// Of each endpoint; all have the same path.
    all: &'a [String],
    reach: Reach,
    /// The vendor to which they lead, if the operator says so.
    vendor: Option<Vendor>,
    health: Option<&'a config::HealthConfig>,
}

impl Site {
    fn new(
        owner: &str,
        urls: &BaseUrls<'_>,
        timeouts: ConnectTimeouts,
        (keys, previous): (Arc<KeyPool>, InheritedSite<'_>),
    ) -> Result<Self, String> {
        let mut base_path = String::new();
        let mut origins = Vec::with_capacity(urls.all.len());
        for (number, url) in urls.all.iter().enumerate() {
            let url: http::Uri = url
                .parse()
                .map_err(|error| format!("{owner}: the base URL: {error}"))?;
            url.path().trim_end_matches('/').clone_into(&mut base_path);
            if previous.endpoints.is_some() {
                break;
            }
            let name = match urls.all.len() {
                1 => owner.to_owned(),
                _ => format!("{owner}, endpoint {}", number + 1),
            };
            let origin = Origin::new(&name, &url, timeouts, urls.reach)?;
            let origin = match urls.health {
                Some(health) => {
                    origin.with_health_checks(health.path.as_deref(), health.interval)?
                }
                None => origin,
            };
            origins.push(Arc::new(origin));
        }
        Ok(Self {
            endpoints: match previous.endpoints {
                Some(known) => Arc::clone(known),
                None => Arc::new(Endpoints::new(origins)),
            },
            base_path,
            keys,
            signing: None,
            is_regional: false,
            vendor: urls
                .vendor
                .or_else(|| Vendor::of_urls(urls.all.iter().map(String::as_str))),
        })
    }

    /// Returns the site of a region of a provider that is otherwise called at `home`.
    fn of_region(
        region: &config::RegionConfig,
        basis: &Basis,
        home: &Self,
        (fingerprint_key, previous): (&[u8], InheritedSite<'_>),
    ) -> Result<Self, String> {
        let provider = &basis.config;
        let credential = |key: &Secret| previous.credential(key, fingerprint_key);
        let keys = match &region.keys {
            Some(keys) => Arc::new(KeyPool::new(keys.iter().map(credential).collect())),
            // Keys fail and rest in each region for themselves.
            None => Arc::new(home.keys.afresh(previous.keys)),
        };
        match &region.base_url {
            Some(url) => {
                let owner = format!("provider {}, region {}", provider.name, region.name);
                let urls = BaseUrls {
                    all: std::slice::from_ref(url),
                    reach: Reach::Anywhere,
                    vendor: provider.vendor,
                    health: None,
                };
                let site = Self::new(&owner, &urls, basis.timeouts, (keys, previous))?;
                Ok(Self {
                    is_regional: true,
                    signing: signing_scope(provider, Some(&region.name)),
                    ..site
                })
            }
            None => Ok(Self {
                endpoints: Arc::clone(&home.endpoints),
                base_path: home.base_path.clone(),
                keys,
                signing: signing_scope(provider, Some(&region.name)),
                is_regional: false,
                vendor: home.vendor,
            }),
        }
    }

    /// Returns the path of an upstream request.
    pub fn upstream_path(&self, wire_path: &str) -> String {
        format!("{}{wire_path}", self.base_path)
    }

    /// Returns the URL of a path of its wire at one of its endpoints.
    pub fn url(&self, endpoint: usize, wire_path: &str) -> Option<String> {
        let origin = self.endpoints.origin(endpoint)?.url();
        Some(format!("{origin}{}", self.upstream_path(wire_path)))
    }
}

impl Provider {
    /// Creates a provider of a basis, with what it takes over from the previous one of its name.
    ///
    /// Errors: the base URL is not valid; the checks of the configuration should have found that.
    fn new(
        basis: Basis,
        (fingerprint_key, metrics): (&[u8], &Metrics),
        previous: Option<&Self>,
    ) -> Result<Self, String> {
        let provider = &basis.config;
        let name: Arc<str> = provider.name.as_str().into();
        let same_form = previous.filter(|it| it.basis.has_form_of(&basis));
        let form = same_form.map_or_else(FormId::unused, |previous| previous.form);
        let fetches = &metrics.credential_fetches;
        let inherited = InheritedSite::home(previous, &basis);
        let credential = |key: &Secret| inherited.credential(key, fingerprint_key);
        let mut keys: Vec<_> = provider.keys.iter().map(credential).collect();
        if let Some(cloud) = &provider.cloud {
            keys.push(inherited.without_secret(|| {
                let source = CredentialSource::new(&name, cloud, fetches);
                Credential::from_source(Arc::new(source), form)
            }));
        }
        if keys.is_empty() && !provider.is_byok_only {
            keys.push(inherited.without_secret(Credential::none));
        }
        let owner = format!("provider {name}");
        let urls = BaseUrls {
            all: &provider.base_urls,
            reach: match provider.is_base_url_built_in {
                true => Reach::Public,
                false => Reach::Anywhere,
            },
            vendor: provider.vendor,
            health: provider.health.as_ref(),
        };
        let keys = Arc::new(KeyPool::new(keys));
        let home = Site {
            signing: signing_scope(provider, None),
            ..Site::new(&owner, &urls, basis.timeouts, (keys, inherited))?
        };
        let regions = provider.regions.iter().map(|region| {
            let inherited = InheritedSite::in_region(previous, &basis, region);
            let site = Site::of_region(region, &basis, &home, (fingerprint_key, inherited))?;
            Ok((region.name.as_str().into(), Arc::new(site)))
        });
        Ok(Self {
            own_key_cloud: provider.own_key_cloud.clone(),
            credential_fetches: fetches.clone(),
            is_sandbox: provider.kind == ProviderKind::Sandbox,
            is_vendor: provider.is_base_url_built_in && provider.kind.host().is_vendors,
            host: provider.kind.host(),
            quirks: provider.quirks.clone(),
            regions: regions.collect::<Result<_, String>>()?,
            home: Arc::new(home),
            headers: provider.headers.clone(),
            priority: provider.priority,
            name,
            form,
            basis,
        })
    }

    /// Returns where it is called if no region is named, if that is known.
    pub fn home_region(&self) -> Option<&str> {
        Some(&*self.basis.config.place.region).filter(|region| !region.is_empty())
    }

    /// Returns what the paths of a model name, in a region or where none is named.
    pub fn path_names<'a>(&'a self, model: &'a str, region: Option<&'a str>) -> PathNames<'a> {
        let place = &self.basis.config.place;
        PathNames {
            model,
            project: &place.project,
            region: region.unwrap_or(&place.region),
            api: &place.api,
        }
    }

    /// Returns the limits that a mapping's wire and the provider's quirks set for an operation; `None`: the wire does not
    /// offer the operation. They hold even if the catalogue claims more.
    pub fn limits(&self, mapping: &Mapping, operation: Operation) -> Option<WireLimits> {
        let served = self.host.served(mapping.wire);
        let limits = served.kind.wire().codec(operation)?.limits();
        let mut media = limits.media;
        if self.quirks.inline_images {
            media.remote_images = false;
            media.http_images = false;
            media.fetches = true;
        }
        media.fetches &= self.basis.fetches_images;
        if !served.audio_formats.is_empty() {
            media.audio = served.audio_formats;
        }
        Some(WireLimits {
            json_schema: self.quirks.json_schema && !served.body.refuses_forms,
            schema_calls: self.quirks.json_schema && served.body.refuses_forms,
            leaves_out_own_schemas: served.body.refuses_forms,
            forced_tools: self.quirks.forced_tools,
            media,
            is_vendor: self.is_vendor,
            ..limits
        })
    }

    /// Returns the header that its credentials have, without one; `None`: it cannot be written.
    pub fn credential_place(&self) -> Option<(HeaderName, HeaderValue)> {
        self.host.credential("", &self.quirks).ok()
    }

    /// Returns whether its requests carry a credential.
    pub fn needs_key(&self) -> bool {
        let first = self.home.keys.get(0);
        first.is_none_or(|key| key.secret.is_some())
    }

    /// Returns the source of what requests carry in place of one of its keys; `None`: they carry the key.
    pub fn source<'k>(&self, key: &'k Credential) -> Option<&'k Arc<CredentialSource>> {
        key.source(self.form, |secret| {
            let cloud = self.own_key_cloud.as_ref()?;
            CredentialSource::of_organization((&self.name, cloud), secret, &self.credential_fetches)
        })
    }

    /// Returns the source of the operator's credentials, if it has one.
    pub fn own_source(&self) -> Option<&Arc<CredentialSource>> {
        self.home.keys.get(0).and_then(|key| self.source(key))
    }

    /// Returns the header of one of its keys; `None` if it needs none, or has a source.
    ///
    /// Errors: the credential cannot stand in a header.
    pub fn credential<'k>(
        &self,
        key: &'k Credential,
    ) -> Result<Option<&'k (HeaderName, HeaderValue)>, Fault> {
        if self.source(key).is_some() {
            return Ok(None);
        }
        key.header(self.form, |secret| match key.passed {
            Some(kind) if kind.is_token() => bearer(secret),
            _ => self.host.credential(secret, &self.quirks),
        })
    }

    /// Returns what its words must not reveal: its addresses, the path behind them, and the values of its headers.
    pub fn revealing(&self) -> Vec<String> {
        let mut all: Vec<String> = self
            .origins()
            .flat_map(|origin| origin.revealing())
            .collect();
        let values = self
            .headers
            .iter()
            .filter_map(|(_, value)| value.to_str().ok());
        let paths = self.sites().map(|site| &*site.base_path);
        let more = values.chain(paths).map(str::to_owned);
        all.extend(more.filter(|text| text.len() >= MIN_REVEALING_BYTES));
        all
    }

    /// Returns where it is called in a region, or without one.
    pub fn site(&self, region: Option<&str>) -> &Arc<Site> {
        let mut regions = self.regions.iter();
        let found = regions.find(|(name, _)| Some(&**name) == region);
        found.map_or(&self.home, |(_, site)| site)
    }

    /// Returns whether it has platform keys, or needs none, for calls in a region or without one.
    pub fn has_keys_in(&self, region: Option<&str>) -> bool {
        !self.site(region).keys.is_empty()
    }

    /// Returns whether it has platform keys, or needs none, for any calls.
    pub fn has_platform_keys(&self) -> bool {
        self.sites().any(|site| !site.keys.is_empty())
    }

    /// Returns the origins of its regions.
    pub fn regional_origins(&self) -> impl Iterator<Item = &Arc<Origin>> {
        let regions = self.regions.iter();
        let regional = regions.filter(|(_, site)| site.is_regional);
        regional.flat_map(|(_, site)| site.endpoints.origins())
    }

    fn sites(&self) -> impl Iterator<Item = &Arc<Site>> {
        std::iter::once(&self.home).chain(self.regions.iter().map(|(_, site)| site))
    }

    fn origins(&self) -> impl Iterator<Item = &Arc<Origin>> {
        self.home.endpoints.origins().chain(self.regional_origins())
    }
}

/// Returns what requests of a provider to a region, or to the one of its configuration, are signed for.
fn signing_scope(provider: &config::ProviderConfig, region: Option<&str>) -> Option<SigningScope> {
    let mut clouds = provider.cloud.iter().chain(&provider.own_key_cloud);
    let cloud = clouds.find(|it| it.cloud == Cloud::Aws)?;
    Some(SigningScope {
        region: region.unwrap_or(&cloud.region).into(),
        service: cloud.service.clone(),
    })
}
