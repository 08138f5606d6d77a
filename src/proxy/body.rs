//! Reads a request body up to its maximum size and in time: into memory, or to disk for forms with files.

use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use filters::fault::{Fault, FaultKind};
use filters::json::count_values;
use filters::multipart::FormReader;
use filters::spooled_json::{SpooledJson, SpooledJsonReader};
use filters::{form, multipart};
use http::header;
use pingora::ErrorType;
use pingora_proxy::Session;
use tokio::time::Instant;

use super::body_budget::BodyReservation;
use super::connection_state;
use super::context::RequestInfo;
use super::upload::{Spool, UploadWriter, UploadedBody, UploadedContent};

/// The maximum pause between two pieces of a body.
pub const BODY_IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a client may leave sent bytes unread.
pub const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// Bodies beyond this size are parsed and encoded in a blocking section, so that the worker's other requests
/// continue.
const LARGE_BYTES: usize = 1 << 20;
/// The memory of a value in a tree of JSON, with its part of the list that holds it. `[],[],…` names one for three bytes.
const TREE_BYTES: usize = 64;
/// The time that every body gets, regardless of its maximum size.
const MIN_BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// Each of these many bytes of the maximum size gives a body one more second.
const MIN_BYTES_PER_S: usize = 64 << 10;

/// Reads a JSON body. It sets the time if the body arrives after its head.
///
/// Errors: 415 for another media type or an encoding, and those of [`read_body`].
pub async fn read_json(
    session: &mut Session,
    max_bytes: usize,
    info: &mut RequestInfo,
) -> Result<Bytes, Fault> {
    check_json_type(&session.req_header().headers)?;
    read_body(session, max_bytes, info).await
}

/// Reads a JSON body or a form with files. It sets the time if the body arrives after its head.
///
/// Errors: 415 for another media type or an encoding, and those of [`read_body`].
pub async fn read_json_or_form(
    session: &mut Session,
    max_bytes: usize,
    info: &mut RequestInfo,
) -> Result<Bytes, Fault> {
    let headers = &session.req_header().headers;
    match multipart::boundary(headers) {
        Some(_) => check_encoding(headers)?,
        None => check_json_type(headers)?,
    }
    read_body(session, max_bytes, info).await
}

/// Reads a form whose files go to `spool`. It sets the time.
///
/// Errors: 415 for another media type or an encoding, 400 for a body that is not a form, 529 without disk space for
/// its files, and those of [`read_body`].
pub async fn read_form(
    session: &mut Session,
    max_bytes: usize,
    info: &mut RequestInfo,
    spool: &Spool,
) -> Result<UploadedBody, Fault> {
    let headers = &session.req_header().headers;
    let boundary = multipart::boundary(headers).ok_or_else(no_form)?;
    check_encoding(headers)?;
    let mut reader = FormReader::new(boundary)?;
    begin_body(session, max_bytes).await?;
    // The first piece is awaited before a file is created, so that a head alone costs no file.
    let first = read_piece(session).await?;
    let mut writer = spool.begin(info.body_owner())?;
    let parts = (&mut reader, &mut writer);
    let collecting = collect_form(session, (first, max_bytes), info, parts);
    let collected = tokio::time::timeout(timeout(max_bytes), collecting).await;
    info.now = Instant::now();
    info.body_bytes = collected.unwrap_or_else(|_| Err(too_slow()))?;
    let mut form = reader.finish()?;
    form.boundary = new_boundary()?;
    Ok(UploadedBody {
        content: UploadedContent::Form(form),
        upload: Arc::new(writer.finish()),
    })
}

