//! The BYOK keys of the callers, as the request path finds them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use filters::accounts::{Caller, Mode};

use super::credentials::{ByokKey, Credential, KeyPool};
use crate::accounts::ByokRows;
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

    /// Returns the keys of a caller that uses some.
    pub fn of_caller(&self, caller: Option<&Caller>) -> Option<Arc<ProviderKeys>> {
        let caller = caller.filter(|caller| caller.mode != Mode::Platform)?;
        let all = self.current();
        all.of_organization(&caller.organization_id).cloned()
    }

    /// Replaces the keys by those of the rows: all, or those of some organizations. One caller at a time.
    pub fn update(&self, rows: ByokRows) {
        let before = self.current();
        let keys = match rows {
            ByokRows::All(rows) => ByokKeys::new(rows, &before, &self.fingerprint_key),
            ByokRows::Of(organizations, rows) => {
                let changed = ByokKeys::new(rows, &before, &self.fingerprint_key);
                before.with(&organizations, changed)
            }
        };
        self.current.store(Arc::new(keys));
    }
}

/// All BYOK keys, by organization and provider. The number of rows in the store limits the memory.
#[derive(Default)]
pub struct ByokKeys(HashMap<Arc<str>, Arc<ProviderKeys>>);

/// The keys of an organization, by provider.
#[derive(Default)]
pub struct ProviderKeys(HashMap<Box<str>, Arc<KeyPool>>);

impl ProviderKeys {
    /// Returns the providers that it has keys for.
    pub fn providers(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(|provider| &**provider)
    }

    /// Returns the keys for a provider. The pool is never empty.
    pub fn find(&self, provider: &str) -> Option<&Arc<KeyPool>> {
        self.0.get(provider)
    }
}

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
        let mut organizations: HashMap<Arc<str>, ProviderKeys> = HashMap::new();
        for ((organization, provider), credentials) in pools {
            let pool = Arc::new(KeyPool::new(credentials));
            let by_provider = organizations.entry(organization.into()).or_default();
            by_provider.0.insert(provider.into(), pool);
        }
        let organizations = organizations.into_iter();
        Self(
            organizations
                .map(|(id, pools)| (id, Arc::new(pools)))
                .collect(),
        )
    }

    /// Returns these keys, but those of some organizations replaced by `changed`.
    fn with(&self, organizations: &[String], changed: Self) -> Self {
        let replaced: HashSet<&str> = organizations.iter().map(String::as_str).collect();
        let kept = self.0.iter().filter(|(id, _)| !replaced.contains(&***id));
        let kept = kept.map(|(id, pools)| (Arc::clone(id), Arc::clone(pools)));
        Self(kept.chain(changed.0).collect())
    }

    /// Returns the keys of an organization, if it has any.
    pub fn of_organization(&self, organization_id: &str) -> Option<&Arc<ProviderKeys>> {
        self.0.get(organization_id)
    }

    /// Returns the keys of an organization for a provider. The pool is never empty.
    pub fn find(&self, organization_id: &str, provider: &str) -> Option<&Arc<KeyPool>> {
        self.0.get(organization_id)?.find(provider)
    }
}
