//! The responses of an operation: those of its description, and the errors that follow from its row.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::Components;
use crate::proxy::handler::Handler;
use crate::proxy::router::{Access, BodyRule, ErrorStyle, Route};

/// The headers of each response to a request that counted against a quota.
const QUOTA_HEADERS: [&str; 5] = [
    "RateLimit-Policy",
    "RateLimit",
    "RateLimit-Limit",
    "RateLimit-Remaining",
    "RateLimit-Reset",
];

/// Returns the responses by status. `more` are statuses of errors beyond those of the row. Common parts of errors are
/// added to the components.
pub(super) fn describe(
    route: &Route,
    told: Map<String, Value>,
    more: &[u16],
    components: &mut Components,
) -> Map<String, Value> {
    let mut responses = told;
    for response in responses.values_mut().filter_map(Value::as_object_mut) {
        if route.errors.schema.is_none() {
            response.insert("content".to_owned(), json!({"*/*": {}}));
        }
        add_headers(route, response);
    }
    let mut statuses = statuses(route);
    statuses.extend(more);
    for status in &statuses {
        let key = status.to_string();
        if !responses.contains_key(&key) {
            responses.insert(key, error(&route.errors, *status, components));
        }
    }
    if route.errors.schema.is_none() {
        let other = json!({"description": "As the agent answers.", "content": {"*/*": {}}});
        responses.insert("default".to_owned(), other);
    }
    responses
}

fn add_headers(route: &Route, response: &mut Map<String, Value>) {
    let headers = response.entry("headers").or_insert_with(|| json!({}));
    let Some(headers) = headers.as_object_mut() else {
        return;
    };
    let mut refer = |name: &str| {
        let reference = json!({"$ref": format!("#/components/headers/{name}")});
        headers.entry(name).or_insert(reference);
    };
    refer("x-request-id");
    if route.quota.is_some() {
        QUOTA_HEADERS.into_iter().for_each(refer);
    }
}

/// Returns the statuses of errors that follow from a row.
fn statuses(route: &Route) -> BTreeSet<u16> {
    if route.body == BodyRule::Unread {
        // The service's own responses have any status. Of ours, the contract only names the shape of one.
        return BTreeSet::from([429]);
    }
    let mut all = BTreeSet::from([400, 414, 431, 500]);
    match route.access {
        Access::Open => {}
        // Too many wrong keys from one address give a 429.
        Access::Key | Access::KeyInQuery | Access::KeyOrToken | Access::KeyOrTokenForEvents => {
            all.extend([401, 403, 410, 429, 503])
        }
        Access::SdkKey => all.extend([401, 403, 503]),
    }
    match route.body {
        BodyRule::None | BodyRule::Unread => {}
        BodyRule::Json(_)
        | BodyRule::SpooledJson(_)
        | BodyRule::JsonOrForm(_)
        | BodyRule::Form(_) => all.extend([408, 413, 415, 529]),
        BodyRule::Any(_) => all.extend([408, 413, 529]),
    }
    if route.takes_permit {
        all.insert(529);
    }
    if asks_providers(route) {
        all.extend([402, 404, 502, 503, 504]);
    }
    all
}

/// Returns whether the route asks providers, whose refusals it passes on.
fn asks_providers(route: &Route) -> bool {
    matches!(route.handler, Handler::Forward(_)) && route.quota.is_some()
}

/// Returns a reference to the response of an error.
fn error(style: &ErrorStyle, status: u16, components: &mut Components) -> Value {
    let name = format!("{}{status}", style.schema.unwrap_or("Unknown"));
    if !components.responses.contains_key(&name) {
        let mut response = Map::new();
        response.insert("description".to_owned(), meaning(status).into());
        if matches!(status, 429 | 503 | 529) {
            let retry_after = json!({"$ref": "#/components/headers/Retry-After"});
            response.insert("headers".to_owned(), json!({"Retry-After": retry_after}));
        }
        let content = match style.schema {
            Some(schema) => {
                let schema = format!("#/components/schemas/{schema}");
                json!({"application/json": {"schema": {"$ref": schema}}})
            }
            None => json!({"*/*": {}}),
        };
        response.insert("content".to_owned(), content);
        components.responses.insert(name.clone(), response.into());
    }
    json!({"$ref": format!("#/components/responses/{name}")})
}

/// Returns the meaning of a status. Source: docs/model-gateway.md 7, docs/decision-agent.md 7.
fn meaning(status: u16) -> &'static str {
    match status {
        400 => "The body, a parameter or the head is invalid.",
        401 => "Credentials are missing or invalid.",
        402 => "Credit, an allowance or a limit of the key is used up.",
        403 => "A rule of the gateway, or the provider, forbids it.",
        404 => "There is no such thing, or the provider did not find it.",
        406 => "`Accept` leaves out the type of the answer.",
        408 => "The request took too long to arrive.",
        410 => "The project is archived, the organization disabled, or the model retired.",
        413 => "The request, or what would answer it, is too large.",
        414 => "The target is too long.",
        415 => "The media type or the encoding of the body is not supported.",
        416 => "The range is not one of the content.",
        422 => "There are too many operations.",
        429 => "Over a limit; the headers tell which, and until when.",
        431 => "The head is too large.",
        500 => "The gateway failed.",
        502 => "No connection to a provider, or every provider failed.",
        503 => "A provider, or a part of the gateway, is unavailable.",
        504 => "A provider took too long.",
        529 => "The gateway is overloaded.",
        _ => "An error.",
    }
}
