//! The exchange with the graph service. Request and response are forwarded unchanged, except for the limit headers of
//! every response.
//!
//! There is only one upstream, so a request is sent once. It is only tried again after a failed connection, or on a
//! reused connection that the service had closed.

use std::sync::Arc;

use bytes::Bytes;
use filters::fault::{Fault, FaultKind};
use filters::fault_code::FaultCode;
use filters::graph::headers::{is_limit_header, limit_headers, overrides_method};
use filters::graph::{GraphOperation, is_upstream_hit};
use filters::json::Object;
use filters::limits::headers::Header;
use filters::limits::{RefundToken, WindowKey};
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use pingora::http::{RequestHeader, ResponseHeader};
use pingora::{Error, ErrorSource, ErrorType, Result};

use super::{CacheWriter, Graph, origin_form};
use crate::proxy::body;
use crate::proxy::buffered::error_types::ATTEMPT_ABORTED;
use crate::proxy::concurrency_limit::ConcurrencyPermit;
use crate::proxy::context::RequestInfo;
use crate::proxy::exchange::{Begun, Broken, End, Exchange, LogPart, Report, Upstream, Write};
use crate::proxy::response::Response;
use crate::telemetry::traces::names;
use crate::telemetry::traces::span::SpanDraft;

/// The maximum number of connections that are tried for one request.
const MAX_CONNECTIONS: u8 = 2;
// A text keeps the spelling of the name in Pingora without a copy; a `HeaderName` would be copied.
const REQUEST_ID: &str = "x-request-id";
const ALTERNATE_REQUEST_ID: &str = "request-id";

/// One request to the graph service, from its admission to the end of its response.
pub struct GraphExchange {
    graph: Arc<Graph>,
    /// The operation on which the request counts.
    pub operation: Arc<GraphOperation>,
    /// The tenant, or `None` if the client's address counts.
    pub tenant: Option<Arc<str>>,
    /// The limit in the response's headers, in requests per window.
    pub limit: u64,
    /// The limiter's decision so far.
    pub outcome: LimitOutcome,
    /// The unit taken from a window, until it is refunded.
    pub admission: Option<Admission>,
    /// The whole request body, if it was read.
    pub body: Option<Bytes>,
    /// The number of bytes that a streamed request body may still have.
    pub remaining_bytes: usize,
    pub cache_writer: Option<CacheWriter>,
    permit: Option<ConcurrencyPermit>,
    /// A permit for a body that is still arriving, until the service responds.
    upload_permit: Option<ConcurrencyPermit>,
    /// The forwarded bytes of the body.
    passed_bytes: usize,
    failed_connections: u8,
    /// The fault of a request body that is too large.
    fault: Option<Fault>,
}

/// One unit of a window.
pub struct Admission {
    pub key: WindowKey,
    /// The token that proves that the unit was taken.
    pub refund: RefundToken,
}

/// The limiter's decision about a request.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum LimitOutcome {
    /// No decision: the request ended earlier, or takes no unit.
    #[default]
    Uncounted,
    /// The request was counted and forwarded.
    Admitted,
    Refused,
    /// The response came from the cache, and the request was not counted.
    Hit,
    /// The request was counted, and its unit was refunded.
    Refunded,
    /// Neither Redis nor this process could count.
    Unavailable,
}

impl LimitOutcome {
    /// The number of outcomes.
    pub const COUNT: usize = 6;

    /// Returns the label in metrics and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Uncounted => "uncounted",
            Self::Admitted => "admitted",
            Self::Refused => "refused",
            Self::Hit => "hit",
            Self::Refunded => "refunded",
            Self::Unavailable => "unavailable",
        }
    }
}

impl GraphExchange {
    /// Creates the exchange of a request before its tenant is known.
    pub fn new(graph: &Arc<Graph>, operation: &Arc<GraphOperation>) -> Self {
        Self {
            graph: Arc::clone(graph),
            operation: Arc::clone(operation),
            tenant: None,
            limit: operation.category.default,
            outcome: LimitOutcome::default(),
            admission: None,
            body: None,
            remaining_bytes: usize::MAX,
            cache_writer: None,
            permit: None,
            upload_permit: None,
            passed_bytes: 0,
            failed_connections: 0,
            fault: None,
        }
    }

    /// Refuses a request that would get no permit, before its body is read.
    ///
    /// Errors: 503 if none is free.
    pub fn check_permit(&self) -> Result<(), Fault> {
        match self.graph.permits.is_full() {
            true => Err(no_permit()),
            false => Ok(()),
        }
    }