/// Reads the pieces of a form. Returns how many bytes they have.
async fn collect_form(
    session: &mut Session,
    (first, max_bytes): (Option<Bytes>, usize),
    info: &mut RequestInfo,
    (reader, writer): (&mut FormReader, &mut UploadWriter),
) -> Result<usize, Fault> {
    let mut bytes = 0;
    let mut next = first;
    while let Some(piece) = next {
        bytes += piece.len();
        if bytes > max_bytes {
            return Err(too_large(max_bytes));
        }
        writer.reserve(bytes)?;
        reader.feed(&piece, writer.pending())?;
        writer.write()?;
        info.body_reservation.grow_to(reader.text_bytes())?;
        next = read_piece(session).await?;
    }
    Ok(bytes)
}

/// A complete JSON body.
pub enum JsonBody {
    Whole(Bytes),
    /// A body whose long data URLs are not in memory.
    Uploaded(UploadedBody),
}

/// Reads a JSON body, and writes the long data of its data URLs to `spool`. It sets the time.
///
/// Errors: 415 for another media type or an encoding, 529 without disk space for the data, and those of
/// [`read_body`].
pub async fn read_spooled_json(
    session: &mut Session,
    max_bytes: usize,
    info: &mut RequestInfo,
    spool: &Spool,
) -> Result<JsonBody, Fault> {
    check_json_type(&session.req_header().headers)?;
    begin_body(session, max_bytes).await?;
    let collecting = collect_spooled_json(session, max_bytes, info, spool);
    let collected = tokio::time::timeout(timeout(max_bytes), collecting).await;
    info.now = Instant::now();
    let (json, writer) = collected.unwrap_or_else(|_| Err(too_slow()))?;
    Ok(match writer {
        None => JsonBody::Whole(json.body),
        Some(writer) => JsonBody::Uploaded(UploadedBody {
            content: UploadedContent::Json(json),
            upload: Arc::new(writer.finish()),
        }),
    })
}

/// Reads the pieces of a JSON body. A body without long data writes no file.
async fn collect_spooled_json(
    session: &mut Session,
    max_bytes: usize,
    info: &mut RequestInfo,
    spool: &Spool,
) -> Result<(SpooledJson, Option<UploadWriter>), Fault> {
    let mut reader = SpooledJsonReader::new();
    let mut writer = None;
    let mut data = Vec::new();
    while let Some(piece) = read_piece(session).await? {
        info.body_bytes += piece.len();
        check_size(info.body_bytes, max_bytes)?;
        reader.feed(&piece, &mut data);
        info.body_reservation.grow_to(reader.held_bytes())?;
        if data.is_empty() {
            continue;
        }
        let writer = match &mut writer {
            Some(writer) => writer,
            none => none.insert(spool.begin(info.body_owner())?),
        };
        writer.reserve(info.body_bytes)?;
        writer.pending().append(&mut data);
        writer.write()?;
    }
    Ok((reader.finish(), writer))
}

/// Returns the boundary of a form that is sent. It is random, so that a client cannot put a part inside of a part.
fn new_boundary() -> Result<Box<str>, Fault> {
    let mut random = [0; 16];
    getrandom::fill(&mut random)
        .map_err(|_| Fault::new(FaultKind::Internal, "the system has no random numbers"))?;
    Ok(format!("weirgate-{:032x}", u128::from_be_bytes(random)).into())
}

/// Reads a body of any media type. A request without a body gives no bytes. It sets the time if the body arrives
/// after its head.
///
/// Errors: 413 over `max_bytes`, 408 if it is too slow, 529 without memory for it, 400 if the connection breaks.
pub async fn read_body(
    session: &mut Session,
    max_bytes: usize,
    info: &mut RequestInfo,
) -> Result<Bytes, Fault> {
    let length = begin_body(session, max_bytes).await?;
    let reservation = &mut info.body_reservation;
    let mut body = pin!(collect_body(session, length, max_bytes, reservation));
    // A small body arrives with its head and needs no timer.
    if let Poll::Ready(body) = futures::poll!(body.as_mut()) {
        return body;
    }
    let body = tokio::time::timeout(timeout(max_bytes), body).await;
    info.now = Instant::now();
    body.unwrap_or_else(|_| Err(too_slow()))
}

