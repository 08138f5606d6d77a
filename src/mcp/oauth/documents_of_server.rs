//! The documents that lead clients to the server.

use filters::fault::Fault;
use filters::mcp::oauth::metadata;
use futures::future::BoxFuture;

use super::response;
use super::{Here, OAuth};
use crate::proxy::handler::Request;
use crate::proxy::response::Response;

/// `GET /.well-known/oauth-authorization-server`, with or without `/mcp`.
pub(super) fn server<'a>(
    oauth: &'a OAuth,
    request: Request<'a>,
) -> BoxFuture<'a, Result<Response, Fault>> {
    let here = oauth.here(&request);
    let body = here.map(|here| metadata::server(&here.issuer));
    Box::pin(async { Ok(response::json(200, body?.to_string())) })
}

/// `GET /.well-known/oauth-protected-resource`, with or without `/mcp`.
pub(super) fn resource<'a>(
    oauth: &'a OAuth,
    request: Request<'a>,
) -> BoxFuture<'a, Result<Response, Fault>> {
    let here = oauth.here(&request);
    let body = here.map(|Here { issuer, resource }| metadata::resource(&issuer, &resource));
    Box::pin(async { Ok(response::json(200, body?.to_string())) })
}

/// `OPTIONS` of these documents and of the endpoints for programs.
pub(super) fn preflight<'a>(
    _: &'a OAuth,
    _: Request<'a>,
) -> BoxFuture<'a, Result<Response, Fault>> {
    Box::pin(async { Ok(response::preflight()) })
}
