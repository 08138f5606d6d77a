//! `POST /v1/decide`: one flag, several, or all.

use std::borrow::Cow;

use filters::decisions::decide::{Decision, decide};
use filters::decisions::keys::Keys;
use filters::decisions::notice;
use filters::decisions::notice::Topic;
use filters::decisions::request_body;
use filters::decisions::response_body;
use filters::fault::Fault;

use super::context::DecisionContext;
use super::user_state::UserState;
use crate::decisions::DecisionService;
use crate::proxy::handler::Request;
use crate::proxy::response::Response;

/// Returns an object for one key, and otherwise a list, in the order of the request or the datafile. Only lists can
/// leave out flags that are off.
///
/// Errors: 400 for too many keys, 413 for a response that would be too long, and as [`decide_keys`].
pub async fn handle(service: &DecisionService, request: &Request<'_>) -> Result<Response, Fault> {
    let context = DecisionContext::open(service, request).await?;
    let body = context.read_body()?.into_decide()?;
    let (user, shape) = (&body.user, context.protocol().result_shape());
    let wanted = wanted_keys(&context, request)?;
    let times = request.values("keys").count();
    let all = decide_keys(&context, &body, &wanted).await?;
    let is_listed = |one: &&Decision<'_>| one.is_enabled || !body.options.enabled_flags_only;
    let may_omit = context.protocol().endpoint_rules().filters_single_decisions;
    if let ([one], 1) = (all.as_slice(), times)
        && (is_listed(&one) || !may_omit)
    {
        let mut out = Vec::with_capacity(1024);
        response_body::write_decision(one, &user.id, &user.attributes, shape, &mut out);
        return response_body::check_body(out).map(Response::json);
    }
    let listed = all.iter().filter(is_listed);
    response_body::decision_list(listed, user, shape).map(Response::json)
}

/// Returns the keys of the flags that a query names, without repetitions, or all flags if it names none.
///
/// Errors: 400 for too many keys.
pub(super) fn wanted_keys<'k>(
    context: &'k DecisionContext<'_>,
    request: &Request<'k>,
) -> Result<Vec<Cow<'k, str>>, Fault> {
    let mut named = Keys::default();
    for key in request.values("keys") {
        named.name((), key, "keys")?;
    }
    let mut wanted: Vec<Cow<'_, str>> = named.into_vec().into_iter().map(|(_, key)| key).collect();
    if wanted.is_empty() {
        let keys = context.loaded.project.flag_keys();
        wanted.extend(keys.map(Cow::Borrowed));
    }
    Ok(wanted)
}

/// Decides keys for one user, queues impressions and publishes notices. The profile is read once and written once.
///
/// Errors: 403 and 502 if segments are requested and cannot be fetched, 413 for reasons that would fit no response.
pub(super) async fn decide_keys<'a>(
    context: &'a DecisionContext<'a>,
    body: &request_body::Decide<'_>,
    keys: &[impl AsRef<str>],
) -> Result<Vec<Decision<'a>>, Fault> {
    let project = &context.loaded.project;
    let mut state = UserState::new(context, &body.user, &body.forced, body.options).await;
    if body.fetch_segments {
        Box::pin(state.fetch_segments(body.segment_options)).await?;
    }
    let all = state
        .decide(keys, |key, inputs| decide(project, key.as_ref(), inputs))
        .await?;
    let found: Vec<(&str, &str)> = all.iter().filter_map(|one| one.remembers).collect();
    state.remember(&found).await;
    let impressions = all.iter().flat_map(|decided| &decided.impressions);
    context.queue_impressions(&body.user, impressions);
    for one in &all {
        context.publish(Topic::Decision, || {
            notice::flag(
                one,
                &body.user,
                state.segments(),
                !one.impressions.is_empty(),
            )
        });
    }
    Ok(all)
}
