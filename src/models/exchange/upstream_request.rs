//! Towards the provider: which peer, which head, which body.

use std::sync::Arc;

use bytes::Bytes;
use filters::fault::{Fault, FaultKind};
use filters::models::routing::catalog::Capability;
use http::{HeaderName, HeaderValue, Method, Uri, header};
use pingora::http::RequestHeader;
use pingora::upstreams::peer::HttpPeer;
use pingora::{Error, ErrorType, OrErr, Result};
use tokio::time::Instant;

use super::ModelExchange;
use super::upstream_response::ReplyReader;
use crate::app::state::AppState;
use crate::graph::exchange;
use crate::proxy::buffered::session::ATTEMPT_ABORTED;
use crate::proxy::context::Context;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const USER_AGENT: &str = concat!("weirgate/", env!("CARGO_PKG_VERSION"));

/// The peer of the attempt that is up, with its request rewritten for it.
///
/// Errors: the request cannot be said on this wire, or the provider's name cannot be looked up.
pub async fn peer(house: &AppState, ctx: &mut Context) -> Result<Box<HttpPeer>> {
    if let (Some(graph), Some(call)) = (&house.graph, &mut ctx.graph) {
        return exchange::peer(graph)
            .await
            .map_err(|error| exchange::connect(call, error));
    }
    let Some(call) = ctx.call.as_deref_mut() else {
        return Error::e_explain(ATTEMPT_ABORTED, "no call is planned");
    };
    match prepare(house, call, ctx.request_id.text()) {
        Ok(()) => {}
        Err(fault) => {
            ctx.fault = Some(fault);
            return Error::e_explain(ATTEMPT_ABORTED, "the request cannot be said on this wire");
        }
    }
    let Some(step) = call.step() else {
        return Error::e_explain(ATTEMPT_ABORTED, "no attempt is left");
    };
    let upstream = Arc::clone(&step.upstream);
    match upstream.origin.peer().await {
        Ok(peer) => Ok(Box::new(peer)),
        Err(error) => Err(super::failure::connect(house, ctx, error)),
    }
}

/// Encodes the request for the attempt that is up.
fn prepare(house: &AppState, call: &mut ModelExchange, request_id: &str) -> Result<(), Fault> {
    let step = call.step().cloned();
    let step = step.ok_or_else(|| Fault::new(FaultKind::Internal, "no attempt is planned"))?;
    call.key = step.keys.pick(call.tried_keys, house.now_ms());
    call.tried_keys |= 1 << (call.key % 64);
    let target = call
        .target()
        .ok_or_else(|| Fault::new(FaultKind::Internal, "no attempt is planned"))?;
    let encoded = step.upstream.wire.encode(&call.request, &target)?;
    let identity = call.identity(request_id, house.unix_s());
    let writer = call.request.front.writer(&call.request, identity);
    call.receiving = ReplyReader::new(writer);
    call.head = Some((encoded.path, encoded.headers));
    call.attempt_started = Instant::now();
    call.watch.begin(encoded.body, call.attempt_started);
    let is_cancelled = step.mapping.can(Capability::Cancellation);
    call.watch.bills_anyway(!is_cancelled);
    Ok(())
}

/// A piece of the client's body, where it is passed on as it comes.
///
/// Errors: there is more of it than is taken.
pub fn body(ctx: &mut Context, piece: Option<&Bytes>) -> Result<()> {
    let Some(call) = &mut ctx.graph else {
        return Ok(());
    };
    match exchange::upload(call, piece) {
        None => Ok(()),
        Some(fault) => {
            ctx.fault = Some(fault);
            Error::e_explain(ATTEMPT_ABORTED, "the body is too large")
        }
    }
}

/// The head of the upstream request: nothing of the client's but what is listed here.
///
/// Errors: a path that is no URI, which is a bug.
pub fn head(house: &AppState, ctx: &Context, head: &mut RequestHeader) -> Result<()> {
    if let (Some(graph), Some(call)) = (&house.graph, &ctx.graph) {
        return exchange::head(graph, call, head);
    }
    let Some(call) = ctx.call.as_deref() else {
        return Ok(());
    };
    let (Some(step), Some((path, headers))) = (call.step(), &call.head) else {
        return Ok(());
    };
    let (mut fresh, ()) = http::Request::new(()).into_parts();
    fresh.method = Method::POST;
    fresh.version = head.version;
    fresh.uri = Uri::from_maybe_shared(step.upstream.path_of(path))
        .or_err(ErrorType::InternalError, "the path of a provider")?;
    let accept = if call.request.is_stream {
        "text/event-stream"
    } else {
        "application/json"
    };
    let ours = [
        (header::HOST, step.upstream.origin.authority.clone()),
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        ),
        (header::CONTENT_LENGTH, call.watch.body_bytes().into()),
        (header::ACCEPT, HeaderValue::from_static(accept)),
        (
            header::ACCEPT_ENCODING,
            HeaderValue::from_static("identity"),
        ),
        (header::USER_AGENT, HeaderValue::from_static(USER_AGENT)),
        (REQUEST_ID, ctx.request_id.header().clone()),
    ];
    let parent = head.headers.get(TRACEPARENT).cloned();
    let theirs = step.upstream.headers.iter().chain(headers).cloned();
    fresh.headers.reserve(ours.len() + headers.len() + 2);
    fresh.headers.extend(ours);
    fresh
        .headers
        .extend(parent.map(|parent| (TRACEPARENT, parent)));
    for (name, value) in theirs {
        fresh.headers.insert(name, value);
    }
    *head = fresh.into();
    Ok(())
}
