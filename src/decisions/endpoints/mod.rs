//! The decision endpoints: a file each, with one function that returns the response to a request, so that a batch can call
//! them too. The bytes of bodies and errors are the protocol's (`filters::decisions::protocol`).
//!
//! Source: docs/decision-agent.md 4; where it is silent, docs/facts/decision-engine.md D and E.

mod activate;
pub mod batch;
mod config;
mod context;
mod datafile;
mod decide;
pub mod event_stream;
mod lookup;
mod ofrep_flag;
mod ofrep_flags;
mod overrides;
mod save;
mod send_odp_event;
pub mod token;
mod track;
mod user_state;
pub mod webhook;

use std::borrow::Cow;

use filters::decisions::protocol::Protocol;
use filters::fault::Fault;
use filters::form;
use futures::future::BoxFuture;
use http::HeaderMap;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, X_CONTENT_TYPE_OPTIONS};

use crate::decisions::DecisionService;
use crate::proxy::response::Response;

/// The headers of plain text.
const TEXT_HEADERS: [(HeaderName, HeaderValue); 2] = [
    (
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    ),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
];

/// Returns the response of an endpoint to a request.
pub type Handle =
    for<'a> fn(&'a DecisionService, &'a Request<'a>) -> BoxFuture<'a, Result<Response, Fault>>;

/// The endpoints that a batch may call, by the names of their routes.
const OPERATIONS: [(&str, Handle); 11] = [
    ("config", |service, request| {
        Box::pin(config::handle(service, request))
    }),
    ("datafile", |service, request| {
        Box::pin(datafile::handle(service, request))
    }),
    ("decide", |service, request| {
        Box::pin(decide::handle(service, request))
    }),
    ("activate", |service, request| {
        Box::pin(activate::handle(service, request))
    }),
    ("track", |service, request| {
        Box::pin(track::handle(service, request))
    }),
    ("overrides", |service, request| {
        Box::pin(overrides::handle(service, request))
    }),
    ("lookup", |service, request| {
        Box::pin(lookup::handle(service, request))
    }),
    ("save", |service, request| {
        Box::pin(save::handle(service, request))
    }),
    ("send_odp_event", |service, request| {
        Box::pin(send_odp_event::handle(service, request))
    }),
    ("ofrep_flag", |service, request| {
        Box::pin(ofrep_flag::handle(service, request))
    }),
    ("ofrep_flags", |service, request| {
        Box::pin(ofrep_flags::handle(service, request))
    }),
];

/// The endpoint that a batch may call, by the name of its route.
pub fn operation(name: &str) -> Option<Handle> {
    let mut operations = OPERATIONS.iter();
    operations
        .find(|(own, _)| *own == name)
        .map(|(_, handle)| *handle)
}

/// One request.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Its headers.
    pub headers: &'a HeaderMap,
    /// The path as it came.
    pub path: &'a str,
    /// The query, undecoded.
    pub query: &'a str,
    /// The body.
    pub body: &'a [u8],
    /// Unix time.
    pub now_ms: u64,
}

impl<'a> Request<'a> {
    /// Values of a query parameter, in order.
    fn values(&self, name: &str) -> impl Iterator<Item = Cow<'a, str>> {
        form::values(self.query, name)
    }

    fn is_true(&self, name: &str) -> bool {
        self.values(name)
            .last()
            .is_some_and(|value| value == "true")
    }
}

/// A fault as `protocol` writes it.
pub fn error_response(protocol: &dyn Protocol, fault: &Fault) -> Response {
    let body = protocol.write_error(fault);
    let mut response = Response {
        body: body.bytes.into(),
        ..Response::from(fault)
    };
    if body.is_text {
        response.headers.extend(TEXT_HEADERS);
    }
    response
}

/// The same response, with its body as `protocol` writes it.
pub fn framed(protocol: &dyn Protocol, response: Response) -> Response {
    Response {
        body: protocol.write(response.body),
        ..response
    }
}
