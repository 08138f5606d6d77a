//! How a call went, told to the planner and the metrics.

use std::time::Duration;

use filters::ledger::CallOutcome;
use filters::models::routing::expected_price::expects_cache;
use filters::models::wires::{Failure, FailureKind};
use futures::FutureExt;
use futures::future::BoxFuture;

use super::caching::{self, Caching};
use super::{ModelExchange, billing, hedging, rate_limits};
use crate::proxy::context::RequestInfo;
use crate::proxy::exchange::End;

/// Below this a rate of tokens measures buffers rather than the provider.
const MIN_RATE_TIME: Duration = Duration::from_millis(50);

/// Records a failed attempt with its endpoint, its provider, its key and the metrics. Returns whether it is to be repeated at
/// another endpoint of the provider, which then has not failed.
pub(super) fn record_failure(
    exchange: &mut ModelExchange,
    info: &RequestInfo,
    failure: &Failure,
) -> bool {
    let measured = exchange.measured.take();
    let Some(attempt) = exchange.attempt() else {
        return false;
    };
    let models = &exchange.models;
    let now_ms = models.clock.ms_at(info.now);
    if failure.is_retryable && !failure.is_about_the_key() {
        let endpoints = &attempt.deployment.site.endpoints;
        let is_unreachable = failure.kind == FailureKind::Connect;
        endpoints.record_failure(exchange.cursor.endpoint, is_unreachable, now_ms);
        if exchange.moves_endpoint(failure, now_ms) {
            return true;
        }
    }
    if let Some(key) = exchange.credential() {
        key.record_failure(failure, now_ms);
    }
    rate_limits::rest_refused(exchange, failure, now_ms);
    if failure.kind == FailureKind::Status(429) {
        return false;
    }
    // A refused BYOK key does not lower the provider's health.
    let is_about_byok = attempt.is_byok() && failure.is_about_the_key();
    // What is the caller's fault says nothing of the provider.
    if failure.is_retryable
        && !is_about_byok
        && let Some(measured) = measured
    {
        measured.record_failure(now_ms);
    }
    false
}

/// Records when the first content went to the client.
pub(super) fn record_first_content(exchange: &mut ModelExchange, info: &RequestInfo) {
    exchange.timing.first_content = Some(info.now);
    record_content(exchange, info);
}

/// Records when the provider's first content came; it may still be held back.
pub(super) fn record_content(exchange: &mut ModelExchange, info: &RequestInfo) {
    let now_ms = exchange.models.clock.ms_at(info.now);
    if let Some(measured) = &mut exchange.measured {
        measured.record_content(now_ms);
    }
}

/// Binds the session to the provider whose answer has ended, as far as the client can tell: it may send its next turn as
/// soon as it has what came.
pub(super) fn hold_session(exchange: &ModelExchange, info: &RequestInfo) {
    let Some((key, deployment)) = exchange.affinity_key.zip(exchange.deployment()) else {
        return;
    };
    if exchange.reader.reported().has_finished {
        let now_ms = exchange.models.clock.ms_at(info.now);
        exchange.models.sessions.hold(key, deployment, now_ms);
    }
}

/// Binds the session to the provider that answered. Returns what the last byte of the answer waits for, so that other
/// processes know it, too.
pub(super) fn bind_session(
    exchange: &ModelExchange,
    info: &RequestInfo,
) -> Option<BoxFuture<'static, ()>> {
    let (key, deployment) = exchange.affinity_key.zip(exchange.deployment())?;
    let settlement = exchange.billing.settlement();
    let usage = settlement.map(|settled| settled.usage).unwrap_or_default();
    let cached_tokens = usage.cached.saturating_add(usage.cache_write);
    let now_ms = exchange.models.clock.ms_at(info.now);
    let sessions = &exchange.models.sessions;
    let telling = sessions.bind(key, deployment, cached_tokens, now_ms)?;
    Some(telling.end(info.shared_wait.waited()).boxed())
}

