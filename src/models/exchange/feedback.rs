//! Reports the results of a call to the planner and the metrics.

use std::time::Duration;

use filters::ledger::CallOutcome;
use filters::models::routing::expected_price::expects_cache;
use filters::models::wires::{Failure, FailureKind};
use futures::FutureExt;
use futures::future::BoxFuture;

use super::ModelExchange;
use super::attempt::Attempt;
use super::attempt_span::AttemptEnd;
use super::caching::Caching;
use super::call::Call;
use crate::models::Models;
use crate::proxy::context::RequestInfo;
use crate::proxy::exchange::End;

/// A rate of tokens over a shorter time measures buffers and not the provider.
const MIN_RATE_TIME: Duration = Duration::from_millis(50);

impl Attempt {
    /// Records the failure with its endpoint, its provider and its key. Returns whether the attempt should be
    /// repeated at another endpoint of the provider; then the provider itself has not failed.
    pub(super) fn record_failure(
        &mut self,
        call: &Call,
        models: &Models,
        failure: &Failure,
        now_ms: u64,
    ) -> bool {
        let measured = self.measured.take();
        let Some(attempt) = self.planned(call) else {
            return false;
        };
        // Nothing was sent, so this says nothing about endpoints, keys and the provider's health.
        if failure.kind == FailureKind::Credential {
            return false;
        }
        if failure.is_retryable && !failure.is_about_the_key() {
            let endpoints = &attempt.deployment.site.endpoints;
            let is_unreachable = failure.kind == FailureKind::Connect;
            endpoints.record_failure(self.cursor.endpoint, is_unreachable, now_ms);
            if self.moves_endpoint(call, failure, now_ms) {
                return true;
            }
        }
        if let Some(key) = self.credential(call) {
            key.record_failure(failure, now_ms);
        }
        self.rest_refused(call, models, failure, now_ms);
        if failure.kind == FailureKind::Status(429) {
            return false;
        }
        // A refused BYOK key does not lower the provider's health.
        let is_about_byok = attempt.is_byok() && failure.is_about_the_key();
        // A fault of the caller does not count against the provider.
        if failure.is_retryable
            && !is_about_byok
            && let Some(measured) = measured
        {
            measured.record_failure(now_ms);
        }
        false
    }

    /// Records the success of the attempt and its throughput.
    pub(super) fn record_success(&mut self, call: &Call, info: &RequestInfo, now_ms: u64) {
        let measured = self.measured.take();
        let Some(deployment) = self.deployment(call) else {
            return;
        };
        if let Some(key) = self.credential(call) {
            key.record_success();
        }
        let endpoints = &deployment.site.endpoints;
        endpoints.record_success(self.cursor.endpoint);
        if let Some(measured) = measured {
            if let Some(tokens) = call.cacheable_tokens() {
                measured.record_tokens(tokens, now_ms);
            }
            measured.record_answer(call.throughput(info), now_ms);
        }
        if let Some((tokens, streamed)) = call.streamed(info) {
            // The first token is there when the stream begins.
            let seconds = streamed.as_secs_f64() / (tokens - 1) as f64;
            deployment.metrics.observe_output_token(seconds);
        }
        if let Some(record) = call.log.records.last() {
            deployment.metrics.count_attempt(record);
        }
    }
}

impl Call {
    /// Returns the tokens per second, or `None` if too few tokens came to measure it.
    fn throughput(&self, info: &RequestInfo) -> Option<f64> {
        let (tokens, streamed) = self.streamed(info)?;
        Some(tokens as f64 / streamed.as_secs_f64())
    }

    /// Returns the tokens of a stream, of which there are at least two, and the time from its first content to its end.
    /// `None`: the call was no stream, or too short to be measured.
    fn streamed(&self, info: &RequestInfo) -> Option<(u64, Duration)> {
        let ended = self.timing.completed.unwrap_or(info.now);
        let first = self.timing.first_content.unwrap_or(ended);
        let streamed = ended.saturating_duration_since(first);
        let settlement = self.billing.settlement();
        let tokens = settlement.map_or(0, |settled| settled.usage.completion);
        let has_rate = self.request.is_stream && streamed > MIN_RATE_TIME && tokens > 1;
        has_rate.then_some((tokens, streamed))
    }

    /// Returns the tokens of a call whose prompt the provider may have cached: of the prompt, read from and written
    /// to a cache, and of the completion. Returns `None` for another prompt, or without a report.
    fn cacheable_tokens(&self) -> Option<[u64; 4]> {
        let prompt_tokens = self.request.text_bytes.div_ceil(4);
        let usage = &self.billing.settlement()?.usage;
        let is_cacheable =
            expects_cache(prompt_tokens, self.affinity_key.is_some()) && !usage.estimated;
        is_cacheable.then_some([
            usage.prompt,
            usage.cached,
            usage.cache_write,
            usage.completion,
        ])
    }
}

