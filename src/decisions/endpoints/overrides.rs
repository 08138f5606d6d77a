//! `POST /v1/override`: what a user gets in an experiment whatever the datafile says.

use filters::decisions::Compat;
use filters::fault::{AgentForm, Fault, FaultKind};
use filters::json::{Object, Str};

use super::DecisionContext;
use crate::proxy::response::Response;

/// A list of one result; the agent of old answers the result alone.
pub(super) fn answer(asked: &DecisionContext<'_>) -> Result<Response, Fault> {
    let Some(overrides) = &asked.flags.overrides else {
        let off = Fault::new(FaultKind::Forbidden, "Overrides not enabled");
        return Err(off.with_agent_form(AgentForm::Text));
    };
    let body = asked.body()?.overriding()?;
    let (experiment, variation) = (&*body.experiment_key, &*body.variation_key);
    let before = overrides.set(&asked.sdk_key, &body.user_id, experiment, variation);
    let (is_experiment, is_variation) = asked.loaded.project.has_variation(experiment, variation);
    let mut messages = Vec::new();
    match (variation.is_empty(), before.is_some()) {
        (true, true) => messages.push("removing previous override"),
        (true, false) => messages.push("no pre-existing override"),
        (false, _) => {
            if !is_experiment {
                messages.push("experimentKey not found in configuration");
            } else if !is_variation {
                messages.push("variationKey not found in configuration");
            }
            if before.is_some() {
                messages.push("updating previous override");
            }
        }
    }
    let is_agent = asked.compat() == Compat::Agent;
    let mut out = if is_agent { Vec::new() } else { b"[".to_vec() };
    let mut result = Object::open(&mut out);
    result.text("userId", &body.user_id);
    result.text("experimentKey", experiment);
    result.text("variationKey", variation);
    result.text("prevVariationKey", before.as_deref().unwrap_or_default());
    if messages.is_empty() && is_agent {
        result.raw("messages", "null");
    } else {
        result.array("messages", messages, |message, out| {
            Str::Plain(message).write(out)
        });
    }
    result.close();
    if !is_agent {
        out.push(b']');
    }
    Ok(Response::json(out))
}
