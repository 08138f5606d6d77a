//! The path of every request from its head to its handler.

use bytes::Bytes;
use filters::fault::Fault;
use pingora::Result;
use pingora_proxy::Session;

use super::context::{Context, RequestInfo};
use super::handler::{Buffering, Handler, Incoming, Opened, Request};
use super::request_id::RequestId;
use super::response::{self, Reply, Response};
use super::router::{BodyRule, ErrorStyle, Route, is_reserved};
use super::state::ProxyState;
use super::{admission, body};
use crate::proxy::buffered::session::BufferedSession;
use crate::proxy::buffered::state::AttemptState;

/// Gives the request its id and bounds its connection in time.
///
/// Errors: none today; the hook may fail.
pub fn begin(session: &mut Session, ctx: &mut Context) -> Result<()> {
    session.set_read_timeout(Some(body::BODY_IDLE_TIMEOUT));
    session.set_write_timeout(Some(body::WRITE_TIMEOUT));
    let head = session.req_header();
    ctx.info.is_http1_1 = head.version == http::Version::HTTP_11;
    ctx.info.id = RequestId::of(&head.headers);
    Ok(())
}

/// Handles a request; returns whether it has been answered. If not, Pingora runs its exchange.
///
/// Errors: the client's connection broke.
pub async fn handle(state: &ProxyState, session: &mut Session, ctx: &mut Context) -> Result<bool> {
    let response = match open(state, session, ctx).await {
        Ok(Opened::Response(response)) => response,
        Ok(Opened::Upstream(buffering)) => {
            buffer(session, ctx, buffering);
            return Ok(false);
        }
        Err(fault) => {
            if !session.is_body_done() {
                // The rest of the body is not worth reading.
                session.set_keepalive(None);
            }
            let response = error_response(state, ctx, &fault);
            ctx.fault = Some(fault);
            response
        }
    };
    send(state, session, ctx, response).await?;
    Ok(true)
}

/// Routes the request, admits it, reads its body and hands it to its handler.
///
/// Errors: the request is refused, by one of these steps or by its handler.
async fn open(
    state: &ProxyState,
    session: &mut Session,
    ctx: &mut Context,
) -> Result<Opened, Fault> {
    let route = route(state, session, ctx)?;
    let info = &mut ctx.info;
    info.caller = admission::authenticate(state, route, &session.req_header().headers)?;
    admission::check_address(&state.settings.client_ip, session, info.caller.as_deref())?;
    info.permit = admission::acquire_permit(state, route)?;
    info.quota = admission::check_quota(state, route, info.caller.as_deref()).await?;
    if let Some(quota) = info.quota.filter(|quota| !quota.verdict.is_allowed) {
        return Err(Fault::from(&quota));
    }
    let body = match route.body {
        BodyRule::None | BodyRule::Unread => None,
        BodyRule::Json(max_bytes) => Some(body::read_json(session, max_bytes).await?),
        BodyRule::Any(max_bytes) => Some(body::read_body(session, max_bytes).await?),
    };
    info.body_bytes = body.as_ref().map_or(0, Bytes::len);
    match &route.handler {
        Handler::Endpoint(endpoint) => {
            let request = endpoint_request(state, session, info, body.as_deref());
            endpoint.call(request).await.map(Opened::Response)
        }
        Handler::Forward(forward) => {
            let client_ip = &state.settings.client_ip;
            let mut incoming = Incoming::new(session, info, client_ip, body);
            forward.open(&mut incoming, &mut ctx.exchange).await
        }
    }
}

/// Finds the route, of a request whose framing is sound.
///
/// Errors: 400, 404, 405, 431. The fallback's requests are stamped and logged all the same.
fn route<'s>(
    state: &'s ProxyState,
    session: &Session,
    ctx: &mut Context,
) -> Result<&'s Route, Fault> {
    let head = session.req_header();
    let path = head.uri.path();
    let framed = admission::check_framing(head, state.settings.header_bytes);
    let found = state.router.find(&head.method, path);
    // Every refusal from here on is logged under its route.
    ctx.info.route = *found.as_ref().unwrap_or(&state.router.none());
    let index = framed.and(found).inspect_err(|_| {
        let fallback = state.router.fallback().filter(|_| !is_reserved(path));
        if let Some(Handler::Forward(forward)) = fallback.map(|route| &route.handler) {
            ctx.exchange = forward.refused(head);
        }
    })?;
    state.router.get(index).ok_or_else(no_route)
}

fn no_route() -> Fault {
    Fault::new(filters::fault::FaultKind::Internal, "the route is missing")
}

fn endpoint_request<'a>(
    state: &ProxyState,
    session: &'a Session,
    info: &'a RequestInfo,
    body: Option<&'a [u8]>,
) -> Request<'a> {
    let head = session.req_header();
    Request {
        headers: &head.headers,
        path: head.uri.path(),
        query: head.uri.query().unwrap_or_default(),
        body: body.unwrap_or_default(),
        caller: info.caller.as_ref(),
        client_ip: admission::client_ip(&state.settings.client_ip, session),
        now_ms: u64::try_from(state.clock.unix_ms()).unwrap_or_default(),
    }
}

/// Returns a fault as the response that the request's route and exchange make of it.
pub(super) fn error_response(state: &ProxyState, ctx: &Context, fault: &Fault) -> Response {
    let mut response = match error_style(state, ctx) {
        Some(style) => style(fault),
        None => Response::from(fault),
    };
    if let Some(exchange) = &ctx.exchange {
        exchange.stamp(&mut response);
    }
    response
}

/// The style of the route, or of the fallback for a request that it refused.
fn error_style<'s>(state: &'s ProxyState, ctx: &Context) -> Option<&'s ErrorStyle> {
    let route = state.router.get(ctx.info.route);
    let fallback = || state.router.fallback().filter(|_| ctx.exchange.is_some());
    route.or_else(fallback).map(|route| &route.errors)
}

/// Puts the buffered session in the place of the real one, where the exchange needs one.
fn buffer(session: &mut Session, ctx: &mut Context, buffering: Buffering) {
    let (state, quota) = match buffering {
        Buffering::None => return,
        Buffering::Replay(body) => (AttemptState::replay(body).into(), None),
        Buffering::UntilContent(state) => (state, ctx.info.quota),
    };
    if state.is_stream() {
        ctx.in_flight.mark_stream();
    }
    let id = ctx.info.id.header().clone();
    let is_chunked = ctx.info.is_http1_1;
    ctx.slot = Some(BufferedSession::wrap(
        session,
        state,
        (id, quota),
        is_chunked,
    ));
}

async fn send(
    state: &ProxyState,
    session: &mut Session,
    ctx: &mut Context,
    mut response: Response,
) -> Result<()> {
    if let Some(quota) = &ctx.info.quota {
        response.headers.extend(quota.headers());
        if !quota.verdict.is_allowed {
            response.headers.extend(quota.refusal(state.clock.unix_s()));
        }
    }
    ctx.status = response.status;
    let id = ctx.info.id.header();
    match response.body {
        Reply::Bytes(_) => response::send(session, response, id).await,
        Reply::Stream(events) => {
            ctx.in_flight.mark_stream();
            response::send_stream(session, id, events, || state.is_ready()).await
        }
    }
}
