//! Admits a request to the graph service: finds its operation and its tenant, and decides whether it may pass.
//!
//! The request is not changed. Decisions use a normalised copy of the path, and the service gets the bytes as
//! received.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use bytes::Bytes;
use filters::fault::{Fault, FaultKind};
use filters::graph::credentials::{
    ConflictingCredentials, CredentialKind, PresentedCredential, TenantClaims, UNIDENTIFIED,
    VerificationInputs,
};
use filters::graph::headers::{refusal_body, refusal_headers};
use filters::graph::{CacheRequest, HeadKey, OperationMatch};
use filters::limits::headers::Header;
use filters::limits::{Subject, Verdict, WindowKey};
use filters::proxy::normalise;
use futures::future::BoxFuture;
use http::request::Parts;
use http::{HeaderName, HeaderValue, header};
use md5::{Digest, Md5};
use serde::de::IgnoredAny;

use super::exchange::{Admission, GraphExchange, LimitOutcome};
use super::{CacheWriter, CachedResponse, Graph, Lookup, ResponseCache, origin_form};
use crate::proxy::exchange::Exchange;
use crate::proxy::handler::{Buffering, Forward, Incoming, Opened};
use crate::proxy::response::Response;

const CACHE_STATUS: HeaderName = HeaderName::from_static("x-weirgate-cache");

/// A body up to this size is read before its request takes a permit. A larger one is forwarded as it arrives.
const MAX_READ_FIRST: usize = 64 << 10;

/// Admits requests to the graph service.
pub struct GraphHandler {
    pub graph: Arc<Graph>,
}

impl Forward for GraphHandler {
    fn open<'a>(
        &'a self,
        incoming: &'a mut Incoming<'_>,
        exchange: &'a mut Option<Box<dyn Exchange>>,
    ) -> BoxFuture<'a, Result<Opened, Fault>> {
        Box::pin(async move {
            let head = incoming.head();
            let path = normalise(head.uri.path())?;
            let matched = self.graph.operations.find(head.method.as_str(), &path);
            let mut graph_exchange = Box::new(GraphExchange::new(&self.graph, matched.operation));
            let opened = admit(&self.graph, incoming, &mut graph_exchange, &matched).await;
            *exchange = Some(graph_exchange);
            opened
        })
    }

    /// Uses the operation of the path, or that of unknown paths if the path cannot be normalised.
    fn refused(&self, head: &Parts) -> Option<Box<dyn Exchange>> {
        let (operations, method) = (&self.graph.operations, head.method.as_str());
        let operation = match normalise(head.uri.path()) {
            Ok(path) => operations.find(method, &path).operation,
            Err(_) => operations.unknown_path(method),
        };
        Some(Box::new(GraphExchange::new(&self.graph, operation)))
    }
}

/// Admits a request, or returns a response of our own.
///
/// Errors: 400 for two credentials, 404 for an unknown path if those are refused, 413, 503 if `graph.in_flight`
/// requests run or neither Redis nor this process can count.
async fn admit(
    graph: &Graph,
    incoming: &mut Incoming<'_>,
    exchange: &mut GraphExchange,
    matched: &OperationMatch<'_>,
) -> Result<Opened, Fault> {
    if graph.rejects_unknown && !matched.is_known {
        return Err(Fault::new(
            FaultKind::NotFound,
            "there is nothing at this path",
        ));
    }
    exchange.check_permit()?;
    exchange.remaining_bytes = graph.max_body_bytes(&exchange.operation);
    incoming.check_length(exchange.remaining_bytes)?;
    if !matched.is_preflight {
        let kind = identify(graph, incoming, exchange).await?;
        if let Some(cache) = &graph.cache
            && let Some(cached) = find_cached(cache, incoming, exchange, kind).await?
        {
            exchange.outcome = LimitOutcome::Hit;
            graph.metrics.count_cache_hit();
            return Ok(Opened::Response(cached_response(exchange, &cached)));
        }
    }
    let verdict = count_request(graph, exchange, matched, incoming.client_ip()).await?;
    if !verdict.is_allowed {
        let response = refused_response(graph, exchange, &verdict);
        exchange.cache_writer = None;
        incoming.keep_connection();
        return Ok(Opened::Response(response));
    }
    read_first(incoming, exchange).await?;
    if let Err(fault) = exchange.acquire_permit(incoming.has_framed_body()) {
        if let Some(admission) = exchange.admission.take()
            && graph
                .counters
                .refund(&admission.key, admission.refund)
                .await
        {
            exchange.outcome = LimitOutcome::Refunded;
        }
        return Err(fault);
    }
    // A request without framing has no body to replay.
    let body = exchange.body.clone();
    let body = body.filter(|body| !body.is_empty() || incoming.has_framed_body());
    Ok(Opened::Upstream(
        body.map_or(Buffering::None, Buffering::Replay),
    ))
}

