//! From a body to planned attempts: checked, resolved, ordered.

use std::sync::Arc;

use bytes::Bytes;
use filters::auth::Mode;
use filters::chat::check::check;
use filters::chat::request::Request;
use filters::fault::{Fault, Kind};
use http::HeaderName;
use pingora_proxy::Session;
use tokio::time::Instant;

use super::context::Context;
use super::watch::Watch;
use crate::attempt::{Call, Step};
use crate::choice::Asked;
use crate::house::House;

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
    house: &House,
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
    if caller.is_some_and(|caller| caller.mode == Mode::Byok) {
        let message = "this project uses its own provider keys alone, and none can be stored yet";
        return Err(Fault::new(Kind::Invalid, message).with_code("not_supported_yet"));
    }
    let headers = &session.req_header().headers;
    let named = headers
        .get(SESSION_ID)
        .and_then(|value| value.to_str().ok());
    let named = named.filter(|id| !id.is_empty() && id.len() <= SESSION_BYTES);
    let asked = Asked {
        organization: caller.map_or("", |caller| &caller.organization_id),
        session: named.or(request.session.as_deref()),
        no_fallback: headers
            .get(NO_FALLBACK)
            .is_some_and(|value| value == "true"),
        now_ms: house.now_ms(),
        now_s: house.unix_s(),
    };
    let chosen = house.routes.choose(&request, &asked)?;
    let is_stream = request.stream;
    let mut call = call(house, request, chosen.provider, &chosen.plan.attempts)?;
    call.lower_tool_choice = chosen.plan.lower_tool_choice;
    call.seat = chosen.seat;
    ctx.call = Some(Box::new(call));
    Ok(is_stream)
}

fn call(
    house: &House,
    request: Request,
    provider: Option<Box<str>>,
    attempts: &[filters::routing::resolve::Candidate],
) -> Result<Call, Fault> {
    let steps: Vec<Step> = attempts
        .iter()
        .filter_map(|candidate| {
            let upstream = house.routes.upstream(&candidate.mapping.provider)?;
            Some(Step {
                upstream: Arc::clone(upstream),
                model: Arc::clone(&candidate.model),
                mapping: Arc::clone(&candidate.mapping),
                region: candidate.region.clone(),
            })
        })
        .collect();
    if steps.is_empty() {
        return Err(Fault::new(
            Kind::Internal,
            "no provider of this model is switched on",
        ));
    }
    let patience = house.settings.patience(request.stream);
    let watch = Arc::new(Watch::new(request.stream, patience, Instant::now()));
    Ok(Call::new(request, provider, steps, watch))
}
