//! Which deployments serve a model, and in which order: those of its group by `order`, then those of its fallbacks.

use std::collections::{BTreeMap, BTreeSet};

use toml::{Table, Value};

use super::deployments::Deployment;
use super::fallbacks::Fallbacks;
use super::pools::{PoolRef, Pools};
use super::references::Reading;
use super::wildcards;
use crate::cli::shipped;

/// The most attempts of a request.
pub(super) const MAX_ATTEMPTS: usize = 10;

/// The prices of regions in a mapping.
const REGION_PRICES: &str = "region_prices";

/// A model of the new catalogue.
pub(super) struct ImportedModel {
    pub id: String,
    pub model_type: Option<String>,
    pub aliases: Vec<String>,
    pub mappings: Vec<ImportedMapping>,
}

/// A mapping of it.
pub(super) struct ImportedMapping {
    pub pool: PoolRef,
    pub name: String,
    /// Its other members.
    pub members: Table,
    pub rank: u32,
}

/// The models, their providers, and the names that have no provider of their own.
#[derive(Default)]
pub(super) struct Arrangement {
    pub models: Vec<ImportedModel>,
    pub pools: Pools,
}

impl Arrangement {
    /// Returns the most attempts that a model needs to try all its places.
    pub(super) fn most_attempts(&self) -> usize {
        let places = |model: &ImportedModel| {
            let mappings = model.mappings.iter();
            mappings
                .map(|mapping| mapping.pool.regions.len().max(1))
                .sum()
        };
        self.models.iter().map(places).max().unwrap_or(0)
    }

    /// Returns whether any model has fallbacks.
    pub(super) fn has_ranks(&self) -> bool {
        let mut mappings = self.models.iter().flat_map(|model| &model.mappings);
        mappings.any(|mapping| mapping.rank > 0)
    }
}

