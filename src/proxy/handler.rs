//! Handlers of requests: an [`Endpoint`] responds in-process, a [`Forward`] opens an exchange with an upstream.
//! Neither sees the client's session.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use filters::accounts::Caller;
use filters::fault::Fault;
use filters::form;
use futures::future::BoxFuture;
use http::request::Parts;
use http::{HeaderMap, header};
use pingora::http::RequestHeader;
use pingora_proxy::Session;

use super::admission;
use super::body;
use super::budget_head::BudgetHead;
use super::buffered::state::AttemptState;
use super::context::RequestInfo;
use super::exchange::Exchange;
use super::permits::Permit;
use super::response::Response;
use super::router::Route;
use super::state::ProxyState;
use super::upload::UploadedBody;

/// A body up to this size is drained after a refusal, so that the connection can be reused.
const MAX_DRAIN_BYTES: usize = 64 << 10;
/// The time that draining a refused body may take.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// The handler of a route.
#[derive(Clone)]
pub enum Handler {
    Endpoint(Arc<dyn Endpoint>),
    /// It sends the request to an upstream.
    Forward(Arc<dyn Forward>),
}

impl Handler {
    /// Checks a head before its caller is looked up.
    ///
    /// Errors: the handler's own.
    pub fn check_head(&self, head: &Parts) -> Result<(), Fault> {
        match self {
            Self::Endpoint(endpoint) => endpoint.check_head(head),
            Self::Forward(forward) => forward.check_head(head),
        }
    }

    /// Returns whether its requests are calls of models.
    pub fn is_call(&self) -> bool {
        match self {
            Self::Endpoint(_) => false,
            Self::Forward(forward) => forward.is_call(),
        }
    }
}

/// Answers requests in-process.
pub trait Endpoint: Send + Sync {
    /// Checks a head before its caller is looked up, so that a page of another site learns nothing about a key.
    ///
    /// Errors: the endpoint's own.
    fn check_head(&self, _head: &Parts) -> Result<(), Fault> {
        Ok(())
    }

    /// Returns the response to `request`.
    ///
    /// Errors: the endpoint's own. The error style of the route writes them.
    fn call<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Response, Fault>>;

    /// Wraps a response in the endpoint's protocol. A batch leaves this out for its operations.
    fn frame(&self, response: Response) -> Response {
        response
    }
}

/// Opens exchanges with an upstream.
pub trait Forward: Send + Sync {
    /// Checks a head before its caller is looked up.
    ///
    /// Errors: the handler's own.
    fn check_head(&self, _head: &Parts) -> Result<(), Fault> {
        Ok(())
    }

    /// Returns a response of our own, or opens an exchange with the upstream.
    ///
    /// Sets `exchange` on every outcome that the exchange has to log, including refusals.
    ///
    /// Errors: the request is refused. The error style of the route writes the fault, and the exchange stamps it.
    fn open<'a>(
        &'a self,
        incoming: &'a mut Incoming<'_>,
        exchange: &'a mut Option<Box<dyn Exchange>>,
    ) -> BoxFuture<'a, Result<Opened, Fault>>;

    /// Returns whether its requests are calls of models, whose lines are exported, also of those that are refused.
    fn is_call(&self) -> bool {
        false
    }

    /// Returns an exchange that stamps and logs a request whose head was refused before `open`.
    fn refused(&self, _head: &Parts) -> Option<Box<dyn Exchange>> {
        None
    }
}

/// The result of opening a request.
pub enum Opened {
    /// A response of our own; no upstream is called.
    Response(Response),
    /// An exchange, which Pingora's loop runs.
    Upstream(Buffering),
}

/// The parts of a request and its response that are buffered while the exchange runs.
pub enum Buffering {
    /// No part: the body is streamed.
    None,
    /// The request body, which is sent from memory.
    Replay(Bytes),
    /// The request body, and the response until it has content.
    UntilContent(Arc<AttemptState>),
}

/// A request to an endpoint.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    pub headers: &'a HeaderMap,
    /// The path as received.
    pub path: &'a str,
    /// The query, which may be empty.
    pub query: &'a str,
    /// The whole body, which may be empty.
    pub body: &'a [u8],
    /// The caller, if the route requires an API key.
    pub caller: Option<&'a Arc<Caller>>,
    pub client_ip: Option<IpAddr>,
    /// The time of the request: milliseconds of the wall clock.
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

/// A request with an admitted head for a [`Forward`].
pub struct Incoming<'s> {
    session: &'s mut Session,
    info: &'s mut RequestInfo,
    state: &'s ProxyState,
    body: Option<Bytes>,
    uploaded: Option<UploadedBody>,
}

impl<'s> Incoming<'s> {
    pub(super) fn new(
        session: &'s mut Session,
        info: &'s mut RequestInfo,
        state: &'s ProxyState,
        (body, uploaded): (Option<Bytes>, Option<UploadedBody>),
    ) -> Self {
        Self {
            session,
            info,
            state,
            body,
            uploaded,
        }
    }

