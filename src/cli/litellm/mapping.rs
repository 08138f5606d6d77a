//! What a deployment costs and can do: from the shipped catalogue, where it knows the model, and from the input, which counts
//! first.

use std::collections::BTreeMap;

use filters::models::routing::{CatalogFile, WrittenParameters};
use serde_json::value::RawValue;
use toml::{Table, Value};

use super::fields::{Field, Fields};
use super::places::DeploymentPlace;
use super::providers::ModelName;
use super::references::Reading;
use crate::cli::models::{CAPABILITIES, read_entry_prices};
use crate::cli::shipped;

/// The modes of models: the type that stands for each, and the API that it asks for. An empty type is that of chats.
const MODES: &[(&str, &str, &str)] = &[
    ("chat", "", ""),
    ("completion", "", "completions"),
    ("responses", "", "responses"),
    ("embedding", "embedding", ""),
    ("image_generation", "image", ""),
    ("image_edit", "image", ""),
    ("audio_transcription", "transcription", ""),
    ("audio_speech", "speech", ""),
    ("rerank", "rerank", ""),
    ("moderation", "moderation", ""),
    ("ocr", "ocr", ""),
    ("search", "search", ""),
    ("video_generation", "video", ""),
];

/// Parts of names that tell the type of a model where nothing else does.
const NAME_PARTS: &[(&str, &str)] = &[
    ("embed", "embedding"),
    ("rerank", "rerank"),
    ("moderation", "moderation"),
    ("whisper", "transcription"),
    ("transcribe", "transcription"),
    ("tts", "speech"),
    ("dall-e", "image"),
    ("gpt-image", "image"),
    ("imagen", "image"),
];

/// What a chat can do where nothing is known of it and the input says that it cannot do something.
const USUAL: [&str; 8] = [
    "streaming",
    "tools",
    "parallel_tools",
    "forced_tools",
    "vision",
    "json_object",
    "json_schema",
    "reasoning",
];

/// The sizes of the input, and ours.
const SIZES: [(&str, &str); 3] = [
    ("max_input_tokens", "context_size"),
    ("max_output_tokens", "max_output"),
    ("max_tokens", "max_output"),
];

/// What a mapping is read from.
pub(super) struct MappingInput<'m, 'n> {
    pub model: &'m ModelName,
    pub place: &'m DeploymentPlace,
    pub params: &'m mut Fields<'n>,
    pub info: &'m mut Fields<'n>,
}

/// Reads the type of a model, and the members of its mapping but `provider`, `name` and `regions`; `region_prices` are those of all
/// regions. Returns `None`, with a
/// finding, for a model that nothing here serves.
pub(super) fn read(
    input: &mut MappingInput<'_, '_>,
    reading: &mut Reading<'_>,
) -> Option<(Option<String>, Table)> {
    let known = find_known(input, reading);
    let mode = read_mode(input, reading)?;
    let (shipped_type, mut mapping) = known.unwrap_or_default();
    let model_type = match mode {
        Some((model_type, _)) => model_type.to_owned(),
        None => shipped_type.unwrap_or_else(|| guess_type(&input.model.name)),
    };
    let asked = mode.map(|(_, wire)| wire).filter(|wire| !wire.is_empty());
    if let Some(wire) = input.model.wire.or(asked) {
        mapping.insert("wire".to_owned(), Value::from(wire));
    }
    read_prices(input, &mut mapping, model_type.is_empty(), reading);
    for (theirs, ours) in SIZES {
        if let Some((_, size)) = input.info.take_count(theirs, &mut reading.findings)
            && !(theirs == "max_tokens" && mapping.contains_key(ours))
        {
            mapping.insert(
                ours.to_owned(),
                Value::from(i64::try_from(size).unwrap_or(i64::MAX)),
            );
        }
    }
    read_flags(input, &mut mapping, model_type.is_empty(), reading);
    read_dropped(input, &mut mapping, reading);
    let model_type = Some(model_type).filter(|model_type| !model_type.is_empty());
    Some((model_type, mapping))
}

