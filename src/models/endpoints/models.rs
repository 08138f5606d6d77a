//! `GET /v1/models`: lists the catalogue for clients.
//! Source: docs/facts/model-gateway.md 1.16, docs/model-gateway.md 2.1, 9.4.

use std::sync::Arc;

use filters::fault::Fault;
use filters::models::operation::Operation;
use filters::models::parameter::Parameter;
use filters::models::routing::catalog::{Capability, Catalog, Mapping, Model};
use filters::money::{Price, PriceSet};
use futures::future::BoxFuture;
use serde_json::{Map, Value, json};

use crate::models::Models;
use crate::proxy::handler::{Endpoint, Request};
use crate::proxy::response::Response;

/// `GET /v1/models`.
pub struct ListModels {
    /// The model gateway.
    pub models: Arc<Models>,
}

impl Endpoint for ListModels {
    fn call<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Response, Fault>> {
        let planner = &self.models.planner;
        let query = Query::parse(request.query);
        let now_s = self.models.clock.unix_s();
        let body = list_models(planner.catalog(), |name| planner.is_on(name), query, now_s);
        Box::pin(async { Ok(Response::json(body)) })
    }
}

/// The options of the query; only the value `true` sets one.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Query {
    /// Whether to list models that are no longer served.
    pub include_deactivated: bool,
    /// Whether to leave out deprecated models.
    pub exclude_deprecated: bool,
    /// Whether to list one entry per provider, with the id `provider/model`.
    pub mapped: bool,
}

impl Query {
    /// Parses a query; unknown names are ignored.
    pub fn parse(query: &str) -> Self {
        let is_true = |name: &str| {
            query
                .split('&')
                .any(|pair| pair.strip_prefix(name) == Some("=true"))
        };
        Self {
            include_deactivated: is_true("include_deactivated"),
            exclude_deprecated: is_true("exclude_deprecated"),
            mapped: is_true("mapped"),
        }
    }
}

/// Returns the body: `{"object":"list","data":[…]}`, with the providers that serve all callers.
pub fn list_models(
    catalog: &Catalog,
    is_on: impl Fn(&str) -> bool,
    query: Query,
    now_s: u64,
) -> Vec<u8> {
    let mut data = Vec::new();
    for model in catalog.models() {
        let listed: Vec<&Mapping> = model
            .mappings
            .iter()
            .map(|mapping| &**mapping)
            .filter(|mapping| is_on(&mapping.provider))
            .filter(|mapping| query.include_deactivated || !mapping.is_retired(now_s))
            .filter(|mapping| !query.exclude_deprecated || !mapping.is_deprecated(now_s))
            .collect();
        if query.mapped {
            data.extend(listed.iter().map(|one| entry(model, &[one], true)));
        } else if !listed.is_empty() {
            data.push(entry(model, &listed, false));
        }
    }
    serde_json::to_vec(&json!({ "object": "list", "data": data })).unwrap_or_default()
}

