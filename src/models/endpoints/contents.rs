//! The models as clients of the Gemini API list them. Source: docs/facts/contents.md 5.

use filters::fault::{Fault, quoted};
use filters::models::operation::Operation;
use filters::models::routing::catalog::{Mapping, Model};
use serde_json::{Value, json};

use crate::proxy::handler::Request;
use crate::proxy::response::Response;

/// The models of a page, where the client does not say how many.
const PAGE: usize = 50;
/// The most models of a page.
const MAX_PAGE: usize = 1000;

/// The methods by which models are called, each with the operation that it is.
const METHODS: [(&str, Operation); 5] = [
    ("generateContent", Operation::Chat),
    ("streamGenerateContent", Operation::Chat),
    ("countTokens", Operation::Chat),
    ("embedContent", Operation::Embeddings),
    ("batchEmbedContents", Operation::Embeddings),
];

/// Returns a page of the models: each by its id and by each of its aliases, because clients choose from what is listed.
///
/// Errors: 400 for a `pageSize` that is no number, and for a `pageToken` that no page has told.
pub(super) fn page<'m>(
    models: impl Iterator<Item = (&'m Model, Vec<&'m Mapping>)>,
    request: &Request<'_>,
) -> Result<Response, Fault> {
    let number = |name: &'static str, accepted: &str| {
        let said = request.values(name).last().filter(|said| !said.is_empty());
        said.map_or(Ok(None), |said| {
            said.parse::<usize>().map(Some).map_err(|_| {
                let message = format!("`{name}` is `{}`; accepted is {accepted}", quoted(&said));
                Fault::invalid(name, message)
            })
        })
    };
    let size = number("pageSize", "a number")?.filter(|size| *size > 0);
    let size = size.unwrap_or(PAGE).min(MAX_PAGE);
    let start = number("pageToken", "the `nextPageToken` of a page")?.unwrap_or(0);
    let all: Vec<Value> = models
        .filter(|(model, _)| is_called(model))
        .flat_map(|(model, mappings)| {
            let aliases = model.aliases.iter().map(|alias| &**alias);
            let names = std::iter::once(&*model.id).chain(aliases);
            let entries = names.map(|name| entry(name, model, &mappings));
            entries.collect::<Vec<_>>()
        })
        .collect();
    let shown: Vec<&Value> = all.iter().skip(start).take(size).collect();
    let end = start.saturating_add(shown.len());
    let has_more = end < all.len() && !shown.is_empty();
    let body = match has_more {
        true => json!({ "models": shown, "nextPageToken": end.to_string() }),
        false => json!({ "models": shown }),
    };
    Ok(Response::json(body.to_string()))
}

/// Returns whether the API has a method for a model.
fn is_called(model: &Model) -> bool {
    METHODS
        .iter()
        .any(|(_, operation)| model.operations.contains(operation))
}

/// Returns the entry of a model that is asked for by `name`.
pub(super) fn entry(name: &str, model: &Model, mappings: &[&Mapping]) -> Value {
    let methods = METHODS.iter();
    let methods = methods.filter(|(_, operation)| model.operations.contains(operation));
    let methods: Vec<&str> = methods.map(|(method, _)| *method).collect();
    let window = mappings.iter().filter_map(|mapping| mapping.context_size);
    let most = mappings.iter().filter_map(|mapping| mapping.max_output);
    let mut entry = json!({
        "name": format!("models/{name}"),
        "baseModelId": name,
        "version": "1",
        "displayName": model.name,
        "supportedGenerationMethods": methods,
        "thinking": mappings.iter().any(|mapping| mapping.reasons()),
    });
    let more = [
        ("description", model.description.as_deref().map(Value::from)),
        ("inputTokenLimit", window.max().map(Value::from)),
        ("outputTokenLimit", most.min().map(Value::from)),
    ];
    if let Some(entry) = entry.as_object_mut() {
        let more = more.into_iter();
        entry.extend(more.filter_map(|(key, value)| Some((key.to_owned(), value?))));
    }
    entry
}
