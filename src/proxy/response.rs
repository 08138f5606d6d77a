//! The only place that writes a response of our own.
//!
//! Endpoints return a [`Response`] as a value; faults become one here. Every response carries the request's
//! id twice, because clients of both conventions look for it under their own name.

use std::time::Duration;

use bytes::Bytes;
use filters::fault::Fault;
use filters::limits::headers::Quota;
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use pingora::Result;
use pingora::http::ResponseHeader;
use pingora::protocols::http::HttpTask;
use pingora_proxy::Session;

/// A response of our own.
pub struct Response {
    /// The status.
    pub status: u16,
    /// Headers beside the ids and the length; without a type it is JSON.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The body.
    pub body: Reply,
}

/// The body of a response of our own.
pub enum Reply {
    /// The whole body.
    Bytes(Bytes),
    /// An event stream, which ends when its source or the process does.
    Stream(Box<dyn EventSource>),
}

/// Makes the events of a stream.
pub trait EventSource: Send + Sync {
    /// Waits for the next bytes of the stream; none: it has ended.
    ///
    /// Cancel safety: a call that is dropped loses nothing.
    fn next(&mut self) -> BoxFuture<'_, Option<Bytes>>;
}

impl Reply {
    /// The whole body; empty for a stream.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Stream(_) => &[],
        }
    }
}

impl<B: Into<Bytes>> From<B> for Reply {
    fn from(bytes: B) -> Self {
        Self::Bytes(bytes.into())
    }
}

impl Response {
    /// A 200 with this JSON text.
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
const OTHER_REQUEST_ID: HeaderName = HeaderName::from_static("request-id");
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");
/// The ids, the length, the type.
const OUR_HEADERS: usize = 4;
const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");
/// How often a stream of ours checks whether the process is stopping.
const READINESS_INTERVAL: Duration = Duration::from_millis(250);
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Writes a whole response; a stream is for [`send_stream`].
pub async fn send(
    session: &mut Session,
    response: Response,
    request_id: &HeaderValue,
) -> Result<()> {
    let Response {
        status,
        headers: own,
        body: Reply::Bytes(body),
    } = response
    else {
        return Ok(());
    };
    let mut headers = HeaderMap::with_capacity(own.len() + OUR_HEADERS);
    for (name, value) in own {
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

/// Writes an event stream until the client leaves, `is_open` returns false, or the source ends.
pub async fn send_stream(
    session: &mut Session,
    request_id: &HeaderValue,
    mut events: Box<dyn EventSource>,
    is_open: impl Fn() -> bool,
) -> Result<()> {
    let is_chunked = session.req_header().version == http::Version::HTTP_11;
    let head = stream_head(request_id, None, is_chunked);
    let is_head = session.req_header().method == http::Method::HEAD;
    session
        .write_response_header(Box::new(head), is_head)
        .await?;
    if is_head {
        return Ok(());
    }
    while is_open() {
        let part = tokio::select! {
            part = events.next() => part,
            // The client sends no more than the end of its connection.
            left = session.downstream_session.read_body_or_idle(true) => return left.map(|_| ()),
            () = tokio::time::sleep(READINESS_INTERVAL) => continue,
        };
        let Some(part) = part else { break };
        session.write_response_body(Some(part), false).await?;
    }
    session.write_response_body(None, true).await
}

/// The head of an event stream.
pub fn stream_head(
    request_id: &HeaderValue,
    quota: Option<&Quota>,
    is_chunked: bool,
) -> ResponseHeader {
    let mut headers = framing(quota, is_chunked);
    headers.extend([
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/event-stream; charset=utf-8"),
        ),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (ACCEL_BUFFERING, HeaderValue::from_static("no")),
    ]);
    head(200, request_id, headers)
}

/// The head of a whole reply whose length is not known yet; see [`set_content_length`].
pub fn whole_head(
    request_id: &HeaderValue,
    quota: Option<&Quota>,
    is_chunked: bool,
) -> ResponseHeader {
    let mut headers = framing(quota, is_chunked);
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    head(200, request_id, headers)
}

/// What every head of an answer has that is not written whole.
fn framing(quota: Option<&Quota>, is_chunked: bool) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(if quota.is_some() { 16 } else { 8 });
    headers.extend(quota.iter().flat_map(|quota| quota.headers()));
    if is_chunked {
        headers.insert(
            header::TRANSFER_ENCODING,
            HeaderValue::from_static("chunked"),
        );
    }
    headers
}

/// Where `tasks` are a head and a whole body, puts the length into the head in place of chunking.
pub fn set_content_length(tasks: &mut [HttpTask]) {
    if !tasks.last().is_some_and(HttpTask::is_end) {
        return;
    }
    let length = tasks
        .iter()
        .map(|task| match task {
            HttpTask::Body(Some(body), _) => body.len(),
            _ => 0,
        })
        .sum::<usize>();
    if let Some(HttpTask::Header(head, _)) = tasks.first_mut() {
        head.remove_header(&header::TRANSFER_ENCODING);
        // A number always makes a header.
        _ = head.insert_header(header::CONTENT_LENGTH, length);
    }
}

fn head(status: u16, request_id: &HeaderValue, headers: HeaderMap) -> ResponseHeader {
    let (mut head, ()) = http::Response::new(()).into_parts();
    // 529 is no status of the registry, but the one the contract names.
    head.status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    head.headers = headers;
    head.headers.insert(REQUEST_ID, request_id.clone());
    head.headers.insert(OTHER_REQUEST_ID, request_id.clone());
    head.into()
}
