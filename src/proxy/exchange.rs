//! One exchange with an upstream, as Pingora's hooks drive it: a method per hook. The core knows no more of a product.

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
use super::origin::Origin;
use super::response::Response;

/// A request on its way to an upstream and back, with as many attempts as it takes.
///
/// Every method runs on the request's own task. Errors of the hooks end the attempt; [`connect_failed`] and [`broke`]
/// say whether Pingora starts another.
///
/// [`connect_failed`]: Exchange::connect_failed
/// [`broke`]: Exchange::broke
pub trait Exchange: Send + Sync {
    /// Starts the next attempt and returns where it connects to.
    fn begin_attempt(&mut self, info: &RequestInfo) -> Result<Arc<Origin>>;

    /// Rewrites the head of the upstream request.
    fn upstream_head(&mut self, info: &RequestInfo, head: &mut RequestHeader) -> Result<()>;

    /// Sees a piece of the request's body on its way.
    fn upstream_body(&mut self, _info: &RequestInfo, _piece: Option<&Bytes>) -> Result<()> {
        Ok(())
    }

    /// Judges the upstream's response head; returns what has to be awaited before the response goes on.
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

    /// Takes note of a connection that could not be made; the error says whether another attempt starts.
    fn connect_failed(&mut self, info: &RequestInfo, error: Box<Error>) -> Box<Error>;

    /// Takes note of an attempt that broke; the error says whether another attempt starts.
    fn broke(&mut self, info: &RequestInfo, error: Box<Error>, broken: Broken) -> Box<Error>;

    /// Returns what the client gets when no attempt is left.
    fn report(&mut self, info: &RequestInfo, error: &Error, is_head_sent: bool) -> Report;

    /// Adds the headers that every response of this exchange has.
    fn stamp(&self, _response: &mut Response) {}

    /// Ends the exchange and returns its outcome for the log line.
    fn finish(&mut self, info: &RequestInfo, end: &End<'_>) -> &'static str;

    /// Writes its members of the log line.
    fn log(&self, _info: &RequestInfo, _part: LogPart, _line: &mut Object<'_>) {}
}

/// How an attempt broke.
#[derive(Clone, Copy, Debug)]
pub struct Broken {
    /// The connection had served an earlier request.
    pub was_reused: bool,
    /// The request is idempotent, and its body can be sent again.
    pub is_repeatable: bool,
}

/// What the client gets when no attempt is left.
pub struct Report {
    /// The fault; none where the client itself has left.
    pub fault: Option<Fault>,
    /// What is written.
    pub write: Write,
}

/// How a failed exchange ends towards the client.
pub enum Write {
    /// A whole error response, in the route's style.
    Error,
    /// These last bytes of the body, once the gate is open.
    Tail(Bytes, Option<Gate>),
    /// The end of a body that is complete.
    EndBody,
    /// Nothing.
    Nothing,
}

/// The end of a request.
pub struct End<'a> {
    /// Why it ended early.
    pub error: Option<&'a Error>,
    /// The client left before it had the whole response.
    pub is_client_gone: bool,
}

/// Where in the log line an exchange writes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LogPart {
    /// Behind the caller.
    BeforeStatus,
    /// Behind the sizes.
    AfterSizes,
}

/// Writes a duration in milliseconds with three digits behind the point.
pub fn log_ms(line: &mut Object<'_>, key: &str, duration: Duration) {
    let us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    line.value(key, |out| {
        filters::json::write_number(us / 1000, out);
        out.push(b'.');
        let digits = us % 1000;
        out.extend([digits / 100, digits / 10 % 10, digits % 10].map(|digit| b'0' + digit as u8));
    });
}