/// Reads a body before its request takes a permit, so that a slow client holds no permit: small bodies, and those of
/// HTTP/2, whose pieces have no timeout when they are forwarded.
///
/// Errors: the errors of reading the body.
async fn read_first(
    incoming: &mut Incoming<'_>,
    exchange: &mut GraphExchange,
) -> Result<(), Fault> {
    if exchange.body.is_some() || !incoming.has_body() {
        return Ok(());
    }
    let length = incoming.body_length()?;
    if incoming.is_http2() || length.is_some_and(|length| length <= MAX_READ_FIRST) {
        exchange.body = Some(incoming.read_body(exchange.remaining_bytes).await?);
    }
    Ok(())
}

/// Sets the tenant of a request and its limit. Returns the kind of its credential. Source: docs/decisions.md 27.
///
/// Errors: 400 for two credentials; the errors of reading the body, if the body is signed.
async fn identify(
    graph: &Graph,
    incoming: &mut Incoming<'_>,
    exchange: &mut GraphExchange,
) -> Result<CredentialKind, Fault> {
    let mut presented = read_credential(incoming.head())?;
    let now_ms = i64::try_from(incoming.info().unix_ms()).unwrap_or(i64::MAX);
    let is_signed = graph.tenants.needs_body(&presented, now_ms);
    if is_signed {
        exchange.body = Some(incoming.read_body(exchange.remaining_bytes).await?);
        presented = read_credential(incoming.head())?;
    }
    let claims = match presented {
        PresentedCredential::Bearer(token) => {
            read_claims(graph, token, incoming.info().unix_s()).await
        }
        _ => None,
    };
    let head = incoming.head();
    let target = origin_form(head.raw_path());
    let body_md5 = exchange.body.as_ref().filter(|_| is_signed);
    let inputs = VerificationInputs {
        method: head.method.as_str(),
        // Signatures cover UTF-8 text, so other bytes never verify.
        path_and_query: std::str::from_utf8(target).unwrap_or_default(),
        body_md5: body_md5.map(|body| Md5::digest(body).into()),
        now_ms,
        accepts_single_key: exchange.operation.accepts_single_key,
        claims: claims.as_ref(),
    };
    let identity = graph.tenants.identify(&presented, &inputs, &graph.nonces);
    exchange.limit = graph
        .limits
        .limit(identity.tenant.as_deref(), &exchange.operation);
    exchange.tenant = identity.tenant;
    Ok(identity.kind)
}

fn read_credential(head: &Parts) -> Result<PresentedCredential<'_>, ConflictingCredentials> {
    PresentedCredential::from_request(&head.headers, head.uri.query())
}

/// Returns the claims of a token, verified if its issuer has a key set.
pub(super) async fn read_claims(graph: &Graph, token: &str, now_s: u64) -> Option<TenantClaims> {
    let claims = TenantClaims::from_unverified_token(token)?;
    let Some(index) = graph.tenants.required_key_set(&claims) else {
        return Some(claims);
    };
    let key_set = graph.key_sets.get(index)?.find_for_token(token).await;
    let verified = key_set?.verify::<IgnoredAny>(token, now_s);
    Some(TenantClaims {
        is_verified: verified.is_ok(),
        ..claims
    })
}

