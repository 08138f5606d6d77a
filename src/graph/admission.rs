//! A request to the graph service until it is sent on: whose it is, on which row it counts, and whether it may pass.
//!
//! Nothing of it is changed. What decides is a normalised copy of the path; the service gets the bytes that came.

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
use http::{HeaderName, HeaderValue, header};
use md5::{Digest, Md5};
use pingora::http::RequestHeader;
use serde::de::IgnoredAny;

use super::exchange::{Admission, GraphExchange, LimitOutcome};
use super::{CacheWriter, CachedResponse, Graph, Lookup, ResponseCache, origin_form};
use crate::proxy::exchange::Exchange;
use crate::proxy::handler::{Buffering, Forward, Incoming, Opened};
use crate::proxy::response::Response;

const CACHE: HeaderName = HeaderName::from_static("x-weirgate-cache");

/// Admits requests to the graph service.
pub struct GraphHandler {
    /// The graph service.
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
            let found = self.graph.operations.find(head.method.as_str(), &path);
            let mut call = Box::new(GraphExchange::new(&self.graph, found.operation));
            let opened = admit(&self.graph, incoming, &mut call, &found).await;
            *exchange = Some(call);
            opened
        })
    }

    /// Counts on the operation of the path; where the path cannot be normalised, on that of unknown paths.
    fn refused(&self, head: &RequestHeader) -> Option<Box<dyn Exchange>> {
        let (operations, method) = (&self.graph.operations, head.method.as_str());
        let operation = match normalise(head.uri.path()) {
            Ok(path) => operations.find(method, &path).operation,
            Err(_) => operations.unknown_path(method),
        };
        Some(Box::new(GraphExchange::new(&self.graph, operation)))
    }
}

/// Admits a request, or answers it.
///
/// Errors: 400 for two credentials, 404 for unknown paths where they are refused, 413, 503 where no process can count.
async fn admit(
    graph: &Graph,
    incoming: &mut Incoming<'_>,
    call: &mut GraphExchange,
    found: &OperationMatch<'_>,
) -> Result<Opened, Fault> {
    if graph.rejects_unknown && !found.is_known {
        return Err(Fault::new(
            FaultKind::NotFound,
            "there is nothing at this path",
        ));
    }
    call.remaining_bytes = graph.body_bytes(&call.operation);
    incoming.check_length(call.remaining_bytes)?;
    if !found.is_counted {
        return Ok(Opened::Upstream(Buffering::None));
    }
    let kind = identify(graph, incoming, call).await?;
    if let Some(cache) = &graph.cache
        && let Some(cached) = look_up(cache, incoming, call, kind).await?
    {
        call.outcome = LimitOutcome::Hit;
        graph.metrics.cache_hit("graph");
        return Ok(Opened::Response(replay(call, &cached)));
    }
    let verdict = count(graph, call, incoming.client_ip()).await?;
    if !verdict.is_allowed {
        let response = refusal(graph, call, &verdict);
        call.cache_writer = None;
        incoming.spare_connection();
        return Ok(Opened::Response(response));
    }
    // Without framing there is no body to send again.
    let body = call.body.clone();
    let body = body.filter(|body| !body.is_empty() || incoming.has_framed_body());
    Ok(Opened::Upstream(
        body.map_or(Buffering::None, Buffering::Replay),
    ))
}

/// Whose request it is, and with that its limit; answers what kind of credential came. Source: docs/decisions.md 27.
///
/// Errors: 400 for two credentials; where the body is signed, those of reading it.
async fn identify(
    graph: &Graph,
    incoming: &mut Incoming<'_>,
    call: &mut GraphExchange,
) -> Result<CredentialKind, Fault> {
    let mut presented = read_credential(incoming.head())?;
    let is_signed = graph.tenants.needs_body(&presented);
    if is_signed {
        call.body = Some(incoming.read_body(call.remaining_bytes).await?);
        presented = read_credential(incoming.head())?;
    }
    let claims = match presented {
        PresentedCredential::Bearer(token) => claims(graph, token).await,
        _ => None,
    };
    let head = incoming.head();
    let target = origin_form(head.raw_path());
    let body_md5 = call.body.as_ref().filter(|_| is_signed);
    let proof = VerificationInputs {
        method: head.method.as_str(),
        // A signature is over text: what is none was signed by nobody.
        path_and_query: std::str::from_utf8(target).unwrap_or_default(),
        body_md5: body_md5.map(|body| Md5::digest(body).into()),
        now_ms: graph.clock.unix_ms(),
        accepts_single_key: call.operation.accepts_single_key,
        claims: claims.as_ref(),
    };
    let identity = graph.tenants.identify(&presented, &proof, &graph.nonces);
    call.limit = graph
        .limits
        .limit(identity.tenant.as_deref(), &call.operation);
    call.tenant = identity.tenant;
    Ok(identity.kind)
}

