//! When an attempt fails: whether the next one starts, and what the client gets if none does.

use std::sync::Arc;

use bytes::Bytes;
use filters::fault::{Fault, FaultKind};
use filters::json::Object;
use filters::ledger::CallOutcome;
use filters::models::metadata::AttemptRecord;
use filters::models::wires::{Failure, FailureKind, opaque};
use pingora::{Error, ErrorSource, ErrorType};

use super::{
    MAX_KEY_RETRIES, MAX_KEYS, ModelExchange, PlannedAttempt, billing, cancelled, feedback,
    hedging, parts,
};
use crate::proxy::buffered::error_types::{ATTEMPT_ABORTED, COST_NOT_RECORDED};
use crate::proxy::buffered::state::{Gate, Stage};
use crate::proxy::context::RequestInfo;
use crate::proxy::exchange::{Broken, Report, Write};
use crate::proxy::failure::is_client_error;

/// Records that no connection to the provider could be made.
pub(super) fn connect_failed(
    exchange: &mut ModelExchange,
    info: &RequestInfo,
    mut error: Box<Error>,
) -> Box<Error> {
    let goes_on = next(exchange, info, not_connected(error.etype()));
    error.set_retry(goes_on);
    error
}

/// Returns the failure of a connection that could not be made. Pingora's own words hold addresses, so ours replace them.
fn not_connected(error: &ErrorType) -> Failure {
    let (kind, cause) = match error {
        ErrorType::ConnectTimedout => (FailureKind::Timeout, "connecting"),
        ErrorType::TLSHandshakeTimedout => (FailureKind::Timeout, "the TLS handshake"),
        ErrorType::ConnectRefused => (FailureKind::Connect, "refused"),
        ErrorType::ConnectNoRoute => (FailureKind::Connect, "no route"),
        ErrorType::TLSHandshakeFailure => (FailureKind::Connect, "the TLS handshake failed"),
        ErrorType::InvalidCert => (FailureKind::Connect, "the certificate is not valid"),
        ErrorType::SocketError | ErrorType::BindError => {
            (FailureKind::Connect, "no socket is left on this machine")
        }
        _ => (
            FailureKind::Connect,
            "the name or the address leads nowhere",
        ),
    };
    Failure::new(kind).because(cause)
}

/// Records that the connection or the reply broke, or that a hook or a timer of ours aborted the attempt.
pub(super) fn broke(
    exchange: &mut ModelExchange,
    info: &RequestInfo,
    mut error: Box<Error>,
    broken: Broken,
) -> Box<Error> {
    error.set_retry(false);
    if let Some(follows) = parts::next(exchange, info) {
        error.set_retry(follows);
        return error;
    }
    if hedging::give_way(exchange, info) {
        error.set_retry(true);
        return error;
    }
    let timeout = exchange.state.take_timeout();
    let timeout = timeout.then(|| Failure::new(FailureKind::Timeout));
    let is_ours = *error.etype() == ATTEMPT_ABORTED;
    let is_clients = !is_ours && *error.esource() == ErrorSource::Downstream;
    // A refusal whose reason did not come is still one.
    let refusal = exchange.reader.take_refusal().filter(|_| !is_clients);
    let found = exchange.log.aborted.take().or(refusal).or(timeout);
    if found.is_none() && is_clients {
        return error;
    }
    if exchange.reader.is_complete() {
        return error;
    }
    let is_pending = exchange.state.stage() == Stage::Pending;
    let cursor = &mut exchange.cursor;
    // A reused connection that the provider had closed is not a failure. If it closes in the middle of a reply, it has
    // worked on the call, and would bill a repeated one as well.
    let is_unanswered = is_pending && !exchange.state.has_reply() && !has_read_bytes(&error);
    let is_alone = !exchange
        .hedge
        .as_ref()
        .is_some_and(|hedge| hedge.is_beside());
    let is_stale = broken.was_reused && is_unanswered && is_alone;
    if found.is_none() && !is_ours && is_stale && !cursor.was_repeated {
        cursor.was_repeated = true;
        cursor.keeps_key = true;
        error.set_retry(true);
        return error;
    }
    let found = found.or_else(|| hedging::take_failure(exchange));
    let failure = found.unwrap_or_else(|| from_error(&error, is_pending));
    let goes_on = next(exchange, info, failure);
    error.set_retry(goes_on);
    error
}

/// Returns whether the connection broke inside the head of a reply. Pingora says so in words alone.
fn has_read_bytes(error: &Error) -> bool {
    let context = error
        .context
        .as_ref()
        .map_or("", |context| context.as_str());
    let read = context.rsplit_once("bytes already read: ");
    read.is_some_and(|(_, count)| count != "0")
}

