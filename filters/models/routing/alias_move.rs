//! An alias that is given to another model: what that changes for those who call it.

use std::collections::BTreeSet;
use std::fmt;

use super::catalog::Capability;
use super::catalog_file::{CatalogFile, WrittenMapping, WrittenModel};
use super::prices::read_prices;
use crate::money::{BilledTokens, PricePoint, Rates, Usd};

/// An alias, the model that has it, and the one that gets it.
#[derive(Clone, Copy, Debug)]
pub struct AliasMove<'c> {
    pub from: &'c WrittenModel,
    pub to: &'c WrittenModel,
}

/// Why an alias cannot be moved.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum AliasMoveError {
    /// No model has the alias.
    NoAlias,
    /// It is the id of a model, which callers cannot get another model by.
    IsId,
    /// No model has the id or alias of the target.
    NoTarget,
    /// The model has the alias already.
    Unchanged,
}

impl fmt::Display for AliasMoveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoAlias => "is no alias of a model of the catalogue",
            Self::IsId => "is the id of a model and stays with it; an alias can be moved",
            Self::NoTarget => "is neither the id nor an alias of a model of the catalogue",
            Self::Unchanged => "is an alias of that model already",
        })
    }
}

/// A property in which two models differ.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Difference {
    pub property: String,
    /// What the model has that had the alias; empty: unknown or nothing.
    pub from: String,
    pub to: String,
}

/// The sums of calls of a model at a provider.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallSums {
    pub requests: u64,
    /// Their tokens and searches.
    pub tokens: BilledTokens,
}

impl<'c> AliasMove<'c> {
    /// Finds the models of a move. The target may be named by its id or by an alias of it.
    ///
    /// Errors: the alias or the target is not there, or nothing would change.
    pub fn find(catalog: &'c CatalogFile, alias: &str, to: &str) -> Result<Self, AliasMoveError> {
        let models = &catalog.models;
        let has = |model: &&WrittenModel, name: &str| model.aliases.iter().any(|own| own == name);
        if models.iter().any(|model| model.id == alias) {
            return Err(AliasMoveError::IsId);
        }
        let from = models.iter().find(|model| has(model, alias));
        let from = from.ok_or(AliasMoveError::NoAlias)?;
        let by_id = models.iter().find(|model| model.id == to);
        let target = by_id.or_else(|| models.iter().find(|model| has(model, to)));
        let to = target.ok_or(AliasMoveError::NoTarget)?;
        match from.id == to.id {
            true => Err(AliasMoveError::Unchanged),
            false => Ok(Self { from, to }),
        }
    }

    /// Returns the properties in which the models differ at providers that are on: prices, bounds, capabilities and who serves
    /// them.
    pub fn differences(&self, is_on: &impl Fn(&str) -> bool) -> Vec<Difference> {
        let sides = [self.from, self.to].map(|model| Side::new(model, is_on));
        let mut found = Vec::new();
        let mut add = |property: &str, values: [String; 2]| {
            let [from, to] = values;
            if from != to {
                found.push(Difference {
                    property: property.to_owned(),
                    from,
                    to,
                });
            }
        };
        add("type", [self.from, self.to].map(type_of));
        add("providers", sides.each_ref().map(Side::providers));
        for (property, price) in PRICES {
            add(property, sides.each_ref().map(|side| side.list(*price)));
        }
        for (property, bound) in BOUNDS {
            add(property, sides.each_ref().map(|side| side.most(*bound)));
        }
        let all = sides.each_ref().map(Side::capabilities);
        let [from, to] = &all;
        let either: BTreeSet<&String> = from.iter().chain(to).flatten().collect();
        for name in either {
            let said = all.each_ref().map(|known| match known {
                None => "unknown",
                Some(known) if known.contains(name) => "yes",
                Some(_) => "no",
            });
            add(name, said.map(str::to_owned));
        }
        found
    }

