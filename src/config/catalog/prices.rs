//! Finds invalid, implausible and missing prices of a catalogue.

use filters::models::routing::{CatalogFile, TOKEN_PRICE_KEYS, WrittenMapping};

use super::{MappingValue, Places, finding, mapping_values, mappings};
use crate::config::document::Node;
use crate::config::walk::Finding;

/// The highest price per million tokens that is plausible, in USD. Our choice: the most expensive models cost some
/// hundreds; a price per billion tokens, or in cents, is above it.
const MAX_PLAUSIBLE_PRICE: f64 = 10_000.0;

/// Warns of prices that seem to be for another number of tokens.
pub(super) fn find_implausible_prices(models: &[Node]) -> Vec<Finding> {
    let values = TOKEN_PRICE_KEYS
        .iter()
        .flat_map(|name| mapping_values(models, name));
    let is_implausible = |value: &MappingValue<'_>| {
        let price = value.text.parse::<f64>();
        price.is_ok_and(|price| price > MAX_PLAUSIBLE_PRICE)
    };
    values
        .filter(is_implausible)
        .map(|value| Finding {
            message: format!("{} USD per million tokens is implausible", value.text),
            cure: "give the price of a million tokens in USD, not of a thousand, a billion or in cents".to_owned(),
            key: value.key,
            at: value.at.clone(),
        })
        .collect()
}

/// Warns of regions and tiers without a price.
pub(super) fn find_idle_prices(
    file: &CatalogFile,
    places: &Places,
    is_reachable: impl Fn(&WrittenMapping, &str) -> bool,
) -> Vec<Finding> {
    let mut warnings = Vec::new();
    for (key, mapping) in mappings(file) {
        if !mapping.has_prices() {
            continue;
        }
        for (at, region) in mapping.regions.iter().enumerate() {
            if !mapping.region_prices.contains_key(region) && is_reachable(mapping, region) {
                let message = format!(
                    "no prices are known in {region:?}, so only callers with a key of their own are served there"
                );
                let cure =
                    format!("add region_prices = {{ {region} = {{ multiplier = \"1.1\" }} }}");
                warnings.extend(finding(
                    places,
                    &key,
                    &format!("regions[{at}]"),
                    message,
                    &cure,
                ));
            }
        }
        for (at, tier) in mapping.service_tiers.iter().enumerate() {
            if !mapping.has_tier_prices(tier) {
                let message =
                    format!("the tier {tier:?} has no prices, so it costs as the usual one");
                let cure = format!("add tier_prices = {{ {tier} = {{ multiplier = \"0.5\" }} }}");
                warnings.extend(finding(
                    places,
                    &key,
                    &format!("service_tiers[{at}]"),
                    message,
                    &cure,
                ));
            }
        }
    }
    warnings
}