/// Returns the failure behind the error of a call of our own.
pub(super) fn of_call(error: &Error, is_pending: bool) -> Failure {
    match error.etype() {
        connecting @ (ErrorType::ConnectTimedout
        | ErrorType::TLSHandshakeTimedout
        | ErrorType::ConnectRefused
        | ErrorType::ConnectNoRoute
        | ErrorType::TLSHandshakeFailure
        | ErrorType::InvalidCert
        | ErrorType::SocketError
        | ErrorType::BindError
        | ErrorType::ConnectError) => not_connected(connecting),
        _ => from_error(error, is_pending),
    }
}

/// Returns the failure behind an error of Pingora's.
fn from_error(error: &Error, is_pending: bool) -> Failure {
    match error.etype() {
        ErrorType::ReadTimedout | ErrorType::WriteTimedout => Failure::new(FailureKind::Timeout),
        ErrorType::InvalidHTTPHeader => Failure::malformed("the provider's reply is not HTTP"),
        _ if *error.etype() == ATTEMPT_ABORTED => {
            Failure::malformed("the provider's reply is empty")
        }
        _ if is_pending => {
            Failure::new(FailureKind::Connect).because("it broke before the reply began")
        }
        _ => Failure::new(FailureKind::Truncated),
    }
}

/// Records a failed attempt and moves on to the next; returns whether there is one.
pub(super) fn next(exchange: &mut ModelExchange, info: &RequestInfo, failure: Failure) -> bool {
    record(exchange, &failure);
    let moves_endpoint = feedback::record_failure(exchange, info, &failure);
    let state = &exchange.state;
    let is_over =
        state.stage() != Stage::Pending || state.is_expired(info.now) || state.is_disconnected();
    // A failed attempt costs nothing. If its client has left and the time for its reply is over, it has not failed.
    if !(state.is_disconnected() && failure.kind == FailureKind::Timeout) {
        state.record_failure();
    }
    let goes_on = !is_over
        && (failure.is_retryable && hedging::go_on(exchange)
            || repeat_without_state(exchange, &failure)
            || repeat_elsewhere(exchange, moves_endpoint)
            || failure.is_retryable && advance(exchange, &failure));
    exchange.log.failures.push(failure);
    goes_on
}

/// Adds a failed attempt to those that have ended.
pub(super) fn record(exchange: &mut ModelExchange, failure: &Failure) {
    let Some(record) = exchange.record(Some(failure)) else {
        return;
    };
    if let Some(deployment) = exchange.deployment() {
        deployment.metrics.count_attempt(&record);
    }
    exchange.log.records.push(record);
}

/// Repeats the attempt once, with the same key, without the state that the provider refuses; returns whether it does.
///
/// The state of a turn is good for its model alone, often for its account alone, and not for ever. The conversation goes
/// on without it.
fn repeat_without_state(exchange: &mut ModelExchange, failure: &Failure) -> bool {
    let body = &exchange.request.source.body;
    let cursor = &mut exchange.cursor;
    if !failure.refuses_state || cursor.without_state || !opaque::may_be_in(body) {
        return false;
    }
    cursor.without_state = true;
    cursor.keeps_key = true;
    true
}

/// Repeats the attempt, with the same key, at another endpoint of its provider, if there is one to move to; returns whether it
/// does.
fn repeat_elsewhere(exchange: &mut ModelExchange, moves_endpoint: bool) -> bool {
    if !moves_endpoint {
        return false;
    }
    let cursor = &mut exchange.cursor;
    cursor.endpoint_retries += 1;
    cursor.keeps_key = true;
    true
}

/// Moves on to another key of the same provider where the failure is about the key, else to the next provider.
fn advance(exchange: &mut ModelExchange, failure: &Failure) -> bool {
    let keys = exchange.attempt().map_or(0, |attempt| attempt.keys.len());
    let cursor = &mut exchange.cursor;
    let has_unused = (0..keys.min(MAX_KEYS)).any(|key| cursor.used_keys & (1 << key) == 0);
    if failure.is_about_the_key() && has_unused && cursor.key_retries < MAX_KEY_RETRIES {
        cursor.key_retries += 1;
        return true;
    }
    let Some(next) = exchange.attempts.get(cursor.attempt + 1) else {
        return false;
    };
    // The first fallback needs no budget.
    if cursor.attempt > cursor.unsaid && !exchange.running.try_later_fallback() {
        exchange.models.metrics.fallbacks_refused.inc();
        exchange.log.records.push(not_attempted(next));
        return false;
    }
    billing::abandon_parts(exchange);
    let cursor = &mut exchange.cursor;
    *cursor = super::Cursor {
        attempt: cursor.attempt + 1,
        key: cursor.key,
        unsaid: cursor.unsaid,
        ..super::Cursor::default()
    };
    true
}