/// Reserves what a body becomes while an endpoint makes a tree of it, which may be twenty times its bytes.
///
/// Errors: 529 without memory for it.
pub fn reserve_tree(
    body: Option<&[u8]>,
    mut reservation: BodyReservation,
) -> Result<BodyReservation, Fault> {
    reservation.grow_to(TREE_BYTES * body.map_or(0, count_values))?;
    Ok(reservation)
}

/// Runs `work`, which parses or encodes a body of this length.
pub fn off_worker<T>(body_bytes: usize, work: impl FnOnce() -> T) -> T {
    if body_bytes > LARGE_BYTES {
        tokio::task::block_in_place(work)
    } else {
        work()
    }
}

/// Returns whether a forwarded body is too slow: after a pause at its start it has one second for each
/// [`MIN_BYTES_PER_S`] bytes.
pub fn is_too_slow(elapsed: Duration, come: usize) -> bool {
    elapsed > MIN_BODY_TIMEOUT + Duration::from_secs((come / MIN_BYTES_PER_S) as u64)
}

/// Returns the maximum time for a body.
fn timeout(max_bytes: usize) -> Duration {
    MIN_BODY_TIMEOUT + Duration::from_secs((max_bytes / MIN_BYTES_PER_S) as u64)
}

/// Checks the length of a body, and asks for the body if the client waits for that. Returns the stated length.
async fn begin_body(session: &mut Session, max_bytes: usize) -> Result<Option<usize>, Fault> {
    let head = session.req_header();
    let length = check_length(&head.headers, max_bytes)?;
    let expects = head
        .headers
        .get(header::EXPECT)
        .map(|value| value.as_bytes().to_ascii_lowercase());
    if expects.as_deref() == Some(b"100-continue") {
        // Pingora takes the 100 for an early response, after which it would close the connection.
        session
            .downstream_session
            .set_close_on_response_before_downstream_finish(false);
        let sent = Box::pin(session.downstream_session.write_continue_response()).await;
        sent.map_err(|_| broken())?;
    }
    Ok(length)
}

/// Returns `Content-Length`, which is at most `max_bytes`.
///
/// Errors: 413 over `max_bytes`, 400 if it is not a number.
pub fn check_length(headers: &http::HeaderMap, max_bytes: usize) -> Result<Option<usize>, Fault> {
    let length = content_length(headers)?;
    check_size(length.unwrap_or_default(), max_bytes)?;
    Ok(length)
}

/// Checks the size of a body.
///
/// Errors: 413 over `max_bytes`.
pub fn check_size(bytes: usize, max_bytes: usize) -> Result<(), Fault> {
    if bytes > max_bytes {
        return Err(too_large(max_bytes));
    }
    Ok(())
}

async fn collect_body(
    session: &mut Session,
    length: Option<usize>,
    max_bytes: usize,
    reservation: &mut BodyReservation,
) -> Result<Bytes, Fault> {
    // An announced length reserves no memory; only received bytes do.
    let first = read_piece(session).await?.unwrap_or_default();
    reservation.grow_to(first.len())?;
    if length == Some(first.len()) {
        return Ok(first);
    }
    let mut body = BytesMut::from(first);
    while let Some(piece) = read_piece(session).await? {
        if body.len() + piece.len() > max_bytes {
            return Err(too_large(max_bytes));
        }
        let come = body.len() + piece.len();
        if come > body.capacity() {
            let room = body_capacity(come, length);
            reservation.grow_to(room)?;
            body.reserve(room - body.len());
        }
        body.extend_from_slice(&piece);
    }
    Ok(body.freeze())
}

/// Returns the capacity for a body of which `come` bytes have arrived.
///
/// A body of unknown length doubles. One of known length grows to a quarter of it and then to all of it, so that the last
/// copy is of a quarter.
fn body_capacity(come: usize, length: Option<usize>) -> usize {
    let Some(length) = length else {
        return come.saturating_mul(2);
    };
    let (ahead, quarter) = (come.saturating_mul(4), length / 4);
    let room = if ahead < length {
        ahead.min(quarter)
    } else {
        length
    };
    room.max(come)
}

