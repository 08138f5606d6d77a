//! The decision endpoints' rows of the route table.

use std::sync::Arc;

use filters::fault::{Fault, FaultKind};
use futures::future::BoxFuture;
use http::Method;

use super::DecisionService;
use super::change_streams;
use super::endpoints::batch::{self, BatchRoute, BatchRoutes};
use super::endpoints::{
    Handle, WriteFault, activate, config, datafile, decide, error_response, evaluation_error,
    event_stream, explain_decision, framed, lookup, ofrep_event_stream, ofrep_flag, ofrep_flags,
    overrides, save, send_odp_event, token, track, webhook,
};
use crate::config::Config;
use crate::proxy::handler::{Endpoint, Handler, Request};
use crate::proxy::response::Response;
use crate::proxy::router::{Access, BodyRule, ErrorStyle, NOT_FOUND_MESSAGE, Route};

/// The handler of a row.
#[derive(Clone, Copy)]
enum RowTarget {
    /// An endpoint that a batch may call.
    Operation(Handle),
    /// An operation of OpenFeature's protocol.
    Evaluation(Handle),
    /// An endpoint that a batch cannot call.
    Single(Handle),
    /// An event stream, whose request has no body.
    Stream(Handle),
    Batch,
}

/// Makes the handle of an endpoint's function. The request moves into the single boxed future.
macro_rules! boxed {
    ($handle:path) => {
        |service, request| Box::pin(async move { $handle(service, &request).await })
    };
}

/// Name, method, path, target and description. The endpoints check credentials.
static ROWS: [(&str, Method, &str, RowTarget, &str); 17] = [
    (
        "config",
        Method::GET,
        "/v1/config",
        RowTarget::Operation(boxed!(config::handle)),
        include_str!("endpoints/config.json"),
    ),
    (
        "datafile",
        Method::GET,
        "/v1/datafile",
        RowTarget::Operation(boxed!(datafile::handle)),
        include_str!("endpoints/datafile.json"),
    ),
    (
        "decide",
        Method::POST,
        "/v1/decide",
        RowTarget::Operation(boxed!(decide::handle)),
        include_str!("endpoints/decide.json"),
    ),
    (
        "explain_decision",
        Method::POST,
        "/v1/decide/explain",
        RowTarget::Operation(boxed!(explain_decision::handle)),
        include_str!("endpoints/explain_decision.json"),
    ),
    (
        "activate",
        Method::POST,
        "/v1/activate",
        RowTarget::Operation(boxed!(activate::handle)),
        include_str!("endpoints/activate.json"),
    ),
    (
        "track",
        Method::POST,
        "/v1/track",
        RowTarget::Operation(boxed!(track::handle)),
        include_str!("endpoints/track.json"),
    ),
    (
        "overrides",
        Method::POST,
        "/v1/override",
        RowTarget::Operation(boxed!(overrides::handle)),
        include_str!("endpoints/overrides.json"),
    ),
    (
        "lookup",
        Method::POST,
        "/v1/lookup",
        RowTarget::Operation(boxed!(lookup::handle)),
        include_str!("endpoints/lookup.json"),
    ),
    (
        "save",
        Method::POST,
        "/v1/save",
        RowTarget::Operation(boxed!(save::handle)),
        include_str!("endpoints/save.json"),
    ),
    (
        "send_odp_event",
        Method::POST,
        "/v1/send-odp-event",
        RowTarget::Operation(boxed!(send_odp_event::handle)),
        include_str!("endpoints/send_odp_event.json"),
    ),
    (
        "event_stream",
        Method::GET,
        "/v1/notifications/event-stream",
        RowTarget::Stream(boxed!(event_stream::handle)),
        include_str!("endpoints/event_stream.json"),
    ),
    (
        "batch",
        Method::POST,
        "/v1/batch",
        RowTarget::Batch,
        include_str!("endpoints/batch.json"),
    ),
    (
        "token",
        Method::POST,
        "/oauth/token",
        RowTarget::Single(boxed!(token::handle)),
        include_str!("endpoints/token.json"),
    ),
    (
        "webhook",
        Method::POST,
        "/webhooks/optimizely",
        RowTarget::Single(boxed!(webhook::handle)),
        include_str!("endpoints/webhook.json"),
    ),
    (
        "ofrep_flags",
        Method::POST,
        "/ofrep/v1/evaluate/flags",
        RowTarget::Evaluation(boxed!(ofrep_flags::handle)),
        include_str!("endpoints/ofrep_flags.json"),
    ),
    (
        "ofrep_event_stream",
        Method::GET,
        change_streams::PATH,
        RowTarget::Stream(boxed!(ofrep_event_stream::handle)),
        include_str!("endpoints/ofrep_event_stream.json"),
    ),
    (
        "ofrep_flag",
        Method::POST,
        "/ofrep/v1/evaluate/flags/**",
        RowTarget::Evaluation(boxed!(ofrep_flag::handle)),
        include_str!("endpoints/ofrep_flag.json"),
    ),
];

