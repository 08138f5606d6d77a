//! `POST /v1/decide/explain`: the decisions of `/v1/decide`, with each rule of the flags. It sends no event and no
//! notice, and stores nothing about the user.

use filters::decisions::Options;
use filters::decisions::decide::{Decision, PredictionRequest, decide};
use filters::decisions::explain::explain;
use filters::decisions::request_body::SegmentOptions;
use filters::decisions::response_body;
use filters::fault::Fault;
use serde_json::Value;

use super::context::DecisionContext;
use super::decide::wanted_keys;
use super::user_state::{UserItem, UserState};
use crate::decisions::DecisionService;
use crate::proxy::handler::Request;
use crate::proxy::response::Response;

/// A decision with the rules of its flag, as JSON.
struct Explained<'p> {
    decision: Decision<'p>,
    rules: String,
}

impl UserItem for Explained<'_> {
    fn wants(&self) -> Option<&PredictionRequest<'_>> {
        self.decision.wants.as_ref()
    }

    fn reason_bytes(&self) -> usize {
        self.decision.reason_bytes() + self.rules.len()
    }
}

/// Returns a list of decisions with their rules, in the order of the request or the datafile. Options about caches
/// have no effect.
///
/// Errors: as [`super::decide::handle`].
pub async fn handle(service: &DecisionService, request: &Request<'_>) -> Result<Response, Fault> {
    let context = DecisionContext::open(service, request).await?;
    let body = context.read_body()?.into_decide()?;
    let wanted = wanted_keys(&context, request)?;
    let options = Options {
        disable_decision_event: true,
        include_reasons: true,
        ignore_cmab_cache: false,
        reset_cmab_cache: false,
        invalidate_user_cmab_cache: false,
        ..body.options
    };
    let project = &context.loaded.project;
    let mut state = UserState::new(&context, &body.user, &body.forced, options).await;
    if body.fetch_segments {
        Box::pin(state.fetch_segments(SegmentOptions::default())).await?;
    }
    let all = state.decide(&wanted, |key, inputs| {
        let decision = decide(project, key, inputs);
        let rules = Value::from(explain(project, key, inputs, &decision)).to_string();
        Explained { decision, rules }
    });
    let all = all.await?;
    let shape = context.protocol().result_shape();
    let is_listed = |one: &&Explained<'_>| one.decision.is_enabled || !options.enabled_flags_only;
    let listed = response_body::list(all.iter().filter(is_listed), |one, out| {
        let (user, decision) = (&body.user, &one.decision);
        response_body::write_decision(decision, &user.id, &user.attributes, shape, out);
        out.pop();
        out.extend_from_slice(b",\"rules\":");
        out.extend_from_slice(one.rules.as_bytes());
        out.push(b'}');
    });
    listed.map(Response::json)
}
