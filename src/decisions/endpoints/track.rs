//! `POST /v1/track`: a conversion.

use filters::decisions::event;
use filters::decisions::notice;
use filters::decisions::notice::Topic;
use filters::fault::{Fault, FaultKind, quoted};

use super::context::DecisionContext;
use crate::decisions::DecisionService;
use crate::decisions::uuid::new_uuid;
use crate::proxy::handler::Request;
use crate::proxy::response::Response;

/// Queues the event. If the datafile does not contain the event, the response says so.
///
/// Errors: 400 for a body without a required member, and without an event key.
pub async fn handle(service: &DecisionService, request: &Request<'_>) -> Result<Response, Fault> {
    let context = DecisionContext::open(service, request).await?;
    let mut body = context.read_body()?;
    let user = body.optional_user()?;
    let tags = body.event_tags()?;
    let key = request.values("eventKey").next().unwrap_or_default();
    if key.is_empty() {
        let message = "missing required path parameter: eventKey";
        return Err(Fault::new(FaultKind::Invalid, message).with_param("eventKey"));
    }
    let uuid = new_uuid();
    let moment = context.moment(&user, &uuid);
    let error = match event::conversion(&context.loaded.project, &key, &tags, &moment) {
        Some(visitor) => {
            context.publish(Topic::Track, || notice::track(&key, &user, &tags, &visitor));
            service.events.send(context.event_head(), visitor);
            None
        }
        None => Some(format!("event with key \"{}\" not found", quoted(&key))),
    };
    let body = context
        .protocol()
        .write_track(&user.id, &key, error.as_deref());
    Ok(Response::json(body))
}