    /// Acquires one of the permits for concurrent requests. A body that was not read arrives while the request runs.
    ///
    /// Errors: 503 if none is free.
    pub fn acquire_permit(&mut self, has_body: bool) -> Result<(), Fault> {
        if has_body && self.body.is_none() {
            let permit = self.graph.upload_permits.try_acquire();
            self.upload_permit = Some(permit.ok_or_else(no_permit)?);
        }
        let permit = self.graph.permits.try_acquire();
        self.permit = Some(permit.ok_or_else(no_permit)?);
        Ok(())
    }

    /// Returns the limit headers that every response has.
    pub fn limit_headers(&self) -> [Header; 2] {
        limit_headers(self.limit, self.graph.window_s)
    }
}

fn no_permit() -> Fault {
    let message = "more requests run at once than are forwarded: try again in a second";
    Fault::new(FaultKind::Unavailable, message)
}

impl Exchange for GraphExchange {
    fn begin_attempt<'a>(&'a mut self, _: &'a RequestInfo) -> Result<Begun<'a>> {
        let origin = Arc::clone(&self.graph.origin);
        Ok(Begun::At(Upstream::Origin(origin)))
    }

    /// Sets the host of the service and removes headers that would override the method.
    fn upstream_head(&mut self, _: &RequestInfo, head: &mut RequestHeader) -> Result<()> {
        if head.uri.authority().is_some() || !head.raw_path().starts_with(b"/") {
            let target = origin_form(head.raw_path()).to_vec();
            head.set_raw_path(&target)?;
        }
        head.insert_header(header::HOST, self.graph.origin.authority.clone())?;
        for name in names(&head.headers, overrides_method) {
            head.remove_header(&name);
        }
        let is_framed = head.headers.contains_key(header::CONTENT_LENGTH)
            || head.headers.contains_key(header::TRANSFER_ENCODING);
        if let Some(body) = &self.body {
            head.remove_header(&header::TRANSFER_ENCODING);
            head.remove_header(&header::EXPECT);
            if is_framed || !body.is_empty() {
                head.insert_header(header::CONTENT_LENGTH, body.len())?;
            }
        }
        Ok(())
    }

    fn upstream_body(
        &mut self,
        info: &RequestInfo,
        _: &RequestHeader,
        piece: Option<&Bytes>,
    ) -> Result<()> {
        let bytes = piece.map_or(0, Bytes::len);
        if self.body.is_some() {
            return Ok(());
        }
        self.passed_bytes += bytes;
        // This hook only knows the time of the head.
        if body::is_too_slow(info.started.elapsed(), self.passed_bytes) {
            self.fault = Some(body::too_slow());
            return Error::e_explain(ATTEMPT_ABORTED, "the body is too slow");
        }
        if bytes <= self.remaining_bytes {
            self.remaining_bytes -= bytes;
            return Ok(());
        }
        let message = "the body is larger than is taken here";
        self.fault = Some(Fault::new(FaultKind::TooLarge, message));
        Error::e_explain(ATTEMPT_ABORTED, "the body is too large")
    }

