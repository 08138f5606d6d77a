//! Admission of a request: its framing, its caller, its address, its permit and its quota.

use std::net::IpAddr;
use std::sync::Arc;

use filters::accounts::{
    AccessToken, AuthError, Caller, admit_key, carries_api_key, credential, credential_with_query,
};
use filters::fault::{Fault, FaultKind};
use filters::limits::Payer;
use filters::limits::headers::Quota;
use filters::proxy::{check_http2, client_address};
use http::HeaderMap;
use http::header::{ACCEPT, HOST};
use pingora::http::RequestHeader;
use pingora_proxy::Session;
use tokio::time::Instant;

use super::connection_state;
use super::context::RequestInfo;
use super::permits::{Permit, no_permit};
use super::router::{Access, Route};
use super::state::{ClientIp, ProxyState};
use crate::accounts::access_tokens::AccessTokens;
use crate::telemetry::calls::OpenCall;

/// Refuses a head that another parser could frame in another way, or that is too large.
///
/// Source: docs/hostile-input.md 1 to 5, 11, 12. Errors: 400, 414, 431.
pub fn check_framing(session: &Session, max_bytes: usize) -> Result<(), Fault> {
    let head = session.req_header();
    if head.version == http::Version::HTTP_2 {
        return Ok(check_http2(head, max_bytes)?);
    }
    // The raw bytes were checked before Pingora parsed them.
    connection_state::take_head_verdict()
}

/// Refuses a request with an API key on a route that forwards requests unchanged, because the upstream would see the
/// key.
///
/// Source: docs/hostile-input.md 36. Errors: 404.
pub fn check_no_api_key(head: &RequestHeader) -> Result<(), Fault> {
    if carries_api_key(head) {
        let message = "an API key of the gateway came with a path that is not the gateway's: its paths start with `/v1`";
        return Err(Fault::new(FaultKind::NotFound, message));
    }
    Ok(())
}

/// Sets the caller if the route requires an API key, and the access token if one was used in place of the key.
///
/// Errors: 400, 401, 410 as `filters::accounts` says. An address that guesses keys waits up to a second for its 401,
/// and this function sets the time afterwards.
pub async fn authenticate(
    state: &ProxyState,
    route: &Route,
    session: &mut Session,
    info: &mut RequestInfo,
) -> Result<(), Fault> {
    if !needs_key(route, &session.req_header().headers) {
        return Ok(());
    }
    match admit(state, route, session, info.unix_ms()) {
        Ok((token, caller)) => {
            info.token = token.map(Box::new);
            info.set_caller(caller, &state.body_budget);
            Ok(())
        }
        Err(AuthError::Unknown) if !state.accounts.is_loaded() => {
            let message = "API keys cannot be checked at the moment";
            let fault = Fault::new(FaultKind::Unavailable, message).with_retry_after_s(2);
            Err(fault.with_detail("the store has not answered since the start"))
        }
        Err(error) => {
            if error.is_refused_key() {
                delay_refused_key(state, session, info).await;
            }
            Err(error.into())
        }
    }
}

/// Delays a refusal if the address presents very many invalid keys. If too many refusals wait, it closes the
/// connection.
async fn delay_refused_key(state: &ProxyState, session: &mut Session, info: &mut RequestInfo) {
    let Some(address) = client_ip(&state.settings.client_ip, session) else {
        return;
    };
    let delayed = state.address_limits.delay_refused_key(address, info.now);
    if delayed.await.is_err() {
        session.set_keepalive(None);
    }
    info.now = Instant::now();
}

/// Returns whether an admitted caller would still be admitted now. A stream ends when its key does.
pub fn is_still_admitted(state: &ProxyState, route: &Route, session: &Session) -> bool {
    let now_ms = state.clock.unix_us() / 1000;
    !needs_key(route, &session.req_header().headers) || admit(state, route, session, now_ms).is_ok()
}

fn needs_key(route: &Route, headers: &HeaderMap) -> bool {
    match route.access {
        Access::Key | Access::KeyInQuery | Access::KeyOrToken => true,
        Access::KeyOrTokenForEvents => {
            let accepted = headers.get_all(ACCEPT).iter();
            let mut accepted = accepted.filter_map(|value| value.to_str().ok());
            accepted.any(|value| value.contains("text/event-stream"))
        }
        Access::Open | Access::SdkKey => false,
    }
}

