//! The path of a request from its head to its handler.

use std::sync::Arc;

use filters::fault::Fault;
use filters::limits::headers::Quota;
use http::header;
use pingora::Result;
use pingora_proxy::Session;

use super::context::{Context, RequestInfo};
use super::drain::Drain;
use super::handler::{Buffering, Handler, Incoming, Opened, Request};
use super::request_id::RequestId;
use super::response::{self, Reply, Response};
use super::router::{BodyRule, ErrorStyle, Refused, Route};
use super::state::ProxyState;
use super::{admission, body, connections};
use crate::proxy::body::JsonBody;
use crate::proxy::buffered::session::BufferedSession;
use crate::proxy::buffered::state::AttemptState;

/// The status of a request over a limit.
const TOO_MANY_REQUESTS: u16 = 429;

/// Sets the timeouts of the client's connection, the id of the request, and its place in a trace.
///
/// Errors: none today; Pingora's hook may fail.
pub fn prepare(state: &ProxyState, session: &mut Session, ctx: &mut Context) -> Result<()> {
    session.set_read_timeout(Some(body::BODY_IDLE_TIMEOUT));
    session.set_write_timeout(Some(body::WRITE_TIMEOUT));
    let head = session.req_header();
    ctx.info.is_http1_1 = head.version == http::Version::HTTP_11;
    ctx.info.id = RequestId::from_headers(&head.headers, ctx.info.unix_ms());
    if let Some(traces) = &state.traces {
        let trace = traces.begin(&head.headers, ctx.info.id.as_str());
        ctx.info.trace = trace.map(Arc::new);
    }
    Ok(())
}

/// Handles a request and returns whether the response was sent. If not, Pingora runs the exchange.
///
/// Errors: the client's connection broke.
pub async fn handle(state: &ProxyState, session: &mut Session, ctx: &mut Context) -> Result<bool> {
    let budget = ctx.info.shared_wait;
    let (opened, budget) = budget.hold(open(state, session, ctx)).await;
    ctx.info.shared_wait = budget;
    let response = match opened {
        Ok(Opened::Response(response)) => response,
        Ok(Opened::Upstream(buffering)) => {
            buffer_session(session, ctx, (buffering, &state.drain));
            return Ok(false);
        }
        Err(fault) => {
            if !session.is_body_done() {
                // Closing the connection costs less than reading the rest of the body.
                session.set_keepalive(None);
            }
            let response = error_response(state, session, ctx, &fault);
            ctx.fault = Some(fault);
            response
        }
    };
    send(state, session, ctx, response).await?;
    Ok(true)
}

/// Routes a request, admits it, reads its body and calls its handler.
///
/// Errors: one of these steps or the handler refuses the request.
async fn open(
    state: &ProxyState,
    session: &mut Session,
    ctx: &mut Context,
) -> Result<Opened, Fault> {
    let route = find_route(state, session, ctx)?;
    let info = &mut ctx.info;
    route.handler.check_head(session.req_header())?;
    admission::authenticate(state, route, session, info).await?;
    admission::check_address(&state.settings.client_ip, session, info.caller.as_deref())?;
    admission::check_permit(state, route, info.caller.as_deref(), info.now)?;
    info.quota = admission::check_quota(state, route, info.caller.as_deref()).await?;
    if let Some(quota) = info.quota.filter(|quota| !quota.verdict.is_allowed) {
        return Err(Fault::from(&quota));
    }
    let mut uploaded = None;
    let body = match route.body {
        BodyRule::None | BodyRule::Unread => None,
        BodyRule::Json(max_bytes) => Some(body::read_json(session, max_bytes, info).await?),
        BodyRule::JsonOrForm(max_bytes) => {
            Some(body::read_json_or_form(session, max_bytes, info).await?)
        }
        BodyRule::Form(max_bytes) => {
            // Boxed, because few requests are uploads, and this future is large.
            let reading = body::read_form(session, max_bytes, info, &state.spool);
            uploaded = Some(Box::pin(reading).await?);
            None
        }
        BodyRule::SpooledJson(max_bytes) => {
            let reading = body::read_spooled_json(session, max_bytes, info, &state.spool);
            match Box::pin(reading).await? {
                JsonBody::Whole(body) => Some(body),
                JsonBody::Uploaded(body) => {
                    uploaded = Some(body);
                    None
                }
            }
        }
        BodyRule::Any(max_bytes) => Some(body::read_body(session, max_bytes, info).await?),
    };
    info.permit = admission::acquire_permit(state, route, info.caller.as_deref(), info.now)?;
    info.open_call = admission::open_call(state, route, info);
    if let Some(body) = &body {
        info.body_bytes = body.len();
    }
    match &route.handler {
        Handler::Endpoint(endpoint) => {
            let tree = state.body_budget.reservation(info.body_owner());
            let _tree = body::reserve_tree(body.as_deref(), tree)?;
            let request = endpoint_request(state, session, info, body.as_deref());
            let response = endpoint.call(request).await?;
            Ok(Opened::Response(endpoint.frame(response)))
        }
        Handler::Forward(forward) => {
            let mut incoming = Incoming::new(session, info, state, (body, uploaded));
            forward.open(&mut incoming, &mut ctx.exchange).await
        }
    }
}