impl ModelExchange {
    /// Records the time of the provider's first content, which may still be held back.
    pub(super) fn record_content(&mut self, info: &RequestInfo) {
        let now_ms = self.now_ms(info);
        if let Some(measured) = &mut self.running.measured {
            measured.record_content(now_ms);
        }
    }

    /// Binds the session to the provider when the client may take its response for ended. The client may then send
    /// its next turn at once.
    pub(super) fn hold_session(&self, info: &RequestInfo) {
        let deployment = self.running.deployment(&self.call);
        let Some((key, deployment)) = self.call.affinity_key.zip(deployment) else {
            return;
        };
        if self.running.reader.reported().has_finished {
            self.models
                .sessions
                .hold(key, deployment, self.now_ms(info));
        }
    }

    /// Binds the session to the provider of the response. Returns a future for which the last byte of the response
    /// waits, so that other processes know the binding too.
    pub(super) fn keep_session(&self, info: &RequestInfo) -> Option<BoxFuture<'static, ()>> {
        let deployment = self.running.deployment(&self.call);
        let (key, deployment) = self.call.affinity_key.zip(deployment)?;
        let settlement = self.call.billing.settlement();
        let usage = settlement.map(|settled| settled.usage).unwrap_or_default();
        let cached_tokens = usage.cached.saturating_add(usage.cache_write);
        let sessions = &self.models.sessions;
        let telling = sessions.bind(key, deployment, cached_tokens, self.now_ms(info))?;
        Some(telling.end(info.shared_wait.waited()).boxed())
    }

    /// Ends the call: settles it if that is still to do, records the results, and returns its outcome.
    pub(super) fn end_call(&mut self, info: &RequestInfo, end: &End<'_>) -> &'static str {
        let is_gone = end.is_client_disconnected || self.state.is_disconnected();
        if matches!(self.call.caching, Caching::Replayed(_)) {
            return if is_gone { "client_gone" } else { "ok" };
        }
        if self.call.is_queued {
            return "queued";
        }
        self.call.caching.release(is_gone);
        self.finish_hedge(info, is_gone);
        let outcome = self.settle_end(info, is_gone);
        self.trace_rest(info);
        self.measure(info);
        outcome
    }

    /// Exports the span of an attempt whose answer is complete, and settled.
    pub(super) fn trace_answer(&mut self, info: &RequestInfo) {
        let end = AttemptEnd::Answered(self.call.billing.settlement());
        self.running.send_span(&self.call, info, end);
    }

    /// Exports the span of an attempt that ended neither with an answer nor with a failure.
    fn trace_rest(&mut self, info: &RequestInfo) {
        let end = AttemptEnd::Left(self.call.billing.settlement());
        self.running.send_span(&self.call, info, end);
    }

    fn settle_end(&mut self, info: &RequestInfo, is_gone: bool) -> &'static str {
        let now_ms = self.now_ms(info);
        if self.running.reader.is_complete() {
            if !self.is_judged() {
                self.running.record_success(&self.call, info, now_ms);
            }
            return if is_gone { "client_gone" } else { "ok" };
        }
        let has_content = self.call.timing.first_content.is_some();
        // The provider also works for a client that has left, and bills at least the prompt.
        let is_billed = self.state.is_sent() || self.call.billing.has_parts();
        // A job whose start did not arrive here cannot be charged.
        let begins_job = self.call.request.payload.operation().begins_job();
        let is_owed = has_content || (is_gone && is_billed && !begins_job);
        if is_owed && self.call.billing.settlement().is_none() {
            if self.state.is_disconnected() {
                // The reply was read on to learn its usage.
                self.running.reader.end_text(false);
            }
            let outcome = match is_gone {
                true => CallOutcome::ClientDisconnected,
                false => CallOutcome::Broken,
            };
            // The response no longer waits for the receipt.
            drop(self.settle(info, outcome));
        }
        match (is_gone, has_content) {
            (true, _) => "client_gone",
            (false, true) => "broken",
            (false, false) => "failed",
        }
    }

    /// Counts tokens and cost of a turn that has ended.
    pub(super) fn measure_turn(&self) {
        let deployment = self.running.deployment(&self.call);
        if let Some((deployment, settlement)) = deployment.zip(self.call.billing.settlement()) {
            deployment.metrics.count_usage(settlement);
        }
    }

    /// Counts first content, tokens and cost.
    fn measure(&self, info: &RequestInfo) {
        let Some(deployment) = self.running.deployment(&self.call) else {
            return;
        };
        if let Some(first) = self.call.timing.first_content {
            let seconds = first.duration_since(info.started).as_secs_f64();
            deployment.metrics.observe_first_event(seconds);
        }
        self.measure_turn();
    }
}
