//! What the server answers without a key: who it is, and what pages may send.

use std::sync::Arc;

use filters::fault::{Fault, FaultKind};
use filters::mcp::answer;
use filters::mcp::origin::preflight_headers;
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderName, HeaderValue, header};

use super::{Mcp, PATH, response};
use crate::proxy::handler::{Endpoint, Request};
use crate::proxy::response::Response;

/// `GET /mcp`: tells who the server is. It sends no messages of its own, so there is no stream of them.
pub(super) struct Info(pub(super) Arc<Mcp>);

/// `OPTIONS /mcp`: a page asks before its request.
pub(super) struct Preflight(pub(super) Arc<Mcp>);

impl Endpoint for Info {
    fn call<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Response, Fault>> {
        let answered = headers(&self.0, &request).map(|mut headers| {
            if !wants_events(request.headers) {
                return response(200, headers, answer::info(PATH));
            }
            let methods = HeaderValue::from_static("POST");
            headers.push((header::ALLOW, methods));
            response(405, headers, Vec::new())
        });
        Box::pin(async { answered })
    }
}

impl Endpoint for Preflight {
    fn call<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Response, Fault>> {
        let answered = headers(&self.0, &request).map(|mut headers| {
            headers.extend(preflight_headers());
            response(204, headers, Vec::new())
        });
        Box::pin(async { answered })
    }
}

/// Checks where a request comes from, and returns the headers of its response.
///
/// Errors: 403.
fn headers(mcp: &Mcp, request: &Request<'_>) -> Result<Vec<(HeaderName, HeaderValue)>, Fault> {
    let host = request.headers.get(header::HOST);
    let host = host.and_then(|host| host.to_str().ok());
    let checked = mcp.origins.check(host, request.headers);
    checked.map_err(|message| Fault::new(FaultKind::Forbidden, message))?;
    Ok(mcp.headers(host, request.headers))
}

fn wants_events(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter();
    let mut accepted = accepted.filter_map(|value| value.to_str().ok());
    accepted.any(|value| value.contains("text/event-stream"))
}
