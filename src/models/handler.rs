//! From a body to planned attempts: checked, resolved, ordered.

use std::sync::Arc;

use bytes::Bytes;
use filters::accounts::{Caller, Mode};
use filters::fault::{Fault, FaultKind};
use filters::models::chat::check::check;
use filters::models::request::ModelRequest;
use filters::models::routing::resolve::Candidate;
use http::HeaderName;
use pingora_proxy::Session;
use tokio::time::Instant;

use crate::app::state::AppState;
use crate::models::exchange::{ModelExchange, PlannedAttempt, billing};
use crate::models::planner::PlanContext;
use crate::models::providers::{ByokKeys, KeyPool};
use crate::proxy::buffered::state::AttemptState;
use crate::proxy::context::Context;

const SESSION_ID: HeaderName = HeaderName::from_static("x-session-id");
const NO_FALLBACK: HeaderName = HeaderName::from_static("x-no-fallback");
/// Above this a body is checked off the worker's turn, so that others are served meanwhile.
const LARGE_BYTES: usize = 1 << 20;
/// The longest session id that is believed.
const SESSION_BYTES: usize = 256;

/// Plans a chat completion; answers whether it is a stream.
///
/// Errors: 400, 403, 404, 410.
pub fn chat(
    house: &AppState,
    session: &Session,
    ctx: &mut Context,
    body: Bytes,
) -> Result<bool, Fault> {
    let request = if body.len() > LARGE_BYTES {
        tokio::task::block_in_place(|| check(body))?
    } else {
        check(body)?
    };
    let caller = ctx.caller.as_deref();
    let own_keys = house.byok_keys.current();
    let keyed = caller.map_or(Vec::new(), |caller| {
        own_keys.providers(&caller.organization_id)
    });
    let headers = &session.req_header().headers;
    let named = headers
        .get(SESSION_ID)
        .and_then(|value| value.to_str().ok());
    let named = named.filter(|id| !id.is_empty() && id.len() <= SESSION_BYTES);
    let asked = PlanContext {
        caller,
        keyed: &keyed,
        session: named.or(request.session.as_deref()),
        no_fallback: headers
            .get(NO_FALLBACK)
            .is_some_and(|value| value == "true"),
        now_ms: house.now_ms(),
        now_s: house.unix_s(),
    };
    let chosen = house.routes.choose(&request, &asked)?;
    let is_stream = request.stream;
    let steps = steps(house, caller, &own_keys, &chosen.plan.attempts);
    let mut call = call(house, request, chosen.provider, steps)?;
    call.lower_tool_choice = chosen.plan.lower_tool_choice;
    call.seat = chosen.seat;
    ctx.call = Some(Box::new(call));
    Ok(is_stream)
}

/// The attempts: with the caller's own keys, with the platform's, or first with those and then with these.
fn steps(
    house: &AppState,
    caller: Option<&Caller>,
    own_keys: &ByokKeys,
    candidates: &[Candidate],
) -> Vec<PlannedAttempt> {
    let (mode, organization) = caller.map_or((Mode::Platform, ""), |caller| {
        (caller.mode, &*caller.organization_id)
    });
    let step = |candidate: &Candidate, keys: Option<&Arc<KeyPool>>| {
        let upstream = house.routes.upstream(&candidate.mapping.provider)?;
        Some(PlannedAttempt {
            upstream: Arc::clone(upstream),
            model: Arc::clone(&candidate.model),
            mapping: Arc::clone(&candidate.mapping),
            region: candidate.region.clone(),
            keys: Arc::clone(keys.unwrap_or(&upstream.keys)),
        })
    };
    let own = candidates.iter().filter_map(|candidate| {
        let keys = own_keys.find(organization, &candidate.mapping.provider)?;
        step(candidate, Some(keys))
    });
    let platform = candidates
        .iter()
        .filter_map(|candidate| step(candidate, None))
        .filter(|step| !step.keys.is_empty());
    match mode {
        Mode::Platform => platform.collect(),
        Mode::Byok => own.collect(),
        Mode::Hybrid => own.chain(platform).collect(),
    }
}

/// Reserves what the planned attempts may cost at most.
///
/// Errors: 402, 503.
pub async fn pay(house: &Arc<AppState>, ctx: &mut Context) -> Result<(), Fault> {
    billing::reserve(house, ctx).await
}

fn call(
    house: &AppState,
    request: ModelRequest,
    provider: Option<Box<str>>,
    steps: Vec<PlannedAttempt>,
) -> Result<ModelExchange, Fault> {
    if steps.is_empty() {
        return Err(Fault::new(
            FaultKind::Internal,
            "no provider of this model is switched on",
        ));
    }
    let patience = house.settings.patience(request.stream);
    let watch = Arc::new(AttemptState::new(request.stream, patience, Instant::now()));
    Ok(ModelExchange::new(request, provider, steps, watch))
}
