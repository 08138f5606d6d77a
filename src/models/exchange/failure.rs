//! When an attempt fails: whether the next one runs, and what the client is told if none does.

use std::sync::Arc;

use bytes::Bytes;
use filters::fault::{Fault, FaultKind};
use filters::ledger::CallOutcome;
use filters::limits::headers::Quota;
use filters::models::wires::{Failure, FailureKind};
use pingora::{Error, ErrorSource, ErrorType, Result};
use pingora_proxy::{FailToProxy, Session};
use tokio::time::Instant;

use super::{MAX_KEY_RETRIES, ModelExchange, billing, feedback, upstream_response};
use crate::app::state::AppState;
use crate::graph::exchange;
use crate::ledger::Receipt;
use crate::proxy::buffered::session::{ATTEMPT_ABORTED, BufferedSession, COST_NOT_RECORDED};
use crate::proxy::buffered::state::Stage;
use crate::proxy::context::Context;
use crate::proxy::response;
use crate::proxy::response::Response;

/// No connection to the provider.
pub fn connect(house: &AppState, ctx: &mut Context, mut error: Box<Error>) -> Box<Error> {
    if let Some(call) = &mut ctx.graph {
        return exchange::connect(call, error);
    }
    let kind = match error.etype() {
        ErrorType::ConnectTimedout | ErrorType::TLSHandshakeTimedout => FailureKind::Timeout,
        _ => FailureKind::Connect,
    };
    let goes_on = next(house, ctx, Failure::new(kind));
    error.set_retry(goes_on);
    error
}

/// The connection or the answer broke, or a hook or a timer of ours gave the attempt up.
pub fn broke(
    house: &AppState,
    session: &Session,
    ctx: &mut Context,
    mut error: Box<Error>,
    was_reused: bool,
) -> Box<Error> {
    if ctx.graph.is_some() {
        return exchange::midway(session, error, was_reused);
    }
    error.set_retry(false);
    let Some(call) = ctx.call.as_deref_mut() else {
        return error;
    };
    let found = call.watch.take_failure();
    let is_ours = *error.etype() == ATTEMPT_ABORTED;
    if found.is_none() && !is_ours && *error.esource() == ErrorSource::Downstream {
        return error;
    }
    if call.receiving.is_complete() {
        return error;
    }
    let is_held = call.watch.stage() == Stage::Held;
    // A kept connection that the provider closed meanwhile says nothing about the provider.
    if found.is_none() && !is_ours && was_reused && is_held && !call.was_repeated {
        call.was_repeated = true;
        call.tried_keys &= !(1 << (call.key % 64));
        error.set_retry(true);
        return error;
    }
    let failure = found.unwrap_or_else(|| of(&error, is_held));
    let goes_on = next(house, ctx, failure);
    error.set_retry(goes_on);
    error
}

/// The failure behind an error of Pingora's.
fn of(error: &Error, is_held: bool) -> Failure {
    match error.etype() {
        ErrorType::ReadTimedout | ErrorType::WriteTimedout => Failure::new(FailureKind::Timeout),
        ErrorType::InvalidHTTPHeader => Failure::malformed("the provider's reply is not HTTP"),
        _ if *error.etype() == ATTEMPT_ABORTED => {
            Failure::malformed("the provider's reply is empty")
        }
        _ if is_held => Failure::new(FailureKind::Connect),
        _ => Failure::new(FailureKind::Truncated),
    }
}

/// Records a failed attempt and moves on to the next; answers whether there is one.
fn next(house: &AppState, ctx: &mut Context, failure: Failure) -> bool {
    let Some(call) = ctx.call.as_deref_mut() else {
        return false;
    };
    if let Some(record) = call.record(Some(&failure)) {
        house.metrics.attempt(
            &record,
            call.step()
                .map_or("other", |step| feedback::model_label(step)),
        );
        call.attempted.push(record);
    }
    feedback::failure(house, call, &failure);
    let is_over = call.watch.stage() != Stage::Held
        || call.watch.is_over(Instant::now())
        || call.watch.has_left();
    let goes_on = failure.is_retryable && !is_over && advance(call, &failure);
    call.failures.push(failure);
    goes_on
}

/// Another key of the same provider where the failure is about the key, else the next provider.
fn advance(call: &mut ModelExchange, failure: &Failure) -> bool {
    let keys = call.step().map_or(0, |step| step.keys.len());
    let untried = (0..keys.min(64)).any(|key| call.tried_keys & (1 << key) == 0);
    if failure.is_about_the_key() && untried && call.other_keys < MAX_KEY_RETRIES {
        call.other_keys += 1;
        return true;
    }
    if call.at + 1 >= call.steps.len() {
        return false;
    }
    call.at += 1;
    call.tried_keys = 0;
    call.other_keys = 0;
    call.was_repeated = false;
    true
}