/// Returns the entry of `metadata.routing` for an attempt that the retry budget refused.
fn not_attempted(attempt: &PlannedAttempt) -> AttemptRecord {
    AttemptRecord {
        used: Arc::clone(&attempt.deployment.used),
        status_code: 0,
        error_type: "retry_budget_exceeded",
        succeeded: false,
        api_key_hash: None,
        credential_source: if attempt.is_byok() {
            "byok"
        } else {
            "platform"
        },
        provider_key: None,
        owed: None,
    }
}

/// Returns what the client gets when no attempt is left, or when the response broke off.
pub(super) fn report(
    exchange: &mut ModelExchange,
    info: &RequestInfo,
    error: &Error,
    is_head_sent: bool,
) -> Report {
    let is_unrecorded = *error.etype() == COST_NOT_RECORDED;
    let pending = exchange.fault.take().or_else(|| {
        let message = "the answer cannot be accounted for at the moment";
        is_unrecorded.then(|| Fault::new(FaultKind::Unavailable, message))
    });
    if is_client_error(error) && pending.is_none() {
        return Report {
            fault: None,
            write: Write::Nothing,
        };
    }
    if exchange.reader.is_complete() && exchange.state.is_head_sent() && !is_unrecorded {
        // The response is complete, though the provider's connection is not.
        return Report {
            fault: pending,
            write: Write::EndBody,
        };
    }
    let fault = match pending {
        Some(fault) => exchange.explain(fault),
        None => with_routing(final_fault(exchange), exchange),
    };
    let fault = exchange.request.front.explain(fault);
    if exchange.timing.first_content.is_none() && !exchange.log.failures.is_empty() {
        billing::record_failure(exchange, info);
    }
    let write = if is_head_sent {
        match error_event(exchange, info, &fault) {
            // The response cannot say that it broke: it must not look complete.
            (event, _) if event.is_empty() => Write::Nothing,
            (event, gate) => Write::Tail(event, gate),
        }
    } else {
        Write::Error
    };
    Report {
        fault: Some(fault),
        write,
    }
}

/// Adds the attempts to the fault of a call that was never answered, and why they were chosen, if the client wants to know.
/// Source: docs/decisions.md 14, 42.
fn with_routing(fault: Fault, exchange: &ModelExchange) -> Fault {
    let records = &exchange.log.records;
    if records.is_empty() || exchange.state.stage() != Stage::Pending {
        return exchange.explain(fault);
    }
    let mut metadata = Vec::new();
    let mut object = Object::open(&mut metadata);
    object.array("routing", records, AttemptRecord::write);
    if let Some(route) = exchange.route() {
        object.value("route", |out| out.extend_from_slice(&route));
    }
    object.close();
    fault.with_metadata(metadata)
}

/// Returns the error event that ends a broken stream, behind what was ready to go out before it, and the gate that waits
/// until its cost is recorded.
fn error_event(
    exchange: &mut ModelExchange,
    info: &RequestInfo,
    fault: &Fault,
) -> (Bytes, Option<Gate>) {
    let has_content = exchange.state.stage() != Stage::Pending;
    let mut gate: Option<Gate> = None;
    if has_content {
        // What came of a text is delivered, but not repaired: it would look whole.
        exchange.reader.end_text(false);
        let receipt = billing::settle(exchange, info, CallOutcome::Broken);
        gate = cancelled::gate(exchange, receipt, None);
    }
    let settlement = exchange.billing.settlement().filter(|_| has_content);
    let Some(writer) = exchange.reader.writer_mut() else {
        return (Bytes::new(), gate);
    };
    if !has_content {
        writer.take();
    }
    writer.fail(fault, settlement);
    (writer.take(), gate)
}

/// Returns the fault of a call whose attempts have all failed. Source: docs/promises.md; docs/decisions.md 5.
fn final_fault(exchange: &ModelExchange) -> Fault {
    let failures = &exchange.log.failures;
    let Some(last) = failures.last() else {
        return Fault::new(
            FaultKind::Internal,
            "the request could not be sent to a provider",
        );
    };
    if exchange.state.stage() != Stage::Pending {
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
            let kind = Failure::refusal(status);
            let mut fault = Fault::new(kind, with_message("the provider refused the request"));
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

/// Returns the fault that ends a stream behind its first content. Source: docs/promises.md.
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
