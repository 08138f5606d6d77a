#![allow(clippy::unwrap_used, reason = "tests")]
use super::cost::cost;
use super::max_cost::max_cost;
use super::*;

fn unit_prices() -> PriceSet {
    let prices = Unit::ALL
        .into_iter()
        .fold(UnitPrices::default(), |all, unit| {
            all.with(unit, unit.parse_price("0.6").unwrap())
        });
    PriceSet {
        units: prices,
        ..PriceSet::default()
    }
}

fn ten_of_each() -> UnitCounts {
    UnitCounts::from_array([10; Unit::ALL.len()])
}

#[test]
fn units_cost_beside_tokens_and_the_worst_case_has_them() {
    let tokens = BilledTokens {
        units: ten_of_each(),
        ..BilledTokens::default()
    };
    let cost = cost(&unit_prices(), &tokens);
    // Ten pages and searches, ten milliseconds in and out, ten documents, ten characters.
    let expected = "12.018006";
    assert_eq!(cost.total.to_string(), expected);
    let details = cost.details;
    assert_eq!(details.unit_cost.to_string(), expected);
    assert_eq!(details.upstream_inference_cost.to_string(), expected);
    let made = details.upstream_inference_completions_cost;
    assert_eq!(made.to_string(), "0.006");
    let mut written = Vec::new();
    details.write(&mut written);
    let written = String::from_utf8(written).unwrap();
    assert!(written.ends_with(r#","unit_cost":12.018006}"#), "{written}");
    let inputs = CostInputs {
        units: ten_of_each(),
        ..CostInputs::default()
    };
    let rates = Rates::new(unit_prices(), &[]);
    let maximum = max_cost(&rates, &TokenBounds::default(), &inputs);
    assert_eq!(maximum.to_string(), expected);
}

#[test]
fn prices_of_units_are_scaled_like_those_of_tokens() {
    let half = unit_prices().scaled(Factor::parse("0.5").unwrap()).unwrap();
    let tokens = BilledTokens {
        units: ten_of_each(),
        ..BilledTokens::default()
    };
    assert_eq!(cost(&half, &tokens).total.to_string(), "6.009003");
    assert!(!half.is_free() && half.mean().is_none());
    let odd = PriceSet {
        units: UnitPrices::default()
            .with(Unit::Page, Price::per_call("0.000000000000000001").unwrap()),
        ..PriceSet::default()
    };
    let refused = odd.scaled(Factor::parse("0.5").unwrap()).unwrap_err();
    assert_eq!(refused.key, "page_price");
}

#[test]
fn annotated_pages_have_a_price_of_their_own_where_it_is_given() {
    let prices = |annotated: Option<&str>| PriceSet {
        units: UnitPrices::default().with(Unit::Page, Price::per_call("0.004").unwrap()),
        annotated_page: annotated.map(|text| Price::per_call(text).unwrap()),
        ..PriceSet::default()
    };
    let costs = |prices: PriceSet, annotates: bool| {
        let units = UnitCounts::ZERO.with(Unit::Page, 10);
        let tokens = BilledTokens {
            units,
            annotates,
            ..BilledTokens::default()
        };
        let inputs = CostInputs {
            units,
            annotates,
            ..CostInputs::default()
        };
        let most = max_cost(&Rates::new(prices, &[]), &TokenBounds::default(), &inputs);
        let billed = cost(&prices, &tokens).total;
        assert_eq!(billed, most);
        billed.to_string()
    };
    assert_eq!(costs(prices(Some("0.005")), false), "0.04");
    assert_eq!(costs(prices(Some("0.005")), true), "0.05");
    assert_eq!(costs(prices(None), true), "0.04");
    let half = prices(Some("0.005")).scaled(Factor::parse("0.5").unwrap());
    assert_eq!(costs(half.unwrap(), true), "0.025");
    let alone = PriceSet {
        units: UnitPrices::default(),
        ..prices(Some("0.005"))
    };
    assert_eq!(costs(alone, true), "0.05");
    assert!(!alone.is_free());
}
