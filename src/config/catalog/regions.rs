//! Removes regions that no request can reach.

use std::collections::{BTreeMap, BTreeSet};

use filters::models::routing::CatalogFile;

use super::{Places, finding};
use crate::config::file::ProviderConfig;
use crate::config::walk::Finding;

/// The regions for which a provider has no address.
#[derive(Default)]
struct Unreachable {
    regions: BTreeSet<String>,
    mappings: usize,
    /// The key of the first such mapping.
    first: String,
}

/// Returns whether a provider's requests can reach a region: there is a table for it, or requests name the region.
pub(super) fn is_reachable(
    providers: &BTreeMap<String, ProviderConfig>,
    provider: &str,
    region: &str,
) -> bool {
    providers.get(provider).is_none_or(|provider| {
        provider.kind.host().names_regions || provider.regions.contains_key(region)
    })
}

/// Removes the regions for which a provider has no table, unless its requests name regions. Requests for a removed
/// region are refused like those for an unknown one. Returns one warning per provider.
///
/// Our choice: a catalogue may know more regions than one uses, as it may know more providers.
pub(super) fn leave_out_unreachable(
    file: &mut CatalogFile,
    providers: &BTreeMap<String, ProviderConfig>,
    places: &Places,
) -> Vec<Finding> {
    let mut unreachable: BTreeMap<String, Unreachable> = BTreeMap::new();
    for (index, model) in file.models.iter_mut().enumerate() {
        for (number, mapping) in model.providers.iter_mut().enumerate() {
            let regions = std::mem::take(&mut mapping.regions).into_iter();
            let (kept, out): (Vec<_>, Vec<_>) =
                regions.partition(|region| is_reachable(providers, &mapping.provider, region));
            mapping.regions = kept;
            if out.is_empty() {
                continue;
            }
            let known = unreachable.entry(mapping.provider.clone()).or_default();
            if known.mappings == 0 {
                known.first = format!("models[{index}].providers[{number}]");
            }
            known.mappings += 1;
            known.regions.extend(out);
        }
    }
    let warnings = unreachable.into_iter();
    warnings
        .filter_map(|(provider, out)| to_warning(&provider, &out, places))
        .collect()
}

fn to_warning(provider: &str, out: &Unreachable, places: &Places) -> Option<Finding> {
    let names: Vec<&str> = out.regions.iter().map(String::as_str).collect();
    let message = format!(
        "provider {provider:?} has no address for its regions, so they are not offered: {} ({} mappings)",
        names.join(", "),
        out.mappings
    );
    let example = names.first()?;
    let cure = format!(
        "nothing to do, or add [providers.{provider}.regions.{example}] with its base_url to the configuration"
    );
    finding(places, &out.first, "regions", message, &cure)
}
