//! The decision endpoints' rows of the route table.

use std::sync::Arc;

use filters::fault::{Fault, FaultKind};
use futures::future::BoxFuture;
use http::Method;

use super::DecisionService;
use super::endpoints::{self, Endpoint as Operation, batch, event_stream, token, webhook};
use crate::config::Config;
use crate::proxy::handler::{Endpoint, Handler, Request};
use crate::proxy::response::{Reply, Response};
use crate::proxy::router::{Access, BodyRule, ErrorStyle, NOT_FOUND_MESSAGE, PathTable, Route};

/// What answers a row.
#[derive(Clone, Copy)]
pub(super) enum Target {
    /// One decision endpoint.
    Operation(Operation),
    /// Several of them.
    Batch,
    /// `POST /oauth/token`.
    Token,
    /// `POST /webhooks/optimizely`.
    Webhook,
    /// A stream of notifications.
    EventStream,
}

use Target::{Batch, EventStream, Token, Webhook};

/// Name, method, path and target. Credentials are checked behind them.
const ROWS: [(&str, Method, &str, Target); 15] = [
    (
        "config",
        Method::GET,
        "/v1/config",
        Target::Operation(Operation::Config),
    ),
    (
        "datafile",
        Method::GET,
        "/v1/datafile",
        Target::Operation(Operation::Datafile),
    ),
    (
        "decide",
        Method::POST,
        "/v1/decide",
        Target::Operation(Operation::Decide),
    ),
    (
        "activate",
        Method::POST,
        "/v1/activate",
        Target::Operation(Operation::Activate),
    ),
    (
        "track",
        Method::POST,
        "/v1/track",
        Target::Operation(Operation::Track),
    ),
    (
        "overrides",
        Method::POST,
        "/v1/override",
        Target::Operation(Operation::Override),
    ),
    (
        "lookup",
        Method::POST,
        "/v1/lookup",
        Target::Operation(Operation::Lookup),
    ),
    (
        "save",
        Method::POST,
        "/v1/save",
        Target::Operation(Operation::Save),
    ),
    (
        "send_odp_event",
        Method::POST,
        "/v1/send-odp-event",
        Target::Operation(Operation::SegmentEvent),
    ),
    (
        "event_stream",
        Method::GET,
        "/v1/notifications/event-stream",
        EventStream,
    ),
    ("batch", Method::POST, "/v1/batch", Batch),
    ("token", Method::POST, "/oauth/token", Token),
    ("webhook", Method::POST, "/webhooks/optimizely", Webhook),
    (
        "ofrep_flags",
        Method::POST,
        "/ofrep/v1/evaluate/flags",
        Target::Operation(Operation::OfrepFlags),
    ),
    (
        "ofrep_flag",
        Method::POST,
        "/ofrep/v1/evaluate/flags/*",
        Target::Operation(Operation::OfrepFlag),
    ),
];

/// Returns the rows; without a service every one of them answers 404. `others` are the rows of all other products.
pub fn routes(
    service: Option<&Arc<DecisionService>>,
    config: &Config,
    others: &[Route],
) -> Vec<Route> {
    let paths = Arc::new(BatchPaths::new(others));
    let body_bytes = &config.limits.body_bytes;
    let rows = ROWS.iter().map(|(name, method, path, target)| {
        let body = match target {
            EventStream => BodyRule::None,
            Batch => BodyRule::Any(body_bytes.batch),
            _ => BodyRule::Any(body_bytes.decisions),
        };
        let handler: Arc<dyn Endpoint> = match service {
            Some(service) => Arc::new(DecisionEndpoint {
                service: Arc::clone(service),
                target: *target,
                paths: Arc::clone(&paths),
            }),
            None => Arc::new(SwitchedOff),
        };
        Route {
            name,
            method: method.clone(),
            path,
            access: Access::Open,
            quota: None,
            takes_permit: false,
            body,
            errors: error_style(service),
            handler: Handler::Endpoint(handler),
        }
    });
    rows.collect()
}

fn error_style(service: Option<&Arc<DecisionService>>) -> ErrorStyle {
    match service {
        Some(service) => {
            let compat = service.compat;
            Arc::new(move |fault| endpoints::error_response(compat, fault))
        }
        None => Arc::new(|fault| Response::from(fault)),
    }
}

/// The paths that an operation of a batch may name: the endpoints, and what is none.
pub struct BatchPaths(PathTable);

impl BatchPaths {
    fn new(others: &[Route]) -> Self {
        let own = ROWS
            .iter()
            .map(|(_, method, path, _)| (method.clone(), *path));
        let others = others
            .iter()
            .map(|route| (route.method.clone(), route.path));
        Self(PathTable::new(own.chain(others).collect()))
    }

    /// Returns what answers at a path; none where another product does.
    ///
    /// Errors: 400 for a path that cannot be normalised, 404, 405.
    pub(super) fn find(&self, method: &Method, path: &str) -> Result<Option<Target>, Fault> {
        let index = self.0.find(method, path, false)?;
        Ok(ROWS.get(index).map(|(_, _, _, target)| *target))
    }
}

/// Answers the requests of one row.
struct DecisionEndpoint {
    service: Arc<DecisionService>,
    target: Target,
    paths: Arc<BatchPaths>,
}

impl Endpoint for DecisionEndpoint {
    fn call<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Response, Fault>> {
        Box::pin(async move {
            let service = &*self.service;
            let response = match self.target {
                Target::Operation(operation) => {
                    endpoints::answer(service, operation, &request).await
                }
                Batch => batch::run(service, &self.paths, &request).await,
                Token => token::answer(service, &request).await,
                Webhook => webhook::answer(service, &request).await,
                EventStream => {
                    let subscription = event_stream::listen(service, &request).await?;
                    return Ok(Response {
                        body: Reply::Stream(Box::new(subscription)),
                        ..Response::json("")
                    });
                }
            };
            response.map(|response| endpoints::to_agent_response(service.compat, response))
        })
    }
}

/// Answers where the flag decisions are off.
struct SwitchedOff;

impl Endpoint for SwitchedOff {
    fn call<'a>(&'a self, _: Request<'a>) -> BoxFuture<'a, Result<Response, Fault>> {
        Box::pin(async { Err(Fault::new(FaultKind::NotFound, NOT_FOUND_MESSAGE)) })
    }
}
