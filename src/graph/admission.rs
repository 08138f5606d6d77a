//! A request to the graph service until it is sent on: whose it is, on which row it counts, and whether it may pass.
//!
//! Nothing of it is changed. What decides is a normalised copy of the path; the service gets the bytes that came.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use filters::fault::{Fault, FaultKind};
use filters::graph::credentials::{
    ConflictingCredentials, CredentialKind, PresentedCredential, TenantClaims, UNIDENTIFIED,
    VerificationInputs,
};
use filters::graph::headers::{refusal_body, refusal_headers};
use filters::graph::{CacheRequest, HeadKey};
use filters::limits::headers::Header;
use filters::limits::{Subject, Verdict, WindowKey};
use filters::proxy::normalise;
use http::{HeaderName, HeaderValue, header};
use md5::{Digest, Md5};
use pingora_proxy::Session;
use serde::de::IgnoredAny;

use crate::app::state::AppState;
use crate::graph::{
    Admission, CacheWriter, CachedResponse, Graph, GraphExchange, LimitOutcome, Lookup,
    ResponseCache, origin_form,
};
use crate::proxy::buffered::session::BufferedSession;
use crate::proxy::buffered::state::AttemptState;
use crate::proxy::context::Context;
use crate::proxy::response::Response;
use crate::proxy::{admission, body};

const CACHE: HeaderName = HeaderName::from_static("x-weirgate-cache");
/// Bodies up to here are read to their end behind a refusal, so that the connection can go on.
const DRAINED_BYTES: usize = 64 << 10;
/// How long that may take.
const DRAINED_WITHIN: Duration = Duration::from_secs(5);

/// A request that is refused for its head, with the limit of its row; where nobody can read the path, of unknown paths.
pub fn refused(graph: &Graph, method: &http::Method, path: &str) -> Box<GraphExchange> {
    let (operations, method) = (&graph.operations, method.as_str());
    let operation = match normalise(path) {
        Ok(path) => operations.find(method, &path).operation,
        Err(_) => operations.pathless(method),
    };
    Box::new(GraphExchange::new(operation, graph.window_s))
}

/// Lets a request pass, or answers it.
///
/// Errors: 400 for two credentials, 404 for unknown paths where they are refused, 413, 503 where nobody can count.
pub async fn pass(
    house: &AppState,
    graph: &Graph,
    session: &mut Session,
    ctx: &mut Context,
) -> Result<Option<Response>, Fault> {
    let head = session.req_header();
    let path = normalise(head.uri.path())?;
    let found = graph.operations.find(head.method.as_str(), &path);
    let call = ctx.graph.insert(Box::new(GraphExchange::new(
        found.operation,
        graph.window_s,
    )));
    if graph.rejects_unknown && !found.is_known {
        return Err(Fault::new(
            FaultKind::NotFound,
            "there is nothing at this path",
        ));
    }
    call.room_bytes = graph.body_bytes(&call.operation);
    body::fits(&head.headers, call.room_bytes)?;
    if !found.is_counted {
        return Ok(None);
    }
    let class = identify(house, graph, session, call).await?;
    if let Some(cache) = &graph.cache
        && let Some(kept) = look_up(cache, session, call, class).await?
    {
        call.outcome = LimitOutcome::Hit;
        house.metrics.cache_hit("graph");
        return Ok(Some(again(call, &kept)));
    }
    let address = admission::client_ip(house, session);
    let verdict = count(graph, call, address).await?;
    if !verdict.is_allowed {
        let answer = refusal(graph, call, &verdict);
        call.collecting = None;
        spare(session);
        return Ok(Some(answer));
    }
    hold(session, ctx);
    Ok(None)
}

