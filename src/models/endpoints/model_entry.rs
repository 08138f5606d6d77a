//! The entry of a model in the responses of `GET /v1/models` and `GET /v1/models/{id}`.
//! Source: docs/facts/model-gateway.md 1.16, docs/model-gateway.md 2.1, 9.4.

use filters::models::operation::Operation;
use filters::models::parameter::Parameter;
use filters::models::routing::catalog::{Capability, Mapping, Model};
use filters::money::{PriceList, PricePoint, PriceSet};
use serde_json::{Map, Value, json};

use super::pricing::{pricing, short_prices};

/// Returns the entry of a model with these of its mappings. `is_mapped` asks for the entry of the only mapping, with
/// its own name.
pub(super) fn entry(
    model: &Model,
    mappings: &[&Mapping],
    now: PricePoint,
    is_mapped: bool,
) -> Value {
    let id = match mappings.first() {
        Some(one) if is_mapped => format!("{}/{}", one.provider, model.id),
        _ => model.id.to_string(),
    };
    let any = |capability| mappings.iter().any(|mapping| mapping.can(capability));
    let mean = |mapping: &Mapping| {
        short_prices(mapping, now)
            .and_then(PriceSet::mean)
            .unwrap_or(0.0)
    };
    let priced = mappings.iter().filter_map(|mapping| {
        let prices = mapping.prices.as_deref()?;
        Some((mean(mapping), prices))
    });
    let cheapest = priced.min_by(|(a, _), (b, _)| a.total_cmp(b));
    let is_free = |mapping: &&Mapping| short_prices(mapping, now).is_some_and(PriceSet::is_free);
    let mut entry = json!({
        "id": id,
        "object": "model",
        "owned_by": model.family,
        "name": model.name,
        "display_name": model.name,
        "created": model.created.unwrap_or(0),
        "family": model.family,
        "architecture": architecture(model, &any, draws(mappings)),
        "providers": mappings.iter().map(|mapping| provider(mapping)).collect::<Vec<_>>(),
        "pricing": pricing(cheapest.map_or(&PriceList::default(), |(_, prices)| prices)),
        "context_length": mappings.iter().filter_map(|mapping| mapping.context_size).max(),
        "max_output": mappings.iter().filter_map(|mapping| mapping.max_output).min(),
        "supported_parameters": parameters(model, mappings, &any),
        "json_output": any(Capability::JsonObject),
        "structured_outputs": any(Capability::JsonSchema),
        "free": mappings.iter().any(is_free),
        "reasoning_efforts": union(mappings, efforts),
        "reasoning_modes": union(mappings, |mapping| {
            mapping.reasoning_modes.iter().map(|mode| &**mode).collect()
        }),
        "stability": "stable",
    });
    if let Some(entry) = entry.as_object_mut() {
        if !model.aliases.is_empty() {
            entry.insert("aliases".into(), json!(model.aliases));
        }
        if let Some(description) = &model.description {
            entry.insert("description".into(), json!(description));
        }
        if let Some(successor) = &model.successor {
            entry.insert("successor".into(), json!(successor));
        }
        add_dates(entry, mappings);
    }
    entry
}

fn architecture(model: &Model, any: &impl Fn(Capability) -> bool, draws: bool) -> Value {
    let inputs = [
        ("text", true),
        ("image", any(Capability::Vision)),
        ("audio", any(Capability::Audio)),
    ];
    let inputs: Vec<&str> = inputs
        .into_iter()
        .filter_map(|(name, takes)| takes.then_some(name))
        .collect();
    let outputs = model.operations.iter();
    let mut outputs: Vec<&str> = outputs.map(|it| it.row().output_modality).collect();
    outputs.extend(draws.then_some("image"));
    outputs.sort_unstable();
    outputs.dedup();
    json!({
        "input_modalities": inputs,
        "output_modalities": outputs,
        "tokenizer": "GPT",
    })
}

