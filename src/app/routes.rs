//! The route table: the rows of all products.

use std::sync::Arc;

use http::Method;

use super::health::Health;
use crate::config::Config;
use crate::decisions::{self, DecisionService};
use crate::graph::{self, Graph};
use crate::models::{self, Models};
use crate::proxy::handler::Handler;
use crate::proxy::response::Response;
use crate::proxy::router::{Access, BodyRule, Route, Router};

/// Returns the router of all rows.
pub fn router(
    config: &Config,
    health: Health,
    models: &Arc<Models>,
    decisions: Option<&Arc<DecisionService>>,
    graph: Option<&Arc<Graph>>,
) -> Router {
    let mut rows = vec![Route {
        name: "health",
        method: Method::GET,
        path: "/",
        access: Access::Open,
        quota: None,
        deprecation: None,
        takes_permit: false,
        body: BodyRule::None,
        errors: Arc::new(|fault, _| Response::from(fault)),
        handler: Handler::Endpoint(Arc::new(health)),
    }];
    rows.extend(models::routes::routes(models, config));
    let decisions = decisions::routes::routes(decisions, config, &rows);
    rows.extend(decisions);
    Router::new(rows, graph.map(graph::routes::fallback))
}
