//! The `api.json` of models.dev: providers with models; prices are USD per million tokens, as numbers.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::decimal::{parse_count, shift_point};
use super::{ImportRow, Imported, to_toml};

#[derive(Deserialize)]
struct Provider<'a> {
    #[serde(borrow, default)]
    models: BTreeMap<String, Model<'a>>,
}

#[derive(Deserialize)]
struct Model<'a> {
    #[serde(default)]
    name: Option<String>,
    #[serde(borrow, default)]
    cost: BTreeMap<String, &'a RawValue>,
    #[serde(borrow, default)]
    limit: BTreeMap<String, &'a RawValue>,
}

/// The prompt tokens beyond which other prices hold.
#[derive(Deserialize)]
struct StepSize {
    size: u64,
}

/// Its prices, and ours.
const PRICES: [(&str, &str); 6] = [
    ("input", "input_price"),
    ("output", "output_price"),
    ("cache_read", "cached_input_price"),
    ("cache_write", "cache_write_price"),
    ("input_audio", "input_audio_price"),
    ("output_audio", "output_audio_price"),
];
/// The number of those that a long prompt changes.
const LONG_PRICES: usize = 4;

const SIZES: [(&str, &str); 2] = [("context", "context_size"), ("output", "max_output")];

/// Imports the table. Errors: not JSON in that format.
pub(in crate::cli::models) fn from_models_dev(text: &str) -> Result<Imported, String> {
    let table: BTreeMap<String, Provider<'_>> =
        serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut rows = Vec::new();
    for (provider, served) in table {
        for (name, model) in served.models {
            let sizes = SIZES.iter().filter_map(|(theirs, ours)| {
                let size = parse_count(model.limit.get(*theirs).copied())?;
                Some((*ours, size.to_string()))
            });
            rows.push(ImportRow {
                id: name.rsplit('/').next().unwrap_or(&name).to_owned(),
                provider: provider.clone(),
                prices: prices(&model.cost, PRICES.len()),
                long_context: long_context(&model.cost),
                members: sizes.collect(),
                title: model.name,
                name,
            });
        }
    }
    Ok(to_toml(rows, BTreeMap::new()))
}

/// Returns the first `count` of the prices that a table has.
fn prices(cost: &BTreeMap<String, &RawValue>, count: usize) -> Vec<(&'static str, String)> {
    let prices = PRICES
        .iter()
        .take(count)
        .filter_map(|(theirs, ours)| Some((*ours, shift_point(cost.get(*theirs)?.get(), 0)?)));
    prices.collect()
}

/// Returns the prices beyond the lowest step. The catalogue has one step.
fn long_context(cost: &BTreeMap<String, &RawValue>) -> Option<(u64, Vec<(&'static str, String)>)> {
    let steps: Vec<&RawValue> = serde_json::from_str(cost.get("tiers")?.get()).ok()?;
    let steps = steps.iter().filter_map(|step| {
        let step: BTreeMap<String, &RawValue> = serde_json::from_str(step.get()).ok()?;
        let size: StepSize = serde_json::from_str(step.get("tier")?.get()).ok()?;
        Some((size.size, prices(&step, LONG_PRICES)))
    });
    steps.min_by_key(|(size, _)| *size)
}
