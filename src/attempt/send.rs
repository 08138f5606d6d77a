//! Towards the provider: which peer, which head, which body.

use std::sync::Arc;

use filters::fault::{Fault, Kind};
use http::{Method, header};
use pingora::http::RequestHeader;
use pingora::upstreams::peer::HttpPeer;
use pingora::{Error, Result};
use tokio::time::Instant;

use super::Call;
use super::receive::Receiving;
use crate::house::House;
use crate::request::context::Context;
use crate::request::held::GIVEN_UP;

/// The peer of the attempt that is up, with its request rewritten for it.
///
/// Errors: the request cannot be said on this wire, or the provider's name cannot be looked up.
pub async fn peer(house: &House, ctx: &mut Context) -> Result<Box<HttpPeer>> {
    let request_id = ctx.request_id.clone();
    let Some(call) = ctx.call.as_deref_mut() else {
        return Error::e_explain(GIVEN_UP, "no call is planned");
    };
    match prepare(house, call, &request_id) {
        Ok(()) => {}
        Err(fault) => {
            ctx.fault = Some(fault);
            return Error::e_explain(GIVEN_UP, "the request cannot be said on this wire");
        }
    }
    let Some(step) = call.step() else {
        return Error::e_explain(GIVEN_UP, "no attempt is left");
    };
    let upstream = Arc::clone(&step.upstream);
    match upstream.peer().await {
        Ok(peer) => Ok(Box::new(peer)),
        Err(error) => Err(super::fail::connect(house, ctx, error)),
    }
}

/// Encodes the request for the attempt that is up.
fn prepare(house: &House, call: &mut Call, request_id: &str) -> Result<(), Fault> {
    let step = call.step().cloned();
    let step = step.ok_or_else(|| Fault::new(Kind::Internal, "no attempt is planned"))?;
    call.key = step.upstream.pick_key(call.tried_keys, house.now_ms());
    call.tried_keys |= 1 << (call.key % 64);
    let target = call
        .target()
        .ok_or_else(|| Fault::new(Kind::Internal, "no attempt is planned"))?;
    let encoded = step.upstream.wire.encode(&call.request, &target)?;
    let envelope = call.envelope(request_id, house.unix_s());
    call.receiving = Receiving::new(call.request.stream, envelope);
    call.head = Some((encoded.path, encoded.headers));
    call.attempt_started = Instant::now();
    call.watch.begin(encoded.body, call.attempt_started);
    Ok(())
}

/// The head of the upstream request: nothing of the client's but what is listed here.
///
/// Errors: a header that cannot be built, which is a bug.
pub fn head(ctx: &mut Context, head: &mut RequestHeader) -> Result<()> {
    let Some(call) = ctx.call.as_deref() else {
        return Ok(());
    };
    let (Some(step), Some((path, headers))) = (call.step(), &call.head) else {
        return Ok(());
    };
    let uri = step.upstream.path_of(path);
    let mut fresh = RequestHeader::build(Method::POST, uri.as_bytes(), Some(10))?;
    fresh.set_version(head.version);
    fresh.insert_header(header::HOST, step.upstream.authority.clone())?;
    fresh.insert_header(header::CONTENT_TYPE, "application/json")?;
    fresh.insert_header(header::CONTENT_LENGTH, call.watch.body_bytes())?;
    fresh.insert_header(header::ACCEPT_ENCODING, "identity")?;
    fresh.insert_header(
        header::USER_AGENT,
        concat!("weirgate/", env!("CARGO_PKG_VERSION")),
    )?;
    let accept = if call.request.stream {
        "text/event-stream"
    } else {
        "application/json"
    };
    fresh.insert_header(header::ACCEPT, accept)?;
    fresh.insert_header("x-request-id", &*ctx.request_id)?;
    if let Some(parent) = head.headers.get("traceparent").cloned() {
        fresh.insert_header("traceparent", parent)?;
    }
    for (name, value) in step.upstream.headers.iter().chain(headers) {
        fresh.insert_header(name.clone(), value.clone())?;
    }
    *head = fresh;
    Ok(())
}
