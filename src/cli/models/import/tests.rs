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
    assert_eq!(
        imported
            .summary
            .skipped("of a mode that no operation serves"),
        1
    );
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

/// All that the table may say of one model.
const RICH: &str = r#"{"m": {"litellm_provider": "p", "mode": "responses", "input_cost_per_token": 1.2500000000000001e-06,
    "output_cost_per_token": 1e-05, "output_cost_per_reasoning_token": 3e-05, "cache_creation_input_token_cost": 1.25e-06,
    "input_cost_per_token_above_128k_tokens": 2e-06, "input_cost_per_token_above_256k_tokens": 4e-06,
    "cache_creation_input_token_cost_above_1hr_above_256k_tokens": 9e-06,
    "input_cost_per_token_flex": 6e-07, "output_cost_per_token_flex": 5e-06, "input_cost_per_token_above_256k_tokens_flex": 2e-06,
    "input_cost_per_token_priority": 2.5e-06, "input_cost_per_token_batches": 6e-07, "input_cost_per_request": 0.005,
    "regional_processing_uplift_multiplier_eu": 1.1, "provider_specific_entry": {"us": 1.2, "fast": 2},
    "off_peak_pricing": {"input_cost_per_token": 5e-07, "windows": [{"hours_utc": ["16:30-00:30"], "weekdays": [1, 5]}, {"hours_utc": "00:00-00:00"}]},
    "supports_function_calling": true, "supports_vision": false, "supports_tool_choice": true, "supports_forced_tool_use": false,
    "supports_reasoning": true, "supports_sampling_params": false, "supports_none_reasoning_effort": true,
    "supports_minimal_reasoning_effort": false, "supports_max_reasoning_effort": true, "default_reasoning_effort": "high",
    "reasoning_modes": ["standard", "pro"], "rpm": 5, "max_output_tokens": 64000.0}}"#;

#[test]
fn all_that_litellms_table_says_of_a_model_is_imported_or_told() {
    let imported = from_litellm(RICH).unwrap();
    let mapping = only(&imported);
    assert_eq!(mapping.price_problem(), None);
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(mapping.input_price, some("1.25"));
    assert_eq!(mapping.output_reasoning_price, some("30"));
    assert_eq!(mapping.request_price, some("0.005"));
    assert_eq!(
        mapping.wire,
        Some(filters::models::routing::MappingWire::Responses)
    );
    let steps: Vec<_> = mapping
        .long_context
        .iter()
        .map(|step| (step.above_tokens, step.input_price.clone()))
        .collect();
    assert_eq!(steps, [(128_000, some("2")), (256_000, some("4"))]);
    assert_eq!(
        mapping.long_context.last().unwrap().cache_write_1h_price,
        some("9")
    );
    assert_eq!(mapping.service_tiers, ["flex", "priority"]);
    let flex = mapping.tier_prices.flex.as_ref().unwrap();
    assert_eq!(
        (&flex.input_price, &flex.output_price),
        (&some("0.6"), &some("5"))
    );
    assert_eq!(
        flex.long_context
            .as_ref()
            .unwrap()
            .first()
            .unwrap()
            .input_price,
        some("2")
    );
    assert_eq!(
        mapping.tier_prices.priority.as_ref().unwrap().input_price,
        some("2.5")
    );
    assert_eq!(mapping.regions, ["eu", "us"]);
    let factors: Vec<_> = mapping
        .region_prices
        .values()
        .map(|region| region.multiplier.clone())
        .collect();
    assert_eq!(factors, [some("1.1"), some("1.2")]);
    let off_peak = mapping.off_peak.as_ref().unwrap();
    assert_eq!(off_peak.input_price, some("0.5"));
    let windows: Vec<_> = off_peak
        .windows
        .iter()
        .map(|window| (window.hours_utc.join(" "), window.weekdays.clone()))
        .collect();
    assert_eq!(
        windows,
        [
            ("16:30-00:30".to_owned(), vec![1, 5]),
            ("00:00-00:00".to_owned(), vec![])
        ]
    );
    let efforts: Vec<&str> = mapping
        .reasoning_efforts
        .iter()
        .map(|effort| effort.as_str())
        .collect();
    assert_eq!(efforts, ["none", "low", "medium", "high", "max"]);
    assert!(mapping.reasons_by_default && mapping.reasoning_modes == ["standard", "pro"]);
    assert_eq!(
        (mapping.max_output, mapping.capabilities.unwrap().len()),
        (Some(64_000), 4)
    );
    let told = imported.summary.lines().join("\n");
    for name in ["input_cost_per_token_batches", "rpm"] {
        assert!(told.contains(name), "{told}");
    }
    assert!(
        !told.contains("flex") && !told.contains("supports_"),
        "{told}"
    );
}

