//! The call of a tool: an exchange around the exchange of the tool's route. It wraps the response in the protocol.
//!
//! The inner exchange does everything else: attempts, money, the log line. Its output is collected and sent as one
//! result when it is complete. Refusals and failures become results too, which say what went wrong. If the client
//! asks for progress, the response is an event stream, with events for the received bytes before the result.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use filters::json::Object;
use filters::mcp::answer;
use filters::mcp::message::Members;
use filters::mcp::revision::Revision;
use filters::mcp::stream::{self, CallProgress};
use filters::mcp::tools::{McpTool, RouteResponse, ToolResult};
use futures::future::BoxFuture;
use http::{HeaderName, HeaderValue, header};
use pingora::http::{RequestHeader, ResponseHeader};
use pingora::{Error, ErrorType, Result};
use serde_json::Value;

use super::calls::RunningToolCall;
use super::kept_answers::KeptAnswer;
use crate::proxy::buffered::interim::Interim;
use crate::proxy::buffered::state::{AttemptState, Stage};
use crate::proxy::context::RequestInfo;
use crate::proxy::exchange::{Begun, Broken, End, Exchange, LogPart, Report, Write};
use crate::proxy::handler::Buffering;
use crate::proxy::response::{Response, stream_headers};
use crate::telemetry::traces::names;
use crate::telemetry::traces::span::SpanDraft;

const JSON: &str = "application/json";

/// The facts about a call that its result needs.
pub(super) struct ToolCall {
    pub(super) tool: &'static McpTool,
    pub(super) name: String,
    pub(super) arguments: Members,
    pub(super) revision: Revision,
    pub(super) id: Value,
    /// The headers of the response.
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    /// The entry by which the client cancels the call.
    pub(super) running: RunningToolCall,
    /// The progress for a client that asks for it and accepts events, and the silence after which the client gets a
    /// comment.
    pub(super) progress: Option<(CallProgress, Duration)>,
    /// The stored answer for a client that loses its connection.
    pub(super) kept: Option<KeptAnswer>,
}

/// The exchange of a tool call.
pub(super) struct ToolExchange {
    call: ToolCall,
    /// The exchange of the route, or `None` if the route responds in-process.
    inner: Option<Box<dyn Exchange>>,
    /// The state that the inner exchange shares with the buffered session.
    state: Option<Arc<AttemptState>>,
    media_type: String,
    /// The received bytes of the response.
    received: Vec<u8>,
    is_written: bool,
    /// The status of the fault with which the tool failed.
    failed: Option<u16>,
}

impl ToolExchange {
    /// Returns the exchange of a call whose route has not been called yet.
    pub(super) fn new(call: ToolCall) -> Self {
        Self {
            call,
            inner: None,
            state: None,
            media_type: JSON.to_owned(),
            received: Vec::new(),
            is_written: false,
            failed: None,
        }
    }

    /// Sets the exchange of the route.
    pub(super) fn set_inner(&mut self, inner: Option<Box<dyn Exchange>>) {
        self.inner = inner;
    }

    /// Follows the stages of the response of an upstream.
    pub(super) fn follow(&mut self, buffering: &Buffering) {
        if let Buffering::UntilContent(state) = buffering {
            let call = &self.call;
            let keepalive = call.progress.as_ref().map(|(_, keepalive)| *keepalive);
            let cancellation = Arc::clone(&call.running.cancellation);
            let interim = Interim::new(cancellation, call.headers.clone(), keepalive);
            let kept = call.kept.as_ref().map(|kept| &kept.stream);
            if let (Some(kept), true) = (kept, call.revision.opens_streams()) {
                interim.send_opening(kept.store_event(stream::OPENING));
            }
            state.set_interim(interim.with_kept(kept.cloned()));
            self.state = Some(Arc::clone(state));
        }
    }

    /// Returns whether the response is an event stream: that of an upstream, for a client that asks for progress.
    fn is_stream(&self) -> bool {
        self.state.is_some() && self.call.progress.is_some()
    }