    /// Returns the head as received.
    pub fn head(&self) -> &RequestHeader {
        self.session.req_header()
    }

    /// Returns the core's facts about the request.
    pub fn info(&self) -> &RequestInfo {
        self.info
    }

    /// Returns the client's address, if it is known.
    pub fn client_ip(&self) -> Option<IpAddr> {
        admission::client_ip(&self.state.settings.client_ip, self.session)
    }

    /// Returns a request to an endpoint for this caller. It may differ from the request that the caller sent.
    pub fn request<'a>(
        &'a self,
        headers: &'a HeaderMap,
        (path, query): (&'a str, &'a str),
        body: &'a [u8],
    ) -> Request<'a> {
        Request {
            headers,
            path,
            query,
            body,
            caller: self.info.caller.as_ref(),
            client_ip: self.client_ip(),
            now_ms: self.info.unix_ms(),
        }
    }

    /// Returns whether the head announces a body.
    pub fn has_framed_body(&self) -> bool {
        let headers = &self.head().headers;
        headers.contains_key(header::CONTENT_LENGTH)
            || headers.contains_key(header::TRANSFER_ENCODING)
    }

    /// Returns whether a body may follow the head. A body of HTTP/2 needs no length.
    pub fn has_body(&mut self) -> bool {
        !self.session.is_body_done()
    }

    /// Returns whether an operator follows the calls.
    pub fn is_followed(&self) -> bool {
        self.state.calls.is_followed()
    }

    /// Returns whether the request came over HTTP/2.
    pub fn is_http2(&self) -> bool {
        self.head().version == http::Version::HTTP_2
    }

    /// Returns `Content-Length`.
    ///
    /// Errors: 400 if it is not a number.
    pub fn body_length(&self) -> Result<Option<usize>, Fault> {
        body::content_length(&self.head().headers)
    }

    /// Takes the body that was read by the route's [`BodyRule`](super::router::BodyRule).
    pub fn take_body(&mut self) -> Bytes {
        self.body.take().unwrap_or_default()
    }

    /// Takes an uploaded body, which is not completely in memory.
    pub fn take_uploaded(&mut self) -> Option<UploadedBody> {
        self.uploaded.take()
    }

    /// Replaces the body.
    pub fn set_body(&mut self, body: Bytes) {
        self.body = Some(body);
    }

    /// Admits the request as a request to `route`, with its quota and its permit.
    ///
    /// Errors: 429, 503 and 529, like a request to that route.
    pub async fn admit(&mut self, route: &Route) -> Result<(), Fault> {
        let (state, info) = (self.state, &mut *self.info);
        // The permit of `route` replaces the previous one.
        info.permit = None;
        admission::check_permit(state, route, info.caller.as_deref(), info.now)?;
        info.quota = admission::check_quota(state, route, info.caller.as_deref()).await?;
        if let Some(quota) = info.quota.filter(|quota| !quota.verdict.is_allowed) {
            return Err(Fault::from(&quota));
        }
        info.permit = admission::acquire_permit(state, route, info.caller.as_deref(), info.now)?;
        info.open_call = admission::open_call(state, route, info);
        Ok(())
    }

    /// Takes the permit, so that other requests can have it while this one waits.
    pub fn take_permit(&mut self) -> Option<Permit> {
        self.info.permit.take()
    }

    /// Sets what is left of the budget of the call, which its response tells.
    pub fn set_budget(&mut self, budget: Option<BudgetHead>) {
        self.info.budget = budget;
    }

    /// Puts the permit back.
    pub fn set_permit(&mut self, permit: Option<Permit>) {
        self.info.permit = permit;
    }

    /// Reserves memory for a body that was made from the received one.
    ///
    /// Errors: 529 without memory for it.
    pub fn reserve_body(&mut self, bytes: usize) -> Result<(), Fault> {
        self.info.body_reservation.grow_to(bytes)
    }

    /// Reads the whole body.
    ///
    /// Errors: 413 over `max_bytes`, 408 if it is too slow, 529 without memory for it, 400 if the connection breaks.
    pub async fn read_body(&mut self, max_bytes: usize) -> Result<Bytes, Fault> {
        body::read_body(self.session, max_bytes, self.info).await
    }

    /// Checks `Content-Length`, if there is one.
    ///
    /// Errors: 413 over `max_bytes`, 400 if it is not a number.
    pub fn check_length(&self, max_bytes: usize) -> Result<(), Fault> {
        body::check_length(&self.head().headers, max_bytes).map(|_| ())
    }

    /// Keeps the connection open after a response that is sent before the body was read, if draining the body costs less
    /// than a new connection.
    pub fn keep_connection(&mut self) {
        if self.session.is_body_done() {
            return;
        }
        let length = body::content_length(&self.head().headers);
        if matches!(length, Ok(Some(length)) if length <= MAX_DRAIN_BYTES) {
            let client = &mut self.session.downstream_session;
            client.set_close_on_response_before_downstream_finish(false);
            client.set_total_drain_timeout(Some(DRAIN_TIMEOUT));
        } else {
            self.session.set_keepalive(None);
        }
    }
}
