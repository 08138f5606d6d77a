//! The end of a request: what the providers are known for now, what is counted, and its one line.

use filters::chat::usage::Usage;
use pingora::{Error, ErrorSource};
use pingora_proxy::Session;
use serde::Serialize;

use super::context::Context;
use super::held::Held;
use crate::attempt::{Call, Settled, learn};
use crate::house::House;

/// Puts the real session back and tells what happened. Called once for every request that was answered or left.
pub fn finish(house: &House, session: &mut Session, error: Option<&Error>, ctx: &mut Context) {
    if let Some(slot) = ctx.slot.take() {
        Held::unwrap(session, &slot);
    }
    if let Some(written) = session.response_written() {
        ctx.status = written.status.as_u16();
    }
    let is_gone = error.is_some_and(|error| *error.esource() == ErrorSource::Downstream);
    let mut outcome = "ok";
    if let Some(call) = ctx.call.as_deref_mut() {
        outcome = settle(house, call, is_gone && ctx.fault.is_none());
    }
    count(house, ctx);
    if house.settings.access_log {
        let line = Line::of(session, ctx, outcome);
        house
            .lines
            .send(serde_json::to_vec(&line).unwrap_or_default());
    }
}

/// Remembers how the provider did, and what the call took. Answers how it ended.
fn settle(house: &House, call: &mut Call, is_gone: bool) -> &'static str {
    if call.receiving.is_complete() {
        learn::success(house, call);
        return "ok";
    }
    if is_gone && call.first_content.is_some() && call.settled.is_none() {
        let usage = call.receiving.usage(call.request.text_bytes);
        _ = crate::attempt::receive::settle(call, usage);
    }
    match (is_gone, call.first_content.is_some()) {
        (true, _) => "client_gone",
        (false, true) => "broken",
        (false, false) => "failed",
    }
}

fn count(house: &House, ctx: &Context) {
    let route = ctx.row.map_or("none", |row| row.name);
    let class = match ctx.status {
        200..=299 => "2xx",
        300..=399 => "3xx",
        400..=499 => "4xx",
        500..=599 => "5xx",
        _ => "none",
    };
    let metrics = &house.metrics;
    metrics.requests.with_label_values(&[route, class]).inc();
    let seconds = ctx.started.elapsed().as_secs_f64();
    metrics
        .request_seconds
        .with_label_values(&[route])
        .observe(seconds);
    let Some((call, step)) = ctx
        .call
        .as_deref()
        .and_then(|call| call.step().map(|step| (call, step)))
    else {
        return;
    };
    let labels = [&*step.upstream.name, learn::model_label(step)];
    if let Some(first) = call.first_content {
        let seconds = first.duration_since(ctx.started).as_secs_f64();
        metrics
            .first_event_seconds
            .with_label_values(&labels)
            .observe(seconds);
    }
    let Some(Settled { usage, cost }) = &call.settled else {
        return;
    };
    for (kind, tokens) in kinds(usage) {
        metrics
            .tokens
            .with_label_values(&[labels[0], labels[1], kind])
            .inc_by(tokens);
    }
    if let Some(cost) = cost {
        metrics
            .cost
            .with_label_values(&labels)
            .inc_by(cost.to_f64_for_metrics());
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

/// The request's one line. No body, no secret, no query. Source: interface (logs).
#[derive(Serialize)]
struct Line<'a> {
    time: String,
    level: &'static str,
    request_id: &'a str,
    route: &'a str,
    method: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    organization: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_id: Option<&'a str>,
    status: u16,
    outcome: &'a str,
    duration_ms: f64,
    request_bytes: usize,
    response_bytes: usize,
    #[serde(flatten)]
    call: Option<CallLine<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorLine<'a>>,
}

#[derive(Serialize)]
struct CallLine<'a> {
    model: &'a str,
    used_model: String,
    provider: &'a str,
    stream: bool,
    attempts: &'a [filters::chat::metadata::Attempted],
    first_event_ms: Option<f64>,
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    cached_tokens: Option<u64>,
    estimated: bool,
    cost: Option<String>,
}

#[derive(Serialize)]
struct ErrorLine<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    code: Option<&'a str>,
    param: Option<&'a str>,
    message: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    detail: &'a str,
}

impl<'a> Line<'a> {
    fn of(session: &'a Session, ctx: &'a Context, outcome: &'a str) -> Self {
        let caller = ctx.caller.as_deref();
        Self {
            time: jiff::Timestamp::now().to_string(),
            level: if ctx.status >= 500 { "warn" } else { "info" },
            request_id: &ctx.request_id,
            route: ctx.row.map_or("none", |row| row.name),
            method: session.req_header().method.as_str(),
            organization: caller.map(|caller| &*caller.organization),
            project: caller.map(|caller| &*caller.project),
            key_id: caller.map(|caller| &*caller.key_id),
            status: ctx.status,
            outcome,
            duration_ms: ms(ctx.started.elapsed()),
            request_bytes: ctx.request_bytes,
            response_bytes: session.body_bytes_sent(),
            call: ctx
                .call
                .as_deref()
                .map(|call| CallLine::of(call, ctx.started)),
            error: ctx.fault.as_ref().map(|fault| ErrorLine {
                kind: fault.error_type(),
                code: fault.code(),
                param: fault.param.as_deref(),
                message: &fault.message,
                detail: &fault.detail,
            }),
        }
    }
}

impl<'a> CallLine<'a> {
    fn of(call: &'a Call, started: tokio::time::Instant) -> Self {
        let settled = call.settled.as_ref();
        Self {
            model: &call.request.model,
            used_model: call.used_model(),
            provider: call.step().map_or("", |step| &step.upstream.name),
            stream: call.request.stream,
            attempts: &call.attempted,
            first_event_ms: call.first_content.map(|at| ms(at.duration_since(started))),
            prompt_tokens: settled.map(|settled| settled.usage.prompt),
            completion_tokens: settled.map(|settled| settled.usage.completion),
            cached_tokens: settled.map(|settled| settled.usage.cached),
            estimated: settled.is_some_and(|settled| settled.usage.estimated),
            cost: settled
                .and_then(|settled| settled.cost)
                .map(|cost| cost.to_string()),
        }
    }
}

/// Milliseconds with three digits behind the point.
fn ms(duration: std::time::Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}
