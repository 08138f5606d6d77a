//! What clients of Responses ask beside answers. Source: docs/facts/responses.md 1.

use filters::fault::{Fault, FaultKind};
use filters::fault_code::FaultCode;
use futures::future::BoxFuture;
use http::{HeaderValue, header};

use crate::proxy::handler::{Endpoint, Request};
use crate::proxy::response::Response;

/// `GET /v1/responses` with `Upgrade`, by which clients ask for a WebSocket before they post. Behind a 426 they post at once, behind
/// any other refusal only after several tries.
pub struct Upgrade;

impl Endpoint for Upgrade {
    fn call<'a>(&'a self, _: Request<'a>) -> BoxFuture<'a, Result<Response, Fault>> {
        Box::pin(async {
            let message = "this path answers `POST`; it is not upgraded to another protocol";
            let fault = Fault::new(FaultKind::MethodNotAllowed, message)
                .with_status(426)
                .with_code(FaultCode::UpgradeNotSupported);
            let mut response = Response::from(&fault);
            // A 426 names what the server would speak.
            response.replace_headers(&[
                (header::UPGRADE, HeaderValue::from_static("HTTP/1.1")),
                (header::ALLOW, HeaderValue::from_static("POST")),
            ]);
            Ok(response)
        })
    }
}