fn entry(model: &Model, mappings: &[&Mapping], is_mapped: bool) -> Value {
    let id = match mappings.first() {
        Some(one) if is_mapped => format!("{}/{}", one.provider, model.id),
        _ => model.id.to_string(),
    };
    let any = |capability| mappings.iter().any(|mapping| mapping.can(capability));
    let cheapest = mappings
        .iter()
        .filter(|mapping| mapping.prices.is_some())
        .min_by(|a, b| {
            a.mean_price()
                .unwrap_or(0.0)
                .total_cmp(&b.mean_price().unwrap_or(0.0))
        });
    let prices = cheapest
        .and_then(|mapping| mapping.prices)
        .unwrap_or_default();
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
        "pricing": pricing(&prices),
        "context_length": mappings.iter().filter_map(|mapping| mapping.context_size).max(),
        "max_output": mappings.iter().filter_map(|mapping| mapping.max_output).min(),
        "supported_parameters": parameters(model, mappings, &any),
        "json_output": any(Capability::JsonObject),
        "structured_outputs": any(Capability::JsonSchema),
        "free": mappings.iter().any(|mapping| mapping.is_free()),
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
    let (chat, embeddings) = (Operation::Chat, Operation::Embeddings);
    let mut outputs = match (serves(model, chat), serves(model, embeddings)) {
        (false, true) => vec!["embedding"],
        (true, true) => vec!["text", "embedding"],
        _ => vec!["text"],
    };
    if draws {
        outputs.push("image");
    }
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

/// Adds the dates of deprecation and deactivation. The model has a date only if every provider has one; then it has the
/// latest.
fn add_dates(entry: &mut Map<String, Value>, mappings: &[&Mapping]) {
    type ReadDate = fn(&Mapping) -> Option<&filters::models::routing::Date>;
    let keys: [(&str, ReadDate); 2] = [
        ("deprecated_at", |mapping| mapping.deprecated_at.as_ref()),
        ("deactivated_at", |mapping| mapping.deactivated_at.as_ref()),
    ];
    for (key, read_date) in keys {
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
    if !mapping.regions.is_empty() {
        fields.insert("regions".into(), json!(mapping.regions));
    }
    entry
}

/// Returns the prices per token as decimal strings; a missing price is "0". Those of other tokens than text, and of long
/// prompts, are there where they differ.
fn pricing(prices: &PriceSet) -> Value {
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
        "internal_reasoning": "0",
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
    members.extend(differing(media));
    if let Some(image) = prices.image {
        let per_image = json!({ "default": image.to_decimal() });
        members.insert("per_image".to_owned(), per_image);
    }
    if let Some(long) = &prices.long_context {
        let changed = [
            ("prompt", long.input),
            ("completion", long.output),
            ("input_cache_read", long.cached_input),
            ("input_cache_write", long.cache_write),
            ("input_cache_write_1h", long.cache_write_1h),
        ];
        let mut step = Map::from_iter(differing(changed));
        step.insert("above_tokens".into(), json!(long.above_tokens));
        members.insert("long_context".into(), Value::Object(step));
    }
    pricing
}

fn differing<const N: usize>(
    prices: [(&str, Option<Price>); N],
) -> impl Iterator<Item = (String, Value)> {
    let prices = prices.into_iter();
    prices.filter_map(|(key, price)| Some((key.to_owned(), json!(price?.to_decimal()))))
}

fn serves(model: &Model, operation: Operation) -> bool {
    model.operations.contains(&operation)
}

/// Returns the fields that act at one of the mappings.
fn parameters(
    model: &Model,
    mappings: &[&Mapping],
    any: &impl Fn(Capability) -> bool,
) -> Vec<&'static str> {
    if serves(model, Operation::Embeddings) && !serves(model, Operation::Chat) {
        let dimensions = any(Capability::Dimensions).then_some("dimensions");
        return std::iter::once("encoding_format")
            .chain(dimensions)
            .collect();
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

/// The parameters that the list names. The others are old forms of these, or no part of the contract.
const LISTED: [Parameter; 18] = [
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
];

/// Returns whether a parameter acts at a mapping: it is not dropped or refused, and the mapping can do what it needs.
fn takes(mapping: &Mapping, parameter: Parameter) -> bool {
    let needed = match parameter {
        Parameter::ResponseFormat => Some(Capability::JsonObject),
        Parameter::Tools | Parameter::ToolChoice => Some(Capability::Tools),
        Parameter::ParallelToolCalls => Some(Capability::ParallelTools),
        Parameter::Verbosity => Some(Capability::Verbosity),
        _ => None,
    };
    mapping.parameters.supports(parameter) && needed.is_none_or(|needed| mapping.can(needed))
}

/// Returns the efforts that a mapping takes.
fn efforts(mapping: &Mapping) -> Vec<&str> {
    let efforts = mapping.thinking.efforts.iter();
    efforts
        .filter(|_| mapping.reasons())
        .map(|effort| effort.as_str())
        .collect()
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