/// Returns whether one of the mappings is listed as drawing images.
fn draws(mappings: &[&Mapping]) -> bool {
    let mut mappings = mappings.iter();
    mappings.any(|mapping| mapping.image_output() == Some(true))
}

type ReadDate = fn(&Mapping) -> Option<&filters::models::routing::Date>;

/// The dates of a mapping's end, by their keys.
const DATES: [(&str, ReadDate); 2] = [
    ("deprecated_at", |mapping| mapping.deprecated_at.as_ref()),
    ("deactivated_at", |mapping| mapping.deactivated_at.as_ref()),
];

/// Adds the dates of deprecation and deactivation. The model only has a date if every provider has one, and then has
/// the latest. Source: model-gateway 9.4.
fn add_dates(entry: &mut Map<String, Value>, mappings: &[&Mapping]) {
    for (key, read_date) in DATES {
        let all: Option<Vec<&str>> = mappings
            .iter()
            .map(|mapping| read_date(mapping).map(|date| date.0.as_str()))
            .collect();
        if let Some(latest) = all.and_then(|all| all.into_iter().max().map(str::to_owned)) {
            entry.insert(key.into(), json!(format!("{latest}T00:00:00Z")));
        }
    }
}

fn provider(mapping: &Mapping) -> Value {
    let mut entry = json!({
        "providerId": mapping.provider,
        "externalId": mapping.name,
        "streaming": mapping.can(Capability::Streaming),
        "vision": mapping.can(Capability::Vision),
        "cancellation": mapping.can(Capability::Cancellation),
        "tools": mapping.can(Capability::Tools),
        "parallelToolCalls": mapping.can(Capability::ParallelTools),
        "reasoning": mapping.reasons(),
        "webSearch": mapping.searches_web(),
        "context_size": mapping.context_size,
        "max_output": mapping.max_output,
        "stability": "stable",
    });
    let Some(fields) = entry.as_object_mut() else {
        return entry;
    };
    if let Some(prices) = &mapping.prices {
        fields.insert("pricing".into(), pricing(prices));
    }
    let efforts = efforts(mapping);
    if !efforts.is_empty() {
        fields.insert("reasoning_efforts".into(), json!(efforts));
    }
    let lists = [
        ("reasoning_modes", &mapping.reasoning_modes),
        ("service_tiers", &mapping.service_tiers),
    ];
    for (key, list) in lists {
        if !list.is_empty() {
            fields.insert(key.into(), json!(list));
        }
    }
    // The date of a single provider only appears here.
    add_dates(fields, &[mapping]);
    add_regions(fields, mapping);
    entry
}

/// Adds the regions that a model string may name, and their prices if known.
fn add_regions(fields: &mut Map<String, Value>, mapping: &Mapping) {
    if mapping.regions.is_empty() {
        return;
    }
    let regions = mapping.regions.iter();
    let names: Vec<&str> = regions.clone().map(|region| &*region.name).collect();
    fields.insert("regions".into(), json!(names));
    let priced = regions.filter_map(|region| {
        let prices = region.prices.as_ref()?;
        Some((region.name.to_string(), pricing(prices)))
    });
    let priced = Map::from_iter(priced);
    if !priced.is_empty() {
        fields.insert("region_pricing".into(), Value::Object(priced));
    }
}

/// Returns the fields that have an effect at one of the mappings.
fn parameters(
    model: &Model,
    mappings: &[&Mapping],
    any: &impl Fn(Capability) -> bool,
) -> Vec<&'static str> {
    let serves = |operation| model.operations.contains(&operation);
    if serves(Operation::Images) && !serves(Operation::Chat) {
        return image_parameters(mappings);
    }
    if !model.operations.is_empty() && !serves(Operation::Chat) {
        let named = model.operations.iter().flat_map(|it| it.row().parameters);
        let named = named.filter(|name| **name != "dimensions" || any(Capability::Dimensions));
        return named.copied().collect();
    }
    let acts = |parameter: Parameter| {
        let mut mappings = mappings.iter();
        mappings.any(|mapping| takes(mapping, parameter))
    };
    let listed = LISTED.into_iter().filter(|parameter| acts(*parameter));
    let by_capability = [
        (Capability::Reasoning, "reasoning"),
        (Capability::Reasoning, "reasoning_effort"),
        (Capability::N, "n"),
    ];
    let by_capability = by_capability.into_iter().filter(|(needs, _)| any(*needs));
    let drawing = draws(mappings).then_some(["modalities", "image_config"]);
    listed
        .map(Parameter::as_str)
        .chain(by_capability.map(|(_, name)| name))
        .chain(drawing.into_iter().flatten())
        .collect()
}

