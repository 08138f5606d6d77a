//! Ends a request: its metrics and its log line.

use pingora::{Error, ErrorSource};
use pingora_proxy::Session;

use super::access_log::{self, LineUses};
use super::buffered::session::BufferedSession;
use super::context::Context;
use super::exchange::End;
use super::failure::CLIENT_CLOSED_REQUEST;
use super::request_span;
use super::router::BodyRule;
use super::state::ProxyState;

/// Restores the real session and records the request. Pingora calls it once for every request.
pub fn finish(state: &ProxyState, session: &mut Session, error: Option<&Error>, ctx: &mut Context) {
    if let Some(slot) = ctx.slot.take() {
        BufferedSession::unwrap(session, &slot);
    }
    if let Some(head) = session.response_written() {
        ctx.status = head.status.as_u16();
    }
    let is_downstream = error.is_some_and(|error| *error.esource() == ErrorSource::Downstream);
    if is_downstream && session.downstream_session.is_http2() {
        let client = session.client_addr().and_then(|client| client.as_inet());
        client.inspect(|client| state.stream_resets.count(**client, ctx.info.now));
    }
    let end = End {
        error,
        is_client_disconnected: is_downstream && ctx.fault.is_none(),
    };
    let outcome = match &mut ctx.exchange {
        Some(exchange) => exchange.finish(&ctx.info, &end),
        None => "ok",
    };
    let outcome = outcome_of_status(ctx, outcome);
    // It stands among the calls that run, or among those that have ended.
    ctx.info.open_call = None;
    let route = state.router.get(ctx.info.route);
    let is_unread = route.is_none_or(|route| route.body == BodyRule::Unread);
    if is_unread && ctx.exchange.is_some() {
        ctx.info.body_bytes = session.body_bytes_read();
    }
    let name = route.map_or("none", |route| route.name);
    let (index, seconds) = (ctx.info.route, ctx.info.elapsed().as_secs_f64());
    let at = (&state.route_metrics, index);
    state.metrics.record_request(at, name, ctx.status, seconds);
    if let Some((trace, route)) = ctx.info.trace.as_deref().zip(route) {
        request_span::send(trace, session, ctx, (route, outcome));
    }
    let is_call = || {
        let is_billed = ctx.exchange.as_ref().is_some_and(|it| it.is_billed());
        is_billed || route.is_some_and(|route| route.handler.is_call())
    };
    let (exports, keeps) = (state.log_export.is_on(), state.calls.is_on());
    let is_call = (exports || keeps) && is_call();
    let uses = LineUses {
        is_exported: exports && is_call,
        is_kept: keeps && is_call,
    };
    if state.settings.writes_access_log || uses.is_exported || uses.is_kept {
        access_log::write_line((state, uses), (session, ctx), name, outcome);
    }
}

/// Returns the outcome of a request. For our own error responses it names the party at fault.
fn outcome_of_status(ctx: &Context, outcome: &'static str) -> &'static str {
    let is_ours = ctx.exchange.is_none() || ctx.fault.is_some();
    match (outcome, ctx.status) {
        ("ok" | "failed", 400..=498) if is_ours => "refused",
        ("ok", CLIENT_CLOSED_REQUEST) => "client_gone",
        ("ok", 500..) if is_ours => "failed",
        _ => outcome,
    }
}
