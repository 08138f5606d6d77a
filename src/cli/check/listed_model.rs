//! The models of a list, of every kind of provider.

use std::collections::BTreeMap;

use filters::money::Price;
use serde_json::Value;

/// The members of a reply that hold the list.
const LISTS: [&str; 5] = [
    "data",
    "models",
    "inferenceProfileSummaries",
    "modelSummaries",
    "publisherModels",
];
/// The members of a model that name it. A profile has an id and an ARN, and both are names.
const NAMES: [&str; 5] = [
    "id",
    "name",
    "inferenceProfileId",
    "inferenceProfileArn",
    "modelId",
];

/// A model in its provider's list.
#[derive(Clone, Debug, Default)]
pub(super) struct ListedModel {
    /// The price per token in USD, of prompt and completion, if the list has prices.
    pub(super) prices: [Option<Price>; 2],
    pub(super) ends_at: Option<String>,
}

/// The models of a list, by each of their names.
pub(super) type ListedModels = BTreeMap<String, ListedModel>;

/// Reads a list: it is a member of the reply, or the reply itself.
pub(super) fn read_list(body: &Value) -> Option<ListedModels> {
    let members = LISTS.iter().map(|name| body.get(name));
    let inner = members.chain([Some(body)]);
    let models = inner.flatten().find_map(Value::as_array)?;
    let callable = models.iter().filter(|model| is_callable(model));
    let named = callable.flat_map(|model| {
        let listed = read_model(model);
        let names = NAMES.iter().filter_map(|key| model.get(key)?.as_str());
        let first = names.clone().take(1);
        let profile = names.skip(1).filter(|name| name.starts_with("arn:"));
        let named: Vec<_> = first.chain(profile).map(short_name).collect();
        named.into_iter().map(move |name| (name, listed.clone()))
    });
    Some(named.collect())
}

/// Finds a model by the name of a mapping. Vertex lists models without their version, which stands behind an `@`.
pub(super) fn find<'l>(listed: &'l ListedModels, name: &str) -> Option<&'l ListedModel> {
    let bare = || name.split_once('@').map(|(bare, _)| bare);
    listed.get(name).or_else(|| listed.get(bare()?))
}

/// Returns whether a model takes calls under its own name. Bedrock lists some that only profiles or bought capacity reach.
fn is_callable(model: &Value) -> bool {
    let ways = model
        .get("inferenceTypesSupported")
        .and_then(Value::as_array);
    ways.is_none_or(|ways| ways.iter().any(|way| way == "ON_DEMAND"))
}

fn short_name(name: &str) -> String {
    let name = match name.starts_with("publishers/") {
        true => name.rsplit("/models/").next().unwrap_or(name),
        false => name.trim_start_matches("models/"),
    };
    name.to_owned()
}

fn read_model(model: &Value) -> ListedModel {
    let price = |key: &str| {
        let price = model.get("pricing")?.get(key)?;
        let text = price
            .as_str()
            .map_or_else(|| price.to_string(), str::to_owned);
        Price::per_call(&text).ok()
    };
    let ends = [
        "deprecation",
        "deprecation_date",
        "expiration_date",
        "retirement_date",
    ];
    let ends_at = ends.iter().find_map(|key| model.get(key)?.as_str());
    let is_legacy = model.pointer("/modelLifecycle/status") == Some(&Value::from("LEGACY"));
    let is_deprecated = model.get("deprecated").and_then(Value::as_bool) == Some(true);
    ListedModel {
        prices: [price("prompt"), price("completion")],
        ends_at: ends_at
            .map(str::to_owned)
            .or_else(|| (is_deprecated || is_legacy).then(|| "a day it does not name".to_owned())),
    }
}
