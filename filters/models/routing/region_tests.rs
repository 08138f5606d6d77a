//! Regions of a provider: their turns, what failures do to them, and who may not be called there.

use serde_json::json;

use super::order::{at, fail};
use super::{WIDE, mapping, request};
use crate::accounts::AllowedRegions;
use crate::models::operation::Operation;
use crate::models::routing::CatalogFile;
use crate::models::routing::allowed::{OUTSIDE_REGIONS, by_regions};
use crate::models::routing::catalog::Catalog;
use crate::models::routing::health::Health;
use crate::models::routing::places::{ProviderPlaces, RegionTurn};
use crate::models::routing::plan::{PlanInputs, plan};
use crate::models::routing::providers::ProviderNames;
use crate::models::routing::resolve::{Resolved, resolve};

const LISTED: [&str; 4] = ["eu-west-1", "eu-central-1", "us-east-1", "us-west-2"];

/// A model at `cloud`, whose home is `eu-west-1`, and at `other`, which is dearer and nowhere. `turns` are those of its regions.
fn regional(turns: &[(&str, u32, u32)]) -> Catalog {
    let turns = turns.iter().map(|(name, order, weight)| {
        let turn = RegionTurn {
            order: *order,
            weight: *weight,
        };
        (Box::from(*name), turn)
    });
    let cloud = ProviderPlaces {
        home: Some("eu-west-1".into()),
        turns: turns.collect(),
        residence: None,
    };
    let names: ProviderNames = ["cloud", "other"].into_iter().collect();
    let names = names.at([cloud, ProviderPlaces::default()]);
    let prices = |name: &str| (name.to_owned(), json!({"multiplier": "1"}));
    let prices: serde_json::Map<_, _> = LISTED.into_iter().map(prices).collect();
    let models = json!([{"id": "m", "providers": [
        mapping("cloud", "1", json!({"regions": LISTED, "region_prices": prices})), mapping("other", "2", json!({}))]}]);
    let written: CatalogFile = serde_json::from_value(json!({ "models": models })).unwrap();
    Catalog::check(written, names).unwrap()
}

fn resolved(catalog: &Catalog, model: &str) -> Resolved {
    let on = catalog.providers().set(["cloud", "other"]);
    resolve(model, Operation::Chat, catalog, &on, &[], 0).unwrap()
}

/// The regions that are tried, `-` where there is none.
fn tried(catalog: &Catalog, model: &str, inputs: &PlanInputs<'_>) -> Vec<String> {
    let found = resolved(catalog, model);
    let plan = plan(&request(json!({})), found, inputs, |_| Some(WIDE), |_| 1.0).unwrap();
    let regions = plan.attempts.iter().map(|it| it.region.as_deref());
    regions
        .map(|region| region.unwrap_or("-").to_owned())
        .collect()
}

/// The number of a candidate in the catalogue.
fn number(catalog: &Catalog, region: &str) -> usize {
    let mut all = catalog.candidates().iter();
    all.find(|it| it.region.as_deref() == Some(region))
        .unwrap()
        .index
}

#[test]
fn regions_are_tried_in_their_order_and_before_other_providers() {
    let health = Health::new(9);
    let none = regional(&[]);
    assert_eq!(tried(&none, "m", &at(&health, 0)), ["-", "-"]);
    let catalog = regional(&[("us-east-1", 2, 1), ("eu-central-1", 1, 1)]);
    assert_eq!(
        tried(&catalog, "m", &at(&health, 0)),
        ["-", "eu-central-1", "us-east-1"]
    );
    let home = regional(&[("us-east-1", 1, 1), ("eu-west-1", 2, 1)]);
    assert_eq!(
        tried(&home, "m", &at(&health, 0)),
        ["us-east-1", "eu-west-1", "-"]
    );
}

