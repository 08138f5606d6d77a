//! The responses of an operation: those that its description tells, and the errors that follow from its row.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::Components;
use crate::proxy::handler::Handler;
use crate::proxy::router::{Access, BodyRule, ErrorStyle, Route};

/// The headers of each response to a request that was checked against a quota.
const QUOTA_HEADERS: [&str; 5] = [
    "RateLimit-Policy",
    "RateLimit",
    "RateLimit-Limit",
    "RateLimit-Remaining",
    "RateLimit-Reset",
];

/// Returns the responses by status. `more` are statuses of errors beyond those of the row; what errors have in common is added
/// to the components.
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
            responses.insert(key, error(&route.errors, Some(*status), components));
        }
    }
    if passes_on_refusals(route) {
        responses.insert("4XX".to_owned(), error(&route.errors, None, components));
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
        // The service's own answers have any status; of ours one has a shape that the contract names.
        return BTreeSet::from([429]);
    }
    let mut all = BTreeSet::from([400, 414, 431, 500]);
    match route.access {
        Access::Open => {}
        // Too many wrong keys from one address are a 429.
        Access::Key | Access::KeyOrToken | Access::KeyOrTokenForEvents => {
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
    if passes_on_refusals(route) {
        all.extend([402, 404, 502, 503, 504]);
    }
    all
}

/// Returns whether the statuses of a provider's refusals are passed on. Source: docs/decisions.md 5.
fn passes_on_refusals(route: &Route) -> bool {
    matches!(route.handler, Handler::Forward(_)) && route.quota.is_some()
}

/// Returns a reference to the response of an error; `None`: of a refusal by a provider.
fn error(style: &ErrorStyle, status: Option<u16>, components: &mut Components) -> Value {
    let schema = style.schema.unwrap_or("Unknown");
    let name = match status {
        Some(status) => format!("{schema}{status}"),
        None => format!("{schema}4XX"),
    };
    if !components.responses.contains_key(&name) {
        let mut response = Map::new();
        response.insert("description".to_owned(), meaning(status).into());
        if let Some(429 | 503 | 529) = status {
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

/// Returns what a status means. Source: docs/model-gateway.md 7, docs/decision-agent.md 7.
fn meaning(status: Option<u16>) -> &'static str {
    match status {
        None => "The provider refused the request with this status.",
        Some(400) => "The body, a parameter or the head is invalid.",
        Some(401) => "Credentials are missing or invalid.",
        Some(402) => "Credit, an allowance or a limit of the key is used up.",
        Some(403) => "A rule of the gateway, or the provider, forbids it.",
        Some(404) => "There is no such thing, or the provider did not find it.",
        Some(406) => "`Accept` leaves out the type of the answer.",
        Some(408) => "The request took too long to arrive.",
        Some(410) => "The project is archived, the organization disabled, or the model retired.",
        Some(413) => "The request, or what would answer it, is too large.",
        Some(414) => "The target is too long.",
        Some(415) => "The media type or the encoding of the body is not supported.",
        Some(416) => "The range is not one of the content.",
        Some(422) => "There are too many operations.",
        Some(429) => "Over a limit; the headers tell which, and until when.",
        Some(431) => "The head is too large.",
        Some(500) => "The gateway failed.",
        Some(502) => "No connection to a provider, or every provider failed.",
        Some(503) => "A provider, or a part of the gateway, is unavailable.",
        Some(504) => "A provider took too long.",
        Some(529) => "The gateway is overloaded.",
        Some(_) => "An error.",
    }
}
