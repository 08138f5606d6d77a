//! The one log line of a request. It holds no body, no secret and no query. Source: docs/interface.md, Logs.

use std::cell::Cell;

use filters::fault::Fault;
use filters::json::Object;
use pingora_proxy::Session;

use super::context::Context;
use super::exchange::{LogPart, log_ms};
use crate::telemetry::logging::{self, AccessLog};

thread_local! {
    /// The memory of the last line of this worker, which the next one uses again.
    static LINE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Writes the log line of a request that has ended.
pub(super) fn write_line(
    access_log: &AccessLog,
    session: &Session,
    ctx: &Context,
    route: &str,
    outcome: &str,
) {
    // If formatting a line writes another one, that one finds an empty vector here.
    let mut line = LINE.take();
    line.clear();
    format_line(&mut line, session, ctx, (route, outcome));
    access_log.send(&line);
    LINE.set(line);
}

fn format_line(
    out: &mut Vec<u8>,
    session: &Session,
    ctx: &Context,
    (route, outcome): (&str, &str),
) {
    let mut line = Object::open(out);
    let info = &ctx.info;
    logging::write_time(&mut line, info.unix_us());
    let is_server_error = ctx.status >= 500;
    line.text("level", if is_server_error { "warn" } else { "info" });
    line.text("request_id", info.id.as_str());
    line.text("route", route);
    line.text("method", session.req_header().method.as_str());
    if let Some(caller) = &info.caller {
        line.text("organization", &caller.organization);
        line.text("project", &caller.project);
        line.text("key_id", &caller.key_id);
    }
    if let Some(exchange) = &ctx.exchange {
        exchange.log(info, LogPart::BeforeStatus, &mut line);
    }
    line.number("status", u64::from(ctx.status));
    line.text("outcome", outcome);
    log_ms(&mut line, "duration_ms", info.elapsed());
    line.number("request_bytes", info.body_bytes as u64);
    line.number("response_bytes", session.body_bytes_sent() as u64);
    if let Some(exchange) = &ctx.exchange {
        exchange.log(info, LogPart::AfterSizes, &mut line);
    }
    if let Some(fault) = &ctx.fault {
        line.object("error", |error| write_fault(error, fault));
    }
    line.close();
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
