//! Names in the rules of keys that a gateway does not know. A rule with a typo has no effect, so whoever makes one is told.

use filters::accounts::TermsFile;
use filters::models::routing::catalog::Catalog;

use crate::config::Config;

/// Returns the names of all providers of a configuration, also of those that are off.
pub fn known_providers(config: &Config) -> Vec<String> {
    let on = config.providers.iter().map(|provider| &*provider.name);
    let off = config.off_providers.iter().map(|off| &*off.name);
    on.chain(off).map(str::to_owned).collect()
}

/// Returns a warning for each model and provider in the rules of a key that is in neither the catalogue nor these providers.
pub fn unknown_names(terms: &TermsFile, providers: &[String], catalog: &Catalog) -> Vec<String> {
    let is_provider = |name: &str| providers.iter().any(|known| known == name);
    let listed = terms.allow_providers.iter().chain(&terms.deny_providers);
    let unknown = listed.filter(|name| !is_provider(name));
    let mut warnings: Vec<String> = unknown
        .map(|name| format!("the configuration has no provider `{name}`"))
        .collect();
    let is_model = |name: &str| catalog.find(name).is_some() || catalog.is_unserved(name);
    let is_at_provider = |name: &str| {
        name.split_once('/').is_some_and(|(provider, model)| {
            is_provider(provider)
                && (is_model(model) || catalog.find_upstream(provider, model).is_some())
        })
    };
    let listed = terms.allow_models.iter().chain(&terms.deny_models);
    let unknown = listed.filter(|name| !is_model(name) && !is_at_provider(name));
    warnings.extend(unknown.map(|name| format!("the catalogue has no model `{name}`")));
    warnings
}