/// Returns the type and the mapping that the shipped catalogue has of a model, under its own name or the name that `base_model`
/// says. A server elsewhere has prices of its own.
fn find_known(
    input: &mut MappingInput<'_, '_>,
    reading: &mut Reading<'_>,
) -> Option<(Option<String>, Table)> {
    let base = input.info.take_text("base_model", &mut reading.findings);
    let usual = input.model.row.settings(false);
    let is_usual = usual.get("kind") == input.place.settings.get("kind");
    let provider = input.model.row.shipped().filter(|_| is_usual);
    let find = |name: &str| find_shipped(provider?, name);
    let behind = |base: &str| {
        let behind = base.split_once('/').map(|(_, behind)| behind.to_owned());
        behind.unwrap_or_else(|| base.to_owned())
    };
    let found = find(&input.model.name);
    let found = found.or_else(|| find(&behind(&base.as_ref()?.1)));
    if let (Some((field, _)), None) = (&base, &found) {
        let what = "the shipped catalogue does not have this model of this provider, so it tells no prices";
        let cure = "add prices to the mapping in models.toml";
        reading.findings.differs(field, what, cure);
    }
    let (model_type, mut mapping) = found?;
    // Which regions there are, the places of the deployments say.
    for key in ["provider", "name", "regions"] {
        mapping.remove(key);
    }
    Some((model_type, mapping))
}

fn find_shipped(provider: &str, name: &str) -> Option<(Option<String>, Table)> {
    let text = |table: &Table, key: &str| table.get(key).and_then(Value::as_str).map(str::to_owned);
    shipped::MODELS.iter().find_map(|model| {
        let mut mappings = shipped::tables(model, "providers");
        let is_it = |mapping: &&Table| {
            text(mapping, "provider").as_deref() == Some(provider)
                && text(mapping, "name").as_deref() == Some(name)
        };
        let mapping = mappings.find(is_it)?;
        let model_type = text(model, "type").filter(|it| it != "chat");
        Some((Some(model_type.unwrap_or_default()), mapping.clone()))
    })
}

/// Returns the type and the API that `mode` asks for. The outer `None`: nothing here serves it.
fn read_mode(
    input: &mut MappingInput<'_, '_>,
    reading: &mut Reading<'_>,
) -> Option<Option<(&'static str, &'static str)>> {
    let Some((field, mode)) = input.info.take_text("mode", &mut reading.findings) else {
        return Some(None);
    };
    let known = MODES.iter().find(|(known, _, _)| *known == mode);
    if known.is_none() {
        let what = "no endpoint here serves this mode, so the entry is left out";
        let cure = "docs/interface.md lists what is served (`operations`)";
        reading.findings.left_out(&field, what, cure);
    }
    known.map(|(_, model_type, wire)| Some((*model_type, *wire)))
}

fn guess_type(name: &str) -> String {
    let found = NAME_PARTS.iter().find(|(part, _)| name.contains(part));
    found.map_or_else(String::new, |(_, model_type)| (*model_type).to_owned())
}

/// Reads prices. Those of the input take the place of all that the shipped catalogue has.
fn read_prices(
    input: &mut MappingInput<'_, '_>,
    mapping: &mut Table,
    is_chat: bool,
    reading: &mut Reading<'_>,
) {
    let is_price = |name: &str| {
        name.contains("cost_per_")
            || name.ends_with("_cost")
            || name.contains("pricing")
            || name.contains("_token_cost")
    };
    let mut fields: BTreeMap<String, Field<'_>> = BTreeMap::new();
    // Those of litellm_params count first.
    for field in input
        .info
        .take_all(is_price)
        .into_iter()
        .chain(input.params.take_all(is_price))
    {
        let name = field.path.rsplit('.').next().unwrap_or_default().to_owned();
        fields.insert(name, field);
    }
    if fields.is_empty() {
        return;
    }
    let raw = fields.iter().filter_map(|(name, field)| {
        let json = match field.to_number() {
            Some(number) => number,
            None => field.to_json(),
        };
        Some((name.clone(), RawValue::from_string(json).ok()?))
    });
    let raw: BTreeMap<String, Box<RawValue>> = raw.collect();
    let entry = raw.iter().map(|(name, raw)| (name.clone(), &**raw));
    let (members, understood) = read_entry_prices(&entry.collect(), is_chat);
    let mut priced = mapping.clone();
    priced.retain(|key, _| !is_price_key(key));
    for (key, value) in members {
        let parsed: Option<Table> = toml::from_str(&format!("{key} = {value}")).ok();
        priced.extend(parsed.into_iter().flatten());
    }
    let is_accepted = is_accepted(&priced);
    if is_accepted {
        *mapping = priced;
    }
    for (name, field) in &fields {
        let is_known = understood.contains(name);
        if is_known && is_accepted && (field.to_number().is_some() || field.to_fields().is_some()) {
            continue;
        }
        let what = match is_known {
            true => "is no price that can be billed",
            false => "the catalogue has no price of this unit",
        };
        let cure = "docs/interface.md lists the prices of models.toml";
        reading.findings.left_out(field, what, cure);
    }
}