#[test]
fn ranges_of_prompts_and_embeddings_are_imported_and_prices_are_rounded() {
    let table = r#"{"a": {"litellm_provider": "p", "mode": "chat", "tiered_pricing": [{"range": [0, 32000.0], "input_cost_per_token": 1e-06, "output_cost_per_token": 2e-06},
            {"range": [32000.0, 128000.0], "input_cost_per_token": 3e-06}]},
        "b": {"litellm_provider": "p", "mode": "embedding", "input_cost_per_token": 1.142857142857142857e-06},
        "c": {"litellm_provider": "p", "mode": "chat", "off_peak_pricing": {"hours_utc": "1:00-2:00", "weekday_timezone": "x"}}}"#;
    let imported = from_litellm(table).unwrap();
    let all = mappings(&imported);
    let [a, b, c] = all.as_slice() else {
        panic!("{all:?}")
    };
    assert_eq!(
        (a.input_price.as_deref(), a.output_price.as_deref()),
        (Some("1"), Some("2"))
    );
    let step = a.long_context.first().unwrap();
    assert_eq!(
        (step.above_tokens, step.input_price.as_deref()),
        (32_000, Some("3"))
    );
    assert_eq!(b.input_price.as_deref(), Some("1.142857142857"));
    assert!(imported.toml.contains("type = \"embedding\"") && c.off_peak.is_none());
    let told = imported.summary.lines().join("\n");
    assert!(
        told.contains("1 prices rounded") && told.contains("time zone"),
        "{told}"
    );
}

#[test]
fn what_models_dev_says_of_reasoning_and_modalities_is_imported() {
    let table = r#"{"p": {"models": {"m": {"name": "M", "release_date": "2026-03-05", "tool_call": true, "reasoning": true, "structured_output": true,
        "modalities": {"input": ["text", "image", "pdf"]}, "reasoning_options": [{"type": "effort", "values": [null, "low", "high"]}],
        "cost": {"input": 1, "output": 2, "reasoning": 3, "tiers": [{"tier": {"type": "context", "size": 32000}, "input": 2}, {"tier": {"type": "context", "size": 64000}, "input": 4}, {"tier": {"type": "other", "size": 1}}]},
        "provider": {"shape": "responses"}, "status": "beta"}}}}"#;
    let imported = from_models_dev(table).unwrap();
    let mapping = only(&imported);
    assert_eq!(mapping.output_reasoning_price.as_deref(), Some("3"));
    let steps: Vec<u64> = mapping
        .long_context
        .iter()
        .map(|step| step.above_tokens)
        .collect();
    assert_eq!(steps, [32_000, 64_000]);
    let efforts: Vec<&str> = mapping
        .reasoning_efforts
        .iter()
        .map(|effort| effort.as_str())
        .collect();
    assert_eq!(efforts, ["none", "low", "high"]);
    assert_eq!(mapping.capabilities.unwrap().len(), 10);
    assert!(imported.toml.contains("created = 2026-03-05") && mapping.wire.is_some());
    let told = imported.summary.lines().join("\n");
    assert!(
        told.contains("status") && told.contains("tiers of another type"),
        "{told}"
    );
}

#[test]
fn prices_of_units_are_imported_for_models_that_are_not_for_chat() {
    let units = r#""ocr_cost_per_page": 0.004, "annotation_cost_per_page": 0.005, "input_cost_per_second": 0.0001, "output_cost_per_second": 0.1,
        "input_cost_per_character": 1.5e-05, "input_cost_per_query": 0.002"#;
    let table =
        |mode| format!(r#"{{"m": {{"litellm_provider": "p", "mode": "{mode}", {units}}}}}"#);
    let prices = |mapping: &WrittenMapping| {
        [
            mapping.page_price.clone(),
            mapping.input_second_price.clone(),
            mapping.output_second_price.clone(),
            mapping.character_price.clone(),
            mapping.search_price.clone(),
            mapping.annotated_page_price.clone(),
        ]
    };
    let imported = from_litellm(&table("embedding")).unwrap();
    let expected = ["0.004", "0.0001", "0.1", "15", "0.002", "0.005"];
    let expected = expected.map(|price| Some(price.to_owned()));
    assert_eq!(prices(&only(&imported)), expected);
    let chat = from_litellm(&table("chat")).unwrap();
    assert_eq!(prices(&only(&chat)), [const { None }; 6]);
}
