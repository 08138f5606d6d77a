//! Our own responses. No other module writes one.
//!
//! Endpoints return a [`Response`] as a value, and a fault becomes one here. Every response has the request id in two
//! headers: there are two conventions, and clients of each read only their own.

use std::time::Duration;

use bytes::Bytes;
use filters::fault::Fault;
use filters::limits::headers::Quota;
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use pingora::http::ResponseHeader;
use pingora::protocols::http::HttpTask;
use pingora::{Error, ErrorType, Result};
use pingora_proxy::Session;

use super::budget_head::BudgetHead;
use super::deprecation::Deprecation;

/// One of our own responses.
pub struct Response {
    pub status: u16,
    /// The headers besides the ids and the length. Without `Content-Type` the body is JSON.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub body: Reply,
}

/// The facts about a request that each of our heads states.
#[derive(Clone)]
pub struct HeadFields {
    pub request_id: HeaderValue,
    /// The quota against which the request counted.
    pub quota: Option<Quota>,
    /// What is left of the budget of the call.
    pub budget: Option<BudgetHead>,
    /// The announcement that the route will end.
    pub deprecation: Option<Deprecation>,
    /// Whether a body without a length is chunked.
    pub is_chunked: bool,
}

impl HeadFields {
    /// Returns the headers of quota, budget and deprecation.
    pub fn headers(&self) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        let quota = self.quota.iter().flat_map(Quota::headers);
        let quota = quota.chain(self.budget.iter().flat_map(BudgetHead::headers));
        quota.chain(self.deprecation.iter().flat_map(Deprecation::headers))
    }
}

/// The body of one of our own responses.
pub enum Reply {
    /// The whole body.
    Bytes(Bytes),
    /// An event stream. It ends when its source ends or the process stops.
    Stream(Box<dyn EventSource>),
    /// A file in pieces, with the headers of the response.
    Pieces(Box<dyn PieceSource>),
}

/// Makes the events of a stream.
pub trait EventSource: Send + Sync {
    /// Returns the next bytes of the stream, or `None` at its end.
    ///
    /// Cancel safety: a dropped call loses no bytes.
    fn next(&mut self) -> BoxFuture<'_, Option<Bytes>>;
}

/// Makes the pieces of a file.
pub trait PieceSource: Send + Sync {
    /// Returns the next piece, or `None` at its end.
    ///
    /// Errors: the file broke off, in words for the log. The client then sees an incomplete response.
    fn next(&mut self) -> BoxFuture<'_, std::result::Result<Option<Bytes>, String>>;
}

impl Reply {
    /// Returns the whole body; empty for a stream.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Stream(_) | Self::Pieces(_) => &[],
        }
    }
}

impl<B: Into<Bytes>> From<B> for Reply {
    fn from(bytes: B) -> Self {
        Self::Bytes(bytes.into())
    }
}

impl Response {
    /// Adds headers, replacing those with the same names.
    pub fn replace_headers(&mut self, headers: &[(HeaderName, HeaderValue)]) {
        self.headers
            .retain(|(name, _)| headers.iter().all(|(other, _)| other != name));
        self.headers.extend_from_slice(headers);
    }

    /// Returns a response with status 200 and this JSON text.
    pub fn json(body: impl Into<Bytes>) -> Self {
        Self {
            status: 200,
            headers: Vec::new(),
            body: Reply::Bytes(body.into()),
        }
    }
}

