//! The providers that are configured: one for each set of equal places, which share the calls, and for each rank.
//!
//! Deployments of one group that differ in nothing but their place are one provider with several keys, or with several regions,
//! which share its calls by weight. A provider of a later rank, to which only failures lead, has a lower priority.

use std::collections::{BTreeMap, BTreeSet};

use filters::models::hosts::{HostPlace, ProviderKind};
use toml::{Table, Value};

use super::deployments::Deployment;
use super::places::Endpoint;
use super::providers::ProviderRow;
use super::references::to_reference;

/// The priority of the first rank, and by how much each further one is lower. Our choice: so far apart that no difference of
/// prices or speeds outweighs it (docs/routing.md).
const FIRST_PRIORITY: u32 = 1000;
const PRIORITY_STEP: u32 = 100;
/// The most weight of a region.
const MAX_WEIGHT: u64 = 1000;

/// A place, and its share of the calls.
type WeighedPlace = (Endpoint, u64);

/// A provider before it has a name.
pub(super) struct Pool {
    row: &'static ProviderRow,
    settings: Table,
    places: Vec<WeighedPlace>,
    rank: u32,
    /// The name that clients ask for it by.
    asked_name: Option<String>,
}

/// All providers so far.
#[derive(Default)]
pub(super) struct Pools {
    all: Vec<Pool>,
    by_identity: BTreeMap<String, usize>,
}

/// What a mapping says of its provider: its number, and its regions.
#[derive(Clone, Debug)]
pub(super) struct PoolRef {
    pub number: usize,
    pub regions: Vec<String>,
}

impl Pools {
    /// Returns the providers of deployments that differ in nothing but their places.
    pub(super) fn add(&mut self, equal: &[&Deployment<'_>], rank: u32) -> Vec<PoolRef> {
        let Some(first) = equal.first() else {
            return Vec::new();
        };
        let mut places: Vec<WeighedPlace> = Vec::new();
        let mut known = BTreeSet::new();
        for deployment in equal {
            if known.insert(&deployment.endpoint) {
                let weight = deployment.weight.unwrap_or(1).max(1);
                places.push((deployment.endpoint.clone(), weight));
            }
        }
        scale(&mut places);
        let split = split_places(places, &first.settings);
        split
            .into_iter()
            .map(|places| {
                let pool = Pool {
                    row: first.row,
                    settings: first.settings.clone(),
                    places,
                    rank,
                    asked_name: None,
                };
                let regions = pool.regions();
                PoolRef {
                    number: self.intern(pool),
                    regions,
                }
            })
            .collect()
    }

    /// Returns the number of the provider that clients name before a model.
    pub(super) fn add_named(&mut self, deployment: &Deployment<'_>, name: &str) -> usize {
        let number = self.intern(Pool {
            row: deployment.row,
            settings: deployment.settings.clone(),
            places: vec![(deployment.endpoint.clone(), 1)],
            rank: 0,
            asked_name: None,
        });
        if let Some(pool) = self.all.get_mut(number) {
            pool.asked_name.get_or_insert_with(|| name.to_owned());
        }
        number
    }

    fn intern(&mut self, pool: Pool) -> usize {
        let identity = format!("{}\n{:?}\n{}", pool.settings, pool.places, pool.rank);
        *self.by_identity.entry(identity).or_insert_with(|| {
            self.all.push(pool);
            self.all.len() - 1
        })
    }

    /// Returns the names and the tables of the providers, by number. `reserved` are prefixes of model names that are no
    /// providers.
    pub(super) fn into_tables(self, reserved: &BTreeSet<String>) -> Vec<(String, Table)> {
        let mut taken: BTreeSet<String> = BTreeSet::new();
        let asked = self.all.iter().filter_map(|pool| pool.asked_name.clone());
        taken.extend(asked);
        let is_ranked = self.all.iter().any(|pool| pool.rank > 0);
        let all = self.all.into_iter();
        all.map(|pool| {
            let name = match &pool.asked_name {
                Some(name) => name.clone(),
                None => free_name(&pool.usual_name(reserved), &mut taken),
            };
            (name, pool.into_table(is_ranked))
        })
        .collect()
    }
}

/// Returns this name, or the first free one with a number.
fn free_name(base: &str, taken: &mut BTreeSet<String>) -> String {
    let numbered = (2..).map(|number| format!("{base}-{number}"));
    let mut names = std::iter::once(base.to_owned()).chain(numbered);
    let free = names.find(|name| taken.insert(name.clone()));
    free.unwrap_or_else(|| base.to_owned())
}

/// Brings weights into the range that regions have.
fn scale(places: &mut [WeighedPlace]) {
    let most = places.iter().map(|(_, weight)| *weight).max().unwrap_or(1);
    if most <= MAX_WEIGHT {
        return;
    }
    for (_, weight) in places {
        let share = u128::from(*weight) * u128::from(MAX_WEIGHT) / u128::from(most);
        *weight = u64::try_from(share).unwrap_or(MAX_WEIGHT).max(1);
    }
}

/// Splits places into sets that one provider can have.
fn split_places(places: Vec<WeighedPlace>, settings: &Table) -> Vec<Vec<WeighedPlace>> {
    let Some((first, _)) = places.first() else {
        return Vec::new();
    };
    let differ_in_keys = places.iter().all(|(place, _)| {
        place.base_url == first.base_url && place.region == first.region && place.key.is_some()
    });
    let regions: BTreeSet<_> = places.iter().map(|(place, _)| &place.region).collect();
    let differ_in_regions = regions.len() == places.len()
        && places
            .iter()
            .all(|(place, _)| place.key == first.key && place.base_url.is_none());
    let can_pool = match kind(settings) {
        Some(kind) if kind.host().names_regions => false,
        Some(kind) if kind.host().place == HostPlace::Address => true,
        _ => differ_in_regions,
    };
    match places.len() == 1 || differ_in_keys || can_pool {
        true => vec![places],
        false => places.into_iter().map(|place| vec![place]).collect(),
    }
}

fn kind(settings: &Table) -> Option<ProviderKind> {
    settings.get("kind")?.clone().try_into().ok()
}

impl Pool {
    fn differs_in_keys(&self) -> bool {
        let mut places = self.places.iter().map(|(place, _)| place);
        let Some(first) = places.next() else {
            return true;
        };
        places.all(|place| place.base_url == first.base_url && place.region == first.region)
    }

