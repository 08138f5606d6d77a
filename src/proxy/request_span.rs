//! The span of a request in its trace.

use pingora_proxy::Session;

use super::context::Context;
use super::router::Route;
use crate::telemetry::traces::RequestTrace;
use crate::telemetry::traces::names;
use crate::telemetry::traces::span::{SpanDraft, SpanTimes};

/// Exports the span of a request that has ended.
pub(super) fn send(
    trace: &RequestTrace,
    session: &Session,
    ctx: &Context,
    (route, outcome): (&Route, &'static str),
) {
    let info = &ctx.info;
    let method = session.req_header().method.as_str();
    let times = SpanTimes {
        start_ns: info.unix_ns_at(info.started),
        end_ns: info.unix_ns_at(info.now),
    };
    let name = format!("{method} {}", route.path);
    let mut span = SpanDraft::of_request(trace, &name, times);
    span.text(names::HTTP_METHOD, method);
    span.text(names::HTTP_ROUTE, route.path);
    if ctx.status > 0 {
        span.number(names::HTTP_STATUS, ctx.status.into());
    }
    span.text(names::ROUTE, route.name);
    span.text(names::REQUEST_ID, info.id.as_str());
    span.text(names::OUTCOME, outcome);
    if let Some(caller) = &info.caller {
        span.text(names::ORGANIZATION, &caller.organization);
        span.text(names::PROJECT, &caller.project);
        span.text(names::KEY_ID, &caller.key_id);
    }
    if let Some(exchange) = &ctx.exchange {
        exchange.trace(&mut span);
    }
    // A fault of the client is none of ours.
    if ctx.status >= 500 || matches!(outcome, "failed" | "broken") {
        let fault = ctx.fault.as_ref();
        span.fail(fault.map_or(outcome, |fault| fault.code().unwrap_or(fault.error_type())));
    }
    trace.send(span.finish());
}
