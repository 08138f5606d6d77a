//! The end of a request: what the providers are known for now, what is counted, and its one line.

use std::time::Duration;

use filters::ledger::CallOutcome;
use filters::models::usage::Usage;
use pingora::{Error, ErrorSource};
use pingora_proxy::Session;
use tokio::time::Instant;

use super::access_log;
use super::buffered::session::BufferedSession;
use super::context::Context;
use crate::app::routes;
use crate::app::state::AppState;
use crate::models::exchange::{ModelExchange, Settlement, billing, feedback};

/// Puts the real session back and tells what happened. Called once for every request that was answered or left.
pub fn finish(house: &AppState, session: &mut Session, error: Option<&Error>, ctx: &mut Context) {
    if let Some(slot) = ctx.slot.take() {
        BufferedSession::unwrap(session, &slot);
    }
    if let Some(written) = session.response_written() {
        ctx.status = written.status.as_u16();
    }
    let is_gone = error.is_some_and(|error| *error.esource() == ErrorSource::Downstream);
    let mut outcome = "ok";
    if let Some(call) = ctx.call.as_deref_mut() {
        outcome = settle(house, call, is_gone && ctx.fault.is_none(), ctx.started);
    }
    if let Some(call) = &ctx.graph {
        outcome = passed(error, is_gone && ctx.fault.is_none());
        ctx.request_bytes = session.body_bytes_read();
        let decision = call.outcome.word();
        house
            .metrics
            .limiter_decision(&call.operation.name, decision);
    }
    let took = ctx.started.elapsed();
    count(house, ctx, took);
    if house.settings.access_log {
        house
            .lines
            .send(access_log::write(session, ctx, outcome, took));
    }
}

/// Remembers how the provider did, and what the call took. Answers how it ended.
fn settle(
    house: &AppState,
    call: &mut ModelExchange,
    is_gone: bool,
    started: Instant,
) -> &'static str {
    let is_gone = is_gone || call.watch.has_left();
    if call.receiving.is_complete() {
        feedback::success(house, call);
        return if is_gone { "client_gone" } else { "ok" };
    }
    if call.first_content.is_some() && call.settled.is_none() {
        let outcome = if is_gone {
            CallOutcome::ClientDisconnected
        } else {
            CallOutcome::Broken
        };
        // Nobody waits for it any more.
        drop(billing::settle(call, outcome, started));
    }
    match (is_gone, call.first_content.is_some()) {
        (true, _) => "client_gone",
        (false, true) => "broken",
        (false, false) => "failed",
    }
}

/// How a request to the graph service ended.
fn passed(error: Option<&Error>, is_gone: bool) -> &'static str {
    match error {
        None => "ok",
        Some(_) if is_gone => "client_gone",
        Some(_) => "failed",
    }
}

fn count(house: &AppState, ctx: &Context, took: Duration) {
    let metrics = &house.metrics;
    let route = ctx.row.map_or("none", |row| row.name);
    metrics.ended(
        routes::route_index(ctx.row),
        route,
        ctx.status,
        took.as_secs_f64(),
    );
    let Some((call, step)) = ctx
        .call
        .as_deref()
        .and_then(|call| call.step().map(|step| (call, step)))
    else {
        return;
    };
    let labels = [&*step.upstream.name, feedback::model_label(step)];
    if let Some(first) = call.first_content {
        let seconds = first.duration_since(ctx.started).as_secs_f64();
        metrics
            .first_event_seconds
            .with_label_values(&labels)
            .observe(seconds);
    }
    let Some(Settlement { usage, cost }) = &call.settled else {
        return;
    };
    for (kind, tokens) in kinds(usage).into_iter().filter(|(_, tokens)| *tokens > 0) {
        metrics
            .tokens
            .with_label_values(&[labels[0], labels[1], kind])
            .inc_by(tokens);
    }
    if let Some(cost) = cost {
        metrics
            .cost
            .with_label_values(&labels)
            .inc_by(cost.total.to_f64_for_metrics());
    }
}

fn kinds(usage: &Usage) -> [(&'static str, u64); 5] {
    [
        ("prompt", usage.prompt),
        ("completion", usage.completion),
        ("cached", usage.cached),
        ("cache_write", usage.cache_write),
        ("reasoning", usage.reasoning.unwrap_or(0)),
    ]
}