    /// Returns the names of its regions, if its places are regions.
    fn regions(&self) -> Vec<String> {
        if self.differs_in_keys() {
            return Vec::new();
        }
        let places = self.places.iter().enumerate();
        let name = |(at, (place, _)): (usize, &WeighedPlace)| match &place.region {
            Some(region) => region.clone(),
            None => format!("pool-{}", at + 1),
        };
        places.map(name).collect()
    }

    fn usual_name(&self, reserved: &BTreeSet<String>) -> String {
        let is_any_server = kind(&self.settings) == Some(ProviderKind::Compatible)
            && self.row.base_url().is_none_or(|usual| {
                let (place, _) = self.places.first().cloned().unwrap_or_default();
                place.base_url != Some(usual)
            });
        let address = self
            .places
            .first()
            .and_then(|(place, _)| place.base_url.as_deref());
        let host = address.and_then(|url| url.parse::<http::Uri>().ok());
        let host = host.as_ref().and_then(http::Uri::host);
        let mut name = match host.filter(|_| is_any_server) {
            Some(host) => {
                let plain = |char: char| {
                    if char.is_ascii_alphanumeric() {
                        char
                    } else {
                        '-'
                    }
                };
                let name: String = host.chars().map(plain).take(40).collect();
                name.trim_matches('-').to_owned()
            }
            None => self.row.prefix.to_owned(),
        };
        if name.is_empty() || reserved.contains(&name) {
            name.push_str("-api");
        }
        match self.rank {
            0 => name,
            _ => format!("{name}-fallback"),
        }
    }

    fn into_table(self, is_ranked: bool) -> Table {
        let regions = self.regions();
        let differs_in_keys = self.differs_in_keys();
        let mut table = self.settings;
        let places = &self.places;
        let Some((first, _)) = places.first() else {
            return table;
        };
        let mut set = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                table.insert(key.to_owned(), value);
            }
        };
        set("base_url", first.base_url.clone().map(Value::from));
        let home = first.region.clone().or_else(|| regions.first().cloned());
        set("region", home.map(Value::from));
        let keys = match differs_in_keys {
            true => to_keys(places.iter().map(|(place, _)| place)),
            false => to_keys(std::iter::once(first)),
        };
        set("keys", keys);
        if is_ranked {
            let lower = self.rank.saturating_mul(PRIORITY_STEP);
            let priority = FIRST_PRIORITY.saturating_sub(lower).max(1);
            set("priority", Some(Value::from(i64::from(priority))));
        }
        if !regions.is_empty() {
            let tables = regions.iter().zip(places);
            let tables = tables.map(|(name, (place, weight))| {
                let region = to_region(place, *weight);
                (name.clone(), Value::Table(region))
            });
            set("regions", Some(Value::Table(tables.collect())));
        }
        let is_server = kind(&table) == Some(ProviderKind::Compatible);
        if is_server && !table.contains_key("keys") {
            table.insert("keys".to_owned(), Value::Array(Vec::new()));
        }
        table
    }
}

/// Returns the list of keys, if there are some.
fn to_keys<'p>(places: impl Iterator<Item = &'p Endpoint>) -> Option<Value> {
    let keys = places.filter_map(|place| place.key.as_deref());
    let keys: Vec<Value> = keys.map(to_reference).collect();
    (!keys.is_empty()).then_some(Value::Array(keys))
}

fn to_region(place: &Endpoint, weight: u64) -> Table {
    let mut table = Table::new();
    if let Some(url) = &place.base_url {
        table.insert("base_url".to_owned(), Value::from(url.as_str()));
        let keys = to_keys(std::iter::once(place));
        table.extend(keys.map(|keys| ("keys".to_owned(), keys)));
    }
    table.insert("order".to_owned(), Value::from(1));
    let weight = i64::try_from(weight).unwrap_or(1);
    table.insert("weight".to_owned(), Value::from(weight));
    table
}