    /// Returns the response to the call of a route that has responded in-process.
    pub(super) fn answer(&mut self, response: &Response) -> Response {
        let headers = &mut response.headers.iter();
        let media_type = headers.find(|(name, _)| *name == header::CONTENT_TYPE);
        let media_type = media_type.and_then(|(_, value)| value.to_str().ok());
        let media_type = media_type.unwrap_or(JSON);
        let body = response.body.bytes();
        let body = if response.status == 200 {
            self.result(media_type, body)
        } else {
            self.failed = Some(response.status);
            self.failure(body)
        };
        self.response(body)
    }

    fn response(&self, body: Vec<u8>) -> Response {
        super::response(200, self.call.headers.clone(), body)
    }

    /// Returns the body of the result for a response.
    fn result(&self, media_type: &str, body: &[u8]) -> Vec<u8> {
        let response = RouteResponse { media_type, body };
        let call = &self.call;
        let result = (call.tool.result)(&call.arguments, &response);
        let result = result.unwrap_or_else(|| {
            ToolResult::failure("the answer is not one that this tool can show", None)
        });
        self.body(result)
    }

    /// Returns the body of the result for a tool that failed with this error.
    fn failure(&self, body: &[u8]) -> Vec<u8> {
        let body = serde_json::from_slice(body).unwrap_or(Value::Null);
        let error = body.get("error");
        let message = error.and_then(|error| error.get("message").unwrap_or(error).as_str());
        let message = message.unwrap_or("the tool failed");
        let data = error.and_then(|error| error.get("data"));
        self.body(ToolResult::failure(message, data))
    }

    fn body(&self, result: ToolResult) -> Vec<u8> {
        let call = &self.call;
        answer::result(call.revision, &call.id, result.into_members())
    }

    /// Returns a body for a client of an upstream's response: as an event if the response is a stream.
    fn framed(&self, body: Vec<u8>) -> Bytes {
        if !self.is_stream() {
            return body.into();
        }
        let event = stream::event(&body);
        let event = match &self.call.kept {
            Some(kept) => kept.stream.store_answer(&event),
            None => event.into(),
        };
        // An answer that is there at once comes behind the beginning all the same, from whose id a client resumes.
        let interim = self.state.as_deref().and_then(AttemptState::interim);
        match interim.and_then(Interim::take_opening) {
            Some(opening) => [opening, event].concat().into(),
            None => event,
        }
    }

    /// Tells the client how many bytes have come from a provider.
    fn send_progress(&mut self, bytes: usize) {
        let interim = self.state.as_deref().and_then(AttemptState::interim);
        if let (Some(interim), Some((progress, _))) = (interim, &mut self.call.progress)
            && let Some(event) = progress.count(bytes)
        {
            interim.send_notice(match &self.call.kept {
                Some(kept) => kept.stream.store_event(&event),
                None => event.into(),
            });
        }
    }

    fn inner(&mut self) -> Result<&mut dyn Exchange> {
        match self.inner.as_deref_mut() {
            Some(inner) => Ok(inner),
            None => Error::e_explain(ErrorType::InternalError, "the tool has no upstream"),
        }
    }

    /// Collects the inner exchange's output. Returns the result once the output is complete.
    fn collect(&mut self, written: Option<Bytes>) -> Option<Bytes> {
        let state = self.state.clone()?;
        self.received
            .extend_from_slice(&written.unwrap_or_default());
        match state.stage() {
            Stage::Complete if !self.is_written && !self.received.is_empty() => {
                self.is_written = true;
                let received = std::mem::take(&mut self.received);
                let result = self.result(&self.media_type, &received);
                Some(self.framed(result))
            }
            // Collected output counts as delivered, so no other provider may start again.
            Stage::Pending if !self.received.is_empty() => {
                state.set_stage(Stage::Committed);
                None
            }
            _ => None,
        }
    }
}

impl Exchange for ToolExchange {
    fn is_billed(&self) -> bool {
        self.inner.as_ref().is_some_and(|inner| inner.is_billed())
    }

    fn begin_attempt<'a>(&'a mut self, info: &'a RequestInfo) -> Result<Begun<'a>> {
        self.inner()?.begin_attempt(info)
    }