/// Tells the client that no attempt succeeded, or that the answer broke off.
pub async fn report(
    house: &AppState,
    session: &mut Session,
    error: &Error,
    ctx: &mut Context,
) -> FailToProxy {
    if let Some(slot) = &ctx.slot {
        BufferedSession::unwrap(session, &Arc::clone(slot));
    }
    if ctx.graph.is_some() && ctx.fault.is_none() {
        ctx.fault = exchange::fault(house, session, error);
    }
    if *error.etype() == COST_NOT_RECORDED {
        let message = "the answer cannot be accounted for at the moment";
        ctx.fault = Some(Fault::new(FaultKind::Unavailable, message));
    }
    let is_clients =
        *error.esource() == ErrorSource::Downstream && *error.etype() != ATTEMPT_ABORTED;
    if is_clients && ctx.fault.is_none() {
        ctx.status = if session.response_written().is_some() {
            ctx.status
        } else {
            499
        };
        return FailToProxy {
            error_code: 0,
            can_reuse_downstream: false,
        };
    }
    let sent = match ctx
        .call
        .as_deref()
        .map(|call| call.receiving.is_complete() && call.watch.is_head_sent())
        .map(|is_complete| is_complete && *error.etype() != COST_NOT_RECORDED)
    {
        Some(true) => finish(session).await,
        _ => explain(session, ctx).await,
    };
    FailToProxy {
        error_code: if sent.is_ok() { ctx.status } else { 0 },
        can_reuse_downstream: false,
    }
}

/// Ends the body of an answer that is complete though the provider's connection is not.
async fn finish(session: &mut Session) -> Result<()> {
    session.write_response_body(None, true).await
}

async fn explain(session: &mut Session, ctx: &mut Context) -> Result<()> {
    let is_head_sent = session
        .response_written()
        .is_some_and(|head| !head.status.is_informational());
    let fault = ctx
        .fault
        .take()
        .unwrap_or_else(|| final_fault(ctx.call.as_deref()));
    let sent = if is_head_sent && ctx.graph.is_some() {
        // The answer is cut off where it is: no end is made up for it.
        Ok(())
    } else if is_head_sent {
        let event = match ctx.call.as_deref_mut() {
            Some(call) => {
                let (event, ticket) = broken(call, &fault, ctx.started);
                // The last byte waits for it; that the answer broke off is told in any case.
                _ = ticket.is_durable().await;
                event
            }
            None => Bytes::new(),
        };
        session.write_response_body(Some(event), true).await
    } else {
        ctx.status = fault.status();
        session.set_keepalive(None);
        let mut answer = match &ctx.graph {
            Some(call) => Response::graph(&fault, call.headers()),
            None => Response::from(&fault),
        };
        answer
            .headers
            .extend(ctx.quota.iter().flat_map(Quota::headers));
        response::send(session, answer, ctx.request_id.header()).await
    };
    ctx.fault = Some(fault);
    sent
}

/// The error event that ends a broken stream, behind what was ready to go out before it; and what tells when its
/// cost is safe.
fn broken(call: &mut ModelExchange, fault: &Fault, started: Instant) -> (Bytes, Receipt) {
    let has_begun = call.watch.stage() != Stage::Held;
    let mut ticket = Receipt::ready();
    let usage = has_begun.then(|| {
        ticket = billing::settle(call, CallOutcome::Broken, started);
        upstream_response::usage(call)
    });
    let event = match call.receiving.stream_mut() {
        Some(stream) => {
            if !has_begun {
                stream.take();
            }
            stream.fail(fault, usage.as_deref());
            stream.take().into()
        }
        None => Bytes::new(),
    };
    (event, ticket)
}

/// What the client is told when no attempt is left. Source: docs/promises.md, docs/decisions.md 5.
fn final_fault(call: Option<&ModelExchange>) -> Fault {
    let Some(last) = call.and_then(|call| call.failures.last()) else {
        return Fault::new(
            FaultKind::Internal,
            "the request could not be sent to a provider",
        );
    };
    let failures = call.map_or(&[][..], |call| &call.failures);
    if call.is_some_and(|call| call.watch.stage() != Stage::Held) {
        return broken_off(last);
    }
    let all_said = |status| {
        failures
            .iter()
            .all(|failure| failure.kind == FailureKind::Status(status))
    };
    let with_message = |text: &str| match &*last.message {
        "" => text.to_owned(),
        message => format!("{text}: {message}"),
    };
    match last.kind {
        FailureKind::Status(status) if !last.is_retryable => {
            let mut fault = Fault::new(
                FaultKind::Invalid,
                with_message("the provider refused the request"),
            )
            .with_status(status);
            fault.param = last.param.as_deref().map(str::to_owned);
            match &last.code {
                Some(code) => fault.with_code(code.to_string()),
                None => fault,
            }
        }
        FailureKind::Connect => {
            Fault::new(FaultKind::ConnectFailed, "no provider could be reached")
        }
        FailureKind::Timeout | FailureKind::Status(408 | 504) => {
            Fault::new(FaultKind::UpstreamTimeout, "no provider answered in time")
        }
        FailureKind::Status(status @ 403) if all_said(status) => Fault::new(
            FaultKind::Forbidden,
            with_message("the provider does not allow this request"),
        ),
        FailureKind::Status(status @ 404) if all_said(status) => Fault::new(
            FaultKind::NotFound,
            with_message("the provider does not know this model"),
        ),
        FailureKind::Status(425 | 429 | 503 | 529) => Fault::new(
            FaultKind::UpstreamUnavailable,
            "every provider is overloaded or unavailable",
        ),
        _ => Fault::new(FaultKind::UpstreamFailed, "every provider failed"),
    }
}

/// What ends a stream that broke off behind its first content. Source: docs/promises.md.
fn broken_off(failure: &Failure) -> Fault {
    match failure.kind {
        FailureKind::Timeout => Fault::new(
            FaultKind::UpstreamTimeout,
            "the provider stopped sending in the middle of its answer",
        ),
        _ if !failure.message.is_empty() => Fault::new(
            FaultKind::StreamTruncated,
            format!("the provider's answer broke off: {}", failure.message),
        ),
        _ => Fault::new(
            FaultKind::StreamTruncated,
            "the provider's answer broke off",
        ),
    }
}