fn read_credential(
    head: &RequestHeader,
) -> Result<PresentedCredential<'_>, ConflictingCredentials> {
    PresentedCredential::from_request(&head.headers, head.uri.query())
}

/// What a token says, verified where a key set has to.
async fn claims(graph: &Graph, token: &str) -> Option<TenantClaims> {
    let claims = TenantClaims::from_unverified_token(token)?;
    let Some(number) = graph.tenants.required_key_set(&claims) else {
        return Some(claims);
    };
    let set = graph.key_sets.get(number)?.for_token(token).await;
    let verified = set?.verify::<IgnoredAny>(token, graph.clock.unix_s());
    Some(TenantClaims {
        is_verified: verified.is_ok(),
        ..claims
    })
}

/// The answer to an equal request, where one is kept; else this request may be the one that fetches it.
///
/// Errors: those of reading the body, which is read for requests alone whose head lets them be answered so.
async fn look_up(
    cache: &Arc<ResponseCache>,
    incoming: &mut Incoming<'_>,
    call: &mut GraphExchange,
    kind: CredentialKind,
) -> Result<Option<Arc<CachedResponse>>, Fault> {
    let head = incoming.head();
    let asked = CacheRequest {
        tenant: call.tenant.as_deref(),
        credential_kind: "single",
        is_public: kind == CredentialKind::Single && call.operation.accepts_single_key,
        method: &head.method,
        path: head.uri.path(),
        query: head.uri.query().unwrap_or_default(),
        headers: &head.headers,
    };
    let Ok(key) = HeadKey::from_request(&asked) else {
        return Ok(None);
    };
    let body = incoming.read_body(call.remaining_bytes).await?;
    let found = cache
        .find(key.to_cache_key(&body), || key.is_read_only(&body))
        .await;
    call.body = Some(body);
    Ok(match found {
        Lookup::Hit(kept) => Some(kept),
        Lookup::Nothing(flight) => {
            call.cache_writer = Some(CacheWriter::new(flight));
            None
        }
        Lookup::Alone => None,
    })
}

async fn count(
    graph: &Graph,
    call: &mut GraphExchange,
    address: Option<IpAddr>,
) -> Result<Verdict, Fault> {
    let address = address.unwrap_or(Ipv4Addr::UNSPECIFIED.into());
    let key = WindowKey {
        subject: Subject::from_tenant(call.tenant.as_ref(), address),
        row: call.operation.id,
    };
    call.outcome = LimitOutcome::Unavailable;
    let verdict = graph.counters.admit(&key, call.limit).await?;
    if verdict.is_allowed {
        call.outcome = LimitOutcome::Admitted;
        let refund = verdict.refund_token;
        call.admission = Some(Admission { key, refund });
    } else {
        call.outcome = LimitOutcome::Refused;
    }
    Ok(verdict)
}

/// Source: docs/graph-limits.md 7.
fn refusal(graph: &Graph, call: &GraphExchange, verdict: &Verdict) -> Response {
    let tenant = call.tenant.as_deref().unwrap_or(UNIDENTIFIED);
    let limits = call.headers().into_iter();
    Response {
        status: 429,
        headers: limits.chain(refusal_headers(verdict)).collect(),
        body: refusal_body(call.limit, graph.window_s, tenant).into(),
    }
}

/// An answer that was kept.
fn replay(call: &GraphExchange, kept: &CachedResponse) -> Response {
    let mut headers: Vec<Header> = Vec::with_capacity(kept.headers.len() + 4);
    headers.extend_from_slice(&kept.headers);
    headers.extend(call.headers());
    headers.push((header::AGE, kept.age_s().into()));
    headers.push((CACHE, HeaderValue::from_static("HIT")));
    Response {
        status: 200,
        headers,
        body: Bytes::clone(&kept.body).into(),
    }
}
