//! An attempt's request: its provider, key, head and body.

use std::sync::Arc;
use std::time::Duration;

use filters::fault::{Fault, FaultKind};
use filters::models::reply::ReplyIdentity;
use filters::models::reply_cache::recorder::ReplyRecorder;
use filters::models::routing::affinity::SessionKey;
use filters::models::routing::capable::Lack;
use filters::models::routing::plan::LeftOut;
use filters::models::wires::Piece;
use pingora::http::RequestHeader;
use pingora::{Error, ErrorType, Result};

use super::upstream_response::ReplyReader;
use super::{Cursor, ModelExchange, PlannedAttempt, caching, images};
use crate::models::upstream_head::OwnHeaders;
use crate::proxy::body;
use crate::proxy::buffered::error_types::ATTEMPT_ABORTED;
use crate::proxy::context::RequestInfo;
use crate::proxy::origin::Origin;
use crate::proxy::upload::BodyPiece;

/// Encodes the request for the next attempt whose wire can express it, and returns where it goes.
///
/// Errors: no wire of the attempts that are left can; if no other attempt was made, the exchange keeps the fault.
pub(super) fn begin(exchange: &mut ModelExchange, info: &RequestInfo) -> Result<Arc<Origin>> {
    let mut first = None;
    loop {
        let fault = match images::find_fault(exchange) {
            Ok(()) => match start(exchange, info) {
                Ok(()) => break,
                Err(fault) => fault,
            },
            Err(None) => return Error::e_explain(ATTEMPT_ABORTED, "images have to be fetched"),
            Err(Some(fault)) => fault,
        };
        if !pass_over(exchange, &fault) {
            if exchange.log.failures.is_empty() {
                exchange.fault = Some(first.unwrap_or(fault));
            }
            return Error::e_explain(ATTEMPT_ABORTED, "no wire can express the request");
        }
        first.get_or_insert(fault);
    }
    match endpoint(exchange, info) {
        Some(origin) => {
            exchange.send_impression();
            Ok(origin)
        }
        None => Error::e_explain(ATTEMPT_ABORTED, "no attempt is left"),
    }
}

/// Picks the endpoint of the attempt at hand.
pub(super) fn endpoint(exchange: &mut ModelExchange, info: &RequestInfo) -> Option<Arc<Origin>> {
    let now_ms = exchange.models.clock.ms_at(info.now);
    let attempt = exchange.attempts.get(exchange.cursor.attempt)?;
    let endpoints = &attempt.deployment.site.endpoints;
    let cursor = &mut exchange.cursor;
    let session = exchange.affinity_key.map(SessionKey::number);
    cursor.endpoint = endpoints.pick(session, cursor.tried_endpoints, now_ms);
    cursor.tried_endpoints.add(cursor.endpoint);
    endpoints.origin(cursor.endpoint).map(Arc::clone)
}

/// Leaves the attempt at hand out, because its wire cannot express the request; returns whether there is another.
///
/// Nothing was sent, so neither health nor the budget of fallbacks hears of it.
fn pass_over(exchange: &mut ModelExchange, fault: &Fault) -> bool {
    if let Some(deployment) = exchange.deployment() {
        let left_out = LeftOut {
            provider: Arc::clone(&deployment.provider.name),
            model: Arc::clone(&deployment.model.id),
            lack: Lack::of_fault(fault),
        };
        exchange.left_out.push(left_out);
    }
    let next = exchange.cursor.attempt + 1;
    if next >= exchange.attempts.len() {
        return false;
    }
    exchange.cursor = Cursor {
        attempt: next,
        unsaid: exchange.cursor.unsaid + 1,
        ..Cursor::default()
    };
    true
}

fn no_upload() -> Fault {
    Fault::new(FaultKind::Internal, "nothing was uploaded")
}

fn no_attempt() -> Fault {
    Fault::new(FaultKind::Internal, "no attempt is planned")
}

/// Starts the attempt at hand, whose request its wire can express.
fn start(exchange: &mut ModelExchange, info: &RequestInfo) -> Result<(), Fault> {
    let now_ms = exchange.models.clock.ms_at(info.now);
    let body = encode(exchange, now_ms)?;
    let is_first = exchange.cursor.parts.part == 0;
    if is_first {
        let recorder = caching::recorder(exchange);
        exchange.reader = reader(exchange, info, recorder).ok_or_else(no_attempt)?;
    } else {
        exchange.reader.begin_part();
    }
    // A job that has begun is there, whether or not its client still is.
    let bills_after_disconnect = exchange.request.payload.operation().begins_job()
        || exchange
            .attempt()
            .is_some_and(PlannedAttempt::bills_after_disconnect);
    let state = &exchange.state;
    state.begin_attempt(body, info.now);
    state.set_bills_after_disconnect(bills_after_disconnect);
    // The parts of an attempt are measured together.
    if is_first || exchange.measured.is_none() {
        measure(exchange, now_ms);
    }
    Ok(())
}