impl From<&Fault> for Response {
    fn from(fault: &Fault) -> Self {
        let mut headers = Vec::new();
        if !fault.is_retryable() {
            headers.push((SHOULD_RETRY, HeaderValue::from_static("false")));
        }
        if let Some(seconds) = fault.retry_after_s {
            headers.push((header::RETRY_AFTER, HeaderValue::from(seconds)));
            headers.push((RETRY_AFTER_MS, HeaderValue::from(u64::from(seconds) * 1000)));
        }
        let methods = fault.methods().map(HeaderValue::from_str);
        if let Some(Ok(methods)) = methods {
            headers.push((header::ALLOW, methods));
        }
        if fault.status() == 401 {
            headers.push((header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer")));
        }
        Self {
            status: fault.status(),
            headers,
            body: fault.compatible_body().into(),
        }
    }
}

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const ALTERNATE_REQUEST_ID: HeaderName = HeaderName::from_static("request-id");
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");
/// The number of headers that [`send`] adds: two ids, the length and the type.
const ADDED_HEADERS: usize = 4;
/// How long the caller should wait, in milliseconds.
pub const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");
/// The interval at which an event stream checks whether the process is stopping.
const READINESS_INTERVAL: Duration = Duration::from_millis(250);
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Writes a whole response; [`send_stream`] writes a stream.
pub async fn send(
    session: &mut Session,
    response: Response,
    request_id: &HeaderValue,
) -> Result<()> {
    let Response {
        status,
        headers: fields,
        body: Reply::Bytes(body),
    } = response
    else {
        return Ok(());
    };
    let mut headers = HeaderMap::with_capacity(fields.len() + ADDED_HEADERS);
    for (name, value) in fields {
        headers.append(name, value);
    }
    if !body.is_empty() && !headers.contains_key(header::CONTENT_TYPE) {
        let json = HeaderValue::from_static("application/json");
        headers.insert(header::CONTENT_TYPE, json);
    }
    headers.insert(header::CONTENT_LENGTH, body.len().into());
    let head = head(status, request_id, headers);
    let has_body = session.req_header().method != http::Method::HEAD && !body.is_empty();
    session
        .write_response_header(Box::new(head), !has_body)
        .await?;
    if has_body {
        session.write_response_body(Some(body), true).await?;
    }
    Ok(())
}

/// Writes an event stream until the client disconnects, `is_open` returns false, or the source ends.
pub async fn send_stream(
    session: &mut Session,
    fields: &HeadFields,
    own_headers: &[(HeaderName, HeaderValue)],
    mut events: Box<dyn EventSource>,
    is_open: impl Fn(&Session) -> bool,
) -> Result<()> {
    let head = stream_head(fields, own_headers);
    let is_head = session.req_header().method == http::Method::HEAD;
    session
        .write_response_header(Box::new(head), is_head)
        .await?;
    if is_head {
        return Ok(());
    }
    while is_open(session) {
        let bytes = tokio::select! {
            bytes = events.next() => bytes,
            // The client sends nothing more, so this only returns when the client disconnects.
            closed = session.downstream_session.read_body_or_idle(true) => return closed.map(|_| ()),
            () = tokio::time::sleep(READINESS_INTERVAL) => continue,
        };
        let Some(bytes) = bytes else { break };
        session.write_response_body(Some(bytes), false).await?;
    }
    session.write_response_body(None, true).await
}

/// Writes a file in pieces until the client disconnects or the source ends. Each piece is taken after the previous
/// one is written, so a slow client takes no memory.
///
/// Errors: the client has disconnected, or the source broke.
pub async fn send_pieces(
    session: &mut Session,
    fields: &HeadFields,
    (status, told): (u16, Vec<(HeaderName, HeaderValue)>),
    mut pieces: Box<dyn PieceSource>,
) -> Result<()> {
    let mut headers = common_headers(fields);
    if told.iter().any(|(name, _)| *name == header::CONTENT_LENGTH) {
        headers.remove(header::TRANSFER_ENCODING);
    }
    headers.extend(told);
    let head = head(status, &fields.request_id, headers);
    let is_head = session.req_header().method == http::Method::HEAD;
    session
        .write_response_header(Box::new(head), is_head)
        .await?;
    if is_head {
        return Ok(());
    }
    loop {
        let piece = tokio::select! {
            piece = pieces.next() => piece,
            // The client sends nothing more, so this only returns when the client disconnects.
            closed = session.downstream_session.read_body_or_idle(true) => return closed.map(|_| ()),
        };
        match piece {
            Ok(Some(piece)) => session.write_response_body(Some(piece), false).await?,
            Ok(None) => return session.write_response_body(None, true).await,
            Err(why) => return Error::e_explain(ErrorType::ReadError, why),
        }
    }
}

/// Returns the head of an event stream. `own` headers replace those that every stream has.
pub fn stream_head(fields: &HeadFields, own: &[(HeaderName, HeaderValue)]) -> ResponseHeader {
    let mut headers = common_headers(fields);
    for (name, value) in stream_headers().iter().chain(own) {
        headers.insert(name.clone(), value.clone());
    }
    head(200, &fields.request_id, headers)
}

/// Returns the head of a response without a body, with these headers and those of all responses.
pub fn empty_head(
    status: u16,
    fields: &HeadFields,
    own: &[(HeaderName, HeaderValue)],
) -> ResponseHeader {
    let mut headers: HeaderMap = fields.headers().collect();
    headers.extend(own.iter().cloned());
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
    head(status, &fields.request_id, headers)
}

/// Returns the headers that every event stream has.
pub fn stream_headers() -> [(HeaderName, HeaderValue); 3] {
    [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/event-stream; charset=utf-8"),
        ),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (ACCEL_BUFFERING, HeaderValue::from_static("no")),
    ]
}

/// Returns the head of a whole response without a length; see [`set_content_length`].
pub fn whole_head(fields: &HeadFields) -> ResponseHeader {
    media_head(fields, "application/json")
}

/// Returns the head of a response of this media type without a length.
pub fn media_head(fields: &HeadFields, media_type: &'static str) -> ResponseHeader {
    let mut headers = common_headers(fields);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    head(200, &fields.request_id, headers)
}

/// Returns the headers of a response that is written in pieces.
fn common_headers(fields: &HeadFields) -> HeaderMap {
    let has_quota = fields.quota.is_some();
    let mut headers = HeaderMap::with_capacity(if has_quota { 16 } else { 8 });
    headers.extend(fields.headers());
    if fields.is_chunked {
        headers.insert(
            header::TRANSFER_ENCODING,
            HeaderValue::from_static("chunked"),
        );
    }
    headers
}

/// Replaces chunking by `Content-Length` if `tasks` are a head and a whole body. Returns whether they are.
pub fn set_content_length(tasks: &mut [HttpTask]) -> bool {
    if !tasks.last().is_some_and(HttpTask::is_end) {
        return false;
    }
    let length = tasks
        .iter()
        .map(|task| match task {
            HttpTask::Body(Some(body), _) => body.len(),
            _ => 0,
        })
        .sum::<usize>();
    let Some(HttpTask::Header(head, _)) = tasks.first_mut() else {
        return false;
    };
    head.remove_header(&header::TRANSFER_ENCODING);
    // A number is always a valid header value.
    head.insert_header(header::CONTENT_LENGTH, length).is_ok()
}

fn head(status: u16, request_id: &HeaderValue, headers: HeaderMap) -> ResponseHeader {
    let (mut head, ()) = http::Response::new(()).into_parts();
    // 529 is not in the registry of statuses, but the contract names it.
    head.status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    head.headers = headers;
    head.headers.insert(REQUEST_ID, request_id.clone());
    head.headers
        .insert(ALTERNATE_REQUEST_ID, request_id.clone());
    head.into()
}
