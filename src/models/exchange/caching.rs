//! What the response cache does for a call: it replays a stored reply, or stores the one that comes.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use filters::accounts::Caller;
use filters::models::metadata::{AnswerMembers, AttemptRecord, Metadata};
use filters::models::reply::ReplyIdentity;
use filters::models::reply_cache::cached_reply::CachedReply;
use filters::models::reply_cache::key::KeyScope;
use filters::models::reply_cache::recorder::ReplyRecorder;
use filters::models::request::ModelRequest;
use http::{HeaderMap, HeaderName, HeaderValue};
use uuid::Uuid;

use super::upstream_response::ReplyReader;
use super::{ModelExchange, upstream_response};
use crate::models::reply_cache::{CallGuard, ReplyCache, ReplyLookup, Search};
use crate::proxy::context::RequestInfo;
use crate::proxy::response::{self, Reply, Response};

const NO_CACHE: HeaderName = HeaderName::from_static("x-no-cache");
const CACHE_STATUS: HeaderName = HeaderName::from_static("x-weirgate-cache");

/// The part of the cache in a call.
#[derive(Default)]
pub(super) enum Caching {
    /// None: its project has no cache, or this call goes past it.
    #[default]
    Off,
    /// It is the one that calls, and stores its reply.
    Storing(CallGuard),
    /// It was answered by this reply.
    Replayed(Arc<CachedReply>),
}

/// Returns how old a cached answer to a request may be; `None`: it goes past the cache.
///
/// Cost without a cache: one branch.
pub fn ttl(caller: Option<&Caller>, headers: &HeaderMap) -> Option<Duration> {
    let ttl_s = caller?.cache_ttl_s.filter(|ttl_s| *ttl_s > 0)?;
    let refuses = headers.get(NO_CACHE).is_some_and(|value| value == "true");
    (!refuses).then(|| Duration::from_secs(ttl_s.into()))
}

/// Returns the search for a reply to a request, if the cache may answer it. `candidates` is the digest of those that the
/// caller may use, and `now_ms` the wall clock.
pub fn search(
    cache: &ReplyCache,
    caller: Option<&Caller>,
    request: &ModelRequest,
    candidates: Option<[u8; 32]>,
    (ttl, now_ms): (Duration, u64),
) -> Option<Search> {
    let (caller, candidates) = (caller?, candidates?);
    if !request.payload.operation().is_cacheable() {
        return None;
    }
    let scope = KeyScope {
        organization_id: &caller.organization_id,
        project_id: &caller.project_id,
        mode: caller.mode,
        candidates,
    };
    let key = cache.key(&scope, request)?;
    Some(Search { key, ttl, now_ms })
}

/// Returns the replayed response to a call, if a reply was found.
///
/// It needs no credit: nothing is reserved and nothing settled. Our choice: so a caller without credit gets what its
/// project has paid for already.
pub fn replay(
    exchange: &mut ModelExchange,
    info: &RequestInfo,
    found: ReplyLookup,
) -> Option<Response> {
    exchange.caching = match found {
        ReplyLookup::Hit(reply) => Caching::Replayed(reply),
        ReplyLookup::Miss(guard) => Caching::Storing(guard),
        ReplyLookup::Bypass => Caching::Off,
    };
    let Caching::Replayed(reply) = &exchange.caching else {
        return None;
    };
    let reply = Arc::clone(reply);
    let body = write(exchange, info, &reply);
    match body {
        Some(_) => exchange.send_impression(),
        None => exchange.caching = Caching::Off,
    }
    body.map(|body| to_response(exchange, body))
}

/// Returns the body of a replayed response; `None`: the reply is damaged.
fn write(exchange: &mut ModelExchange, info: &RequestInfo, reply: &CachedReply) -> Option<Bytes> {
    let identity = ReplyIdentity {
        id: info.id.as_str().into(),
        created: info.unix_s(),
        model: reply.used_model().into(),
    };
    let request = &exchange.request;
    let mut writer = request.front.writer(request, identity);
    reply.replay(&mut *writer)?;
    exchange
        .billing
        .record_replay(reply.settlement(), Uuid::now_v7());
    let settlement = exchange.billing.settlement()?;
    let members = reply.members();
    upstream_response::with_metadata(exchange, info, members, |metadata: &Metadata<'_>| {
        writer.complete(settlement, metadata);
    });
    let body = writer.take();
    // The log line tells of its answer what it tells of a fresh one.
    exchange.reader = ReplyReader::new(writer, None);
    Some(body)
}

fn to_response(exchange: &ModelExchange, body: Bytes) -> Response {
    let mut headers = vec![(CACHE_STATUS, HeaderValue::from_static("HIT"))];
    if exchange.request.is_stream {
        headers.extend(response::stream_headers());
    }
    Response {
        status: 200,
        headers,
        body: Reply::Bytes(body),
    }
}

/// Returns the recorder of an attempt's reply, if the call stores it.
pub(super) fn recorder(exchange: &ModelExchange) -> Option<ReplyRecorder> {
    match &exchange.caching {
        Caching::Storing(guard) => Some(ReplyRecorder::new(guard.max_bytes())),
        _ => None,
    }
}

/// Stores the complete reply that was recorded, or lets the followers call if it may not be stored.
pub(super) fn store(exchange: &mut ModelExchange, info: &RequestInfo) {
    let Caching::Storing(guard) = std::mem::take(&mut exchange.caching) else {
        return;
    };
    let recorded = exchange.reader.take_recorder();
    let events = recorded.and_then(ReplyRecorder::into_events);
    let settlement = exchange.billing.settlement();
    let (Some(events), Some(settlement), Some(deployment)) =
        (events, settlement, exchange.deployment())
    else {
        return guard.release_followers();
    };
    let used = &deployment.used;
    // Nobody owes a replay anything.
    let records = exchange.log.records.iter().cloned();
    let free = records.map(|record| AttemptRecord {
        owed: None,
        ..record
    });
    let free: Vec<AttemptRecord> = free.collect();
    let members = AnswerMembers::Fresh {
        used,
        price: exchange.billing.price_notes(),
        routing: &free,
    };
    let names = (&*used.used_model, used.log());
    let stored_ms = info.unix_ms();
    let reply = CachedReply::new(events, settlement.usage, names, &members, stored_ms);
    guard.store(reply);
}

/// Lets one of the followers call: this call is refused, which says nothing about theirs.
pub fn leave(exchange: &mut ModelExchange) {
    exchange.caching = Caching::Off;
}

/// Lets the followers of a call that ended without a reply call for themselves. If its client has left, one of them calls
/// for all.
pub(super) fn release(exchange: &mut ModelExchange, is_client_gone: bool) {
    if let Caching::Storing(guard) = std::mem::take(&mut exchange.caching)
        && !is_client_gone
    {
        guard.release_followers();
    }
}