/// Returns the options of images that have an effect at one of the mappings.
fn image_parameters(mappings: &[&Mapping]) -> Vec<&'static str> {
    const OPTIONS: [(&str, Parameter); 9] = [
        ("size", Parameter::ImageSize),
        ("aspect_ratio", Parameter::ImageAspectRatio),
        ("quality", Parameter::ImageQuality),
        ("moderation", Parameter::ImageModeration),
        ("style", Parameter::ImageStyle),
        ("background", Parameter::ImageBackground),
        ("input_fidelity", Parameter::InputFidelity),
        ("output_format", Parameter::OutputFormat),
        ("output_compression", Parameter::OutputCompression),
    ];
    let acts = |parameter| {
        let mut mappings = mappings.iter();
        mappings.any(|mapping| mapping.parameters.supports(parameter))
    };
    let acting = OPTIONS
        .into_iter()
        .filter(|(_, parameter)| acts(*parameter));
    std::iter::once("n")
        .chain(acting.map(|(name, _)| name))
        .collect()
}

/// The parameters in the list. All others are old forms of these, or not part of the contract.
const LISTED: [Parameter; 19] = [
    Parameter::Temperature,
    Parameter::MaxTokens,
    Parameter::TopP,
    Parameter::FrequencyPenalty,
    Parameter::PresencePenalty,
    Parameter::Stop,
    Parameter::Seed,
    Parameter::LogitBias,
    Parameter::Logprobs,
    Parameter::TopLogprobs,
    Parameter::ResponseFormat,
    Parameter::Tools,
    Parameter::ToolChoice,
    Parameter::ParallelToolCalls,
    Parameter::User,
    Parameter::PromptCacheKey,
    Parameter::PromptCacheRetention,
    Parameter::Verbosity,
    Parameter::WebSearch,
];

/// Returns whether a parameter has an effect at a mapping: it is neither dropped nor refused, and the mapping has the
/// capability that it needs.
fn takes(mapping: &Mapping, parameter: Parameter) -> bool {
    let needed = match parameter {
        Parameter::WebSearch if !mapping.searches_web() => return false,
        Parameter::ResponseFormat => Some(Capability::JsonObject),
        Parameter::Tools | Parameter::ToolChoice => Some(Capability::Tools),
        Parameter::ParallelToolCalls => Some(Capability::ParallelTools),
        Parameter::Verbosity => Some(Capability::Verbosity),
        _ => None,
    };
    mapping.parameters.supports(parameter) && needed.is_none_or(|needed| mapping.can(needed))
}

/// Returns the efforts that a mapping accepts, whatever its capabilities. Source: model-gateway 2.1, rules for
/// `reasoning_effort` 4.
fn efforts(mapping: &Mapping) -> Vec<&str> {
    let efforts = mapping.thinking.efforts.iter();
    efforts.map(|effort| effort.as_str()).collect()
}

fn union<'a>(
    mappings: &[&'a Mapping],
    values: impl Fn(&'a Mapping) -> Vec<&'a str>,
) -> Vec<&'a str> {
    let mut union: Vec<&str> = Vec::new();
    for value in mappings.iter().flat_map(|mapping| values(mapping)) {
        if !union.contains(&value) {
            union.push(value);
        }
    }
    union
}
