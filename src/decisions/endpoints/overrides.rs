//! `POST /v1/override`: sets the variation of a user in an experiment, whatever the datafile says.

use filters::decisions::override_result::OverrideResult;
use filters::fault::Fault;

use super::context::DecisionContext;
use crate::decisions::DecisionService;
use crate::proxy::handler::Request;
use crate::proxy::response::Response;

/// Sets or removes an override.
///
/// Errors: 403 if overrides are off, 400 without a user or an experiment.
pub async fn handle(service: &DecisionService, request: &Request<'_>) -> Result<Response, Fault> {
    let context = DecisionContext::open(service, request).await?;
    let protocol = context.protocol();
    let Some(overrides) = &service.overrides else {
        return Err(protocol.switched_off("Overrides not enabled"));
    };
    let asked = context.read_body()?.into_override()?;
    let previous = overrides.set(
        &context.sdk_key,
        &asked.user_id,
        &asked.experiment_key,
        &asked.variation_key,
    );
    let result = OverrideResult::new(&asked, previous.as_deref(), &context.loaded.project);
    Ok(Response::json(protocol.write_override(&result)))
}
