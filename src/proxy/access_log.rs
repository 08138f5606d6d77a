//! The request's one line. No body, no secret, no query. Source: docs/interface.md, Logs.

use std::time::Duration;

use filters::fault::Fault;
use filters::json::{Object, write_number};
use filters::models::metadata::AttemptRecord;
use pingora_proxy::Session;
use tokio::time::Instant;

use super::context::Context;
use crate::models::exchange::ModelExchange;
use crate::telemetry::logging;

/// The line of a request that has ended.
pub(super) fn write(session: &Session, ctx: &Context, outcome: &str, took: Duration) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    let mut line = Object::open(&mut out);
    logging::write_now(&mut line);
    let is_ours = ctx.status >= 500;
    line.text("level", if is_ours { "warn" } else { "info" });
    line.text("request_id", ctx.request_id.text());
    line.text("route", ctx.row.map_or("none", |row| row.name));
    line.text("method", session.req_header().method.as_str());
    if let Some(caller) = &ctx.caller {
        line.text("organization", &caller.organization);
        line.text("project", &caller.project);
        line.text("key_id", &caller.key_id);
    }
    if let Some(call) = &ctx.graph {
        line.optional_text("tenant", call.tenant.as_deref());
        line.text("operation", &call.operation.name);
        line.number("limit", call.limit);
        line.text("decision", call.outcome.word());
    }
    line.number("status", u64::from(ctx.status));
    line.text("outcome", outcome);
    ms(&mut line, "duration_ms", took);
    line.number("request_bytes", ctx.request_bytes as u64);
    line.number("response_bytes", session.body_bytes_sent() as u64);
    if let Some(call) = ctx.call.as_deref() {
        write_call(&mut line, call, ctx.started);
    }
    if let Some(fault) = &ctx.fault {
        line.object("error", |error| write_fault(error, fault));
    }
    line.close();
    out
}

fn write_call(line: &mut Object<'_>, call: &ModelExchange, started: Instant) {
    line.text("model", &call.request.model);
    line.text("used_model", &call.used_model());
    line.text(
        "provider",
        call.step().map_or("", |step| &step.upstream.name),
    );
    line.bool("stream", call.request.stream);
    line.array("attempts", &call.attempted, AttemptRecord::write);
    match call.first_content {
        Some(at) => ms(line, "first_event_ms", at.duration_since(started)),
        None => line.raw("first_event_ms", "null"),
    }
    let Some(settled) = &call.settled else { return };
    line.number("prompt_tokens", settled.usage.prompt);
    line.number("completion_tokens", settled.usage.completion);
    line.number("cached_tokens", settled.usage.cached);
    line.bool("estimated", settled.usage.estimated);
    let cost = settled.cost.as_ref().map(|cost| cost.total.to_string());
    line.text_or_null("cost", cost.as_deref());
}

fn write_fault(error: &mut Object<'_>, fault: &Fault) {
    error.text("type", fault.error_type());
    error.text_or_null("code", fault.code());
    error.text_or_null("param", fault.param.as_deref());
    error.text("message", &fault.message);
    error.optional_text(
        "detail",
        Some(&*fault.detail).filter(|detail| !detail.is_empty()),
    );
}

/// Milliseconds with three digits behind the point.
fn ms(line: &mut Object<'_>, key: &str, duration: Duration) {
    let us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    line.value(key, |out| {
        write_number(us / 1000, out);
        out.push(b'.');
        let digits = us % 1000;
        out.extend([digits / 100, digits / 10 % 10, digits % 10].map(|digit| b'0' + digit as u8));
    });
}
