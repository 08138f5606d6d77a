//! The request's body: whole, under its cap and in time.

use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use filters::fault::{Fault, FaultKind};
use filters::form;
use http::header;
use pingora::ErrorType;
use pingora_proxy::Session;

/// The longest pause between two pieces of a body.
pub const BODY_IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a client may leave what was sent to it unread.
pub const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// Every body gets this long, and a second more for each of these many bytes of its cap.
const MIN_BODY_TIMEOUT: Duration = Duration::from_secs(30);
const BYTES_PER_S: usize = 64 << 10;

/// A JSON body.
///
/// Errors: 415 for another media type or an encoding, 413 over the cap, 408 too slow, 400 broken off.
pub async fn read_json(session: &mut Session, cap: usize) -> Result<Bytes, Fault> {
    media_type(&session.req_header().headers)?;
    read_body(session, cap).await
}

/// A body of any media type; none where there is none.
///
/// Errors: 413 over the cap, 408 too slow, 400 broken off.
pub async fn read_body(session: &mut Session, cap: usize) -> Result<Bytes, Fault> {
    let head = session.req_header();
    let length = fits(&head.headers, cap)?;
    let expects = head
        .headers
        .get(header::EXPECT)
        .map(|value| value.as_bytes().to_ascii_lowercase());
    if expects.as_deref() == Some(b"100-continue") {
        // Pingora would close the connection behind an answer that it takes for one sent too early.
        session
            .downstream_session
            .set_close_on_response_before_downstream_finish(false);
        let sent = session.downstream_session.write_continue_response().await;
        sent.map_err(|_| broken())?;
    }
    let mut body = pin!(collect(session, length, cap));
    // A small body comes with its head, and needs no timer.
    if let Poll::Ready(body) = futures::poll!(body.as_mut()) {
        return body;
    }
    let until = MIN_BODY_TIMEOUT + Duration::from_secs((cap / BYTES_PER_S) as u64);
    match tokio::time::timeout(until, body).await {
        Ok(body) => body,
        Err(_) => Err(too_slow()),
    }
}

/// The length a body says it has, which is within the cap.
///
/// Errors: 413 over the cap, 400 for a length that is none.
pub fn fits(headers: &http::HeaderMap, cap: usize) -> Result<Option<usize>, Fault> {
    let length = length(headers)?;
    if length.is_some_and(|length| length > cap) {
        return Err(too_large(cap));
    }
    Ok(length)
}

async fn collect(session: &mut Session, length: Option<usize>, cap: usize) -> Result<Bytes, Fault> {
    let first = next(session).await?.unwrap_or_default();
    if length == Some(first.len()) {
        return Ok(first);
    }
    let mut body = BytesMut::with_capacity(length.unwrap_or(first.len()));
    body.extend_from_slice(&first);
    while let Some(piece) = next(session).await? {
        if body.len() + piece.len() > cap {
            return Err(too_large(cap));
        }
        body.extend_from_slice(&piece);
    }
    Ok(body.freeze())
}

async fn next(session: &mut Session) -> Result<Option<Bytes>, Fault> {
    session
        .downstream_session
        .read_request_body()
        .await
        .map_err(|error| match error.etype() {
            ErrorType::ReadTimedout => too_slow(),
            _ => broken(),
        })
}

fn media_type(headers: &http::HeaderMap) -> Result<(), Fault> {
    let is_json = form::media_type(headers).eq_ignore_ascii_case(b"application/json");
    if !is_json {
        return Err(Fault::new(
            FaultKind::MediaType,
            "`Content-Type` is missing or not JSON; `application/json` is accepted",
        ));
    }
    let encoding = headers
        .get(header::CONTENT_ENCODING)
        .map(|value| value.as_bytes());
    if encoding.is_some_and(|encoding| !encoding.eq_ignore_ascii_case(b"identity")) {
        return Err(Fault::new(
            FaultKind::MediaType,
            "`Content-Encoding` is not accepted; send the body as it is",
        ));
    }
    Ok(())
}

/// The length a body says it has. Errors: 400 for one that is none.
pub fn length(headers: &http::HeaderMap) -> Result<Option<usize>, Fault> {
    let Some(value) = headers.get(header::CONTENT_LENGTH) else {
        return Ok(None);
    };
    let length = value.to_str().ok().and_then(|value| value.parse().ok());
    length
        .map(Some)
        .ok_or_else(|| Fault::new(FaultKind::Invalid, "`Content-Length` is not a number"))
}

fn too_large(cap: usize) -> Fault {
    Fault::new(
        FaultKind::TooLarge,
        format!("the body is larger than {cap} bytes"),
    )
}

fn too_slow() -> Fault {
    Fault::new(FaultKind::RequestTimeout, "the body did not arrive in time")
}

fn broken() -> Fault {
    Fault::new(FaultKind::Invalid, "the body broke off")
        .with_detail("the client's connection broke")
}
