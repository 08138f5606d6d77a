//! What the providers of a configuration take over from those of the previous one: a provider of which nothing has changed
//! is the same, and of others the addresses and keys go on that have not changed.

use std::sync::Arc;

use super::credentials::{Credential, KeyPool};
use super::endpoints::Endpoints;
use super::{Provider, Site};
use crate::config::{ProviderConfig, RegionConfig, Routing, Secret};
use crate::proxy::origin::ConnectTimeouts;
use crate::telemetry::metrics::Metrics;

/// All that a provider is made of.
#[derive(Clone, PartialEq)]
pub(super) struct Basis {
    pub(super) config: ProviderConfig,
    pub(super) timeouts: ConnectTimeouts,
    /// Whether images are fetched for providers that take no addresses.
    pub(super) fetches_images: bool,
}

/// Returns the providers of a configuration, in its order. Those of `previous` go on as far as they are the same.
///
/// Errors: a base URL is not valid; the checks of the configuration should have found that.
pub fn providers<'c>(
    configured: impl Iterator<Item = &'c ProviderConfig>,
    (routing, fetches_images): (&Routing, bool),
    (fingerprint_key, metrics): (&[u8], &Metrics),
    previous: &[Arc<Provider>],
) -> Result<Arc<[Arc<Provider>]>, String> {
    let timeouts = ConnectTimeouts {
        connect: routing.connect_timeout,
        // The buffered session has the timers of an attempt. This timeout covers an upload that the provider does not
        // read, which the session cannot see.
        read_write: routing.total_timeout.max(routing.stream_total_timeout),
    };
    let built = configured.map(|config| {
        let basis = Basis {
            config: config.clone(),
            timeouts,
            fetches_images,
        };
        let before = previous.iter().find(|it| *it.name == *config.name);
        match before.filter(|before| before.basis == basis) {
            Some(same) => Ok(Arc::clone(same)),
            None => {
                let before = before.map(|before| &**before);
                Provider::new(basis, (fingerprint_key, metrics), before).map(Arc::new)
            }
        }
    });
    built.collect()
}

impl Basis {
    /// Returns whether providers of both take credentials in the same way.
    pub(super) fn has_form_of(&self, other: &Self) -> bool {
        let [one, two] = [self, other].map(|basis| &basis.config);
        one.kind == two.kind
            && one.quirks == two.quirks
            && one.cloud == two.cloud
            && one.own_key_cloud == two.own_key_cloud
    }

    fn has_addresses_of(&self, other: &Self) -> bool {
        let [one, two] = [self, other].map(|basis| &basis.config);
        self.timeouts == other.timeouts
            && one.base_urls == two.base_urls
            && one.is_base_url_built_in == two.is_base_url_built_in
            && one.health == two.health
    }
}

/// What a site takes over.
#[derive(Clone, Copy, Default)]
pub(super) struct InheritedSite<'a> {
    /// The endpoints, if the addresses are the same.
    pub(super) endpoints: Option<&'a Arc<Endpoints>>,
    /// The keys among which those that go on are, if the provider takes credentials as before.
    pub(super) keys: Option<&'a KeyPool>,
}

impl<'a> InheritedSite<'a> {
    /// Returns what a provider takes over where no region is named.
    pub(super) fn home(previous: Option<&'a Provider>, basis: &Basis) -> Self {
        let Some(previous) = previous else {
            return Self::default();
        };
        let has_addresses = previous.basis.has_addresses_of(basis);
        Self::new(previous, &previous.home, basis, has_addresses)
    }

    /// Returns what it takes over in a region.
    pub(super) fn in_region(
        previous: Option<&'a Provider>,
        basis: &Basis,
        region: &RegionConfig,
    ) -> Self {
        let before = previous.and_then(|previous| {
            let mut sites = previous.regions.iter();
            let (_, site) = sites.find(|(name, _)| **name == *region.name)?;
            let mut regions = previous.basis.config.regions.iter();
            let config = regions.find(|known| known.name == region.name)?;
            Some((previous, site, config))
        });
        let Some((previous, site, config)) = before else {
            return Self::default();
        };
        let has_addresses = region.base_url.is_some()
            && region.base_url == config.base_url
            && previous.basis.timeouts == basis.timeouts;
        Self::new(previous, site, basis, has_addresses)
    }

    fn new(previous: &Provider, site: &'a Site, basis: &Basis, has_addresses: bool) -> Self {
        let has_form = previous.basis.has_form_of(basis);
        Self {
            endpoints: has_addresses.then_some(&site.endpoints),
            keys: has_form.then_some(&*site.keys),
        }
    }

    /// Returns the key of a secret.
    pub(super) fn credential(&self, secret: &Secret, fingerprint_key: &[u8]) -> Arc<Credential> {
        let known = self.keys.and_then(|keys| keys.find_secret(Some(secret)));
        let new = || Arc::new(Credential::new(secret.clone(), fingerprint_key, None));
        known.map_or_else(new, Arc::clone)
    }

    /// Returns the credential without a secret.
    pub(super) fn without_secret(&self, make: impl FnOnce() -> Credential) -> Arc<Credential> {
        let known = self.keys.and_then(|keys| keys.find_secret(None));
        known.map_or_else(|| Arc::new(make()), Arc::clone)
    }
}

#[cfg(test)]
#[path = "inherited_tests.rs"]
mod tests;
