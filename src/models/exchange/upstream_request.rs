//! An attempt's request: its provider, key, head and body.

use std::sync::Arc;

use filters::fault::{Fault, FaultKind};
use filters::models::reply::ReplyIdentity;
use filters::models::routing::catalog::Capability;
use http::{HeaderName, HeaderValue, Method, Uri, header};
use pingora::http::RequestHeader;
use pingora::{Error, ErrorType, OrErr, Result};
use tokio::time::Instant;

use super::ModelExchange;
use super::upstream_response::ReplyReader;
use crate::proxy::buffered::session::ATTEMPT_ABORTED;
use crate::proxy::context::RequestInfo;
use crate::proxy::origin::Origin;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const USER_AGENT: &str = concat!("weirgate/", env!("CARGO_PKG_VERSION"));

/// Encodes the request for the next attempt, and returns where it goes.
///
/// Errors: the wire cannot express the request; the exchange keeps the fault.
pub(super) fn begin(exchange: &mut ModelExchange, info: &RequestInfo) -> Result<Arc<Origin>> {
    if let Err(fault) = encode(exchange, info) {
        exchange.fault = Some(fault);
        return Error::e_explain(ATTEMPT_ABORTED, "the wire cannot express the request");
    }
    match exchange.attempt() {
        Some(attempt) => Ok(Arc::clone(&attempt.provider.origin)),
        None => Error::e_explain(ATTEMPT_ABORTED, "no attempt is left"),
    }
}

fn encode(exchange: &mut ModelExchange, info: &RequestInfo) -> Result<(), Fault> {
    let none = || Fault::new(FaultKind::Internal, "no attempt is planned");
    let now_ms = exchange.models.clock.now_ms();
    let keys = Arc::clone(&exchange.attempt().ok_or_else(none)?.keys);
    let cursor = &mut exchange.cursor;
    cursor.key = keys.pick(cursor.used_keys, now_ms);
    cursor.used_keys |= 1 << (cursor.key % super::MAX_KEYS);
    let (attempt, target) = exchange.attempt().zip(exchange.target()).ok_or_else(none)?;
    let encoded = attempt.provider.wire.encode(&exchange.request, &target)?;
    let is_cancelled = attempt.mapping.can(Capability::Cancellation);
    let identity = ReplyIdentity {
        id: info.id.as_str().into(),
        created: exchange.models.clock.unix_s(),
        model: exchange.used_model().into(),
    };
    let request = &exchange.request;
    exchange.reader = ReplyReader::new(request.front.writer(request, identity));
    exchange.head = Some((encoded.path, encoded.headers));
    exchange.timing.attempt_started = Instant::now();
    let state = &exchange.state;
    state.begin_attempt(encoded.body, exchange.timing.attempt_started);
    state.set_bills_after_disconnect(!is_cancelled);
    Ok(())
}

/// Writes the head of the upstream request: of the client's headers only those listed here.
///
/// Errors: a path that is no URI, which is a bug.
pub(super) fn write_head(
    exchange: &ModelExchange,
    info: &RequestInfo,
    head: &mut RequestHeader,
) -> Result<()> {
    let (Some(attempt), Some((path, headers))) = (exchange.attempt(), &exchange.head) else {
        return Ok(());
    };
    let provider = &attempt.provider;
    let (mut fresh, ()) = http::Request::new(()).into_parts();
    fresh.method = Method::POST;
    fresh.version = head.version;
    fresh.uri = Uri::from_maybe_shared(provider.upstream_path(path))
        .or_err(ErrorType::InternalError, "the path of a provider")?;
    let accept = if exchange.request.is_stream {
        "text/event-stream"
    } else {
        "application/json"
    };
    let json = HeaderValue::from_static("application/json");
    let identity = HeaderValue::from_static("identity");
    let ours = [
        (header::HOST, provider.origin.authority.clone()),
        (header::CONTENT_TYPE, json),
        (header::CONTENT_LENGTH, exchange.state.body_bytes().into()),
        (header::ACCEPT, HeaderValue::from_static(accept)),
        (header::ACCEPT_ENCODING, identity),
        (header::USER_AGENT, HeaderValue::from_static(USER_AGENT)),
        (REQUEST_ID, info.id.as_header().clone()),
    ];
    let parent = head.headers.get(TRACEPARENT).cloned();
    let theirs = provider.headers.iter().chain(headers).cloned();
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