/// Records the attempt that answered: its throughput.
fn record_success(exchange: &mut ModelExchange, info: &RequestInfo) {
    let measured = exchange.measured.take();
    let Some(deployment) = exchange.deployment() else {
        return;
    };
    if let Some(key) = exchange.credential() {
        key.record_success();
    }
    let endpoints = &deployment.site.endpoints;
    endpoints.record_success(exchange.cursor.endpoint);
    let timing = &exchange.timing;
    let ended = timing.completed.unwrap_or(info.now);
    let first = timing.first_content.unwrap_or(ended);
    let streamed = ended.saturating_duration_since(first);
    let settlement = exchange.billing.settlement();
    let tokens = settlement.map_or(0, |settled| settled.usage.completion);
    let has_rate = exchange.request.is_stream && streamed > MIN_RATE_TIME && tokens > 1;
    let throughput = has_rate.then(|| tokens as f64 / streamed.as_secs_f64());
    let models = &exchange.models;
    let now_ms = models.clock.ms_at(info.now);
    if let Some(measured) = measured {
        if let Some(tokens) = cacheable_tokens(exchange) {
            measured.record_tokens(tokens, now_ms);
        }
        measured.record_answer(throughput, now_ms);
    }
    if let Some(record) = exchange.log.records.last() {
        deployment.metrics.count_attempt(record);
    }
}

/// Returns the tokens of a call whose prompt a provider may have cached: of the prompt, read from and written to a cache,
/// and of the completion; `None`: the prompt is no such one, or nothing was reported.
fn cacheable_tokens(exchange: &ModelExchange) -> Option<[u64; 4]> {
    let prompt_tokens = exchange.request.text_bytes.div_ceil(4);
    let has_session = exchange.affinity_key.is_some();
    let usage = &exchange.billing.settlement()?.usage;
    let is_cacheable = expects_cache(prompt_tokens, has_session) && !usage.estimated;
    is_cacheable.then_some([
        usage.prompt,
        usage.cached,
        usage.cache_write,
        usage.completion,
    ])
}

/// Ends the call: settles what is not settled yet, records how it went, and returns its outcome.
pub(super) fn finish(
    exchange: &mut ModelExchange,
    info: &RequestInfo,
    end: &End<'_>,
) -> &'static str {
    let is_gone = end.is_client_disconnected || exchange.state.is_disconnected();
    if matches!(exchange.caching, Caching::Replayed(_)) {
        return if is_gone { "client_gone" } else { "ok" };
    }
    caching::release(exchange, is_gone);
    hedging::finish(exchange, info, is_gone);
    let outcome = settle(exchange, info, is_gone);
    measure(exchange, info);
    outcome
}

fn settle(exchange: &mut ModelExchange, info: &RequestInfo, is_gone: bool) -> &'static str {
    if exchange.reader.is_complete() {
        record_success(exchange, info);
        return if is_gone { "client_gone" } else { "ok" };
    }
    let has_content = exchange.timing.first_content.is_some();
    // The provider works for a client that has left, too, and bills its prompt at least.
    let is_billed = exchange.state.is_sent() || exchange.billing.has_parts();
    // A job whose begin nobody has seen is nobody's.
    let begins_job = exchange.request.payload.operation().begins_job();
    let is_owed = has_content || (is_gone && is_billed && !begins_job);
    if is_owed && exchange.billing.settlement().is_none() {
        if exchange.state.is_disconnected() {
            // It was read on to learn what came.
            exchange.reader.end_text(false);
        }
        let outcome = if is_gone {
            CallOutcome::ClientDisconnected
        } else {
            CallOutcome::Broken
        };
        // No response waits for the receipt any more.
        drop(billing::settle(exchange, info, outcome));
    }
    match (is_gone, has_content) {
        (true, _) => "client_gone",
        (false, true) => "broken",
        (false, false) => "failed",
    }
}

/// Counts first content, tokens and cost.
fn measure(exchange: &ModelExchange, info: &RequestInfo) {
    let Some(deployment) = exchange.deployment() else {
        return;
    };
    if let Some(first) = exchange.timing.first_content {
        let seconds = first.duration_since(info.started).as_secs_f64();
        deployment.metrics.observe_first_event(seconds);
    }
    if let Some(settlement) = exchange.billing.settlement() {
        deployment.metrics.count_usage(settlement);
    }
}
