//! Traces of requests, exported in OpenTelemetry's protocol (OTLP).
//!
//! A request gets its place in a trace when its head is read, if it is among those that are traced. When it ends, its
//! spans are made of what is known of it, and wait in a queue. A background task sends them in batches. A queue that is
//! full drops spans and counts them, so a collector that is dead or frozen costs requests nothing.
//!
//! [`names`] are the names of the conventions, [`span`] makes a span, [`export`] is the task, and [`exporter`] speaks to
//! the collector.

pub mod export;
mod exporter;
pub mod names;
pub mod span;

use std::sync::Arc;

use filters::trace_context::{SpanId, TraceId, TraceParent, trace_state};
use http::HeaderMap;
use opentelemetry_proto::tonic::trace::v1::Span;
use prometheus::{IntCounter, IntCounterVec};
use tokio::sync::mpsc;

use self::export::SpanExport;
use crate::config::TelemetryConfig;

/// The traces of one configuration.
pub struct Traces {
    config: TelemetryConfig,
    queue: mpsc::Sender<Span>,
    dropped: IntCounter,
}

/// The place of a request in a trace. Only requests that are traced have one.
pub struct RequestTrace {
    traces: Arc<Traces>,
    trace: TraceId,
    /// The span of the request.
    span: SpanId,
    /// The span of the client, if it names one.
    parent: Option<SpanId>,
    /// What other systems of the trace have to say.
    state: Box<str>,
}

impl Traces {
    /// Returns the traces of a configuration, and the task that exports them.
    pub fn new(config: &TelemetryConfig, spans: &IntCounterVec) -> (Self, SpanExport) {
        let (queue, waiting) = mpsc::channel(config.queue);
        let traces = Self {
            config: config.clone(),
            queue,
            dropped: spans.with_label_values(&["dropped"]),
        };
        (traces, SpanExport::new(config, waiting, spans))
    }

    /// Returns the configuration.
    pub fn config(&self) -> &TelemetryConfig {
        &self.config
    }

    /// Returns the place of a request, or `None` if it is not traced. Where the client names its place, the client decides
    /// that.
    pub fn begin(self: &Arc<Self>, headers: &HeaderMap, request_id: &str) -> Option<RequestTrace> {
        let client = TraceParent::from_headers(headers);
        let trace = client.map_or_else(
            || TraceId::from_request_id(request_id),
            |client| client.trace,
        );
        let is_traced = match client {
            Some(client) => client.is_sampled,
            None => trace.is_within(self.config.sample_ratio),
        };
        if !is_traced {
            return None;
        }
        let state = client.map(|_| trace_state(headers));
        Some(RequestTrace {
            traces: Arc::clone(self),
            trace,
            span: new_span()?,
            parent: client.map(|client| client.span),
            state: state.unwrap_or_default().into(),
        })
    }
}

impl RequestTrace {
    /// Exports a span, unless too many wait.
    pub fn send(&self, span: Span) {
        if self.traces.queue.try_send(span).is_err() {
            self.traces.dropped.inc();
        }
    }

    /// Returns the place that a span of the request has for whoever is asked within it.
    pub fn place_of(&self, span: SpanId) -> TraceParent {
        TraceParent {
            trace: self.trace,
            span,
            is_sampled: true,
        }
    }
}

/// Returns a new id. An id is no secret, so the thread's own generator is random enough.
pub fn new_span() -> Option<SpanId> {
    SpanId::from_random(fastrand::u64(1..))
}
