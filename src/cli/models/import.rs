//! Converts foreign price tables to a catalogue. Prices are read as decimal text and never become a float.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

/// The result of an import.
#[derive(Debug)]
pub(super) struct Imported {
    /// The catalogue.
    pub(super) toml: String,
    /// The number of skipped entries by reason.
    pub(super) skipped: BTreeMap<&'static str, usize>,
}

/// An entry of LiteLLM's table: prices in USD per token, as numbers.
#[derive(Deserialize)]
struct Litellm<'a> {
    #[serde(default)]
    litellm_provider: Option<String>,
    #[serde(default)]
    mode: Option<String>,
    #[serde(borrow, default)]
    input_cost_per_token: Option<&'a RawValue>,
    #[serde(borrow, default)]
    output_cost_per_token: Option<&'a RawValue>,
    #[serde(borrow, default)]
    cache_read_input_token_cost: Option<&'a RawValue>,
    #[serde(borrow, default)]
    cache_creation_input_token_cost: Option<&'a RawValue>,
    #[serde(borrow, default)]
    max_input_tokens: Option<&'a RawValue>,
    #[serde(borrow, default)]
    max_output_tokens: Option<&'a RawValue>,
}

/// A provider of models.dev: prices in USD per million tokens.
#[derive(Deserialize)]
struct ImportProvider<'a> {
    #[serde(borrow, default)]
    models: BTreeMap<String, ImportModel<'a>>,
}

#[derive(Deserialize)]
struct ImportModel<'a> {
    #[serde(default)]
    name: Option<String>,
    #[serde(borrow, default)]
    cost: Option<Cost<'a>>,
    #[serde(borrow, default)]
    limit: Option<Limit<'a>>,
}

#[derive(Deserialize)]
struct Cost<'a> {
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
    #[serde(borrow, default)]
    output: Option<&'a RawValue>,
    #[serde(borrow, default)]
    cache_read: Option<&'a RawValue>,
    #[serde(borrow, default)]
    cache_write: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Limit<'a> {
    #[serde(borrow, default)]
    context: Option<&'a RawValue>,
    #[serde(borrow, default)]
    output: Option<&'a RawValue>,
}

/// A row of the new catalogue; prices per million tokens.
#[derive(Default)]
struct ImportRow {
    id: String,
    title: Option<String>,
    provider: String,
    name: String,
    prices: [Option<String>; 4],
    sizes: [Option<u64>; 2],
}

const PRICE_KEYS: [&str; 4] = [
    "input_price",
    "output_price",
    "cached_input_price",
    "cache_write_price",
];
const SIZE_KEYS: [&str; 2] = ["context_size", "max_output"];

/// Imports LiteLLM's table. Errors: not JSON.
pub(super) fn from_litellm(text: &str) -> Result<Imported, String> {
    let table: BTreeMap<String, &RawValue> =
        serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut rows = Vec::new();
    let mut skipped = BTreeMap::new();
    for (key, raw) in table.iter().filter(|(key, _)| *key != "sample_spec") {
        let Ok(entry) = serde_json::from_str::<Litellm<'_>>(raw.get()) else {
            *skipped.entry("not of the table's shape").or_default() += 1;
            continue;
        };
        let Some(provider) = entry
            .litellm_provider
            .filter(|_| entry.mode.as_deref() == Some("chat"))
        else {
            *skipped.entry("not for chat").or_default() += 1;
            continue;
        };
        let name = key
            .strip_prefix(&format!("{provider}/"))
            .unwrap_or(key)
            .to_owned();
        let id = name.rsplit('/').next().unwrap_or(&name).to_owned();
        let per_million = |raw: Option<&RawValue>| raw.and_then(|raw| shift_point(raw.get(), 6));
        let prices = [
            per_million(entry.input_cost_per_token),
            per_million(entry.output_cost_per_token),
            per_million(entry.cache_read_input_token_cost),
            per_million(entry.cache_creation_input_token_cost),
        ];
        let sizes = [
            parse_count(entry.max_input_tokens),
            parse_count(entry.max_output_tokens),
        ];
        rows.push(ImportRow {
            id,
            title: None,
            provider,
            name,
            prices,
            sizes,
        });
    }
    Ok(Imported {
        toml: to_toml(rows, &mut skipped),
        skipped,
    })
}

