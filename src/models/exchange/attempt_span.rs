//! The span of an attempt in the trace of its request.

use std::time::Duration;

use filters::models::metadata::AttemptRun;
use filters::models::request::ModelRequest;
use filters::models::usage::Settlement;
use filters::models::wires::{Failure, FailureKind};
use filters::trace_context::SpanId;
use http::HeaderValue;
use tokio::time::Instant;

use crate::models::deployment::Deployment;
use crate::proxy::context::RequestInfo;
use crate::telemetry::traces;
use crate::telemetry::traces::names;
use crate::telemetry::traces::span::{SpanDraft, SpanTimes};

/// When an attempt began at its provider, and was first answered.
#[derive(Default)]
pub(super) struct AttemptTimes {
    begun: Option<Instant>,
    first_byte: Option<Instant>,
    /// The span of the attempt, if it is traced.
    span: Option<SpanId>,
}

/// How an attempt ended, for its span.
#[derive(Clone, Copy)]
pub(super) enum AttemptEnd<'e> {
    /// Its answer is complete.
    Answered(Option<&'e Settlement>),
    /// The client left, or the answer broke off after its beginning.
    Left(Option<&'e Settlement>),
    Failed(&'e Failure),
}

/// What an attempt has asked, and whom.
pub(super) struct AttemptFacts<'a> {
    pub(super) request: &'a ModelRequest,
    pub(super) deployment: &'a Deployment,
    /// The number of the endpoint.
    pub(super) endpoint: usize,
    pub(super) is_byok: bool,
    pub(super) finish_reasons: Vec<&'static str>,
}

impl AttemptTimes {
    /// Returns the times of an attempt that begins.
    pub(super) fn begin(info: &RequestInfo) -> Self {
        Self {
            begun: Some(info.now),
            first_byte: None,
            span: info.trace.as_ref().and_then(|_| traces::new_span()),
        }
    }

    /// Records the first byte of the answer. Returns the time until then, once.
    pub(super) fn answer(&mut self, now: Instant) -> Option<Duration> {
        let begun = self.begun.filter(|_| self.first_byte.is_none())?;
        self.first_byte = Some(now);
        Some(now.saturating_duration_since(begun))
    }

    /// Returns when an attempt that ends now ran, or `None` if it was not begun.
    pub(super) fn run(&self, info: &RequestInfo) -> Option<AttemptRun> {
        let since = |at: Instant| {
            let us = at.saturating_duration_since(info.started).as_micros();
            u64::try_from(us).unwrap_or(u64::MAX)
        };
        Some(AttemptRun {
            begun_us: since(self.begun?),
            answered_us: self.first_byte.map(since),
            ended_us: since(info.now),
        })
    }

    /// Returns the attempt's place in the trace of the request, if that is traced.
    pub(super) fn traceparent(&self, info: &RequestInfo) -> Option<HeaderValue> {
        let trace = info.trace.as_ref()?;
        trace.place_of(self.span?).to_header()
    }

    /// Exports the span of an attempt that has ended, if it is traced.
    ///
    /// Tokens stand in the spans of attempts alone, so that a sum over spans counts each of them once.
    pub(super) fn send_span(
        self,
        facts: &AttemptFacts<'_>,
        info: &RequestInfo,
        end: AttemptEnd<'_>,
    ) {
        let traced = info.trace.as_ref().zip(self.span).zip(self.begun);
        let Some(((trace, id), begun)) = traced else {
            return;
        };
        let operation = names::operation(facts.request.payload.operation());
        let model = &*facts.deployment.mapping.name;
        let lasted = SpanTimes {
            start_ns: info.unix_ns_at(begun),
            end_ns: info.unix_ns_at(info.now),
        };
        let mut span = SpanDraft::of_attempt(trace, id, &format!("{operation} {model}"), lasted);
        span.text(names::OPERATION, operation);
        span.text(names::REQUEST_MODEL, model);
        span.flag(names::IS_STREAM, facts.request.is_stream);
        name_provider(&mut span, facts);
        if let Some(first) = self.first_byte {
            let waited = first.saturating_duration_since(begun);
            span.seconds(names::TIME_TO_FIRST_CHUNK, waited.as_secs_f64());
        }
        tell_end(&mut span, facts, end);
        trace.send(span.finish());
    }
}

fn name_provider(span: &mut SpanDraft, facts: &AttemptFacts<'_>) {
    let deployment = facts.deployment;
    let provider = &deployment.provider;
    span.text(
        names::PROVIDER,
        provider.host.trace_name.unwrap_or(&provider.name),
    );
    span.text(names::CONFIGURED_PROVIDER, &provider.name);
    span.text(names::USED_MODEL, &deployment.used.used_model);
    let source = if facts.is_byok { "byok" } else { "platform" };
    span.text(names::CREDENTIAL_SOURCE, source);
    let origin = deployment.site.endpoints.origin(facts.endpoint);
    if let Some((host, port)) = origin.map(|origin| origin.host_and_port()) {
        span.text(names::SERVER_ADDRESS, host);
        span.number(names::SERVER_PORT, port.into());
    }
}

fn tell_end(span: &mut SpanDraft, facts: &AttemptFacts<'_>, end: AttemptEnd<'_>) {
    match end {
        AttemptEnd::Answered(settlement) => {
            span.number(names::HTTP_STATUS, 200);
            span.texts(names::FINISH_REASONS, &facts.finish_reasons);
            count_tokens(span, settlement);
        }
        AttemptEnd::Left(settlement) => {
            span.text(names::OUTCOME, "abandoned");
            count_tokens(span, settlement);
        }
        // The gateway itself has cancelled it, because another attempt was first.
        AttemptEnd::Failed(failure) if failure.kind == FailureKind::Cancelled => {
            span.text(names::OUTCOME, failure.error_type());
        }
        AttemptEnd::Failed(failure) => {
            if failure.status() > 0 {
                span.number(names::HTTP_STATUS, failure.status().into());
            }
            span.fail(failure.error_type());
        }
    }
}

/// Adds the usage of an attempt.
fn count_tokens(span: &mut SpanDraft, settlement: Option<&Settlement>) {
    let Some(settlement) = settlement else {
        return;
    };
    let usage = &settlement.usage;
    span.number(names::INPUT_TOKENS, usage.prompt);
    span.number(names::OUTPUT_TOKENS, usage.completion);
    for (key, tokens) in [
        (names::CACHE_READ_TOKENS, usage.cached),
        (names::CACHE_WRITE_TOKENS, usage.cache_write),
        (names::REASONING_TOKENS, usage.reasoning.unwrap_or(0)),
    ] {
        if tokens > 0 {
            span.number(key, tokens);
        }
    }
    if usage.estimated {
        span.flag(names::IS_ESTIMATED, true);
    }
}