/// Whose request it is, and with that its limit; answers what kind of credential came. Source: docs/decisions.md 27.
///
/// Errors: 400 for two credentials; where the body is signed, those of reading it.
async fn identify(
    house: &AppState,
    graph: &Graph,
    session: &mut Session,
    call: &mut GraphExchange,
) -> Result<CredentialKind, Fault> {
    let mut presented = read_credential(session)?;
    let is_signed = graph.tenants.needs_body(&presented);
    if is_signed {
        call.body = Some(body::read_body(session, call.room_bytes).await?);
        presented = read_credential(session)?;
    }
    let claims = match presented {
        PresentedCredential::Bearer(token) => claims(house, graph, token).await,
        _ => None,
    };
    let head = session.req_header();
    let target = origin_form(head.raw_path());
    let body_md5 = call.body.as_ref().filter(|_| is_signed);
    let proof = VerificationInputs {
        method: head.method.as_str(),
        // A signature is over text: what is none was signed by nobody.
        path_and_query: std::str::from_utf8(target).unwrap_or_default(),
        body_md5: body_md5.map(|body| Md5::digest(body).into()),
        now_ms: house.unix_ms(),
        takes_single_key: call.operation.takes_single_key,
        claims: claims.as_ref(),
    };
    let identity = graph.tenants.identify(&presented, &proof, &graph.nonces);
    call.limit = graph.limits.of(identity.tenant.as_deref(), &call.operation);
    call.tenant = identity.tenant;
    Ok(identity.class)
}

fn read_credential(session: &Session) -> Result<PresentedCredential<'_>, ConflictingCredentials> {
    let head = session.req_header();
    PresentedCredential::read(&head.headers, head.uri.query())
}

/// What a token says, verified where a key set has to.
async fn claims(house: &AppState, graph: &Graph, token: &str) -> Option<TenantClaims> {
    let claims = TenantClaims::read(token)?;
    let Some(number) = graph.tenants.needs_key_set(&claims) else {
        return Some(claims);
    };
    let set = graph.key_sets.get(number)?.for_token(token).await;
    let verified = set?.verify::<IgnoredAny>(token, house.unix_s());
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
    session: &mut Session,
    call: &mut GraphExchange,
    class: CredentialKind,
) -> Result<Option<Arc<CachedResponse>>, Fault> {
    let head = session.req_header();
    let asked = CacheRequest {
        tenant: call.tenant.as_deref(),
        class: "single",
        is_public: class == CredentialKind::Single && call.operation.takes_single_key,
        method: &head.method,
        path: head.uri.path(),
        query: head.uri.query().unwrap_or_default(),
        headers: &head.headers,
    };
    let Ok(key) = HeadKey::of(&asked) else {
        return Ok(None);
    };
    let body = body::read_body(session, call.room_bytes).await?;
    let found = cache
        .find(key.with(&body), || key.is_read_only(&body))
        .await;
    call.body = Some(body);
    Ok(match found {
        Lookup::Hit(kept) => Some(kept),
        Lookup::Nothing(flight) => {
            call.collecting = Some(CacheWriter::new(flight));
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
        let ticket = verdict.refund_token;
        call.admission = Some(Admission { key, ticket });
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
fn again(call: &GraphExchange, kept: &CachedResponse) -> Response {
    let mut headers: Vec<Header> = Vec::with_capacity(kept.headers.len() + 4);
    headers.extend_from_slice(&kept.headers);
    headers.extend(call.headers());
    headers.push((header::AGE, kept.age_s().into()));
    headers.push((CACHE, HeaderValue::from_static("HIT")));
    Response {
        status: 200,
        headers,
        body: Bytes::clone(&kept.body),
    }
}

/// Keeps the connection behind an answer that is sent before the body was read, where reading the rest takes less than a
/// new connection would.
fn spare(session: &mut Session) {
    if session.is_body_done() {
        return;
    }
    let length = body::length(&session.req_header().headers);
    if matches!(length, Ok(Some(length)) if length <= DRAINED_BYTES) {
        let client = &mut session.downstream_session;
        client.set_close_on_response_before_downstream_finish(false);
        client.set_total_drain_timeout(Some(DRAINED_WITHIN));
    } else {
        session.set_keepalive(None);
    }
}

/// Where the body was read, the held session gives it again; nothing else of it is held.
fn hold(session: &mut Session, ctx: &mut Context) {
    let body = ctx.graph.as_ref().and_then(|call| call.body.clone());
    let headers = &session.req_header().headers;
    // Without either there is no body, and nothing to give again.
    let is_framed = headers.contains_key(header::CONTENT_LENGTH)
        || headers.contains_key(header::TRANSFER_ENCODING);
    if let Some(body) = body.filter(|body| is_framed || !body.is_empty()) {
        let watch = Arc::new(AttemptState::replay(body));
        let id = ctx.request_id.header().clone();
        ctx.slot = Some(BufferedSession::wrap(
            session,
            watch,
            (id, None),
            ctx.is_http1_1,
        ));
    }
}
