//! An attempt's request: its provider, key, head and body.

use std::sync::Arc;

use filters::fault::{Fault, FaultKind};
use filters::models::reply::ReplyIdentity;
use filters::models::routing::catalog::Capability;
use pingora::http::RequestHeader;
use pingora::{Error, ErrorType, Result};

use super::ModelExchange;
use super::upstream_response::ReplyReader;
use crate::models::upstream_head::OwnHeaders;
use crate::proxy::buffered::session::ATTEMPT_ABORTED;
use crate::proxy::context::RequestInfo;
use crate::proxy::origin::Origin;

/// Encodes the request for the next attempt, and returns where it goes.
///
/// Errors: the wire cannot express the request; the exchange keeps the fault.
pub(super) fn begin(exchange: &mut ModelExchange, info: &RequestInfo) -> Result<Arc<Origin>> {
    if let Err(fault) = encode(exchange, info) {
        exchange.fault = Some(fault);
        return Error::e_explain(ATTEMPT_ABORTED, "the wire cannot express the request");
    }
    match exchange.attempt() {
        Some(attempt) => Ok(Arc::clone(&attempt.deployment.provider.origin)),
        None => Error::e_explain(ATTEMPT_ABORTED, "no attempt is left"),
    }
}

fn encode(exchange: &mut ModelExchange, info: &RequestInfo) -> Result<(), Fault> {
    let none = || Fault::new(FaultKind::Internal, "no attempt is planned");
    let now_ms = exchange.models.clock.ms_at(info.now);
    let attempt = exchange.attempt().ok_or_else(none)?;
    let key = attempt.keys.pick(exchange.cursor.used_keys, now_ms);
    let cursor = &mut exchange.cursor;
    cursor.key = key;
    cursor.used_keys |= 1 << (cursor.key % super::MAX_KEYS);
    exchange.credential_header()?;
    let (deployment, target) = exchange
        .deployment()
        .zip(exchange.target())
        .ok_or_else(none)?;
    let body = deployment.wire.encode(&exchange.request, &target)?;
    let bills_after_disconnect = deployment.provider.quirks.bills_after_disconnect
        || !deployment.mapping.can(Capability::Cancellation);
    let identity = ReplyIdentity {
        id: info.id.as_str().into(),
        created: info.unix_s(),
        model: Arc::clone(&deployment.used.used_model),
    };
    let request = &exchange.request;
    exchange.reader = ReplyReader::new(request.front.writer(request, identity));
    exchange.timing.attempt_started = info.now;
    let state = &exchange.state;
    state.begin_attempt(body, info.now);
    state.set_bills_after_disconnect(bills_after_disconnect);
    Ok(())
}

/// Writes the head of the upstream request: of the client's headers only `traceparent` passes.
///
/// Errors: a path that is no URI, which is a bug.
pub(super) fn write_head(
    exchange: &ModelExchange,
    info: &RequestInfo,
    head: &mut RequestHeader,
) -> Result<()> {
    let request = &exchange.request;
    let template = exchange
        .deployment()
        .and_then(|deployment| deployment.head(request.payload.operation(), request.is_stream));
    let own = OwnHeaders {
        body_bytes: exchange.state.body_bytes(),
        request_id: info.id.as_header(),
        credential: exchange.credential_header().ok().flatten(),
    };
    let Some(fresh) = template.and_then(|template| template.request(&own, head)) else {
        return Error::e_explain(ErrorType::InternalError, "the path of a provider");
    };
    *head = fresh.into();
    Ok(())
}
