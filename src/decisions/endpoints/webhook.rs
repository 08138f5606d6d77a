//! `POST /webhooks/optimizely`: the editor announces a new datafile. Source: docs/facts/decision-engine.md E.

use bytes::Bytes;
use filters::decisions::request_body::check_media_type;
use filters::decisions::webhook::{SIGNATURE_HEADER, check_signature};
use filters::fault::Fault;

use crate::decisions::DecisionService;
use crate::proxy::handler::Request;
use crate::proxy::response::Response;

/// Refreshes the datafiles of the project, and then returns 204. A project without a webhook gets 204 at once.
///
/// Errors: 415; 400 for a body that is not a message, or has no valid signature.
pub async fn handle(service: &DecisionService, request: &Request<'_>) -> Result<Response, Fault> {
    check_media_type(request.headers, request.body)?;
    let id = service.protocol.read_webhook(request.body)?;
    let mut webhooks = service.webhooks.iter();
    let Some(webhook) = webhooks.find(|webhook| *webhook.project_id == *id) else {
        return Ok(no_content());
    };
    let signature = request.headers.get(SIGNATURE_HEADER);
    let signature = signature.map_or(&b""[..], |value| value.as_bytes());
    let secret = webhook.secret.as_ref();
    let secret = secret.map(|secret| secret.expose().as_bytes());
    check_signature(secret, request.body, signature)?;
    if let Some(remote) = &service.remote_datafiles {
        remote.refresh(&webhook.sdk_keys).await;
    }
    Ok(no_content())
}

fn no_content() -> Response {
    Response {
        status: 204,
        ..Response::json(Bytes::new())
    }
}
