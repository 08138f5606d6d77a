//! Who calls, from where, and whether the head may pass at all.

use std::net::IpAddr;
use std::sync::Arc;

use filters::accounts::Caller;
use filters::fault::{Fault, FaultKind};
use filters::limits::headers::Quota;
use filters::proxy::client_address;
use http::{HeaderMap, header};
use pingora::http::RequestHeader;
use pingora_proxy::Session;
use tokio::sync::OwnedSemaphorePermit;

use crate::app::routes::{Access, Route};
use crate::app::state::{AppState, ClientIp};

/// What stands around a name and its value in a head: `: ` and the line end.
const LINE: usize = 4;

/// Strict framing: what another parser might read otherwise is refused.
///
/// Source: docs/threats.md 4, 5, 4.10. Errors: 400; 431 for a head of more than `most` bytes.
pub fn check_framing(head: &RequestHeader, most: usize) -> Result<(), Fault> {
    let bad = |message: &'static str| Err(Fault::new(FaultKind::Invalid, message));
    let headers = &head.headers;
    let lines = headers.iter();
    let bytes: usize = lines
        .map(|(name, value)| name.as_str().len() + value.len() + LINE)
        .sum();
    if bytes + head.raw_path().len() > most {
        let message = format!("the request's head is larger than {most} bytes");
        return Err(Fault::new(FaultKind::HeadTooLarge, message));
    }
    let codings = headers.get_all(header::TRANSFER_ENCODING);
    // A length beside them never gets here: Pingora drops it, and closes the connection behind the answer.
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

/// The caller whom the row lets in; `None` where it asks for nobody.
///
/// Errors: 400, 401, 410 as `filters::auth` says.
pub fn admit(
    house: &AppState,
    row: &Route,
    headers: &HeaderMap,
) -> Result<Option<Arc<Caller>>, Fault> {
    let needs_key = match row.access {
        Access::Open => false,
        Access::Key => true,
        Access::KeyIfRequired => house.settings.models_require_key,
    };
    if !needs_key {
        return Ok(None);
    }
    let accounts = house.accounts.current();
    Ok(Some(filters::accounts::admit(
        headers,
        &accounts,
        &house.pepper,
        house.unix_ms(),
    )?))
}

/// Whether the caller's key may be used from where the request came.
///
/// Errors: 403.
pub fn check_address(
    house: &AppState,
    session: &Session,
    caller: Option<&Caller>,
) -> Result<(), Fault> {
    let Some(terms) = caller.and_then(|caller| caller.terms.as_ref()) else {
        return Ok(());
    };
    Ok(terms.rules.check_address(client_ip(house, session))?)
}

/// A place among the model requests that run at once, where the row needs one.
///
/// Source: docs/model-gateway.md 7; docs/promises.md. Errors: 529.
pub fn acquire_permit(
    house: &AppState,
    row: &Route,
) -> Result<Option<OwnedSemaphorePermit>, Fault> {
    if !row.answers.is_of_models() {
        return Ok(None);
    }
    let place = Arc::clone(&house.room).try_acquire_owned();
    place.map(Some).map_err(|_| {
        let message = "more requests run at once than the gateway takes: try again in a second";
        Fault::new(FaultKind::Overloaded, message).with_retry_after_s(1)
    })
}

/// Counts the request against its organization's quota, and answers what is left of that.
///
/// Errors: 503, where limits are shared and nobody can say whether there is room.
pub async fn check_quota(
    house: &AppState,
    row: &Route,
    caller: Option<&Caller>,
) -> Result<Option<Quota>, Fault> {
    let (Some(caller), Some(group)) = (caller, row.answers.group()) else {
        return Ok(None);
    };
    house.quotas.admit(&caller.organization_id, group).await
}

/// The client's address: the socket's, or what `listen.client_ip_header` says where a trusted proxy sent it.
pub fn client_ip(house: &AppState, session: &Session) -> Option<IpAddr> {
    let socket = session.client_addr()?.as_inet()?.ip();
    let ClientIp {
        header,
        trusted_proxies,
    } = &house.settings.client_ip;
    let Some(name) = header else {
        return Some(socket);
    };
    let values = session.req_header().headers.get_all(name);
    Some(client_address(socket, values, trusted_proxies))
}
