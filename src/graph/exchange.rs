//! A request on its way through to the graph service, and its answer on the way back: both as they came, but for the
//! limit that every answer names.
//!
//! Pingora's plain hooks do the work. Nobody else can answer, so a request is sent once: only a connection that could
//! not be made, or was kept and had died, is tried again.

use bytes::Bytes;
use filters::fault::{Fault, FaultKind};
use filters::graph::headers::{is_limit_header, overrides_method};
use filters::graph::is_upstream_hit;
use http::{HeaderName, HeaderValue, StatusCode, header};
use pingora::http::{RequestHeader, ResponseHeader};
use pingora::upstreams::peer::{HttpPeer, HttpUpstreamRequestPolicy};
use pingora::{Error, ErrorSource, ErrorType, Result};
use pingora_proxy::Session;

use crate::app::state::AppState;
use crate::graph::{Graph, GraphExchange, LimitOutcome, origin_form};
use crate::proxy::buffered::session::ATTEMPT_ABORTED;

/// Connections tried for one request: another address, or the same one again.
const CONNECTIONS: u8 = 2;
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const OTHER_REQUEST_ID: HeaderName = HeaderName::from_static("request-id");

/// An address of the service. Errors: its name cannot be looked up.
pub async fn peer(graph: &Graph) -> Result<Box<HttpPeer>> {
    let mut peer = graph.origin.peer().await?;
    // Behind an upgrade requests would pass that nobody counts.
    peer.options.http_upstream_request_policy = HttpUpstreamRequestPolicy::deny_upgrades();
    Ok(Box::new(peer))
}

/// The request's head: the service's own host, and nothing that would have it take another method.
///
/// Errors: a target that is no URI, which Pingora has read as one before.
pub fn head(graph: &Graph, call: &GraphExchange, head: &mut RequestHeader) -> Result<()> {
    if head.uri.authority().is_some() || !head.raw_path().starts_with(b"/") {
        let target = origin_form(head.raw_path()).to_vec();
        head.set_raw_path(&target)?;
    }
    head.insert_header(header::HOST, graph.origin.authority.clone())?;
    let overriding: Vec<HeaderName> = head
        .headers
        .keys()
        .filter(|name| overrides_method(name))
        .cloned()
        .collect();
    for name in &overriding {
        head.remove_header(name);
    }
    let is_framed = head.headers.contains_key(header::CONTENT_LENGTH)
        || head.headers.contains_key(header::TRANSFER_ENCODING);
    if let Some(body) = &call.body {
        // It is there as a whole.
        head.remove_header(&header::TRANSFER_ENCODING);
        head.remove_header(&header::EXPECT);
        if is_framed || !body.is_empty() {
            head.insert_header(header::CONTENT_LENGTH, body.len())?;
        }
    }
    Ok(())
}

/// A piece of the request's body on its way; answers what is wrong where there is too much of it.
pub fn upload(call: &mut GraphExchange, piece: Option<&Bytes>) -> Option<Fault> {
    let bytes = piece.map_or(0, Bytes::len);
    if call.body.is_some() || bytes <= call.room_bytes {
        call.room_bytes = call.room_bytes.saturating_sub(bytes);
        return None;
    }
    Some(Fault::new(
        FaultKind::TooLarge,
        "the body is larger than is taken here",
    ))
}

/// The answer's head as the service sent it: whether its unit is given back, and whether the answer is kept.
pub async fn verdict(
    house: &AppState,
    graph: &Graph,
    call: &mut GraphExchange,
    head: &ResponseHeader,
) {
    if head.status.is_informational() {
        return;
    }
    let outcome = match head.status {
        StatusCode::SERVICE_UNAVAILABLE => "upstream_cpu_exhausted",
        _ => "answered",
    };
    house.metrics.graph_upstream(outcome);
    if let Some(mut collecting) = call.collecting.take()
        && collecting.head(head)
    {
        call.collecting = Some(collecting);
    }
    if is_upstream_hit(&head.headers)
        && let Some(admission) = call.admission.take()
        && graph
            .counters
            .refund(&admission.key, admission.ticket)
            .await
    {
        call.outcome = LimitOutcome::Refunded;
    }
}

/// The answer's head as the client gets it: our limits in the place of the service's.
///
/// Errors: none; numbers always make headers.
pub fn answer(
    call: &GraphExchange,
    head: &mut ResponseHeader,
    request_id: &HeaderValue,
) -> Result<()> {
    if head.status.is_informational() {
        return Ok(());
    }
    let theirs: Vec<HeaderName> = head
        .headers
        .keys()
        .filter(|name| is_limit_header(name))
        .cloned()
        .collect();
    for name in &theirs {
        head.remove_header(name);
    }
    for (name, value) in call.headers() {
        head.insert_header(name, value)?;
    }
    head.insert_header(REQUEST_ID, request_id.clone())?;
    head.insert_header(OTHER_REQUEST_ID, request_id.clone())
}

/// A piece of the answer's body on its way.
pub fn body(call: &mut GraphExchange, piece: Option<&Bytes>, is_end: bool) {
    if let Some(collecting) = &mut call.collecting {
        collecting.body(piece.map_or(&b""[..], |piece| piece), is_end);
        if is_end {
            // Whoever waits for it need not wait for our client to have read it.
            call.collecting = None;
        }
    }
}

/// No connection: whether it is tried once more.
pub fn connect(call: &mut GraphExchange, mut error: Box<Error>) -> Box<Error> {
    call.failed_connections += 1;
    error.set_retry(call.failed_connections < CONNECTIONS);
    error
}

/// The connection or the answer broke: only what may be sent twice is, and only where a kept connection had died.
pub fn midway(session: &Session, mut error: Box<Error>, was_reused: bool) -> Box<Error> {
    let is_whole = !session.as_ref().retry_buffer_truncated();
    if session.req_header().method.is_idempotent() && is_whole {
        error.retry.decide_reuse(was_reused);
    } else {
        error.set_retry(false);
    }
    error
}

/// What the client is told where the service did not answer; none where there is nobody to tell.
pub fn fault(house: &AppState, session: &Session, error: &Error) -> Option<Fault> {
    if *error.esource() == ErrorSource::Downstream && *error.etype() != ATTEMPT_ABORTED {
        let is_bad = *error.etype() == ErrorType::InvalidHTTPHeader;
        let is_silent = session.response_written().is_none();
        let message = "`Connection` names a header that has to be sent on";
        return (is_bad && is_silent).then(|| Fault::new(FaultKind::Invalid, message));
    }
    let (outcome, fault) = match error.etype() {
        ErrorType::ConnectTimedout
        | ErrorType::TLSHandshakeTimedout
        | ErrorType::ReadTimedout
        | ErrorType::WriteTimedout => (
            "timeout",
            Fault::new(
                FaultKind::UpstreamTimeout,
                "the graph service did not answer in time",
            ),
        ),
        ErrorType::ConnectionClosed
        | ErrorType::ReadError
        | ErrorType::WriteError
        | ErrorType::H1Error
        | ErrorType::H2Error
        | ErrorType::InvalidHTTPHeader => (
            "broken",
            Fault::new(
                FaultKind::UpstreamFailed,
                "the graph service's answer broke off",
            )
            .with_code("upstream_failed"),
        ),
        _ => (
            "connect_failed",
            Fault::new(
                FaultKind::ConnectFailed,
                "the graph service could not be reached",
            ),
        ),
    };
    house.metrics.graph_upstream(outcome);
    Some(fault)
}