/// The deployments of each group, in the order of the file.
pub(super) type Groups<'d, 'n> = Vec<(&'d str, Vec<&'d Deployment<'n>>)>;

/// Arranges all deployments.
pub(super) fn arrange(
    deployments: &[Deployment<'_>],
    fallbacks: &Fallbacks<'_>,
    reading: &mut Reading<'_>,
) -> Arrangement {
    let mut arrangement = Arrangement::default();
    let (wild, named): (Vec<_>, Vec<_>) = deployments
        .iter()
        .partition(|deployment| deployment.wildcard().is_some());
    // Clients ask for these providers by name, so that they are named first.
    let wild = wildcards::name_providers(&wild, &mut arrangement.pools, reading);
    let groups = to_groups(named);
    fallbacks.check(&groups, reading);
    for (group, own) in &groups {
        let ranks = to_ranks(group, own, &groups, fallbacks);
        let model = to_model(group, &ranks, &mut arrangement.pools, reading);
        arrangement.models.push(model);
    }
    let known: BTreeSet<String> = groups
        .iter()
        .map(|(group, _)| (*group).to_owned())
        .collect();
    let wild = wildcards::to_models(wild, &known, reading);
    arrangement.models.extend(wild);
    arrangement
}

fn to_groups<'d, 'n>(named: Vec<&'d Deployment<'n>>) -> Groups<'d, 'n> {
    let mut groups: Groups<'d, 'n> = Vec::new();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for deployment in named {
        let group = deployment.group.as_str();
        let at = *places.entry(group).or_insert_with(|| {
            groups.push((group, Vec::new()));
            groups.len() - 1
        });
        if let Some((_, members)) = groups.get_mut(at) {
            members.push(deployment);
        }
    }
    groups
}

fn to_ranks<'d, 'n>(
    group: &str,
    own: &[&'d Deployment<'n>],
    groups: &Groups<'d, 'n>,
    fallbacks: &Fallbacks<'_>,
) -> Vec<Vec<&'d Deployment<'n>>> {
    let mut orders: BTreeMap<u64, Vec<&Deployment<'n>>> = BTreeMap::new();
    for deployment in own {
        orders.entry(deployment.order).or_default().push(deployment);
    }
    let mut ranks: Vec<_> = orders.into_values().collect();
    for fallback in fallbacks.standing_in_for(group) {
        let found = groups.iter().find(|(name, _)| *name == fallback);
        ranks.extend(found.map(|(_, members)| members.clone()));
    }
    ranks.truncate(MAX_ATTEMPTS);
    ranks
}

fn to_model(
    group: &str,
    ranks: &[Vec<&Deployment<'_>>],
    pools: &mut Pools,
    reading: &mut Reading<'_>,
) -> ImportedModel {
    let first = ranks.iter().flatten().next();
    // An id is no pattern, but an alias may be one.
    let is_pattern = group.contains('*');
    let mut model = ImportedModel {
        id: group.replace('*', "any"),
        model_type: first.and_then(|deployment| deployment.model_type.clone()),
        aliases: is_pattern.then(|| group.to_owned()).into_iter().collect(),
        mappings: Vec::new(),
    };
    let mut cheapest: Option<f64> = None;
    for (rank, deployments) in (0..).zip(ranks) {
        for equal in to_equal(deployments) {
            let Some(one) = equal.first() else { continue };
            if one.model_type != model.model_type {
                let what = format!(
                    "is of another type than others of {group:?}, which it cannot stand for"
                );
                let cure = "give models of each type a name of their own";
                reading.findings.left_out(&one.field, what, cure);
                continue;
            }
            warn_of_price(group, one, rank, cheapest, reading);
            if rank == 0 {
                let price = price_of(&one.mapping);
                cheapest = [cheapest, price].into_iter().flatten().reduce(f64::min);
            }
            for pool in pools.add(&equal, rank) {
                if pool.regions.is_empty() {
                    warn_of_region(one, reading);
                }
                model.mappings.push(ImportedMapping {
                    members: with_regions(&one.mapping, &pool.regions),
                    name: one.upstream.clone(),
                    pool,
                    rank,
                });
            }
        }
    }
    model
}

/// Returns the deployments in sets that differ in nothing but their places.
fn to_equal<'d, 'n>(deployments: &[&'d Deployment<'n>]) -> Vec<Vec<&'d Deployment<'n>>> {
    let mut sets: Vec<Vec<&Deployment<'n>>> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for deployment in deployments {
        let identity = format!(
            "{}\n{}\n{}\n{}",
            deployment.row.prefix, deployment.upstream, deployment.settings, deployment.mapping
        );
        let at = *places.entry(identity).or_insert_with(|| {
            sets.push(Vec::new());
            sets.len() - 1
        });
        if let Some(set) = sets.get_mut(at) {
            set.push(deployment);
        }
    }
    sets
}

/// Notes a fallback that is cheaper than all before it: until a call was measured, the price decides alone.
fn warn_of_price(
    group: &str,
    one: &Deployment<'_>,
    rank: u32,
    cheapest: Option<f64>,
    reading: &mut Reading<'_>,
) {
    let price = price_of(&one.mapping);
    let is_cheaper = price
        .zip(cheapest)
        .is_some_and(|(price, cheapest)| price < cheapest);
    if rank > 0 && is_cheaper {
        let what = format!(
            "it is cheaper than what it stands in for ({group:?}): the first call after a start goes to it, until one was measured"
        );
        let cure = "nothing, if that does no harm; else let clients name the provider before the model (docs/routing.md)";
        reading.findings.differs(&one.field, what, cure);
    }
}

/// Returns the sum of the prices of a token in and out, for comparisons.
fn price_of(mapping: &Table) -> Option<f64> {
    let price = |key: &str| mapping.get(key)?.as_str()?.parse::<f64>().ok();
    Some(price("input_price")? + price("output_price").unwrap_or(0.0))
}

/// Adds the regions of a mapping. Those of which the shipped catalogue tells no prices have the usual ones.
fn with_regions(mapping: &Table, regions: &[String]) -> Table {
    let mut members = mapping.clone();
    let known = members.remove(REGION_PRICES);
    if regions.is_empty() {
        return members;
    }
    let names = regions.iter().map(|region| Value::from(region.as_str()));
    members.insert("regions".to_owned(), Value::Array(names.collect()));
    if members.keys().any(|key| key.ends_with("_price")) {
        let usual = Table::from_iter([("multiplier".to_owned(), Value::from("1"))]);
        let prices = regions.iter().map(|region| {
            let known = known.as_ref().and_then(|known| known.get(region)).cloned();
            let price = known.unwrap_or_else(|| Value::Table(usual.clone()));
            (region.clone(), price)
        });
        members.insert(REGION_PRICES.to_owned(), Value::Table(prices.collect()));
    }
    members
}

/// Notes a deployment in one region alone whose prices differ there: what is written are those of the usual region.
fn warn_of_region(one: &Deployment<'_>, reading: &mut Reading<'_>) {
    let Some(region) = &one.endpoint.region else {
        return;
    };
    let known = one
        .mapping
        .get(REGION_PRICES)
        .and_then(|known| known.get(region));
    if known.is_some() {
        let what = format!(
            "the shipped catalogue has other prices in {region} than those that were written"
        );
        let cure = "set the prices of that region in models.toml; conf/models.toml has them (region_prices)";
        reading.findings.differs(&one.field, what, cure);
    }
}

/// Returns the models of a provider in the shipped catalogue: the type of each, and its mapping.
pub(super) fn shipped_models(provider: &str) -> impl Iterator<Item = (Option<&str>, &Table)> {
    shipped::MODELS.iter().flat_map(move |model| {
        let model_type = model.get("type").and_then(Value::as_str);
        let mappings = shipped::tables(model, "providers");
        let own = mappings.filter(move |mapping| {
            mapping.get("provider").and_then(Value::as_str) == Some(provider)
        });
        own.map(move |mapping| (model_type, mapping))
    })
}