    /// Refunds the unit of a response from the service's own cache, and decides whether the response is cached here.
    fn response_status<'a>(
        &'a mut self,
        _: &'a RequestInfo,
        head: &'a ResponseHeader,
    ) -> Result<Option<BoxFuture<'a, ()>>> {
        if head.status.is_informational() {
            return Ok(None);
        }
        self.upload_permit = None;
        let metrics = &self.graph.metrics;
        match head.status {
            StatusCode::SERVICE_UNAVAILABLE => metrics.count_failed("upstream_cpu_exhausted"),
            _ => metrics.count_answered(),
        }
        self.cache_writer = self
            .cache_writer
            .take()
            .and_then(|mut writer| writer.write_head(head).then_some(writer));
        if !is_upstream_hit(&head.headers) {
            return Ok(None);
        }
        let admission = self.admission.take();
        Ok(admission.map(|admission| -> BoxFuture<'a, ()> {
            Box::pin(async move {
                let counters = &self.graph.counters;
                if counters.refund(&admission.key, admission.refund).await {
                    self.outcome = LimitOutcome::Refunded;
                }
            })
        }))
    }

    /// Replaces the limit headers of the service by ours.
    fn response_head(&mut self, info: &RequestInfo, head: &mut ResponseHeader) -> Result<()> {
        if head.status.is_informational() {
            return Ok(());
        }
        for name in names(&head.headers, is_limit_header) {
            head.remove_header(&name);
        }
        for (name, value) in self.limit_headers() {
            head.insert_header(name, value)?;
        }
        let id: &HeaderValue = info.id.as_header();
        head.insert_header(REQUEST_ID, id.clone())?;
        head.insert_header(ALTERNATE_REQUEST_ID, id.clone())
    }

    fn response_body(
        &mut self,
        _: &RequestInfo,
        body: &mut Option<Bytes>,
        is_end: bool,
    ) -> Result<()> {
        if let Some(writer) = &mut self.cache_writer {
            writer.write_body(body.as_ref().map_or(&b""[..], |piece| piece), is_end);
            if is_end {
                // The followers need not wait until our client has read the response.
                self.cache_writer = None;
            }
        }
        Ok(())
    }

    /// Allows a second connection.
    fn connect_failed(&mut self, _: &RequestInfo, mut error: Box<Error>) -> Box<Error> {
        self.failed_connections += 1;
        error.set_retry(self.failed_connections < MAX_CONNECTIONS);
        error
    }

    /// Repeats a request only if it may be sent twice and its reused connection had been closed.
    fn broke(&mut self, _: &RequestInfo, mut error: Box<Error>, broken: Broken) -> Box<Error> {
        if broken.is_repeatable {
            error.retry.decide_reuse(broken.was_reused);
        } else {
            error.set_retry(false);
        }
        error
    }

    fn report(&mut self, _: &RequestInfo, error: &Error, is_head_sent: bool) -> Report {
        let own = self.fault.take();
        let fault = own.or_else(|| fault(&self.graph, error));
        // A started response stops where it is, so that it never gets an end that the service did not send.
        let write = if is_head_sent || fault.is_none() {
            Write::Nothing
        } else {
            Write::Error
        };
        Report { fault, write }
    }

    fn stamp(&mut self, response: &mut Response) {
        response.headers.extend(self.limit_headers());
    }

    fn finish(&mut self, _: &RequestInfo, end: &End<'_>) -> &'static str {
        let metrics = &self.graph.metrics;
        metrics.count_decision(&self.operation, self.outcome);
        match end.error {
            None => "ok",
            Some(_) if end.is_client_disconnected => "client_gone",
            Some(_) => "failed",
        }
    }

    fn log(&self, _: &RequestInfo, part: LogPart, line: &mut Object<'_>) {
        if part == LogPart::BeforeStatus {
            line.optional_text("tenant", self.tenant.as_deref());
            line.text("operation", &self.operation.name);
            line.number("limit", self.limit);
            line.text("decision", self.outcome.as_str());
        }
    }

    fn trace(&self, span: &mut SpanDraft) {
        span.text(names::TENANT, self.tenant.as_deref().unwrap_or_default());
        span.text(names::GRAPH_OPERATION, &self.operation.name);
        span.text(names::LIMIT_DECISION, self.outcome.as_str());
    }
}

/// Returns the names that `is_wanted` accepts. Cost: allocates only if there are any.
fn names(headers: &HeaderMap, is_wanted: impl Fn(&HeaderName) -> bool) -> Vec<HeaderName> {
    let names = headers.keys().filter(|name| is_wanted(name));
    names.cloned().collect()
}

/// Returns the fault of a request without a response from the service, or `None` if the client disconnected.
fn fault(graph: &Graph, error: &Error) -> Option<Fault> {
    if *error.esource() == ErrorSource::Downstream && *error.etype() != ATTEMPT_ABORTED {
        return None;
    }
    let (outcome, fault) = match error.etype() {
        ErrorType::ConnectTimedout
        | ErrorType::TLSHandshakeTimedout
        | ErrorType::ReadTimedout
        | ErrorType::WriteTimedout => (
            "timeout",
            Fault::new(
                FaultKind::UpstreamTimeout,
                "the graph service did not answer in time",
            ),
        ),
        ErrorType::ConnectionClosed
        | ErrorType::ReadError
        | ErrorType::WriteError
        | ErrorType::H1Error
        | ErrorType::H2Error
        | ErrorType::InvalidHTTPHeader => (
            "broken",
            Fault::new(
                FaultKind::UpstreamFailed,
                "the graph service's answer broke off",
            )
            .with_code(FaultCode::UpstreamFailed),
        ),
        _ => (
            "connect_failed",
            Fault::new(
                FaultKind::ConnectFailed,
                "the graph service could not be reached",
            ),
        ),
    };
    graph.metrics.count_failed(outcome);
    Some(fault)
}
