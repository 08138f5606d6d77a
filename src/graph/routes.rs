//! The graph service's row of the route table: all paths that are not reserved.

use std::sync::Arc;

use filters::fault::Fault;
use http::Method;

use super::Graph;
use super::admission::GraphHandler;
use crate::proxy::handler::Handler;
use crate::proxy::response::Response;
use crate::proxy::router::{Access, BodyRule, ErrorStyle, Route};

/// Returns the row.
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

/// Returns a fault in the style of the graph service.
fn error_response(fault: &Fault) -> Response {
    Response {
        body: fault.graph_body().into(),
        ..Response::from(fault)
    }
}
