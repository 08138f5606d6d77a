//! Tools that list models.

use serde_json::{Value, json};

use super::{McpTool, RouteRequest, RouteResponse, Scope, ToolResult};
use crate::mcp::message::Members;

/// The default number of listed models.
const DEFAULT_LIMIT: u64 = 20;

/// The members of an entry that are listed.
const MEMBERS: [&str; 7] = [
    "id",
    "name",
    "family",
    "context_length",
    "max_output",
    "deprecated_at",
    "deactivated_at",
];

/// The models that the caller may use.
pub(super) const LIST_MODELS: McpTool = McpTool {
    route: "models",
    scope: Scope::Models,
    description: include_str!("list-models.json"),
    request: |arguments| {
        let names = ["include_deactivated", "exclude_deprecated"];
        let is_set = |name: &&str| arguments.get(*name) == Some(&true.into());
        let pairs = names.into_iter().filter(is_set);
        let pairs: Vec<String> = pairs.map(|name| format!("{name}=true")).collect();
        RouteRequest {
            query: pairs.join("&"),
            ..RouteRequest::default()
        }
    },
    result: list_models,
};

/// The models that draw images.
pub(super) const LIST_IMAGE_MODELS: McpTool = McpTool {
    route: "models",
    scope: Scope::Models,
    description: include_str!("list-image-models.json"),
    request: |_| RouteRequest::default(),
    result: |_, response| {
        let entries = entries(response)?;
        let drawing = entries.iter().filter(|entry| draws(entry));
        let models: Vec<Value> = drawing.map(listed_members).collect();
        Some(ToolResult::both(json!({"models": models})))
    },
};

fn list_models(arguments: &Members, response: &RouteResponse<'_>) -> Option<ToolResult> {
    let entries = entries(response)?;
    let family = arguments.get("family");
    let limit = arguments.get("limit").and_then(Value::as_u64);
    let wanted = entries
        .iter()
        .filter(|entry| family.is_none_or(|family| entry.get("family") == Some(family)));
    let wanted: Vec<&Value> = wanted.collect();
    let limit = usize::try_from(limit.unwrap_or(DEFAULT_LIMIT)).unwrap_or(usize::MAX);
    let models: Vec<Value> = wanted
        .iter()
        .take(limit)
        .map(|it| listed_members(it))
        .collect();
    Some(ToolResult::both(
        json!({"models": models, "total": wanted.len()}),
    ))
}

fn entries(response: &RouteResponse<'_>) -> Option<Vec<Value>> {
    match response.json()?.get_mut("data")?.take() {
        Value::Array(entries) => Some(entries),
        _ => None,
    }
}

fn draws(entry: &Value) -> bool {
    let outputs = entry.pointer("/architecture/output_modalities");
    let outputs = outputs.and_then(Value::as_array);
    outputs.is_some_and(|outputs| outputs.contains(&"image".into()))
}

/// Returns the listed members of an entry.
fn listed_members(entry: &Value) -> Value {
    let members = MEMBERS.iter().filter_map(|name| {
        let value = entry.get(name).filter(|value| !value.is_null())?;
        Some(((*name).to_owned(), value.clone()))
    });
    let mut shown: Members = members.collect();
    let at = |path: &str| entry.pointer(path).cloned().unwrap_or(Value::Null);
    let providers = entry.get("providers").and_then(Value::as_array);
    let providers = providers
        .into_iter()
        .flatten()
        .filter_map(|it| it.get("providerId"));
    shown.insert("inputs".to_owned(), at("/architecture/input_modalities"));
    shown.insert("outputs".to_owned(), at("/architecture/output_modalities"));
    shown.insert("providers".to_owned(), providers.cloned().collect());
    shown.insert("pricing".to_owned(), at("/pricing"));
    shown.into()
}
