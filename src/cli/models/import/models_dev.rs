//! The `api.json` of models.dev: providers with models; prices are USD per million tokens, as numbers.

use std::collections::BTreeMap;

use filters::models::routing::Date;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::decimal::{parse_count, shift_point};
use super::{ImportRow, Imported, Summary, list, steps_toml, to_toml};

#[derive(Deserialize)]
struct ListedProvider<'a> {
    #[serde(borrow, default)]
    models: BTreeMap<String, BTreeMap<String, &'a RawValue>>,
}

/// The prompt tokens above which other prices hold.
#[derive(Deserialize)]
struct StepSize {
    #[serde(rename = "type", default)]
    kind: Option<String>,
    size: u64,
}

/// A way of controlling a model's reasoning.
#[derive(Deserialize)]
struct ReasoningOption {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    values: Vec<Option<String>>,
    #[serde(default)]
    min: Option<u64>,
    #[serde(default)]
    max: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Modalities {
    input: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Served {
    shape: Option<String>,
}

/// The names of prices in the table, and ours.
const PRICES: [(&str, &str); 7] = [
    ("input", "input_price"),
    ("output", "output_price"),
    ("reasoning", "output_reasoning_price"),
    ("cache_read", "cached_input_price"),
    ("cache_write", "cache_write_price"),
    ("input_audio", "input_audio_price"),
    ("output_audio", "output_audio_price"),
];

const SIZES: [(&str, &str); 2] = [("context", "context_size"), ("output", "max_output")];

/// The members of a model that are read, or that have no meaning in a catalogue.
const READ: [&str; 11] = [
    "id",
    "name",
    "cost",
    "limit",
    "modalities",
    "reasoning",
    "reasoning_options",
    "tool_call",
    "structured_output",
    "attachment",
    "release_date",
];

/// The members of a price that are read. `context_over_200k` repeats one of the tiers.
const READ_OF_COST: [&str; 2] = ["tiers", "context_over_200k"];

/// Imports the table. Errors: not JSON in that format.
pub(in crate::cli::models) fn from_models_dev(text: &str) -> Result<Imported, String> {
    let table: BTreeMap<String, ListedProvider<'_>> =
        serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut rows = Vec::new();
    let mut summary = Summary::default();
    for (provider, served) in table {
        for (name, model) in served.models {
            rows.push(row(&provider, name, &model, &mut summary));
        }
    }
    Ok(to_toml(rows, summary))
}

type Members<'a> = BTreeMap<String, &'a RawValue>;

fn row(provider: &str, name: String, model: &Members<'_>, summary: &mut Summary) -> ImportRow {
    let mut row = ImportRow {
        id: name.rsplit('/').next().unwrap_or(&name).to_owned(),
        title: read(model, "name"),
        created: read(model, "release_date")
            .filter(|day: &String| day.len() == 10 && Date(day.clone()).unix_s().is_some()),
        provider: provider.to_owned(),
        name,
        ..ImportRow::default()
    };
    let served: Served = read(model, "provider").unwrap_or_default();
    if served.shape.as_deref() == Some("responses") {
        row.add("wire", "\"responses\"");
    }
    let cost: Members<'_> = read_members(model, "cost");
    for member in prices(&cost, summary) {
        row.add(member.0, &member.1);
    }
    let long = long_context(&cost, summary);
    if !long.is_empty() {
        row.add("long_context", &steps_toml(long.into_iter()));
    }
    let limit = read_members(model, "limit");
    for (theirs, ours) in SIZES {
        if let Some(size) = parse_count(limit.get(theirs).copied()) {
            row.add(ours, &size.to_string());
        }
    }
    abilities(model, &mut row);
    let is_read = |key: &str| READ.contains(&key) || key == "provider" && served.shape.is_some();
    for key in model.keys().filter(|key| !is_read(key)) {
        summary.drop_member(key);
    }
    let of_cost =
        |key: &str| READ_OF_COST.contains(&key) || PRICES.iter().any(|(theirs, _)| *theirs == key);
    for key in cost.keys().filter(|key| !of_cost(key)) {
        summary.drop_member(&format!("cost.{key}"));
    }
    row
}

/// Adds the abilities of the model, and the control of its reasoning.
fn abilities(model: &Members<'_>, row: &mut ImportRow) {
    let Some(calls) = read::<bool>(model, "tool_call") else {
        return;
    };
    let inputs = read::<Modalities>(model, "modalities")
        .unwrap_or_default()
        .input;
    let takes = |kind: &str| inputs.iter().any(|input| input == kind);
    let structured = read(model, "structured_output") == Some(true);
    let reasons = read(model, "reasoning") == Some(true);
    let all = [
        ("streaming", true),
        ("cancellation", true),
        ("tools", calls),
        ("parallel_tools", calls),
        ("forced_tools", calls),
        ("vision", takes("image")),
        ("audio", takes("audio")),
        ("documents", takes("pdf")),
        ("json_object", structured),
        ("json_schema", structured),
        ("reasoning", reasons),
    ];
    let can = all.iter().filter(|(_, can)| *can);
    row.add("capabilities", &list(can.map(|(name, _)| *name)));
    let options: Vec<ReasoningOption> = read(model, "reasoning_options").unwrap_or_default();
    for option in options {
        match option.kind.as_str() {
            "effort" => {
                let efforts = option
                    .values
                    .iter()
                    .map(|value| value.as_deref().unwrap_or("none"));
                row.add("thinking", "\"levels\"");
                row.add(
                    "reasoning_efforts",
                    &list(efforts.filter(|word| *word != "default")),
                );
                return;
            }
            "budget_tokens" => {
                row.add("thinking", "\"budget\"");
                for (key, bound) in [("budget_min", option.min), ("budget_max", option.max)] {
                    if let Some(bound) = bound {
                        row.add(key, &bound.to_string());
                    }
                }
                return;
            }
            _ => {}
        }
    }
}

fn prices(cost: &Members<'_>, summary: &mut Summary) -> Vec<(&'static str, String)> {
    let mut prices = Vec::new();
    for (theirs, ours) in PRICES {
        if let Some(price) = cost.get(theirs).and_then(|raw| shift_point(raw.get(), 0)) {
            prices.push((ours, format!("\"{}\"", summary.rounded(price))));
        }
    }
    prices
}

/// Returns the prices above each number of prompt tokens that has its own.
fn long_context(cost: &Members<'_>, summary: &mut Summary) -> Vec<(u64, Vec<String>)> {
    let steps: Vec<Members<'_>> = read(cost, "tiers").unwrap_or_default();
    let mut long: Vec<(u64, Vec<String>)> = Vec::new();
    for step in &steps {
        let size: Option<StepSize> = read(step, "tier");
        let size = size.filter(|size| size.kind.as_deref().is_none_or(|kind| kind == "context"));
        let Some(size) = size.filter(|size| long.iter().all(|(known, _)| *known != size.size))
        else {
            summary.drop_member("cost.tiers of another type");
            continue;
        };
        let prices = prices(step, summary).into_iter();
        let members = prices.map(|(key, price)| format!("{key} = {price}"));
        long.push((size.size, members.collect()));
    }
    long
}

fn read<'a, T: Deserialize<'a>>(members: &Members<'a>, key: &str) -> Option<T> {
    serde_json::from_str(members.get(key)?.get()).ok()
}

fn read_members<'a>(members: &Members<'a>, key: &str) -> Members<'a> {
    read(members, key).unwrap_or_default()
}
