//! What handles a request behind its route: an [`Endpoint`] answers in-process, a [`Forward`] opens an exchange with an
//! upstream. Neither sees the client's session.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use filters::accounts::Caller;
use filters::fault::Fault;
use filters::form;
use futures::future::BoxFuture;
use http::{HeaderMap, header};
use pingora::http::RequestHeader;
use pingora_proxy::Session;

use super::admission;
use super::body;
use super::buffered::state::AttemptState;
use super::context::RequestInfo;
use super::exchange::Exchange;
use super::response::Response;
use super::state::ClientIp;

/// Bodies up to this size are drained behind a refusal, so that the connection can be reused.
const DRAIN_BYTES: usize = 64 << 10;
/// How long that may take.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// Who handles the requests of a route.
#[derive(Clone)]
pub enum Handler {
    /// Answers in-process.
    Endpoint(Arc<dyn Endpoint>),
    /// Sends the request on.
    Forward(Arc<dyn Forward>),
}

/// Answers requests in-process.
pub trait Endpoint: Send + Sync {
    /// Returns the response to `request`.
    ///
    /// Errors: what the endpoint says; the route's style writes them.
    fn call<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Response, Fault>>;
}

/// Opens exchanges with an upstream.
pub trait Forward: Send + Sync {
    /// Decides about a request: a response of our own, or an exchange with the upstream.
    ///
    /// The exchange is put into `exchange` on every outcome that is worth a log entry, refusals among them.
    ///
    /// Errors: the request is refused; the route's style writes the fault, and the exchange stamps it.
    fn open<'a>(
        &'a self,
        incoming: &'a mut Incoming<'_>,
        exchange: &'a mut Option<Box<dyn Exchange>>,
    ) -> BoxFuture<'a, Result<Opened, Fault>>;

    /// Returns what stamps and logs a request that is refused for its head, before it is opened.
    fn refused(&self, _head: &RequestHeader) -> Option<Box<dyn Exchange>> {
        None
    }
}

/// What became of a request that was opened.
pub enum Opened {
    /// The response, without an upstream.
    Response(Response),
    /// Pingora's loop runs the exchange.
    Upstream(Buffering),
}

/// What of the client's session is buffered while the exchange runs.
pub enum Buffering {
    /// Nothing: the body passes as it comes.
    None,
    /// The body was read, and is sent from memory.
    Replay(Bytes),
    /// The body is sent from memory, and the response is held back until it has content.
    UntilContent(Arc<AttemptState>),
}

/// A request that an endpoint answers.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// Its headers.
    pub headers: &'a HeaderMap,
    /// Its path, as it came.
    pub path: &'a str,
    /// Its query; empty without one.
    pub query: &'a str,
    /// Its whole body; empty without one.
    pub body: &'a [u8],
    /// The caller, where the route asks for one.
    pub caller: Option<&'a Arc<Caller>>,
    /// The client's address, where it is known.
    pub client_ip: Option<IpAddr>,
    /// Milliseconds of the wall clock.
    pub now_ms: u64,
}

impl<'a> Request<'a> {
    /// Returns the values of a query parameter, in order.
    pub fn values(&self, name: &str) -> impl Iterator<Item = Cow<'a, str>> {
        form::pairs(self.query)
            .filter(move |pair| pair.decoded_name() == name)
            .map(form::Pair::decoded_value)
    }

    /// Returns whether the last value of a query parameter is `true`.
    pub fn is_true(&self, name: &str) -> bool {
        self.values(name)
            .last()
            .is_some_and(|value| value == "true")
    }
}

/// A request whose head was admitted, while its handler opens it.
pub struct Incoming<'s> {
    session: &'s mut Session,
    info: &'s mut RequestInfo,
    client_ip: &'s ClientIp,
    body: Option<Bytes>,
}

impl<'s> Incoming<'s> {
    pub(super) fn new(
        session: &'s mut Session,
        info: &'s mut RequestInfo,
        client_ip: &'s ClientIp,
        body: Option<Bytes>,
    ) -> Self {
        Self {
            session,
            info,
            client_ip,
            body,
        }
    }

    /// The head, as it came.
    pub fn head(&self) -> &RequestHeader {
        self.session.req_header()
    }

    /// What is known of the request.
    pub fn info(&self) -> &RequestInfo {
        self.info
    }

    /// Returns the client's address, where it is known.
    pub fn client_ip(&self) -> Option<IpAddr> {
        admission::client_ip(self.client_ip, self.session)
    }

    /// Returns whether the head announces a body.
    pub fn has_framed_body(&self) -> bool {
        let headers = &self.head().headers;
        headers.contains_key(header::CONTENT_LENGTH)
            || headers.contains_key(header::TRANSFER_ENCODING)
    }

    /// Takes the body that the route's rule had read.
    pub fn take_body(&mut self) -> Bytes {
        self.body.take().unwrap_or_default()
    }

    /// Reads the whole body.
    ///
    /// Errors: 413 over `max_bytes`, 408 too slow, 400 broken off.
    pub async fn read_body(&mut self, max_bytes: usize) -> Result<Bytes, Fault> {
        body::read_body(self.session, max_bytes).await
    }

    /// Checks the announced length of the body.
    ///
    /// Errors: 413 over `max_bytes`, 400 for a length that is no number.
    pub fn check_length(&self, max_bytes: usize) -> Result<(), Fault> {
        body::fits(&self.head().headers, max_bytes).map(|_| ())
    }

    /// Keeps the connection behind a response that is sent before the body was read, where draining the rest costs less
    /// than a new connection.
    pub fn spare_connection(&mut self) {
        if self.session.is_body_done() {
            return;
        }
        let length = body::length(&self.head().headers);
        if matches!(length, Ok(Some(length)) if length <= DRAIN_BYTES) {
            let client = &mut self.session.downstream_session;
            client.set_close_on_response_before_downstream_finish(false);
            client.set_total_drain_timeout(Some(DRAIN_TIMEOUT));
        } else {
            self.session.set_keepalive(None);
        }
    }
}
