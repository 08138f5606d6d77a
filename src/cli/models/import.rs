//! Converts foreign price tables to a catalogue. Prices are read as decimal text and never become a float.

mod decimal;
mod litellm;
mod models_dev;

use std::collections::BTreeMap;

pub(super) use litellm::from_litellm;
pub(super) use models_dev::from_models_dev;

/// The result of an import.
#[derive(Debug)]
pub(super) struct Imported {
    /// The catalogue.
    pub(super) toml: String,
    /// The number of skipped entries by reason.
    pub(super) skipped: BTreeMap<&'static str, usize>,
}

/// A mapping of the new catalogue.
#[derive(Default)]
struct ImportRow {
    id: String,
    title: Option<String>,
    provider: String,
    name: String,
    /// Decimal texts, each with its key.
    prices: Vec<(&'static str, String)>,
    /// The prices of long prompts, and the tokens beyond which they hold.
    long_context: Option<(u64, Vec<(&'static str, String)>)>,
    /// Members that need no quotes, each with its key.
    members: Vec<(&'static str, String)>,
}

impl ImportRow {
    fn has_bad_price(&self) -> bool {
        let long = self.long_context.iter().flat_map(|(_, prices)| prices);
        let mut prices = self.prices.iter().chain(long);
        prices.any(|(_, price)| filters::money::Price::per_million(price).is_err())
    }
}

/// Formats rows as TOML, one model per id with all its providers.
fn to_toml(rows: Vec<ImportRow>, mut skipped: BTreeMap<&'static str, usize>) -> Imported {
    let mut models: BTreeMap<String, Vec<ImportRow>> = BTreeMap::new();
    for row in rows {
        if row.has_bad_price() {
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
    let mut toml = String::new();
    for (id, served) in models {
        toml.push_str(&format!("[[models]]\nid = {}\n", quote(&id)));
        if let Some(title) = served.first().and_then(|row| row.title.as_deref()) {
            toml.push_str(&format!("name = {}\n", quote(title)));
        }
        for row in served {
            toml.push_str(&mapping_toml(&row));
        }
        toml.push('\n');
    }
    Imported { toml, skipped }
}

fn mapping_toml(row: &ImportRow) -> String {
    let mut out = format!(
        "[[models.providers]]\nprovider = {}\nname = {}\n",
        quote(&row.provider),
        quote(&row.name),
    );
    for (key, price) in &row.prices {
        out.push_str(&format!("{key} = \"{price}\"\n"));
    }
    if let Some((above, prices)) = &row.long_context {
        let prices = prices.iter();
        let prices: String = prices
            .map(|(key, price)| format!(", {key} = \"{price}\""))
            .collect();
        out.push_str(&format!(
            "long_context = [{{ above_tokens = {above}{prices} }}]\n"
        ));
    }
    for (key, value) in &row.members {
        out.push_str(&format!("{key} = {value}\n"));
    }
    out
}

/// Formats a TOML string.
fn quote(text: &str) -> String {
    // A JSON string is a TOML basic string except for an escaped slash, which serde_json never writes.
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use filters::models::routing::{CatalogFile, WrittenMapping};

    use super::*;

    fn mappings(imported: &Imported) -> Vec<WrittenMapping> {
        let written: CatalogFile = toml::from_str(&imported.toml).unwrap();
        let models = written.models.into_iter();
        models.flat_map(|model| model.providers).collect()
    }

    fn only(imported: &Imported) -> WrittenMapping {
        let [mapping] = mappings(imported).try_into().unwrap();
        mapping
    }

    #[test]
    fn litellms_table_becomes_a_catalogue_that_is_read_again() {
        let table = r#"{"sample_spec": {"mode": "chat"}, "gpt-x": {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 2.5e-06, "output_cost_per_token": 1e-05, "max_input_tokens": 1000},
            "groq/a/gpt-x": {"litellm_provider": "groq", "mode": "chat", "input_cost_per_token": 1e-07}, "img": {"litellm_provider": "openai", "mode": "image_generation"}}"#;
        let imported = from_litellm(table).unwrap();
        let written: CatalogFile = toml::from_str(&imported.toml).unwrap();
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
        let written: CatalogFile = toml::from_str(&from_models_dev(table).unwrap().toml).unwrap();
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

    #[test]
    fn prices_of_audio_images_searches_and_long_prompts_are_imported() {
        let table = r#"{"m": {"litellm_provider": "google", "mode": "chat", "input_cost_per_token": 1.25e-06,
            "output_cost_per_token": 1e-05, "input_cost_per_audio_token": 1e-06, "output_cost_per_audio_token": 2e-05,
            "input_cost_per_image_token": 3e-06, "output_cost_per_image_token": 3e-05,
            "cache_creation_input_token_cost_above_1hr": 6e-06,
            "search_context_cost_per_query": {"search_context_size_low": 0.01, "search_context_size_high": 0.035},
            "input_cost_per_token_above_200k_tokens": 2.5e-06, "output_cost_per_token_above_200k_tokens": 1.5e-05,
            "cache_read_input_token_cost_above_200k_tokens": 2.5e-07, "input_cost_per_token_above_200k_tokens_priority": 1,
            "input_cost_per_token_above_400k_tokens": 9e-06, "deprecation_date": "2027-03-15"}}"#;
        let mapping = only(&from_litellm(table).unwrap());
        let prices = [
            &mapping.input_audio_price,
            &mapping.output_audio_price,
            &mapping.input_image_price,
            &mapping.output_image_price,
            &mapping.cache_write_1h_price,
            &mapping.web_search_price,
        ];
        let prices = prices.map(|price| price.as_deref().unwrap());
        assert_eq!(prices, ["1", "20", "3", "30", "6", "0.035"]);
        let long = mapping.long_context.into_iter().next().unwrap();
        assert_eq!(long.above_tokens, 200_000);
        let prices = [
            long.input_price,
            long.output_price,
            long.cached_input_price,
            long.cache_write_price,
        ];
        let expected = [Some("2.5"), Some("15"), Some("0.25"), None];
        assert_eq!(prices, expected.map(|price| price.map(str::to_owned)));
        assert_eq!(mapping.deactivated_at.unwrap().0, "2027-03-15");
    }

    #[test]
    fn a_date_that_is_none_is_left_out() {
        for date in ["soon", "2027-13-01", "2027-03-15\\n", ""] {
            let table = format!(
                r#"{{"m": {{"litellm_provider": "google", "mode": "chat", "deprecation_date": "{date}"}}}}"#
            );
            let mapping = only(&from_litellm(&table).unwrap());
            assert_eq!(mapping.deactivated_at, None, "{date}");
        }
    }

    #[test]
    fn the_tiers_of_models_dev_are_imported_too() {
        let table = r#"{"openai": {"models": {"m": {"cost": {"input": 30.0, "output": 180, "input_audio": 0.3,
            "output_audio": 12, "tiers": [{"tier": {"size": 272000}, "input": 60.0, "output": 270.0, "cache_read": 0.5}]}}}}}"#;
        let mapping = only(&from_models_dev(table).unwrap());
        assert_eq!(mapping.input_audio_price.as_deref(), Some("0.3"));
        assert_eq!(mapping.output_audio_price.as_deref(), Some("12"));
        let long = mapping.long_context.into_iter().next().unwrap();
        assert_eq!(long.above_tokens, 272_000);
        let prices = [long.input_price, long.output_price, long.cached_input_price];
        let expected = ["60", "270", "0.5"];
        assert_eq!(prices, expected.map(|price| Some(price.to_owned())));
    }
}
