//! The prices of a mapping, from the catalogue's file to its candidates.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use serde_json::{Value, json};

use super::catalog::Catalog;
use super::providers::ProviderNames;
use super::{CatalogFile, WrittenMapping};
use crate::money::{BilledTokens, PricePoint, ServiceTier};

fn mapping(more: Value) -> Value {
    let mut mapping =
        json!({"provider": "a", "name": "up", "input_price": "2", "output_price": "10"});
    let members = more.as_object().unwrap().clone();
    mapping.as_object_mut().unwrap().extend(members);
    mapping
}

fn catalog(more: Value) -> Catalog {
    let models = json!({"models": [{"id": "m", "providers": [mapping(more)]}]});
    let file: CatalogFile = serde_json::from_value(models).unwrap();
    let names: ProviderNames = ["a"].into_iter().collect();
    Catalog::check(file, names).unwrap()
}

/// The cost of a million tokens of prompt in a region, with this tier; `None`: unknown.
fn million(catalog: &Catalog, region: Option<&str>, tier: ServiceTier) -> Option<String> {
    let mapping = &catalog.models()[0].mappings[0];
    let candidate = match region {
        None => catalog.candidates_of(mapping).first(),
        Some(region) => catalog.candidate_in(mapping, region),
    };
    let prices = candidate.unwrap().prices.clone()?;
    let tokens = BilledTokens {
        prompt: 1_000_000,
        ..BilledTokens::default()
    };
    let point = PricePoint { tier, start_s: 0 };
    Some(prices.at(point).cost(&tokens).total.to_string())
}

const STANDARD: ServiceTier = ServiceTier::Standard;

#[test]
fn a_region_has_the_prices_that_are_its_own_or_none() {
    let catalog = catalog(json!({
        "regions": ["eu", "us", "free", "unknown"], "discount": "0.5", "web_search_price": "0.01",
        "service_tiers": ["flex"], "tier_prices": {"flex": {"multiplier": "0.5"}},
        "region_prices": {
            "eu": {"multiplier": "1.1"},
            "us": {"input_price": "3", "tier_prices": {"flex": {"input_price": "1"}}},
            "free": {"input_price": "0", "output_price": "0"},
        },
    }));
    let at = |region| {
        let tiers = [STANDARD, ServiceTier::Flex];
        tiers.map(|tier| million(&catalog, region, tier))
    };
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(at(None), [some("1"), some("0.5")]);
    assert_eq!(at(Some("eu")), [some("1.1"), some("0.55")]);
    assert_eq!(at(Some("us")), [some("1.5"), some("0.5")]);
    assert_eq!(at(Some("free")), [some("0"), some("0")]);
    assert_eq!(at(Some("unknown")), [None, None]);
}

#[test]
fn a_tier_without_prices_costs_as_the_usual_one() {
    let catalog = catalog(
        json!({"service_tiers": ["flex", "priority"], "tier_prices": {"priority": {"multiplier": "1.8"}}}),
    );
    let at = |tier| million(&catalog, None, tier).unwrap();
    assert_eq!(
        (at(ServiceTier::Flex), at(ServiceTier::Priority)),
        ("2".to_owned(), "3.6".to_owned())
    );
}

#[test]
fn each_bad_price_names_its_key() {
    for (more, key) in [
        (json!({"discount": "1.5"}), "discount"),
        (json!({"request_price": "x"}), "request_price"),
        (
            json!({"long_context": [{"above_tokens": 1, "input_price": "-1"}]}),
            "long_context[0].input_price",
        ),
        (
            json!({"long_context": [{"above_tokens": 1}, {"above_tokens": 1}]}),
            "long_context[1].above_tokens",
        ),
        (
            json!({"tier_prices": {"flex": {"multiplier": "1e3"}}}),
            "tier_prices.flex.multiplier",
        ),
        (
            json!({"tier_prices": {"flex": {"long_context": [{"above_tokens": 1, "output_price": ""}]}}}),
            "tier_prices.flex.long_context[0].output_price",
        ),
        (
            json!({"off_peak": {"windows": [{"hours_utc": ["8-9"]}]}}),
            "off_peak.windows[0]",
        ),
        (
            json!({"off_peak": {"windows": [{"hours_utc": ["08:00-09:00"], "weekdays": [8]}]}}),
            "off_peak.windows[0]",
        ),
        (
            json!({"regions": ["eu"], "region_prices": {"eu": {"multiplier": "x"}}}),
            "region_prices.eu.multiplier",
        ),
        (
            json!({"regions": ["eu"], "region_prices": {"eu": {"multiplier": "1", "input_price": "1"}}}),
            "region_prices.eu.multiplier",
        ),
        (
            json!({"regions": ["eu"], "region_prices": {"eu": {"cached_input_price": "x"}}}),
            "region_prices.eu.cached_input_price",
        ),
        (
            json!({"input_price": "0.000000000001", "tier_prices": {"flex": {"multiplier": "0.1"}}}),
            "input_price",
        ),
        (
            json!({"output_price": "0.000000000001", "off_peak": {"windows": [{"hours_utc": ["08:00-09:00"]}], "multiplier": "0.1"}}),
            "output_price",
        ),
        (
            json!({"cached_input_price": "0.000000000001", "discount": "0.5"}),
            "cached_input_price",
        ),
        (
            json!({"web_search_price": "0.000000000000000001", "discount": "0.5"}),
            "web_search_price",
        ),
        (
            json!({"image_price": "0.000000000000000001", "discount": "0.5"}),
            "image_price",
        ),
        (
            json!({"page_price": "0.000000000000000001", "discount": "0.5"}),
            "page_price",
        ),
        (
            json!({"regions": ["eu"], "region_prices": {"eu": {"document_price": "0.0000000000000001"}}}),
            "region_prices.eu.document_price",
        ),
        (
            json!({"long_context": [{"above_tokens": 1, "cache_write_price": "0.000000000001"}], "discount": "0.5"}),
            "cache_write_price",
        ),
    ] {
        let written: WrittenMapping = serde_json::from_value(mapping(more.clone())).unwrap();
        let (found, why) = written.price_problem().unwrap();
        assert_eq!(found, key, "{more}: {why}");
    }
    let written: WrittenMapping = serde_json::from_value(mapping(json!({}))).unwrap();
    assert_eq!(written.price_problem(), None);
}

#[test]
fn a_list_is_known_if_any_price_or_fee_is_given() {
    for (prices, is_known) in [
        (json!({}), false),
        (
            json!({"tier_prices": {"flex": {"multiplier": "0.5"}}}),
            false,
        ),
        (json!({"input_price": "1"}), true),
        (json!({"cached_input_price": "1"}), true),
        (json!({"image_price": "0.04"}), true),
        (json!({"request_price": "0.01"}), true),
        (json!({"web_search_price": "0.01"}), true),
        (json!({"page_price": "0.004"}), true),
        (json!({"annotated_page_price": "0.005"}), true),
        (json!({"document_price": "0.05"}), true),
        (
            json!({"long_context": [{"above_tokens": 1, "input_price": "1"}]}),
            true,
        ),
    ] {
        let mut mapping = json!({"provider": "a", "name": "up"});
        let members = prices.as_object().unwrap().clone();
        mapping.as_object_mut().unwrap().extend(members);
        let written: WrittenMapping = serde_json::from_value(mapping).unwrap();
        assert_eq!(written.has_prices(), is_known, "{prices}");
    }
}
