//! `POST /v1/send-odp-event`: an event of a user, of which the customer-data platform makes segments.

use filters::decisions::protocol::Protocol;
use filters::fault::{Fault, FaultKind};
use filters::json::Object;

use super::context::DecisionContext;
use crate::decisions::DecisionService;
use crate::decisions::uuid::new_uuid;
use crate::proxy::handler::Request;
use crate::proxy::response::Response;

/// Queues the event: `{"success":true}`.
///
/// Errors: 400 for a missing member and for data that cannot be sent, 403 for a project without a platform.
pub async fn handle(service: &DecisionService, request: &Request<'_>) -> Result<Response, Fault> {
    let context = DecisionContext::open(service, request).await?;
    let protocol = context.protocol();
    let target = service.segments.target(context.loaded.project.odp.as_ref());
    let checks_target_first = protocol.endpoint_rules().checks_platform_before_data;
    let event = match context.read_body()?.into_odp_event() {
        Err(fault)
            if fault.kind == FaultKind::Internal && target.is_none() && checks_target_first =>
        {
            return Err(not_integrated(protocol));
        }
        event => event?,
    };
    let (host, key) = target.ok_or_else(|| not_integrated(protocol))?;
    let event = event.to_json(&new_uuid(), protocol.event_client().name);
    service.odp_events.send((host.into(), key.into()), &event);
    let mut out = Vec::new();
    let mut body = Object::open(&mut out);
    body.bool("success", true);
    body.close();
    Ok(Response::json(out))
}

fn not_integrated(protocol: &dyn Protocol) -> Fault {
    protocol.lacking(FaultKind::Forbidden, "ODP is not integrated")
}
