//! `POST /v1/lookup`: the profile of a user.

use filters::decisions::response_body;
use filters::fault::{Fault, FaultKind};

use super::context::DecisionContext;
use crate::decisions::DecisionService;
use crate::proxy::handler::Request;
use crate::proxy::response::Response;
use crate::redis::Unavailable;

/// Returns the profile.
///
/// Errors: 403 if profiles are not stored; 503 if Redis does not respond, unless the protocol ignores that.
pub async fn handle(service: &DecisionService, request: &Request<'_>) -> Result<Response, Fault> {
    let context = DecisionContext::open(service, request).await?;
    check_profiles(&context)?;
    let user = context.read_body()?.user()?;
    let found = context.profiles()?.find(&context.sdk_key, &user.id).await;
    let profile = or_outage(&context, found)?;
    Ok(Response::json(response_body::profile_body(
        &user.id, &profile,
    )))
}

/// Checks that profiles are stored, if the protocol checks this before it reads the body. Errors: 403.
pub(super) fn check_profiles(context: &DecisionContext<'_>) -> Result<(), Fault> {
    if context.protocol().endpoint_rules().checks_profiles_first {
        context.profiles()?;
    }
    Ok(())
}

/// Returns the reply of Redis. Errors: 503 if there was none, unless the protocol ignores that.
pub(super) fn or_outage<T: Default>(
    context: &DecisionContext<'_>,
    found: Result<T, Unavailable>,
) -> Result<T, Fault> {
    found.or_else(|Unavailable| {
        if context.protocol().endpoint_rules().ignores_profile_outage {
            return Ok(T::default());
        }
        let message = "profiles cannot be reached right now: try again in a second";
        let fault = Fault::new(FaultKind::Unavailable, message).with_retry_after_s(1);
        Err(fault.with_detail("shared.redis does not answer"))
    })
}