/// Checks the framing of a request and finds its route.
///
/// Errors: 400, 404, 405, 414, 431. The exchange of the fallback route stamps and logs its refused requests too,
/// except those that mean one of our routes and lack its `/v1`.
fn find_route<'s>(
    state: &'s ProxyState,
    session: &mut Session,
    ctx: &mut Context,
) -> Result<&'s Route, Fault> {
    let framing = admission::check_framing(session, state.settings.header_bytes);
    if framing.is_err() {
        // The bytes after an ambiguous head may belong to its body.
        session.set_keepalive(None);
    } else {
        name_host(session);
        merge_lengths(session);
    }
    let head = session.req_header();
    let path = head.uri.path();
    let index = state.router.find(&head.method, path);
    // Every refusal from here on is logged under the route.
    ctx.info.route = *index.as_ref().unwrap_or(&state.router.no_route());
    let index = framing.and(index).and_then(|index| {
        if state.router.is_fallback(index) {
            admission::check_no_api_key(head)?;
        }
        Ok(index)
    });
    let index = index.inspect_err(|_| {
        let is_ours = state.router.is_own_path(path);
        let fallback = state.router.fallback().filter(|_| !is_ours);
        if let Some(Handler::Forward(forward)) = fallback.map(|route| &route.handler) {
            ctx.exchange = forward.refused(head);
        }
    })?;
    let route = state.router.get(index).ok_or_else(missing_route)?;
    ctx.info.deprecation = route.deprecation;
    Ok(route)
}

/// Copies the host of an HTTP/2 request from `:authority` to `Host`, where handlers look for it.
fn name_host(session: &mut Session) {
    let head = session.req_header_mut();
    if head.headers.contains_key(header::HOST) {
        return;
    }
    let authority = head.uri.authority().map(|it| it.as_str().to_owned());
    if let Some(authority) = authority {
        // The framing check only passes valid values.
        _ = head.insert_header(header::HOST, authority);
    }
}

/// Removes all but one of several equal `Content-Length`s. Some upstreams refuse or misread two.
fn merge_lengths(session: &mut Session) {
    let head = session.req_header_mut();
    let mut lengths = head.headers.get_all(header::CONTENT_LENGTH).iter();
    if let (Some(length), Some(_)) = (lengths.next(), lengths.next()) {
        let length = length.clone();
        // A received value is a valid value.
        _ = head.insert_header(header::CONTENT_LENGTH, length);
    }
}

fn missing_route() -> Fault {
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
        now_ms: info.unix_ms(),
    }
}

/// Returns the error response to a fault, in the route's style and stamped by the exchange.
pub(super) fn error_response(
    state: &ProxyState,
    session: &Session,
    ctx: &mut Context,
    fault: &Fault,
) -> Response {
    let mut response = match error_style(state, ctx) {
        Some(style) => {
            let client_ip = admission::client_ip(&state.settings.client_ip, session);
            let refused = Refused {
                headers: &session.req_header().headers,
                client_ip,
                id: ctx.info.id.as_str(),
            };
            (style.write)(fault, &refused)
        }
        None => Response::from(fault),
    };
    if let Some(exchange) = &mut ctx.exchange {
        exchange.stamp(&mut response);
    }
    response
}

/// Returns the error style of the route. A request that the fallback refused has the style of the fallback.
fn error_style<'s>(state: &'s ProxyState, ctx: &Context) -> Option<&'s ErrorStyle> {
    let route = state.router.get(ctx.info.route);
    let fallback = || state.router.fallback().filter(|_| ctx.exchange.is_some());
    route.or_else(fallback).map(|route| &route.errors)
}

/// Replaces the client's session by a buffered one, if the exchange needs it.
fn buffer_session(
    session: &mut Session,
    ctx: &mut Context,
    (buffering, drain): (Buffering, &Drain),
) {
    let state = match buffering {
        Buffering::None => return,
        Buffering::Replay(body) => AttemptState::replay(body).into(),
        Buffering::UntilContent(state) => state,
    };
    state.set_drain(drain.clone());
    if state.is_stream() {
        ctx.in_flight.mark_stream();
    }
    let fields = ctx.info.head_fields();
    ctx.slot = Some(BufferedSession::wrap(session, state, fields));
}

async fn send(
    state: &ProxyState,
    session: &mut Session,
    ctx: &mut Context,
    mut response: Response,
) -> Result<()> {
    if let Some(exceeded) = ctx.fault.as_ref().and_then(Fault::exceeded) {
        ctx.info.quota = Some(Quota::from_exceeded(exceeded));
    }
    let fields = ctx.info.head_fields();
    let refused = fields.quota.filter(|quota| !quota.verdict.is_allowed);
    if let Some(quota) = refused.filter(|_| response.status == TOO_MANY_REQUESTS) {
        response.replace_headers(&quota.refusal(ctx.info.unix_s()));
    }
    ctx.status = response.status;
    connections::close_if_draining(session, &state.drain);
    match response.body {
        Reply::Bytes(_) => {
            response.headers.extend(fields.headers());
            response::send(session, response, &fields.request_id).await
        }
        Reply::Pieces(pieces) => {
            let head = (response.status, response.headers);
            response::send_pieces(session, &fields, head, pieces).await
        }
        Reply::Stream(events) => {
            ctx.in_flight.mark_stream();
            let route = state.router.get(ctx.info.route);
            let is_open = |session: &Session| {
                let may_listen = |route| admission::is_still_admitted(state, route, session);
                state.accepts_requests() && route.is_none_or(may_listen)
            };
            response::send_stream(session, &fields, &response.headers, events, is_open).await
        }
    }
}
