//! The BYOK keys of the callers, as the request path finds them.

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
    /// Creates a snapshot without keys. `fingerprint_key` keys the fingerprints of the secrets.
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

/// All BYOK keys, by organization and provider. The number of rows in the store limits the memory.
#[derive(Default)]
pub struct ByokKeys(HashMap<Box<str>, HashMap<Box<str>, Arc<KeyPool>>>);

impl ByokKeys {
    /// Creates the keys of these rows. A key that was in `before` keeps its health, because a key's secret never changes.
    ///
    /// A key that could not be decrypted is left out, and its id is logged.
    pub fn new(rows: Vec<ByokKeyRow>, before: &Self, fingerprint_key: &[u8]) -> Self {
        let mut pools: HashMap<(String, String), Vec<Arc<Credential>>> = HashMap::new();
        for row in rows {
            let Some(secret) = row.secret else {
                log::warn!("the provider key {} cannot be opened", row.id);
                continue;
            };
            let known = before
                .find(&row.organization_id, &row.provider)
                .and_then(|keys| keys.find_byok(&row.id).cloned());
            let key = known.unwrap_or_else(|| {
                let byok = ByokKey {
                    id: row.id.into(),
                    label: row.label.into(),
                };
                Arc::new(Credential::new(secret, fingerprint_key, Some(byok)))
            });
            let pool = pools.entry((row.organization_id, row.provider));
            pool.or_default().push(key);
        }
        let mut all = Self::default();
        for ((organization, provider), credentials) in pools {
            let pool = Arc::new(KeyPool::new(credentials));
            let by_provider = all.0.entry(organization.into()).or_default();
            by_provider.insert(provider.into(), pool);
        }
        all
    }

    /// Returns the providers that an organization has keys for.
    pub fn providers(&self, organization_id: &str) -> Vec<&str> {
        let by_provider = self.0.get(organization_id).into_iter().flatten();
        by_provider.map(|(provider, _)| &**provider).collect()
    }

    /// Returns the keys of an organization for a provider. The pool is never empty.
    pub fn find(&self, organization_id: &str, provider: &str) -> Option<&Arc<KeyPool>> {
        self.0.get(organization_id)?.get(provider)
    }
}
