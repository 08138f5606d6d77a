//! `LiteLLM`'s table: a flat object of models; prices are USD per token, as numbers.

use std::collections::BTreeMap;

use filters::models::routing::Date;
use serde_json::value::RawValue;

use super::decimal::{parse_count, shift_point};
use super::{ImportRow, Imported, to_toml};

/// The members of one model.
type Entry<'a> = BTreeMap<String, &'a RawValue>;

/// Its prices of tokens, and ours.
const PRICES: [(&str, &str); 9] = [
    ("input_cost_per_token", "input_price"),
    ("output_cost_per_token", "output_price"),
    ("cache_read_input_token_cost", "cached_input_price"),
    ("cache_creation_input_token_cost", "cache_write_price"),
    (
        "cache_creation_input_token_cost_above_1hr",
        "cache_write_1h_price",
    ),
    ("input_cost_per_audio_token", "input_audio_price"),
    ("output_cost_per_audio_token", "output_audio_price"),
    ("input_cost_per_image_token", "input_image_price"),
    ("output_cost_per_image_token", "output_image_price"),
];
/// The number of those that a long prompt changes.
const LONG_PRICES: usize = 5;

const SIZES: [(&str, &str); 2] = [
    ("max_input_tokens", "context_size"),
    ("max_output_tokens", "max_output"),
];

/// Imports the table. Errors: not JSON.
pub(in crate::cli::models) fn from_litellm(text: &str) -> Result<Imported, String> {
    let table: BTreeMap<String, &RawValue> =
        serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut rows = Vec::new();
    let mut skipped = BTreeMap::new();
    for (key, raw) in table.iter().filter(|(key, _)| *key != "sample_spec") {
        let Ok(entry) = serde_json::from_str::<Entry<'_>>(raw.get()) else {
            *skipped.entry("not of the table's shape").or_default() += 1;
            continue;
        };
        let is_chat = text_of(&entry, "mode").as_deref() == Some("chat");
        let Some(provider) = text_of(&entry, "litellm_provider").filter(|_| is_chat) else {
            *skipped.entry("not for chat").or_default() += 1;
            continue;
        };
        rows.push(row(key, provider, &entry));
    }
    Ok(to_toml(rows, skipped))
}

fn row(key: &str, provider: String, entry: &Entry<'_>) -> ImportRow {
    let name = key
        .strip_prefix(&format!("{provider}/"))
        .unwrap_or(key)
        .to_owned();
    let price = |theirs: &str| shift_point(entry.get(theirs)?.get(), 6);
    let prices = PRICES
        .iter()
        .filter_map(|(theirs, ours)| Some((*ours, price(theirs)?)));
    let search = search_price(entry).map(|price| ("web_search_price", price));
    let sizes = SIZES.iter().filter_map(|(theirs, ours)| {
        let size = parse_count(entry.get(*theirs).copied())?;
        Some((*ours, size.to_string()))
    });
    let retired = text_of(entry, "deprecation_date").map(Date);
    let retired = retired.filter(|date| date.0.len() == 10 && date.unix_s().is_some());
    ImportRow {
        id: name.rsplit('/').next().unwrap_or(&name).to_owned(),
        title: None,
        provider,
        prices: prices.chain(search).collect(),
        long_context: long_context(entry),
        members: sizes
            .chain(retired.map(|date| ("deactivated_at", date.0)))
            .collect(),
        name,
    }
}

/// Returns the price of a search of the size that costs most; searches have a size only where they cost alike.
fn search_price(entry: &Entry<'_>) -> Option<String> {
    let sizes: BTreeMap<String, &RawValue> =
        serde_json::from_str(entry.get("search_context_cost_per_query")?.get()).ok()?;
    let prices = sizes.values().filter_map(|price| {
        let decimal = shift_point(price.get(), 0)?;
        let price = filters::money::Price::per_call(&decimal).ok()?;
        Some((price, decimal))
    });
    prices
        .max_by_key(|(price, _)| *price)
        .map(|(_, decimal)| decimal)
}

/// Returns the prices beyond the lowest number of prompt tokens that has some of its own. The catalogue has one step.
fn long_context(entry: &Entry<'_>) -> Option<(u64, Vec<(&'static str, String)>)> {
    let thousands = |key: &str| {
        let step = key.strip_prefix("input_cost_per_token_above_")?;
        step.strip_suffix("k_tokens")?.parse::<u64>().ok()
    };
    let thousands = entry.keys().filter_map(|key| thousands(key)).min()?;
    let prices = PRICES
        .iter()
        .take(LONG_PRICES)
        .filter_map(|(theirs, ours)| {
            let key = format!("{theirs}_above_{thousands}k_tokens");
            Some((*ours, shift_point(entry.get(&key)?.get(), 6)?))
        });
    Some((thousands * 1000, prices.collect()))
}

fn text_of(entry: &Entry<'_>, key: &str) -> Option<String> {
    serde_json::from_str(entry.get(key)?.get()).ok()
}
