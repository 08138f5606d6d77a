//! Admission of a request: its framing, its caller, its address, its permit and its quota.

use std::net::IpAddr;
use std::sync::Arc;

use filters::accounts::{Caller, admit};
use filters::fault::{Fault, FaultKind};
use filters::limits::headers::Quota;
use filters::proxy::client_address;
use http::{HeaderMap, header};
use pingora::http::RequestHeader;
use pingora_proxy::Session;
use tokio::sync::OwnedSemaphorePermit;

use super::router::{Access, Route};
use super::state::{ClientIp, ProxyState};

/// The bytes of a header line beside name and value: `: ` and the line end.
const HEADER_LINE_BYTES: usize = 4;

/// Refuses a head that another parser could frame in another way.
///
/// Source: docs/threats.md 4, 5, 4.10. Errors: 400; 431 for a head of more than `max_bytes`.
pub fn check_framing(head: &RequestHeader, max_bytes: usize) -> Result<(), Fault> {
    let bad = |message: &'static str| Err(Fault::new(FaultKind::Invalid, message));
    let headers = &head.headers;
    let lines = headers.iter();
    let bytes: usize = lines
        .map(|(name, value)| name.as_str().len() + value.len() + HEADER_LINE_BYTES)
        .sum();
    if bytes + head.raw_path().len() > max_bytes {
        let message = format!("the request's head is larger than {max_bytes} bytes");
        return Err(Fault::new(FaultKind::HeadTooLarge, message));
    }
    let codings = headers.get_all(header::TRANSFER_ENCODING);
    // Pingora drops a `Content-Length` beside `Transfer-Encoding` and closes the connection after the response.
    if codings
        .iter()
        .any(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"chunked"))
    {
        return bad("`Transfer-Encoding` may only be `chunked`");
    }
    let has_authority = headers.contains_key(header::HOST) || head.uri.authority().is_some();
    if head.version == http::Version::HTTP_11 && !has_authority {
        return bad("`Host` is missing");
    }
    Ok(())
}

/// Returns the caller, if the route requires an API key.
///
/// Errors: 400, 401, 410 as `filters::accounts` says.
pub fn authenticate(
    state: &ProxyState,
    route: &Route,
    headers: &HeaderMap,
    unix_ms: u64,
) -> Result<Option<Arc<Caller>>, Fault> {
    if route.access == Access::Open {
        return Ok(None);
    }
    let accounts = state.accounts.current();
    let now_ms = i64::try_from(unix_ms).unwrap_or(i64::MAX);
    Ok(Some(admit(headers, &accounts, &state.pepper, now_ms)?))
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

/// Acquires one of the permits for concurrent model gateway requests, if the route needs one.
///
/// Source: docs/model-gateway.md 7; docs/promises.md. Errors: 529.
pub fn acquire_permit(
    state: &ProxyState,
    route: &Route,
) -> Result<Option<OwnedSemaphorePermit>, Fault> {
    if !route.takes_permit {
        return Ok(None);
    }
    let permit = Arc::clone(&state.in_flight).try_acquire_owned();
    permit.map(Some).map_err(|_| {
        let message = "more requests run at once than the gateway takes: try again in a second";
        Fault::new(FaultKind::Overloaded, message).with_retry_after_s(1)
    })
}

/// Counts the request against the quota of its organization and returns the quota.
///
/// Errors: 503 if limits are shared and no process can count.
pub async fn check_quota(
    state: &ProxyState,
    route: &Route,
    caller: Option<&Caller>,
) -> Result<Option<Quota>, Fault> {
    let (Some(caller), Some(group)) = (caller, route.quota) else {
        return Ok(None);
    };
    state.quotas.admit(&caller.organization_id, group).await
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