/// Returns the cached response to an equal request. If there is none, this request may fetch it and fill the cache.
///
/// Errors: the errors of reading the body. The body is read only if the head allows a cached response.
async fn find_cached(
    cache: &Arc<ResponseCache>,
    incoming: &mut Incoming<'_>,
    exchange: &mut GraphExchange,
    kind: CredentialKind,
) -> Result<Option<Arc<CachedResponse>>, Fault> {
    let head = incoming.head();
    let request = CacheRequest {
        tenant: exchange.tenant.as_deref(),
        credential_kind: "single",
        is_public: kind == CredentialKind::Single && exchange.operation.accepts_single_key,
        method: &head.method,
        path: head.uri.path(),
        query: head.uri.query().unwrap_or_default(),
        headers: &head.headers,
    };
    let Ok(key) = HeadKey::from_request(&request) else {
        return Ok(None);
    };
    let body = incoming.read_body(exchange.remaining_bytes).await?;
    let lookup = cache
        .find(key.to_cache_key(&body), || key.is_read_only(&body))
        .await;
    exchange.body = Some(body);
    Ok(match lookup {
        Lookup::Hit(cached) => Some(cached),
        Lookup::Miss(guard) => {
            exchange.cache_writer = Some(CacheWriter::new(guard));
            None
        }
        Lookup::Bypass => None,
    })
}

/// Counts the request in its window.
///
/// Errors: 503 if limits are shared and no process can count.
async fn count_request(
    graph: &Graph,
    exchange: &mut GraphExchange,
    matched: &OperationMatch<'_>,
    address: Option<IpAddr>,
) -> Result<Verdict, Fault> {
    let address = address.unwrap_or(Ipv4Addr::UNSPECIFIED.into());
    let operation = match matched.is_preflight {
        true => graph.operations.preflights(),
        false => &exchange.operation,
    };
    let key = WindowKey {
        subject: Subject::from_tenant(exchange.tenant.as_ref(), address),
        row: operation.id,
    };
    let limit = match matched.is_preflight {
        true => graph.limits.limit(None, operation),
        false => exchange.limit,
    };
    exchange.outcome = LimitOutcome::Unavailable;
    let verdict = graph.counters.admit(&key, limit).await?;
    if verdict.is_allowed {
        exchange.outcome = LimitOutcome::Admitted;
        let refund = verdict.refund_token;
        exchange.admission = Some(Admission { key, refund });
    } else {
        exchange.outcome = LimitOutcome::Refused;
        exchange.limit = limit;
    }
    Ok(verdict)
}

/// Returns the 429 of a request over its limit. Source: docs/graph-limits.md 7.
fn refused_response(graph: &Graph, exchange: &GraphExchange, verdict: &Verdict) -> Response {
    let tenant = exchange.tenant.as_deref().unwrap_or(UNIDENTIFIED);
    let limits = exchange.limit_headers().into_iter();
    Response {
        status: 429,
        headers: limits.chain(refusal_headers(verdict)).collect(),
        body: refusal_body(exchange.limit, graph.window_s, tenant).into(),
    }
}

/// Returns a cached response, with the limits of this request.
fn cached_response(exchange: &GraphExchange, cached: &CachedResponse) -> Response {
    let mut headers: Vec<Header> = Vec::with_capacity(cached.headers.len() + 4);
    headers.extend_from_slice(&cached.headers);
    headers.extend(exchange.limit_headers());
    headers.push((header::AGE, cached.age_s().into()));
    headers.push((CACHE_STATUS, HeaderValue::from_static("HIT")));
    Response {
        status: 200,
        headers,
        body: Bytes::clone(&cached.body).into(),
    }
}
