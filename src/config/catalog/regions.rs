//! Removes regions that no request can reach, and warns of those that no mapping lists.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use filters::models::routing::CatalogFile;
use filters::models::routing::providers::ProviderNames;

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

/// The providers, and the regions that they are in.
pub(super) struct Reach<'a> {
    pub providers: &'a BTreeMap<String, ProviderConfig>,
    pub homes: BTreeMap<&'a str, Arc<str>>,
}

impl<'a> Reach<'a> {
    /// Returns where providers can be reached; `enabled` are those that serve.
    pub(super) fn new(
        providers: &'a BTreeMap<String, ProviderConfig>,
        enabled: &ProviderNames,
    ) -> Self {
        let homes = providers.keys().filter_map(|name| {
            let number = enabled.number(name)?;
            Some((name.as_str(), enabled.places(number).home?))
        });
        Self {
            homes: homes.collect(),
            providers,
        }
    }

    /// Returns whether a provider's requests can reach a region: it is there, there is a table for it, or requests name the
    /// region.
    pub(super) fn has(&self, provider: &str, region: &str) -> bool {
        let is_home = self.homes.get(provider).is_some_and(|it| **it == *region);
        is_home
            || self.providers.get(provider).is_none_or(|provider| {
                provider.kind.host().names_regions || provider.regions.contains_key(region)
            })
    }
}

/// Removes the regions that a provider cannot reach. Requests for a removed
/// region are refused like those for an unknown one. Returns one warning per provider.
///
/// Our choice: a catalogue may know more regions than one uses, as it may know more providers.
pub(super) fn leave_out_unreachable(
    file: &mut CatalogFile,
    reach: &Reach<'_>,
    places: &Places,
) -> Vec<Finding> {
    let mut unreachable: BTreeMap<String, Unreachable> = BTreeMap::new();
    for (index, model) in file.models.iter_mut().enumerate() {
        for (number, mapping) in model.providers.iter_mut().enumerate() {
            let regions = std::mem::take(&mut mapping.regions).into_iter();
            let (kept, out): (Vec<_>, Vec<_>) =
                regions.partition(|region| reach.has(&mapping.provider, region));
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

/// Warns of regions that have a turn in the configuration and that no mapping of their provider lists.
pub(super) fn find_idle_turns(
    file: &CatalogFile,
    providers: &BTreeMap<String, ProviderConfig>,
    places: &Places,
) -> Vec<Finding> {
    let warnings = providers.iter().flat_map(|(name, provider)| {
        let models = file.models.iter().enumerate();
        let mappings: Vec<_> = models
            .flat_map(|(index, model)| {
                let mappings = model.providers.iter().enumerate();
                mappings.map(move |(number, mapping)| (index, number, mapping))
            })
            .filter(|(_, _, mapping)| mapping.provider == *name)
            .collect();
        let in_turn = provider.regions.iter();
        let in_turn = in_turn.filter(|(_, it)| it.order.is_some() || it.weight.is_some());
        in_turn.filter_map(move |(region, _)| {
            let (index, number, _) = mappings.first()?;
            let is_listed = mappings
                .iter()
                .any(|(_, _, it)| it.regions.contains(region));
            let message = format!(
                "no mapping of provider {name:?} lists {region:?}, so no request goes there"
            );
            let cure = format!("add {region:?} to regions of the mappings that are served there");
            let entry = format!("models[{index}].providers[{number}]");
            (!is_listed).then(|| finding(places, &entry, "regions", message, &cure))?
        })
    });
    warnings.collect()
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