/// Returns the rows. Without a service each of them responds with 404. `others` are the rows of all other products.
pub fn routes(
    service: Option<&Arc<DecisionService>>,
    config: &Config,
    others: &[Route],
) -> Vec<Route> {
    let batch_routes = Arc::new(batch_routes(others));
    let body_bytes = &config.limits.body_bytes;
    let rows = ROWS
        .iter()
        .map(|(name, method, path, target, description)| {
            let handler: Arc<dyn Endpoint> = match (service.cloned(), *target) {
                (None, _) => Arc::new(SwitchedOff),
                (
                    Some(service),
                    RowTarget::Operation(handle)
                    | RowTarget::Evaluation(handle)
                    | RowTarget::Single(handle)
                    | RowTarget::Stream(handle),
                ) => Arc::new(DecisionEndpoint { service, handle }),
                (Some(service), RowTarget::Batch) => Arc::new(BatchEndpoint {
                    service,
                    routes: Arc::clone(&batch_routes),
                }),
            };
            Route {
                name,
                method: method.clone(),
                path,
                access: match target {
                    RowTarget::Operation(_)
                    | RowTarget::Evaluation(_)
                    | RowTarget::Stream(_)
                    | RowTarget::Batch => Access::SdkKey,
                    RowTarget::Single(_) => Access::Open,
                },
                quota: None,
                deprecation: None,
                takes_permit: false,
                body: match target {
                    _ if !service.is_some_and(|service| reads_body(service, name)) => {
                        BodyRule::None
                    }
                    RowTarget::Stream(_) => BodyRule::None,
                    RowTarget::Batch => BodyRule::Any(body_bytes.batch),
                    RowTarget::Operation(_) | RowTarget::Evaluation(_) | RowTarget::Single(_) => {
                        BodyRule::Any(body_bytes.decisions)
                    }
                },
                errors: error_style(service, *target),
                description,
                is_on: service.is_some_and(|service| is_on(service, name)),
                handler: Handler::Endpoint(handler),
            }
        });
    rows.collect()
}

/// Returns whether the configuration lets an endpoint do its work.
fn is_on(service: &DecisionService, name: &str) -> bool {
    match name {
        "overrides" => service.overrides.is_some(),
        "lookup" | "save" => service.profiles.is_some(),
        "event_stream" => service.notifications.is_some(),
        "ofrep_event_stream" => service.change_streams.max > 0,
        "token" => !service.clients.is_empty(),
        "webhook" => !service.webhooks.is_empty(),
        _ => true,
    }
}

/// Returns whether an endpoint reads its body. An endpoint that is off refuses first, and takes no memory for a body.
fn reads_body(service: &DecisionService, name: &str) -> bool {
    match name {
        "overrides" => service.overrides.is_some(),
        "lookup" | "save" => {
            service.profiles.is_some() || !service.protocol.endpoint_rules().checks_profiles_first
        }
        _ => true,
    }
}

fn write_fault(target: RowTarget) -> WriteFault {
    match target {
        RowTarget::Evaluation(_) => evaluation_error,
        _ => error_response,
    }
}

fn error_style(service: Option<&Arc<DecisionService>>, target: RowTarget) -> ErrorStyle {
    match service {
        Some(service) => {
            let (protocol, write) = (service.protocol, write_fault(target));
            let schema = match target {
                RowTarget::Evaluation(_) => "EvaluationError",
                _ => "DecisionError",
            };
            ErrorStyle {
                schema: protocol.is_described().then_some(schema),
                write: Arc::new(move |fault, _| write(protocol, fault)),
            }
        }
        None => ErrorStyle::compatible(),
    }
}

/// Returns the routes that an operation of a batch may name: the endpoints of decisions, and the routes of other
/// products, which a batch cannot call.
fn batch_routes(others: &[Route]) -> BatchRoutes {
    let own = ROWS
        .iter()
        .map(|(name, method, path, target, _)| BatchRoute {
            name,
            method: method.clone(),
            path,
            handle: match target {
                RowTarget::Operation(handle) | RowTarget::Evaluation(handle) => Some(*handle),
                RowTarget::Single(_) | RowTarget::Stream(_) | RowTarget::Batch => None,
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

/// Responds to the requests of one row.
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

/// Responds to batches.
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

/// Responds if the flag decisions are off.
struct SwitchedOff;

impl Endpoint for SwitchedOff {
    fn call<'a>(&'a self, _: Request<'a>) -> BoxFuture<'a, Result<Response, Fault>> {
        Box::pin(async { Err(Fault::new(FaultKind::NotFound, NOT_FOUND_MESSAGE)) })
    }
}
