//! `pricing` of `GET /v1/models`. Source: docs/facts/model-gateway.md 1.16, docs/interface.md.

use filters::models::routing::catalog::Mapping;
use filters::money::{
    HoursWindow, Price, PriceList, PricePoint, PriceSet, Rates, ServiceTier, Unit,
};
use serde_json::{Map, Value, json};

/// Returns the prices of a mapping for a call with a short prompt, if they are known.
pub(super) fn short_prices(mapping: &Mapping, point: PricePoint) -> Option<&PriceSet> {
    let prices = mapping.prices.as_ref()?;
    Some(prices.at(point).short())
}

/// Returns the prices per token, as billed, as decimal strings; a missing price is "0". Prices of other tokens than
/// text, of long prompts, tiers and hours are only added if they differ.
pub(super) fn pricing(list: &PriceList) -> Value {
    let usual = list.peak(ServiceTier::Standard);
    let prices = usual.short();
    let optional = |price: Option<Price>| price.unwrap_or_default().to_decimal();
    let mut pricing = json!({
        "prompt": prices.input.to_decimal(),
        "completion": prices.output.to_decimal(),
        "image": "0",
        "request": prices.request.to_decimal(),
        "input_cache_read": optional(prices.cached_input),
        "input_cache_write": optional(prices.cache_write),
        "input_cache_write_1h": optional(prices.cache_write_1h),
        "web_search": prices.web_search.to_decimal(),
        "internal_reasoning": optional(prices.output_reasoning),
    });
    let Some(members) = pricing.as_object_mut() else {
        return pricing;
    };
    let media = [
        ("input_audio", prices.input_audio),
        ("input_image", prices.input_image),
        ("output_audio", prices.output_audio),
        ("output_image", prices.output_image),
    ];
    let media = media.into_iter();
    let media = media.filter_map(|(key, price)| Some((key, price?.to_decimal())));
    members.extend(media.map(|(key, price)| (key.to_owned(), json!(price))));
    if let Some(image) = prices.image {
        let per_image = json!({ "default": image.to_decimal() });
        members.insert("per_image".to_owned(), per_image);
    }
    if let Some(page) = prices.annotated_page {
        members.insert("ocr_annotated_page".to_owned(), json!(page.to_decimal()));
    }
    add_units(members, prices);
    add_steps(members, usual);
    let tiers: Map<String, Value> = list
        .own_tiers()
        .map(|tier| (tier.as_str().to_owned(), differing(list.peak(tier), prices)))
        .collect();
    if !tiers.is_empty() {
        members.insert("service_tiers".into(), Value::Object(tiers));
    }
    if let Some((schedule, rates)) = list.off_peak() {
        let windows: Vec<Value> = schedule.windows().iter().map(window).collect();
        let peak = PriceSet::default();
        let peak_pricing = json!({
            "off_peak_windows": windows,
            "peak": differing(usual, &peak),
            "off_peak": differing(rates, &peak),
        });
        members.insert("peak_pricing".into(), peak_pricing);
    }
    if let Some(discount) = list.discount() {
        members.insert("discount".into(), json!(discount.to_decimal()));
    }
    pricing
}

/// Adds the prices of units: a page, an hour of input audio, a second of output audio or video, a character, a
/// search, a document.
fn add_units(members: &mut Map<String, Value>, prices: &PriceSet) {
    for (unit, price) in prices.units.set() {
        let (key, count) = match unit {
            Unit::Page => ("ocr_page", 1),
            Unit::InputTime => ("input_audio_hour", 3_600_000),
            Unit::OutputTime => ("per_second", 1000),
            Unit::Character => ("input_character", 1),
            Unit::Search => ("search", 1),
            Unit::Document => ("document", 1),
        };
        let price = json!(price.times(count).to_string());
        let price = match unit {
            Unit::OutputTime => json!({ "default": price }),
            _ => price,
        };
        members.insert(key.to_owned(), price);
    }
}

fn window(window: &HoursWindow) -> Value {
    let mut written = json!({ "hours_utc": window.as_str() });
    if let Some(members) = written.as_object_mut()
        && !window.weekdays().is_empty()
    {
        members.insert("weekdays".into(), json!(window.weekdays()));
    }
    written
}

/// Adds the prices of longer prompts: the tokens above which they hold, and the prices that differ.
fn add_steps(members: &mut Map<String, Value>, rates: &Rates) {
    let steps = rates.long().iter();
    let steps: Vec<Value> = steps
        .map(|(above, prices)| {
            let mut step = changes(prices, rates.short());
            step.insert("above_tokens".into(), json!(above));
            Value::Object(step)
        })
        .collect();
    if !steps.is_empty() {
        members.insert("long_context".into(), steps.into());
    }
}

/// Returns the prices that differ from others, and those of longer prompts.
fn differing(rates: &Rates, others: &PriceSet) -> Value {
    let mut members = changes(rates.short(), others);
    add_steps(&mut members, rates);
    Value::Object(members)
}

fn changes(prices: &PriceSet, others: &PriceSet) -> Map<String, Value> {
    let all = |prices: &PriceSet| {
        [
            ("prompt", Some(prices.input)),
            ("completion", Some(prices.output)),
            ("input_cache_read", prices.cached_input),
            ("input_cache_write", prices.cache_write),
            ("input_cache_write_1h", prices.cache_write_1h),
            ("internal_reasoning", prices.output_reasoning),
            ("input_audio", prices.input_audio),
            ("input_image", prices.input_image),
            ("output_audio", prices.output_audio),
            ("output_image", prices.output_image),
        ]
    };
    let pairs = all(prices).into_iter().zip(all(others));
    let changed = pairs.filter(|(own, other)| own != other);
    let changed = changed.filter_map(|((key, price), _)| Some((key, price?.to_decimal())));
    changed
        .map(|(key, price)| (key.to_owned(), json!(price)))
        .collect()
}
