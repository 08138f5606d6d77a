//! The graph service's rows of the route table: a tenant's remainders, and all paths that are not reserved.

use std::sync::Arc;

use filters::fault::{Fault, FaultKind};
use filters::limits::headers::RETRY_AFTER_MS;
use http::header::RETRY_AFTER;
use http::{HeaderName, Method};

use super::Graph;
use super::admission::GraphHandler;
use super::limits_left::LimitsLeft;
use crate::proxy::handler::Handler;
use crate::proxy::response::Response;
use crate::proxy::router::{Access, BodyRule, ErrorStyle, Route};

/// Returns the rows of our own endpoints.
pub fn routes(graph: &Arc<Graph>) -> Vec<Route> {
    let limits = LimitsLeft {
        graph: Arc::clone(graph),
    };
    vec![Route {
        name: "graph_limits",
        path: "/v1/graph/limits",
        takes_permit: true,
        body: BodyRule::None,
        description: include_str!("limits.json"),
        handler: Handler::Endpoint(Arc::new(limits)),
        ..fallback(graph)
    }]
}

/// Returns the row of all paths that are not reserved.
pub fn fallback(graph: &Arc<Graph>) -> Route {
    let graph = Arc::clone(graph);
    Route {
        name: "graph",
        method: Method::GET,
        path: "",
        access: Access::Open,
        quota: None,
        deprecation: None,
        takes_permit: false,
        body: BodyRule::Unread,
        errors: ErrorStyle {
            schema: Some("GraphError"),
            write: Arc::new(|fault, _| error_response(fault)),
        },
        description: include_str!("description.json"),
        is_on: true,
        handler: Handler::Forward(Arc::new(GraphHandler { graph })),
    }
}

/// Returns a fault in the style of the graph service, where only a 429 states how long to wait. Source:
/// docs/graph-limits.md 8.1.4.
fn error_response(fault: &Fault) -> Response {
    let mut response = Response {
        body: fault.graph_body().into(),
        ..Response::from(fault)
    };
    if fault.kind != FaultKind::RateLimited {
        let says_wait = |name: &HeaderName| *name == RETRY_AFTER || *name == RETRY_AFTER_MS;
        response.headers.retain(|(name, _)| !says_wait(name));
    }
    response
}
