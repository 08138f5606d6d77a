//! `GET /v1/notifications/event-stream`: decisions, conversions and new datafiles as they happen.
//! Source: docs/facts/decision-engine.md E.

use filters::fault::Fault;

use super::context::authorize;
use crate::decisions::DecisionService;
use crate::proxy::handler::Request;
use crate::proxy::response::{Reply, Response};

/// Returns a stream of the notices of the caller's project.
///
/// Errors: as other requests; 403 if notifications are off; 400 for a filter that the protocol does not know.
pub async fn handle(service: &DecisionService, request: &Request<'_>) -> Result<Response, Fault> {
    let (sdk_key, _) = authorize(service, request).await?;
    let protocol = service.protocol;
    let Some(notifications) = &service.notifications else {
        return Err(protocol.switched_off("Notification stream not enabled"));
    };
    let is_raw = request.values("raw").next().is_some();
    let mut topics = Vec::new();
    for filter in request.values("filter") {
        for name in filter.split(',').filter(|name| !name.is_empty()) {
            topics.extend(protocol.read_topic(name)?);
        }
    }
    let subscription = notifications.subscribe(&sdk_key, topics, is_raw, protocol);
    Ok(Response {
        body: Reply::Stream(Box::new(subscription)),
        ..Response::json("")
    })
}