    /// Returns what calls of the model that had the alias would have cost with the other one, at its usual prices: at the same
    /// provider if that serves it, else at the first one that does. `None`: the price is unknown.
    ///
    /// The sums do not tell tiers, hours and long prompts apart, so the prices of these do not count.
    pub fn recost(
        &self,
        provider: &str,
        sums: &CallSums,
        is_on: &impl Fn(&str) -> bool,
    ) -> Option<Usd> {
        let served = || self.to.providers.iter().filter(|it| is_on(&it.provider));
        let same = served().find(|mapping| mapping.provider == provider);
        let mapping = same.or_else(|| served().next())?;
        let prices = read_prices(mapping).ok()?.usual?;
        let short = *prices.at(PricePoint::default()).short();
        let fees = short.request.times(sums.requests.saturating_sub(1));
        let cost = Rates::new(short, &[]).cost(&sums.tokens).total;
        Some(match sums.requests {
            0 => Usd::ZERO,
            _ => cost.plus(fees),
        })
    }
}

/// A price of a mapping, as it is written.
type WrittenPrice = fn(&WrittenMapping) -> Option<&String>;
/// A bound of a mapping.
type MappingBound = fn(&WrittenMapping) -> Option<u64>;

/// The prices that are compared.
const PRICES: &[(&str, WrittenPrice)] = &[
    ("input_price", |mapping| mapping.input_price.as_ref()),
    ("cached_input_price", |mapping| {
        mapping.cached_input_price.as_ref()
    }),
    ("output_price", |mapping| mapping.output_price.as_ref()),
];

/// The bounds that are compared.
const BOUNDS: &[(&str, MappingBound)] = &[
    ("context_size", |mapping| mapping.context_size),
    ("max_output", |mapping| mapping.max_output),
];

/// The mappings of a model that are on.
struct Side<'c>(Vec<&'c WrittenMapping>);

impl<'c> Side<'c> {
    fn new(model: &'c WrittenModel, is_on: &impl Fn(&str) -> bool) -> Self {
        let mappings = model.providers.iter();
        Self(mappings.filter(|it| is_on(&it.provider)).collect())
    }

    fn providers(&self) -> String {
        let mut names: Vec<&str> = self.0.iter().map(|it| it.provider.as_str()).collect();
        names.dedup();
        names.join(", ")
    }

    /// Returns a price of each provider: `2.5` if it is the same at all, else `first 2.5, second 3`.
    fn list(&self, price: WrittenPrice) -> String {
        let told = self.0.iter();
        let told = told.map(|mapping| (mapping.provider.as_str(), price(mapping)));
        let mut told: Vec<(&str, &str)> = told
            .map(|(provider, price)| (provider, price.map_or("unknown", String::as_str)))
            .collect();
        told.dedup();
        match told.as_slice() {
            [] => String::new(),
            [(_, first), rest @ ..] if rest.iter().all(|(_, price)| price == first) => {
                (*first).to_owned()
            }
            all => {
                let all = all.iter();
                let all = all.map(|(provider, price)| format!("{provider} {price}"));
                all.collect::<Vec<_>>().join(", ")
            }
        }
    }

    fn most(&self, bound: MappingBound) -> String {
        let bounds = self.0.iter().filter_map(|mapping| bound(mapping));
        bounds
            .max()
            .map(|most| most.to_string())
            .unwrap_or_default()
    }

    /// Returns the words of what any of the mappings can do; `None`: one of them does not list it.
    fn capabilities(&self) -> Option<BTreeSet<String>> {
        let mut words = BTreeSet::new();
        for mapping in &self.0 {
            words.extend(mapping.capabilities.as_ref()?.iter().map(capability_word));
        }
        Some(words)
    }
}

/// Returns the word of a capability, as the catalogue writes it.
fn capability_word(capability: &Capability) -> String {
    let word = serde_json::to_value(capability);
    let word = word.ok().and_then(|word| word.as_str().map(str::to_owned));
    word.unwrap_or_default()
}

fn type_of(model: &WrittenModel) -> String {
    let known = model.model_type.as_deref();
    known.unwrap_or("chat").to_owned()
}

#[cfg(test)]
#[path = "alias_move_tests.rs"]
mod tests;