    fn upstream_head(&mut self, info: &RequestInfo, head: &mut RequestHeader) -> Result<()> {
        self.inner()?.upstream_head(info, head)
    }

    fn upstream_body(
        &mut self,
        info: &RequestInfo,
        head: &RequestHeader,
        piece: Option<&Bytes>,
    ) -> Result<()> {
        self.inner()?.upstream_body(info, head, piece)
    }

    fn response_status<'a>(
        &'a mut self,
        info: &'a RequestInfo,
        head: &'a ResponseHeader,
    ) -> Result<Option<BoxFuture<'a, ()>>> {
        self.inner()?.response_status(info, head)
    }

    fn response_head(&mut self, info: &RequestInfo, head: &mut ResponseHeader) -> Result<()> {
        self.inner()?.response_head(info, head)?;
        if head.status.is_informational() {
            return Ok(());
        }
        let media_type = head.headers.get(header::CONTENT_TYPE);
        if let Some(media_type) = media_type.and_then(|value| value.to_str().ok()) {
            media_type.clone_into(&mut self.media_type);
        }
        head.insert_header(header::CONTENT_TYPE, JSON)?;
        if self.is_stream() {
            for (name, value) in stream_headers() {
                head.insert_header(name, value)?;
            }
        }
        for (name, value) in &self.call.headers {
            head.insert_header(name, value)?;
        }
        Ok(())
    }

    fn response_body(
        &mut self,
        info: &RequestInfo,
        body: &mut Option<Bytes>,
        is_end: bool,
    ) -> Result<()> {
        self.send_progress(body.as_ref().map_or(0, Bytes::len));
        self.inner()?.response_body(info, body, is_end)?;
        *body = self.collect(body.take());
        Ok(())
    }

    fn connect_failed(&mut self, info: &RequestInfo, error: Box<Error>) -> Box<Error> {
        match &mut self.inner {
            Some(inner) => inner.connect_failed(info, error),
            None => error,
        }
    }

    fn broke(&mut self, info: &RequestInfo, error: Box<Error>, broken: Broken) -> Box<Error> {
        match &mut self.inner {
            Some(inner) => inner.broke(info, error, broken),
            None => error,
        }
    }

    fn report(&mut self, info: &RequestInfo, error: &Error, is_head_sent: bool) -> Report {
        let is_stream = self.is_stream();
        let Some(inner) = &mut self.inner else {
            return Report {
                fault: None,
                write: Write::Nothing,
            };
        };
        // The client has received no part of the inner exchange's response, because the stream is of another
        // protocol.
        let report = inner.report(info, error, is_head_sent && !is_stream);
        match (report.write, &report.fault) {
            (Write::Error, Some(fault)) if is_head_sent => {
                self.failed = Some(fault.status());
                let failure = self.framed(self.failure(&fault.compatible_body()));
                if let Some(kept) = &self.call.kept {
                    kept.stream.release();
                }
                Report {
                    write: Write::Tail(failure, None),
                    ..report
                }
            }
            (write, _) => Report { write, ..report },
        }
    }

    fn stamp(&mut self, response: &mut Response) {
        self.failed = Some(response.status);
        let body = self.failure(response.body.bytes());
        *response = self.response(body);
    }

    fn trace(&self, span: &mut SpanDraft) {
        span.text(names::TOOL, &self.call.name);
        if let Some(inner) = &self.inner {
            inner.trace(span);
        }
    }

    fn finish(&mut self, info: &RequestInfo, end: &End<'_>) -> &'static str {
        let inner = self.inner.as_mut();
        let outcome = inner.map_or("ok", |inner| inner.finish(info, end));
        match (outcome, self.failed) {
            ("ok" | "failed", Some(400..=498)) => "refused",
            ("ok", Some(_)) => "failed",
            _ => outcome,
        }
    }

    fn log(&self, info: &RequestInfo, part: LogPart, line: &mut Object<'_>) {
        if part == LogPart::BeforeStatus {
            line.text("tool", &self.call.name);
        }
        if let Some(inner) = &self.inner {
            inner.log(info, part, line);
        }
    }
}
