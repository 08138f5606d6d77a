//! `GET /v1/models`: lists the catalogue for clients.
//! Source: docs/facts/model-gateway.md 1.16, docs/model-gateway.md 2.1, 9.4.

use std::sync::Arc;

use filters::fault::Fault;
use filters::models::operation::Operation;
use filters::models::parameter::Parameter;
use filters::models::routing::catalog::{Capability, Catalog, Mapping, Model};
use filters::money::{PriceList, PricePoint, PriceSet, ServiceTier};
use futures::future::BoxFuture;
use serde_json::{Map, Value, json};

use super::pricing::{pricing, short_prices};
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
    let now = PricePoint {
        tier: ServiceTier::Standard,
        start_s: now_s,
    };
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
            data.extend(listed.iter().map(|one| entry(model, &[one], now, true)));
        } else if !listed.is_empty() {
            data.push(entry(model, &listed, now, false));
        }
    }
    serde_json::to_vec(&json!({ "object": "list", "data": data })).unwrap_or_default()
}

fn entry(model: &Model, mappings: &[&Mapping], now: PricePoint, is_mapped: bool) -> Value {
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
    add_regions(fields, mapping);
    entry
}

/// Adds the regions that a model string may name, and the prices of those of which they are known.
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

/// Returns whether a parameter acts at a mapping: it is not dropped or refused, and the mapping can do what it needs.
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