/// Returns the caller that a head names, and the access token if one was used in place of the key.
fn admit(
    state: &ProxyState,
    route: &Route,
    session: &Session,
    now_ms: u64,
) -> Result<(Option<AccessToken>, Arc<Caller>), AuthError> {
    let head = session.req_header();
    let accounts = state.accounts.current();
    let now_ms = i64::try_from(now_ms).unwrap_or(i64::MAX);
    let key_header = &state.settings.key_header;
    if route.access == Access::KeyInQuery {
        let query = head.uri.query().unwrap_or_default();
        let presented = credential_with_query(&head.headers, key_header, query)?;
        let caller = admit_key(&presented, &accounts, &state.pepper, now_ms)?;
        return Ok((None, caller));
    }
    let presented = credential(&head.headers, key_header)?;
    if route.access == Access::Key || !AccessTokens::is_token(presented) {
        let caller = admit_key(presented, &accounts, &state.pepper, now_ms)?;
        return Ok((None, caller));
    }
    let host = head.headers.get(HOST).and_then(|host| host.to_str().ok());
    let resource = (
        host,
        client_ip(&state.settings.client_ip, session),
        route.path,
    );
    let admitted = state.tokens.admit(presented, resource, &accounts, now_ms);
    let (token, caller) = admitted?;
    Ok((Some(token), caller))
}

/// Checks that the caller's key may be used from the client's address.
///
/// Errors: 403.
pub fn check_address(
    settings: &ClientIp,
    session: &Session,
    caller: Option<&Caller>,
) -> Result<(), Fault> {
    let Some(terms) = caller.and_then(|caller| caller.terms.as_ref()) else {
        return Ok(());
    };
    Ok(terms.rules.check_address(client_ip(settings, session))?)
}

/// Refuses a request that would get no permit, before its body is read.
///
/// Source: docs/model-gateway.md 7; docs/promises-tests.md. Errors: 529.
pub fn check_permit(
    state: &ProxyState,
    route: &Route,
    caller: Option<&Caller>,
    now: Instant,
) -> Result<(), Fault> {
    match caller.filter(|_| route.takes_permit) {
        Some(caller) if !state.permits.admits(&caller.organization_id, now) => Err(no_permit()),
        _ => Ok(()),
    }
}

/// Acquires one of the permits for concurrent model gateway requests, if the route needs one.
///
/// Source: docs/model-gateway.md 7; docs/promises-tests.md. Errors: 529.
pub fn acquire_permit(
    state: &ProxyState,
    route: &Route,
    caller: Option<&Caller>,
    now: Instant,
) -> Result<Option<Permit>, Fault> {
    let Some(caller) = caller.filter(|_| route.takes_permit) else {
        return Ok(None);
    };
    let permit = state.permits.acquire(&caller.organization_id, now);
    permit.map(Some).ok_or_else(no_permit)
}

/// Counts the request against the quota of its organization and returns the quota.
///
/// Errors: 503 if limits are shared and neither Redis nor this process can count.
pub async fn check_quota(
    state: &ProxyState,
    route: &Route,
    caller: Option<&Caller>,
) -> Result<Option<Quota>, Fault> {
    let (Some(caller), Some(group)) = (caller, route.quota) else {
        return Ok(None);
    };
    let payer = Payer {
        organization: &caller.organization_id,
        is_first_run: caller.is_first_run(),
    };
    state.quotas.admit(payer, group).await
}

/// Lists a call of a model among those that run, if calls are kept in memory.
pub fn open_call(state: &ProxyState, route: &Route, info: &RequestInfo) -> Option<OpenCall> {
    if !route.handler.is_call() {
        return None;
    }
    let (id, caller) = (info.id.as_header(), info.caller.as_ref());
    state
        .calls
        .open(id, route.name, caller, info.started_unix_us)
}

/// Returns the client's address: the socket's, or the one in `listen.client_ip_header` if a trusted proxy sent it.
pub fn client_ip(settings: &ClientIp, session: &Session) -> Option<IpAddr> {
    let socket = session.client_addr()?.as_inet()?.ip();
    let ClientIp {
        header,
        trusted_proxies,
    } = settings;
    let Some(name) = header else {
        return Some(socket);
    };
    let values = session.req_header().headers.get_all(name);
    Some(client_address(socket, values, trusted_proxies))
}