/// Imports the `api.json` of models.dev. Errors: not JSON in that format.
pub(super) fn from_models_dev(text: &str) -> Result<Imported, String> {
    let table: BTreeMap<String, ImportProvider<'_>> =
        serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut rows = Vec::new();
    for (provider, served) in table {
        for (name, model) in served.models {
            let cost = model.cost.as_ref();
            let price = |raw: Option<&RawValue>| raw.and_then(|raw| shift_point(raw.get(), 0));
            let prices = [
                price(cost.and_then(|cost| cost.input)),
                price(cost.and_then(|cost| cost.output)),
                price(cost.and_then(|cost| cost.cache_read)),
                price(cost.and_then(|cost| cost.cache_write)),
            ];
            let limit = model.limit.as_ref();
            let sizes = [
                parse_count(limit.and_then(|limit| limit.context)),
                parse_count(limit.and_then(|limit| limit.output)),
            ];
            let id = name.rsplit('/').next().unwrap_or(&name).to_owned();
            rows.push(ImportRow {
                id,
                title: model.name,
                provider: provider.clone(),
                name,
                prices,
                sizes,
            });
        }
    }
    let mut skipped = BTreeMap::new();
    Ok(Imported {
        toml: to_toml(rows, &mut skipped),
        skipped,
    })
}

/// Formats rows as TOML, one model per id with all its providers.
fn to_toml(rows: Vec<ImportRow>, skipped: &mut BTreeMap<&'static str, usize>) -> String {
    let mut models: BTreeMap<String, Vec<ImportRow>> = BTreeMap::new();
    for row in rows {
        if row
            .prices
            .iter()
            .flatten()
            .any(|price| filters::money::Price::per_million(price).is_err())
        {
            *skipped
                .entry("a price with more digits than can be billed")
                .or_default() += 1;
            continue;
        }
        let served = models.entry(row.id.clone()).or_default();
        if served.iter().any(|known| known.provider == row.provider) {
            *skipped
                .entry("a second name of the same model at the same provider")
                .or_default() += 1;
        } else {
            served.push(row);
        }
    }
    let mut out = String::new();
    for (id, served) in models {
        out.push_str(&format!("[[models]]\nid = {}\n", quote(&id)));
        if let Some(title) = served.first().and_then(|row| row.title.as_deref()) {
            out.push_str(&format!("name = {}\n", quote(title)));
        }
        for row in served {
            out.push_str(&mapping_toml(&row));
        }
        out.push('\n');
    }
    out
}

fn mapping_toml(row: &ImportRow) -> String {
    let mut out = format!(
        "[[models.providers]]\nprovider = {}\nname = {}\n",
        quote(&row.provider),
        quote(&row.name),
    );
    for (key, price) in PRICE_KEYS.iter().zip(&row.prices) {
        if let Some(price) = price {
            out.push_str(&format!("{key} = \"{price}\"\n"));
        }
    }
    for (key, size) in SIZE_KEYS.iter().zip(&row.sizes) {
        if let Some(size) = size {
            out.push_str(&format!("{key} = {size}\n"));
        }
    }
    out
}

/// Formats a TOML string.
fn quote(text: &str) -> String {
    // A JSON string is a TOML basic string except for an escaped slash, which serde_json never writes.
    serde_json::Value::from(text).to_string()
}

