//! The callers' own keys, as the request path finds them.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};

use super::credentials::{ByokKey, Credential, KeyPool};
use crate::store::ByokKeyRow;

/// The BYOK keys in force. [`Self::update`] follows the rows that [`crate::accounts`] publishes.
pub struct ByokSnapshot {
    current: ArcSwap<ByokKeys>,
    fingerprint_key: [u8; 32],
}

impl ByokSnapshot {
    /// Makes a snapshot without keys. `fingerprint_key` keys the fingerprints of the secrets.
    pub fn new(fingerprint_key: [u8; 32]) -> Self {
        Self {
            current: ArcSwap::default(),
            fingerprint_key,
        }
    }

    /// Returns the keys in force. Cost: no lock, no allocation.
    pub fn current(&self) -> Guard<Arc<ByokKeys>> {
        self.current.load()
    }

    /// Replaces the keys by those of the rows. One caller at a time.
    pub fn update(&self, rows: Vec<ByokKeyRow>) {
        let keys = ByokKeys::new(rows, &self.current(), &self.fingerprint_key);
        self.current.store(Arc::new(keys));
    }
}

/// All own keys, by organization and provider. Memory is bounded by the store's rows.
#[derive(Default)]
pub struct ByokKeys(HashMap<Box<str>, HashMap<Box<str>, Arc<KeyPool>>>);

impl ByokKeys {
    /// The keys of the store. What `before` knows of a key's health stays known: a key's text never changes.
    ///
    /// Keys that could not be opened are left out, and said to the log by their ids.
    pub fn new(rows: Vec<ByokKeyRow>, before: &Self, fingerprint_key: &[u8]) -> Self {
        let mut sets: HashMap<(String, String), Vec<Arc<Credential>>> = HashMap::new();
        for row in rows {
            let Some(secret) = row.secret else {
                log::warn!("the provider key {} cannot be opened", row.id);
                continue;
            };
            let known = before
                .find(&row.organization_id, &row.provider)
                .and_then(|keys| keys.find_own(&row.id).cloned());
            let key = known.unwrap_or_else(|| {
                let own = ByokKey {
                    id: row.id.into(),
                    label: row.label.into(),
                };
                Arc::new(Credential::new(secret, fingerprint_key, Some(own)))
            });
            let set = sets.entry((row.organization_id, row.provider));
            set.or_default().push(key);
        }
        let mut all = Self::default();
        for ((organization, provider), list) in sets {
            let keys = Arc::new(KeyPool::new(list));
            let of = all.0.entry(organization.into()).or_default();
            of.insert(provider.into(), keys);
        }
        all
    }

    /// The providers that an organization has keys for.
    pub fn providers(&self, organization_id: &str) -> Vec<&str> {
        let of = self.0.get(organization_id).into_iter().flatten();
        of.map(|(provider, _)| &**provider).collect()
    }

    /// The keys of an organization for a provider; never an empty set.
    pub fn find(&self, organization_id: &str, provider: &str) -> Option<&Arc<KeyPool>> {
        self.0.get(organization_id)?.get(provider)
    }
}
