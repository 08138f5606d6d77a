//! The route table: the rows of all products.

use std::sync::Arc;

use http::{HeaderName, Method};

use super::health::Health;
use super::openapi::{self, GraphSection, OpenApi, Section};
use crate::config::Config;
use crate::decisions::{self, DecisionService};
use crate::graph::{self, Graph};
use crate::mcp::routes::{McpParts, routes as mcp_routes};
use crate::models::{self, Models};
use crate::proxy::handler::Handler;
use crate::proxy::router::{Access, BodyRule, ErrorStyle, ReservedSegments, Route, Router};

/// The paths of our own routes. Source: docs/decisions.md 18.
const RESERVED: ReservedSegments = &[
    "v1",
    "v1beta",
    "oauth",
    "ofrep",
    "mcp*",
    ".well-known",
    "webhooks",
];

/// Returns the router of all rows, and the description of the served rows.
///
/// Errors: a row has an invalid description.
pub fn router(
    config: &Config,
    health: Health,
    models: &Arc<Models>,
    (decisions, graph): (Option<&Arc<DecisionService>>, Option<&Arc<Graph>>),
    mcp: McpParts<'_>,
) -> Result<(Router, Arc<OpenApi>), String> {
    let health = health_route(health);
    let unwritten = openapi::route(Arc::new(OpenApi::unwritten()));
    let own = [health.clone(), unwritten];
    let of_models = models::routes::routes(models, config);
    let others = [&own[..], &of_models].concat();
    let of_decisions = decisions::routes::routes(decisions, config, &others);
    let fallback = graph.map(graph::routes::fallback);
    let of_graph = graph.zip(fallback.as_ref());
    let of_graph = of_graph.map(|(graph, route)| GraphSection {
        route,
        operations: &graph.operations,
    });
    let limits = graph.map(graph::routes::routes).unwrap_or_default();
    let others = [&others[..], &of_decisions, &limits].concat();
    let of_mcp = mcp_routes(config, &others, mcp)?;
    let sections = [
        ("Gateway", &own[..]),
        ("Models", &of_models),
        ("Decisions", &of_decisions),
        ("Graph", &limits),
        ("MCP", &of_mcp),
    ];
    let sections = sections.map(|(tag, routes)| Section { tag, routes });
    let sdk_key_header = decisions.and_then(|it| it.credentials.headers.first());
    let sdk_key_header = sdk_key_header.map(HeaderName::as_str);
    let document = OpenApi::describe(&sections, of_graph.as_ref(), sdk_key_header)?;
    let document = Arc::new(document);
    let own = [health, openapi::route(Arc::clone(&document))];
    let rows = [&own[..], &of_models, &of_decisions, &limits, &of_mcp].concat();
    Ok((Router::new(rows, RESERVED, fallback), document))
}

fn health_route(health: Health) -> Route {
    Route {
        name: "health",
        method: Method::GET,
        path: "/",
        access: Access::Open,
        quota: None,
        deprecation: None,
        takes_permit: false,
        body: BodyRule::None,
        errors: ErrorStyle::compatible(),
        description: include_str!("health.json"),
        is_on: true,
        handler: Handler::Endpoint(Arc::new(health)),
    }
}
