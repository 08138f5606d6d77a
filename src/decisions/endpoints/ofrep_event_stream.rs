//! `GET /ofrep/v1/event-stream`: tells a client when to evaluate its flags again. Source: docs/decisions.md 24.

use filters::fault::{Fault, FaultKind};

use super::context::{authorize, find_project};
use crate::decisions::DecisionService;
use crate::proxy::handler::Request;
use crate::proxy::response::{Reply, Response};

/// The header with the id of the last event that a client has seen.
const LAST_EVENT_ID: &str = "last-event-id";
/// The seconds after which a client may find room for its stream.
const RETRY_AFTER_S: u32 = 30;

/// Returns the stream of a project's changes. The SDK key comes from the ticket of an answer with all flags, or from the
/// credentials of the other endpoints.
///
/// Errors: 403 if streams are off; 401 for a ticket that is damaged or too old; as other requests; 503 if too many streams are open.
pub async fn handle(service: &DecisionService, request: &Request<'_>) -> Result<Response, Fault> {
    let streams = &service.change_streams;
    if streams.max == 0 {
        return Err(service.protocol.switched_off("Event streams not enabled"));
    }
    let sdk_key = match request.values("ticket").last() {
        Some(ticket) => streams.tickets.read(&ticket, request.now_ms).ok_or_else(|| {
            let message = "`ticket` is damaged or older than a day: evaluate all flags again, the answer has a new one";
            Fault::new(FaultKind::Unauthenticated, message)
        })?,
        None => authorize(service, request).await?.0,
    };
    let last_event_id = request.headers.get(LAST_EVENT_ID);
    let last_event_id = last_event_id.map(http::HeaderValue::as_bytes);
    let loaded = find_project(service, &sdk_key);
    let key = service.datafile_key(&sdk_key);
    let Some(stream) = streams.open(key, last_event_id, loaded).await? else {
        let message = format!(
            "{} streams are open, as many as `decisions.event_streams` allows: poll instead",
            streams.max
        );
        return Err(Fault::new(FaultKind::Unavailable, message).with_retry_after_s(RETRY_AFTER_S));
    };
    Ok(Response {
        body: Reply::Stream(Box::new(stream)),
        ..Response::json("")
    })
}
