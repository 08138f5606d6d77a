//! The decision endpoints. Each file has one function that returns the response to a request, so that a batch can
//! call it too. The protocol writes the bytes of bodies and errors (`filters::decisions::protocol`).
//!
//! Source: docs/decision-agent.md 4, and where it says nothing, docs/facts/decision-engine.md D and E.

pub mod activate;
pub mod batch;
pub mod config;
mod context;
pub mod datafile;
pub mod decide;
pub mod event_stream;
pub mod explain_decision;
pub mod flag;
pub mod lookup;
pub mod ofrep_event_stream;
pub mod ofrep_flag;
pub mod ofrep_flags;
pub mod overrides;
pub mod save;
pub mod send_odp_event;
pub mod token;
pub mod track;
mod user_state;
pub mod webhook;

use filters::decisions::ofrep;
use filters::decisions::protocol::Protocol;
use filters::fault::Fault;
use futures::future::BoxFuture;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, X_CONTENT_TYPE_OPTIONS};

use crate::decisions::DecisionService;
use crate::proxy::handler::Request;
use crate::proxy::response::{Reply, Response};

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
    for<'a> fn(&'a DecisionService, Request<'a>) -> BoxFuture<'a, Result<Response, Fault>>;

/// Writes the fault of an endpoint.
pub type WriteFault = fn(&dyn Protocol, &Fault) -> Response;

/// Returns a fault in `protocol`'s form.
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

/// Returns a fault of an endpoint of OpenFeature's protocol, which has its own form in every protocol.
pub fn evaluation_error(protocol: &dyn Protocol, fault: &Fault) -> Response {
    let response = Response {
        body: ofrep::write_fault(fault).into(),
        ..Response::from(fault)
    };
    framed(protocol, response)
}

/// Returns the same response, with its body in `protocol`'s form.
pub fn framed(protocol: &dyn Protocol, response: Response) -> Response {
    match response.body {
        Reply::Bytes(json) => Response {
            body: protocol.write(json).into(),
            ..response
        },
        Reply::Stream(_) | Reply::Pieces(_) => response,
    }
}
