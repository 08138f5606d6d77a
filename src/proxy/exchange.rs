//! One exchange with an upstream. Pingora's hooks drive it, with one method per hook. The core knows nothing else
//! about a product.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use filters::fault::Fault;
use filters::json::Object;
use futures::future::BoxFuture;
use pingora::http::{RequestHeader, ResponseHeader};
use pingora::{Error, Result};

pub use super::buffered::state::Gate;
use super::context::RequestInfo;
use super::hedge::Adopted;
use super::origin::Origin;
use super::response::Response;
use crate::telemetry::traces::span::SpanDraft;

/// A request to an upstream and its response, in one attempt or several.
///
/// Every method runs on the request's own task. An error from a hook ends the attempt; [`connect_failed`] and [`broke`]
/// decide whether Pingora starts another one.
///
/// [`connect_failed`]: Exchange::connect_failed
/// [`broke`]: Exchange::broke
pub trait Exchange: Send + Sync {
    /// Returns whether the upstream bills requests. Such requests are not sent for a client that has disconnected.
    fn is_billed(&self) -> bool {
        false
    }

    /// Begins the next attempt.
    fn begin_attempt<'a>(&'a mut self, info: &'a RequestInfo) -> Result<Begun<'a>>;

    /// Rewrites the head of the upstream request.
    fn upstream_head(&mut self, info: &RequestInfo, head: &mut RequestHeader) -> Result<()>;

    /// Inspects a piece of the request body before it is sent. An empty piece may be a call of the buffered session,
    /// because a hedge is due or has news.
    fn upstream_body(
        &mut self,
        _info: &RequestInfo,
        _head: &RequestHeader,
        _piece: Option<&Bytes>,
    ) -> Result<()> {
        Ok(())
    }

    /// Checks the upstream's response head. If it returns a future, the response waits for it.
    fn response_status<'a>(
        &'a mut self,
        info: &'a RequestInfo,
        head: &'a ResponseHeader,
    ) -> Result<Option<BoxFuture<'a, ()>>>;

    /// Rewrites the response head for the client.
    fn response_head(&mut self, info: &RequestInfo, head: &mut ResponseHeader) -> Result<()>;

    /// Rewrites a piece of the response body for the client.
    fn response_body(
        &mut self,
        info: &RequestInfo,
        body: &mut Option<Bytes>,
        is_end: bool,
    ) -> Result<()>;

    /// Records a failed connection. The returned error decides whether another attempt starts.
    fn connect_failed(&mut self, info: &RequestInfo, error: Box<Error>) -> Box<Error>;

    /// Records a broken attempt. The returned error decides whether another attempt starts.
    fn broke(&mut self, info: &RequestInfo, error: Box<Error>, broken: Broken) -> Box<Error>;

    /// Returns the report to the client when no attempt is left.
    fn report(&mut self, info: &RequestInfo, error: &Error, is_head_sent: bool) -> Report;

    /// Completes an error response: adds the headers that all responses of this exchange have, or the protocol's
    /// wrapper around an error.
    fn stamp(&mut self, _response: &mut Response) {}

    /// Ends the exchange and returns its outcome for the log line.
    fn finish(&mut self, info: &RequestInfo, end: &End<'_>) -> &'static str;

    /// Writes the exchange's members of the log line.
    fn log(&self, _info: &RequestInfo, _part: LogPart, _line: &mut Object<'_>) {}

    /// Says in the span of the request what the exchange was. It follows `finish`.
    fn trace(&self, _span: &mut SpanDraft) {}
}

/// The beginning of an attempt.
pub enum Begun<'a> {
    /// The reply comes from this upstream.
    At(Upstream),
    /// The attempt needs something first. Await the future, then begin the attempt again.
    Wait(BoxFuture<'a, ()>),
}

/// The source of an attempt's reply.
pub enum Upstream {
    Origin(Arc<Origin>),
    /// A hedge that was sent beside an earlier attempt.
    Hedge(Arc<Adopted>),
}

/// The circumstances in which an attempt broke.
#[derive(Clone, Copy, Debug)]
pub struct Broken {
    /// Whether the connection had served an earlier request.
    pub was_reused: bool,
    /// Whether the request is idempotent and its body can be sent again.
    pub is_repeatable: bool,
}

/// The report to the client when no attempt is left.
pub struct Report {
    /// The fault, or `None` if the client disconnected.
    pub fault: Option<Fault>,
    /// The bytes that end the response.
    pub write: Write,
}

/// The bytes that end the response of a failed exchange.
pub enum Write {
    /// A whole error response in the route's style.
    Error,
    /// These last bytes of the body, after the gate opens.
    Tail(Bytes, Option<Gate>),
    /// The end of a complete body.
    EndBody,
    Nothing,
}

/// The end of a request.
pub struct End<'a> {
    pub error: Option<&'a Error>,
    /// Whether the client disconnected before it had the whole response.
    pub is_client_disconnected: bool,
}

/// A part of a line that an exchange writes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LogPart {
    /// The members after the caller's.
    BeforeStatus,
    AfterSizes,
    /// What the calls in memory have beside the line: tokens and cost by part.
    Details,
    /// Why its providers were chosen, for the calls in memory.
    Plan,
    /// What was asked and answered, for the export of logs alone.
    Content,
}

/// Writes a duration in milliseconds with three decimals.
pub fn log_ms(line: &mut Object<'_>, key: &'static str, duration: Duration) {
    let us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    line.value(key, |out| {
        filters::json::write_number(us / 1000, out);
        out.push(b'.');
        let digits = us % 1000;
        out.extend([digits / 100, digits / 10 % 10, digits % 10].map(|digit| b'0' + digit as u8));
    });
}
