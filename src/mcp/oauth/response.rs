//! Responses of the authorization server, and the reasons of refusals.

use filters::fault::Fault;
use filters::mcp::oauth::error::{OAuthError, fault_body};
use http::{HeaderName, HeaderValue, header};
use serde_json::Value;

use crate::proxy::response::Response;

/// The reason for which a request is refused.
pub(super) enum OAuthRefusal {
    /// The request is wrong in the sense of OAuth.
    Error(OAuthError),
    /// The gateway refuses the request.
    Fault(Fault),
}

impl From<OAuthError> for OAuthRefusal {
    fn from(error: OAuthError) -> Self {
        Self::Error(error)
    }
}

impl From<Fault> for OAuthRefusal {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// Returns a response that pages of all origins may read, and that must not be cached.
pub(super) fn json(status: u16, body: impl Into<bytes::Bytes>) -> Response {
    Response {
        status,
        headers: open_headers().to_vec(),
        body: crate::proxy::response::Reply::Bytes(body.into()),
    }
}

/// Returns the response with a value, or for a refusal.
///
/// Errors: the fault of the refusal.
pub(super) fn answer(given: Result<Value, OAuthRefusal>) -> Result<Response, Fault> {
    match given {
        Ok(value) => Ok(json(200, value.to_string())),
        Err(OAuthRefusal::Error(error)) => Ok(refusal(&error)),
        Err(OAuthRefusal::Fault(fault)) => Err(fault),
    }
}

/// Returns the response to a wrong request.
pub(super) fn refusal(error: &OAuthError) -> Response {
    let mut response = json(error.status(), error.body());
    if response.status == 401 {
        let basic = HeaderValue::from_static("Basic realm=\"mcp\"");
        response.headers.push((header::WWW_AUTHENTICATE, basic));
    }
    response
}

/// Returns the response for a fault.
pub(super) fn fault_response(fault: &Fault) -> Response {
    let mut response = Response {
        body: fault_body(fault).into(),
        ..Response::from(fault)
    };
    response.headers.extend(open_headers());
    response
}

fn open_headers() -> [(HeaderName, HeaderValue); 2] {
    [
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (
            header::ACCESS_CONTROL_ALLOW_ORIGIN,
            HeaderValue::from_static("*"),
        ),
    ]
}

/// Returns the response to a preflight request of a page.
pub(super) fn preflight() -> Response {
    let mut response = json(204, Vec::new());
    for (name, value) in [
        (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST"),
        (
            header::ACCESS_CONTROL_ALLOW_HEADERS,
            "authorization, content-type, accept, mcp-protocol-version",
        ),
        (header::ACCESS_CONTROL_MAX_AGE, "7200"),
    ] {
        response
            .headers
            .push((name, HeaderValue::from_static(value)));
    }
    response
}