async fn read_piece(session: &mut Session) -> Result<Option<Bytes>, Fault> {
    let session = &mut session.downstream_session;
    // Pingora only times the reads of HTTP/1.
    let is_timed = session.as_http1().is_some();
    let read = session.read_request_body();
    let piece = if is_timed {
        read.await
    } else {
        let timed = tokio::time::timeout(BODY_IDLE_TIMEOUT, read).await;
        timed.map_err(|_| too_slow())?
    };
    piece.map_err(|error| match error.etype() {
        ErrorType::ReadTimedout => too_slow(),
        _ => connection_state::body_fault().unwrap_or_else(broken),
    })
}

fn no_form() -> Fault {
    let message = "`Content-Type` is missing or no form; `multipart/form-data` is accepted";
    Fault::new(FaultKind::MediaType, message)
}

fn check_json_type(headers: &http::HeaderMap) -> Result<(), Fault> {
    let is_json = form::media_type(headers).eq_ignore_ascii_case(b"application/json");
    if !is_json {
        return Err(Fault::new(
            FaultKind::MediaType,
            "`Content-Type` is missing or not JSON; `application/json` is accepted",
        ));
    }
    check_encoding(headers)
}

fn check_encoding(headers: &http::HeaderMap) -> Result<(), Fault> {
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

/// Returns `Content-Length`.
///
/// Errors: 400 if it is not a number.
pub fn content_length(headers: &http::HeaderMap) -> Result<Option<usize>, Fault> {
    let Some(value) = headers.get(header::CONTENT_LENGTH) else {
        return Ok(None);
    };
    let length = value.to_str().ok().and_then(|value| value.parse().ok());
    length
        .map(Some)
        .ok_or_else(|| Fault::new(FaultKind::Invalid, "`Content-Length` is not a number"))
}

fn too_large(max_bytes: usize) -> Fault {
    Fault::new(
        FaultKind::TooLarge,
        format!("the body is larger than {max_bytes} bytes"),
    )
}

/// Returns the fault of a body that arrives too slowly.
pub fn too_slow() -> Fault {
    Fault::new(FaultKind::RequestTimeout, "the body did not arrive in time")
}

fn broken() -> Fault {
    Fault::new(FaultKind::Invalid, "the body broke off")
        .with_detail("the client's connection broke")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn work_on_a_large_body_leaves_its_worker_to_others() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .build()
            .unwrap();
        let (told, hears) = mpsc::channel();
        let working = runtime.spawn(async move {
            off_worker(LARGE_BYTES + 1, || hears.recv_timeout(MIN_BODY_TIMEOUT))
        });
        runtime.spawn(async move { told.send(()).unwrap() });
        runtime.block_on(working).unwrap().unwrap();
    }

    #[test]
    fn a_body_has_room_for_a_few_times_what_has_come() {
        let length = 20 << 20;
        assert_eq!(body_capacity(10, None), 20);
        assert_eq!(body_capacity(1, Some(length)), 4);
        assert_eq!(body_capacity(2 << 20, Some(length)), 5 << 20);
        assert_eq!(body_capacity(5 << 20, Some(length)), length);
        assert_eq!(body_capacity(10, Some(4)), 10);
        // However many bytes have come, room is for them, for four times as many at most, and not beyond the length.
        for come in (1..length).step_by(12_345) {
            let room = body_capacity(come, Some(length));
            assert!(room >= come && room <= length && room <= 4 * come);
        }
    }

    #[test]
    fn a_body_that_is_passed_on_has_a_least_speed() {
        let s = Duration::from_secs;
        assert!(!is_too_slow(s(30), 1) && is_too_slow(s(31), 1));
        assert!(!is_too_slow(s(90), 60 * MIN_BYTES_PER_S));
        assert!(is_too_slow(s(91), 60 * MIN_BYTES_PER_S));
    }
}
