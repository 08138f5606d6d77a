//! `POST /v1/send-odp-event`: what a user did, for the segments they are in.

use filters::decisions::Compat;
use filters::fault::{Fault, FaultKind};
use filters::json::Object;

use super::DecisionContext;
use crate::decisions::new_uuid;
use crate::proxy::response::Response;

/// Queues the event: `{"success":true}`.
///
/// Errors: 400 and 500 in the agent's words; 500 where the project names no platform.
pub(super) fn answer(asked: &DecisionContext<'_>) -> Result<Response, Fault> {
    let (flags, project) = (asked.flags, &asked.loaded.project);
    let place = flags.segments.place(project.odp.as_ref());
    let event = match asked.body()?.segment_event() {
        // The agent of old looks at what is to be told once it knows where.
        Err(fault)
            if fault.kind == FaultKind::Internal
                && place.is_none()
                && asked.compat() == Compat::Agent =>
        {
            return Err(nowhere());
        }
        event => event?,
    };
    let (host, key) = place.ok_or_else(nowhere)?;
    let written = event.written(&new_uuid(), asked.compat());
    flags
        .segment_events
        .send((host.into(), key.into()), written);
    let mut out = Vec::new();
    let mut answer = Object::open(&mut out);
    answer.bool("success", true);
    answer.close();
    Ok(Response::json(out))
}

fn nowhere() -> Fault {
    Fault::new(FaultKind::Internal, "ODP is not integrated")
}