fn is_price_key(key: &str) -> bool {
    let others = [
        "long_context",
        "tier_prices",
        "service_tiers",
        "off_peak",
        "discount",
        "priced_at",
        "source",
        "web_search_unit",
        "region_prices",
    ];
    key.ends_with("_price") || others.contains(&key)
}

/// Returns whether the catalogue takes the members of a mapping.
fn is_accepted(mapping: &Table) -> bool {
    let mut mapping = mapping.clone();
    for key in ["provider", "name"] {
        mapping.insert(key.to_owned(), Value::from("x"));
    }
    let model = Table::from_iter([
        ("id".to_owned(), Value::from("x")),
        (
            "providers".to_owned(),
            Value::Array(vec![Value::Table(mapping)]),
        ),
    ]);
    let file = Table::from_iter([("models".to_owned(), Value::Array(vec![Value::Table(model)]))]);
    let read: Option<CatalogFile> = file.try_into().ok();
    let models = read.into_iter().flat_map(|file| file.models);
    let mut mappings = models.flat_map(|model| model.providers);
    mappings
        .next()
        .is_some_and(|mapping| mapping.price_problem().is_none())
}

/// Reads what the model can do, where the input says it.
fn read_flags(
    input: &mut MappingInput<'_, '_>,
    mapping: &mut Table,
    is_chat: bool,
    reading: &mut Reading<'_>,
) {
    let listed = mapping.get("capabilities").and_then(Value::as_array);
    let listed: Option<Vec<String>> = listed.map(|list| {
        let words = list.iter().filter_map(Value::as_str);
        words.map(str::to_owned).collect()
    });
    let usual = || USUAL.iter().map(|word| (*word).to_owned()).collect();
    let mut can: Vec<String> = listed.clone().unwrap_or_else(usual);
    // Without a list a mapping can do all that its kind can do, but search.
    let mut is_told = false;
    for (flag, words) in CAPABILITIES {
        let Some((_, value)) = input.info.take_bool(flag, &mut reading.findings) else {
            continue;
        };
        for word in words {
            let is_listed = can.iter().any(|known| known == word);
            is_told |= !value || *word == "web_search";
            match (value, is_listed) {
                (true, false) => can.push((*word).to_owned()),
                (false, true) => can.retain(|known| known != word),
                _ => {}
            }
        }
    }
    let is_changed = listed.as_ref().map_or(is_told, |listed| *listed != can);
    if is_chat && is_changed {
        let words = can.into_iter().map(Value::from).collect();
        mapping.insert("capabilities".to_owned(), Value::Array(words));
    }
}

/// Reads the parameters that are left out of requests.
fn read_dropped(input: &mut MappingInput<'_, '_>, mapping: &mut Table, reading: &mut Reading<'_>) {
    let Some(field) = input.params.take("additional_drop_params") else {
        return;
    };
    let given = mapping.get("parameters").cloned();
    let given = given.and_then(|table| table.try_into::<Table>().ok());
    let mut parameters = given.unwrap_or_default();
    for item in field.items() {
        let name = item.to_text().unwrap_or_default();
        let mut wider = parameters.clone();
        let dropped = wider
            .entry("drop")
            .or_insert_with(|| Value::Array(Vec::new()));
        if let Some(list) = dropped.as_array_mut()
            && !list.iter().any(|known| known.as_str() == Some(&name))
        {
            list.push(Value::from(name));
        }
        let written: Option<WrittenParameters> = wider.clone().try_into().ok();
        if written.is_some_and(|written| written.problems().is_empty()) {
            parameters = wider;
            continue;
        }
        let what = "is no parameter that can be left out here";
        let cure = "docs/chat-fields.md shows what becomes of each parameter; refuse it in models.toml where it does harm";
        reading.findings.left_out(&item, what, cure);
    }
    if !parameters.is_empty() {
        mapping.insert("parameters".to_owned(), Value::Table(parameters));
    }
}