#[test]
fn a_named_region_is_the_only_one_and_a_named_provider_has_all_of_its_own() {
    let (catalog, health) = (regional(&[("us-east-1", 1, 1)]), Health::new(9));
    let inputs = at(&health, 0);
    assert_eq!(tried(&catalog, "cloud/m", &inputs), ["-", "us-east-1"]);
    assert_eq!(tried(&catalog, "cloud/m:us-west-2", &inputs), ["us-west-2"]);
    let alone = PlanInputs {
        no_fallback: true,
        ..inputs
    };
    assert_eq!(tried(&catalog, "cloud/m", &alone), ["-"]);
}

#[test]
fn a_region_that_fails_is_last_and_the_others_of_its_provider_stay() {
    let catalog = regional(&[("eu-west-1", 1, 1), ("us-east-1", 2, 1)]);
    let health = Health::new(9);
    fail(&health, number(&catalog, "eu-west-1"), 1_000);
    assert_eq!(
        tried(&catalog, "m", &at(&health, 1_000)),
        ["us-east-1", "-", "eu-west-1"]
    );
}

#[test]
fn weights_spread_requests_and_a_session_stays_where_it_is() {
    let catalog = regional(&[("eu-west-1", 1, 1), ("us-east-1", 1, 3)]);
    let health = Health::new(9);
    let first = |spread| {
        let inputs = PlanInputs {
            spread,
            ..at(&health, 0)
        };
        tried(&catalog, "m", &inputs).remove(0)
    };
    let firsts = (0..2_000).map(first);
    let in_us = firsts.filter(|region| region == "us-east-1").count();
    assert!((1_400..1_600).contains(&in_us), "{in_us} of 2,000");
    assert_eq!(first(77), first(77));
}

#[test]
fn exploration_tries_other_providers_and_never_a_region_before_its_turn() {
    let catalog = regional(&[("eu-west-1", 1, 1), ("us-east-1", 2, 1)]);
    let health = Health::new(9);
    let mut explored = 0;
    for number in 0..400 {
        let inputs = PlanInputs {
            exploration: 1.0,
            random: (0.0, f64::from(number) / 400.0),
            ..at(&health, 0)
        };
        let tried = tried(&catalog, "m", &inputs);
        assert_ne!(tried[0], "us-east-1");
        explored += usize::from(tried[0] == "-");
    }
    assert!(explored > 100, "{explored} of 400");
}

fn inside(catalog: &Catalog, model: &str, allowed: &str) -> Result<Vec<String>, String> {
    let mut found = resolved(catalog, model);
    let regions: AllowedRegions = allowed.parse().unwrap();
    let may_be_in = |region: Option<&str>| region.is_some_and(|it| regions.contains(it));
    let kept = by_regions(&mut found, catalog, may_be_in, allowed);
    kept.map_err(|fault| fault.code().unwrap_or_default().to_owned())?;
    let names = found.candidates.iter().map(|it| it.residence.as_deref());
    Ok(names.map(|it| it.unwrap().to_owned()).collect())
}

#[test]
fn calls_of_a_caller_stay_in_its_regions() {
    let catalog = regional(&[("us-east-1", 1, 1), ("eu-central-1", 2, 1)]);
    let names = |names: &[&str]| Ok(names.iter().map(|it| (*it).to_owned()).collect());
    assert_eq!(
        inside(&catalog, "m", "eu"),
        names(&["eu-west-1", "eu-central-1"])
    );
    assert_eq!(inside(&catalog, "m", "us"), names(&["us-east-1"]));
    // None of the usual ones is there, so the mapping's other regions are.
    assert_eq!(inside(&catalog, "m", "us-west-2"), names(&["us-west-2"]));
    assert_eq!(
        inside(&catalog, "cloud/m:us-west-2", "us"),
        names(&["us-west-2"])
    );
    let refused = Err(OUTSIDE_REGIONS.to_owned());
    assert_eq!(inside(&catalog, "cloud/m:us-west-2", "eu"), refused);
    assert_eq!(inside(&catalog, "m", "ap"), refused);
    // It is not known where that provider is.
    assert_eq!(inside(&catalog, "other/m", "eu"), refused);
}
