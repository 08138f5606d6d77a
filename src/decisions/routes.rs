//! The decision endpoints' rows of the route table.

use std::sync::Arc;

use filters::fault::{Fault, FaultKind};
use futures::future::BoxFuture;
use http::Method;

use super::DecisionService;
use super::endpoints::batch::{self, BatchRoute, BatchRoutes};
use super::endpoints::{
    Handle, WriteFault, activate, config, datafile, decide, error_response, evaluation_error,
    event_stream, framed, lookup, ofrep_flag, ofrep_flags, overrides, save, send_odp_event, token,
    track, webhook,
};
use crate::config::Config;
use crate::proxy::handler::{Endpoint, Handler, Request};
use crate::proxy::response::Response;
use crate::proxy::router::{Access, BodyRule, ErrorStyle, NOT_FOUND_MESSAGE, Route};

/// What answers a row.
#[derive(Clone, Copy)]
enum Target {
    /// An endpoint that a batch may call.
    Operation(Handle),
    /// The same, of OpenFeature's protocol.
    Evaluation(Handle),
    /// An endpoint that stands alone.
    Single(Handle),
    /// An event stream, which reads no body.
    Stream(Handle),
    /// The batch.
    Batch,
}

/// Makes the handle of an endpoint's function. The request moves into the one future that is boxed.
macro_rules! boxed {
    ($handle:path) => {
        |service, request| Box::pin(async move { $handle(service, &request).await })
    };
}

/// Name, method, path and target. The endpoints check credentials.
static ROWS: [(&str, Method, &str, Target); 15] = [
    (
        "config",
        Method::GET,
        "/v1/config",
        Target::Operation(boxed!(config::handle)),
    ),
    (
        "datafile",
        Method::GET,
        "/v1/datafile",
        Target::Operation(boxed!(datafile::handle)),
    ),
    (
        "decide",
        Method::POST,
        "/v1/decide",
        Target::Operation(boxed!(decide::handle)),
    ),
    (
        "activate",
        Method::POST,
        "/v1/activate",
        Target::Operation(boxed!(activate::handle)),
    ),
    (
        "track",
        Method::POST,
        "/v1/track",
        Target::Operation(boxed!(track::handle)),
    ),
    (
        "overrides",
        Method::POST,
        "/v1/override",
        Target::Operation(boxed!(overrides::handle)),
    ),
    (
        "lookup",
        Method::POST,
        "/v1/lookup",
        Target::Operation(boxed!(lookup::handle)),
    ),
    (
        "save",
        Method::POST,
        "/v1/save",
        Target::Operation(boxed!(save::handle)),
    ),
    (
        "send_odp_event",
        Method::POST,
        "/v1/send-odp-event",
        Target::Operation(boxed!(send_odp_event::handle)),
    ),
    (
        "event_stream",
        Method::GET,
        "/v1/notifications/event-stream",
        Target::Stream(boxed!(event_stream::handle)),
    ),
    ("batch", Method::POST, "/v1/batch", Target::Batch),
    (
        "token",
        Method::POST,
        "/oauth/token",
        Target::Single(boxed!(token::handle)),
    ),
    (
        "webhook",
        Method::POST,
        "/webhooks/optimizely",
        Target::Single(boxed!(webhook::handle)),
    ),
    (
        "ofrep_flags",
        Method::POST,
        "/ofrep/v1/evaluate/flags",
        Target::Evaluation(boxed!(ofrep_flags::handle)),
    ),
    (
        "ofrep_flag",
        Method::POST,
        "/ofrep/v1/evaluate/flags/*",
        Target::Evaluation(boxed!(ofrep_flag::handle)),
    ),
];

/// Returns the rows; without a service every one of them answers 404. `others` are the rows of all other products.
pub fn routes(
    service: Option<&Arc<DecisionService>>,
    config: &Config,
    others: &[Route],
) -> Vec<Route> {
    let batch_routes = Arc::new(batch_routes(others));
    let body_bytes = &config.limits.body_bytes;
    let rows = ROWS.iter().map(|(name, method, path, target)| {
        let handler: Arc<dyn Endpoint> = match (service.cloned(), *target) {
            (None, _) => Arc::new(SwitchedOff),
            (
                Some(service),
                Target::Operation(handle)
                | Target::Evaluation(handle)
                | Target::Single(handle)
                | Target::Stream(handle),
            ) => Arc::new(DecisionEndpoint { service, handle }),
            (Some(service), Target::Batch) => Arc::new(BatchEndpoint {
                service,
                routes: Arc::clone(&batch_routes),
            }),
        };
        Route {
            name,
            method: method.clone(),
            path,
            access: Access::Open,
            quota: None,
            deprecation: None,
            takes_permit: false,
            body: match target {
                Target::Stream(_) => BodyRule::None,
                Target::Batch => BodyRule::Any(body_bytes.batch),
                Target::Operation(_) | Target::Evaluation(_) | Target::Single(_) => {
                    BodyRule::Any(body_bytes.decisions)
                }
            },
            errors: error_style(service, *target),
            handler: Handler::Endpoint(handler),
        }
    });
    rows.collect()
}

fn write_fault(target: Target) -> WriteFault {
    match target {
        Target::Evaluation(_) => evaluation_error,
        _ => error_response,
    }
}

fn error_style(service: Option<&Arc<DecisionService>>, target: Target) -> ErrorStyle {
    match service {
        Some(service) => {
            let (protocol, write) = (service.protocol, write_fault(target));
            Arc::new(move |fault, _| write(protocol, fault))
        }
        None => Arc::new(|fault, _| Response::from(fault)),
    }
}

/// The routes that an operation of a batch may name: the endpoints of decisions, and those of other products, which it cannot
/// call.
fn batch_routes(others: &[Route]) -> BatchRoutes {
    let own = ROWS.iter().map(|(name, method, path, target)| BatchRoute {
        name,
        method: method.clone(),
        path,
        handle: match target {
            Target::Operation(handle) | Target::Evaluation(handle) => Some(*handle),
            Target::Single(_) | Target::Stream(_) | Target::Batch => None,
        },
        errors: write_fault(*target),
    });
    let others = others.iter().map(|route| BatchRoute {
        name: route.name,
        method: route.method.clone(),
        path: route.path,
        handle: None,
        errors: error_response,
    });
    BatchRoutes::new(own.chain(others).collect())
}

/// Answers the requests of one row.
struct DecisionEndpoint {
    service: Arc<DecisionService>,
    handle: Handle,
}

impl Endpoint for DecisionEndpoint {
    fn call<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Response, Fault>> {
        (self.handle)(&self.service, request)
    }

    fn frame(&self, response: Response) -> Response {
        framed(self.service.protocol, response)
    }
}

/// Answers batches.
struct BatchEndpoint {
    service: Arc<DecisionService>,
    routes: Arc<BatchRoutes>,
}

impl Endpoint for BatchEndpoint {
    fn call<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Response, Fault>> {
        Box::pin(async move { batch::handle(&self.service, &self.routes, &request).await })
    }

    fn frame(&self, response: Response) -> Response {
        framed(self.service.protocol, response)
    }
}

/// Answers where the flag decisions are off.
struct SwitchedOff;

impl Endpoint for SwitchedOff {
    fn call<'a>(&'a self, _: Request<'a>) -> BoxFuture<'a, Result<Response, Fault>> {
        Box::pin(async { Err(Fault::new(FaultKind::NotFound, NOT_FOUND_MESSAGE)) })
    }
}