/// Formats a JSON number as a plain decimal with its point moved `places` to the right. Returns `None` for anything
/// else.
fn shift_point(number: &str, places: i64) -> Option<String> {
    let (mantissa, exponent) = match number.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
        None => (number, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let point = i64::try_from(whole.len()).ok()? + exponent + places;
    if !(-64..=64).contains(&point) {
        return None;
    }
    let zeros = |count: i64| "0".repeat(usize::try_from(count).unwrap_or(0));
    let padded = format!("{}{digits}", zeros(-point));
    let point = usize::try_from(point.max(0)).ok()?;
    let padded = format!("{padded}{}", zeros(point as i64 - padded.len() as i64));
    let (whole, fraction) = padded.split_at(point);
    let (whole, fraction) = (
        whole.trim_start_matches('0'),
        fraction.trim_end_matches('0'),
    );
    let whole = if whole.is_empty() { "0" } else { whole };
    Some(if fraction.is_empty() {
        whole.to_owned()
    } else {
        format!("{whole}.{fraction}")
    })
}

/// Parses a count, also if the table has it as a string or with a fraction.
fn parse_count(raw: Option<&RawValue>) -> Option<u64> {
    let text = raw?.get().trim_matches('"');
    text.split_once('.')
        .map_or(text, |(whole, _)| whole)
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn the_point_moves_without_a_float() {
        for (number, places, expected) in [
            ("2.5e-06", 6, "2.5"),
            ("5.46875e-07", 6, "0.546875"),
            ("0.000003", 6, "3"),
            ("1e-5", 6, "10"),
            ("0", 6, "0"),
            ("0.0", 6, "0"),
            ("15", 0, "15"),
            ("0.25", 0, "0.25"),
            ("1.0E+1", 0, "10"),
        ] {
            assert_eq!(
                shift_point(number, places).as_deref(),
                Some(expected),
                "{number}"
            );
        }
        assert_eq!(
            (
                shift_point("-1", 0),
                shift_point("\"1\"", 0),
                shift_point("1e999", 0)
            ),
            (None, None, None)
        );
    }

    #[test]
    fn litellms_table_becomes_a_catalogue_that_is_read_again() {
        let table = r#"{"sample_spec": {"mode": "chat"}, "gpt-x": {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 2.5e-06, "output_cost_per_token": 1e-05, "max_input_tokens": 1000},
            "groq/a/gpt-x": {"litellm_provider": "groq", "mode": "chat", "input_cost_per_token": 1e-07}, "img": {"litellm_provider": "openai", "mode": "image_generation"}}"#;
        let imported = from_litellm(table).unwrap();
        let written: filters::models::routing::CatalogFile =
            toml::from_str(&imported.toml).unwrap();
        let providers: Vec<&str> = written
            .models
            .iter()
            .flat_map(|m| &m.providers)
            .map(|p| p.provider.as_str())
            .collect();
        assert_eq!((written.models.len(), providers.len()), (1, 2));
        let mut mappings = written.models.iter().flat_map(|model| &model.providers);
        let first = mappings
            .find(|mapping| mapping.provider == "openai")
            .unwrap();
        assert_eq!(
            (
                first.input_price.as_deref(),
                first.output_price.as_deref(),
                first.context_size
            ),
            (Some("2.5"), Some("10"), Some(1000))
        );
        assert_eq!(imported.skipped.get("not for chat"), Some(&1));
    }

    #[test]
    fn models_devs_table_becomes_a_catalogue_too() {
        let table = r#"{"openai": {"id": "openai", "models": {"gpt-x": {"id": "gpt-x", "name": "GPT X", "cost": {"input": 2.5, "output": 10, "cache_read": 0.25}, "limit": {"context": 400000, "output": 128000}}}}}"#;
        let written: filters::models::routing::CatalogFile =
            toml::from_str(&from_models_dev(table).unwrap().toml).unwrap();
        let model = written.models.first().unwrap();
        let mapping = model.providers.first().unwrap();
        assert_eq!(
            (
                model.name.as_deref(),
                mapping.cached_input_price.as_deref(),
                mapping.max_output
            ),
            (Some("GPT X"), Some("0.25"), Some(128_000))
        );
    }
}