/// Returns the reader of the attempt's reply.
pub(super) fn reader(
    exchange: &ModelExchange,
    info: &RequestInfo,
    recorder: Option<ReplyRecorder>,
) -> Option<ReplyReader> {
    let identity = ReplyIdentity {
        id: info.id.as_str().into(),
        created: info.unix_s(),
        model: Arc::clone(&exchange.deployment()?.used.used_model),
    };
    let request = &exchange.request;
    let writer = request.front.writer(request, identity);
    Some(ReplyReader::new(writer, recorder))
}

/// Picks the key of the attempt at hand, and returns the body of its request.
///
/// Errors: the wire cannot express the request, or the key cannot stand in a header.
pub(super) fn encode(exchange: &mut ModelExchange, now_ms: u64) -> Result<Vec<BodyPiece>, Fault> {
    let none = no_attempt;
    let attempt = exchange.attempt().ok_or_else(none)?;
    let key = match exchange.cursor.keeps_key {
        true => exchange.cursor.key,
        false => {
            let candidate = attempt.deployment.index;
            attempt
                .keys
                .pick(exchange.cursor.used_keys, candidate, now_ms)
        }
    };
    let cursor = &mut exchange.cursor;
    cursor.key = key;
    cursor.keeps_key = false;
    cursor.used_keys |= 1 << (cursor.key % super::MAX_KEYS);
    exchange.credential_header()?;
    let (deployment, target) = exchange
        .deployment()
        .zip(exchange.target())
        .ok_or_else(none)?;
    let body_bytes = exchange.request.source.body.len();
    let pieces = body::off_worker(body_bytes, || {
        deployment.wire.encode_pieces(&exchange.request, &target)
    })?;
    let pieces = pieces.into_iter().map(|piece| match piece {
        Piece::Bytes(bytes) => Ok(BodyPiece::Bytes(bytes)),
        Piece::Upload(range) => {
            let upload = exchange.upload.as_ref().ok_or_else(no_upload)?;
            Ok(BodyPiece::Upload(Arc::clone(upload), range))
        }
    });
    let body = pieces.collect::<Result<_, Fault>>()?;
    let parts = deployment.wire.parts(&exchange.request, &target);
    exchange.cursor.parts.count = parts.count;
    exchange.cursor.parts.text_bytes = parts.text_bytes;
    Ok(body)
}

/// Begins to measure the attempt. The trial of a provider that has failed does not keep the client waiting for as long as
/// others, if another provider is left.
fn measure(exchange: &mut ModelExchange, now_ms: u64) {
    let Some(candidate) = exchange.deployment().map(|deployment| deployment.index) else {
        return;
    };
    let is_stream = exchange.request.is_stream;
    let planner = &exchange.models.planner;
    let measured = planner.begin_attempt(candidate, is_stream, now_ms);
    let has_next = exchange.cursor.attempt + 1 < exchange.attempts.len();
    if let Some(patience_ms) = measured.trial_patience_ms().filter(|_| has_next) {
        let patience = Duration::from_millis(patience_ms);
        exchange.state.set_patience(patience);
    }
    exchange.measured = Some(measured);
}

/// Writes the head of the upstream request: of the client's headers only `traceparent` passes.
///
/// Errors: a path that is no URI, which is a bug.
pub(super) fn write_head(
    exchange: &ModelExchange,
    info: &RequestInfo,
    head: &mut RequestHeader,
) -> Result<()> {
    let body_bytes = exchange.state.body_bytes();
    match self::head(exchange, info, head, body_bytes) {
        Some(fresh) => *head = fresh,
        None => return Error::e_explain(ErrorType::InternalError, "the path of a provider"),
    }
    Ok(())
}

/// Returns the head of the attempt's request in place of the client's; `None`: the path of the provider is no URI.
pub(super) fn head(
    exchange: &ModelExchange,
    info: &RequestInfo,
    client: &RequestHeader,
    body_bytes: usize,
) -> Option<RequestHeader> {
    let request = &exchange.request;
    let template = exchange
        .deployment()
        .and_then(|deployment| deployment.head(request.payload.operation(), request.is_stream));
    let of_wire = exchange
        .deployment()
        .map(|deployment| deployment.wire.request_headers(request))
        .unwrap_or_default();
    let endpoints = exchange
        .deployment()
        .map(|deployment| &deployment.site.endpoints)
        .filter(|endpoints| endpoints.are_several());
    let origin = endpoints.and_then(|endpoints| endpoints.origin(exchange.cursor.endpoint));
    let own = OwnHeaders {
        authority: origin.map(|origin| &origin.authority),
        of_wire: &of_wire,
        body_bytes,
        request_id: info.id.as_header(),
        credential: exchange.credential_header().ok().flatten(),
    };
    let fresh = template?.request(&own, client)?;
    Some(fresh.into())
}
