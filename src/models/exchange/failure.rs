//! Failed attempts: decides whether the next attempt starts, and what the client gets if none does.

use std::sync::Arc;

use bytes::Bytes;
use filters::fault::{Fault, FaultKind};
use filters::fault_code::FaultCode;
use filters::json::Object;
use filters::ledger::CallOutcome;
use filters::models::metadata::AttemptRecord;
use filters::models::wires::{Failure, FailureKind};
use pingora::{Error, ErrorSource, ErrorType};

use super::ModelExchange;
use super::planned_attempt::PlannedAttempt;
use crate::proxy::buffered::error_types::{ATTEMPT_ABORTED, COST_NOT_RECORDED};
use crate::proxy::buffered::state::{Gate, Stage};
use crate::proxy::context::RequestInfo;
use crate::proxy::exchange::{Broken, Report, Write};
use crate::proxy::failure::is_client_error;

impl ModelExchange {
    /// Returns whether another attempt starts after a connection to the provider failed.
    pub(super) fn handle_connect_failure(&mut self, info: &RequestInfo, error: &Error) -> bool {
        self.fail(info, not_connected(error.etype()))
    }

    /// Returns whether another attempt starts after the connection or the reply broke, or after a hook or a timer of
    /// ours aborted the attempt.
    pub(super) fn handle_break(
        &mut self,
        info: &RequestInfo,
        error: &Error,
        broken: Broken,
    ) -> bool {
        if let Some(follows) = self
            .next_part(info)
            .or_else(|| self.goes_on_with_turn(info))
        {
            return follows;
        }
        if self.give_way(info) {
            return true;
        }
        let (call, running) = (&mut self.call, &mut self.running);
        let timeout = self.state.take_timeout();
        let timeout = timeout.then(|| Failure::new(FailureKind::Timeout));
        let is_ours = *error.etype() == ATTEMPT_ABORTED;
        let is_clients = !is_ours && *error.esource() == ErrorSource::Downstream;
        // A refusal stays a refusal if its reason did not arrive.
        let refusal = running.reader.take_refusal().filter(|_| !is_clients);
        let found = call.log.aborted.take().or(refusal).or(timeout);
        if (found.is_none() && is_clients) || running.reader.is_complete() {
            return false;
        }
        let is_pending = self.state.stage() == Stage::Pending;
        // A closed reused connection is not a failure. If it closes in the middle of a reply, the provider has worked
        // on the call and would also bill a repetition.
        let is_unanswered = is_pending && !self.state.has_reply() && !has_read_bytes(error);
        let is_alone = !self.hedge.as_ref().is_some_and(|hedge| hedge.is_beside());
        let is_stale = broken.was_reused && is_unanswered && is_alone;
        let cursor = &mut running.cursor;
        if found.is_none() && !is_ours && is_stale && !cursor.was_repeated {
            cursor.was_repeated = true;
            cursor.keeps_key = true;
            return true;
        }
        let found = found.or_else(|| self.take_hedge_failure());
        let failure = found.unwrap_or_else(|| from_error(error, is_pending));
        self.fail(info, failure)
    }

    /// Records a failed attempt and moves to the next one. Returns whether there is one.
    pub(super) fn fail(&mut self, info: &RequestInfo, failure: Failure) -> bool {
        let now_ms = self.now_ms(info);
        let (call, running, state) = (&mut self.call, &mut self.running, &self.state);
        running.record_end(call, info, &failure, None);
        // What a fresh credential repairs says nothing about the provider.
        let renews = running.repeat_signed_in_anew(call, &failure);
        let moves_endpoint =
            !renews && running.record_failure(call, &self.models, &failure, now_ms);
        let is_over = state.stage() != Stage::Pending
            || state.is_expired(info.now)
            || state.is_disconnected();
        // A failed attempt costs nothing. An attempt whose client has left, and whose reply took too long, has not
        // failed.
        if !(state.is_disconnected() && failure.kind == FailureKind::Timeout) {
            state.record_failure();
        }
        let goes_on = !is_over
            && (failure.is_retryable && self.continue_with_hedge()
                || renews
                || self.running.repeat_without_state(&self.call, &failure)
                || self.running.repeat_elsewhere(moves_endpoint)
                || failure.is_retryable && self.advance(&failure));
        self.call.log.failures.push(failure);
        goes_on
    }

    /// Moves to another key of the same provider if the failure is about the key, and otherwise to the next provider.
    fn advance(&mut self, failure: &Failure) -> bool {
        let (call, running) = (&mut self.call, &mut self.running);
        if running.repeat_with_next_key(call, failure) {
            return true;
        }
        let cursor = &running.cursor;
        let Some(next) = call.attempts.get(cursor.attempt + 1) else {
            return false;
        };
        // The first fallback needs no budget.
        if cursor.attempt > cursor.unsaid && !call.budget.try_later_fallback() {
            self.models.metrics.fallbacks_refused.inc();
            call.log.records.push(not_attempted(next));
            return false;
        }
        call.billing.abandon_parts(running.is_byok(call));
        running.advance();
        true
    }

    /// Returns the report for the client if no attempt is left or the response broke off.
    pub(super) fn final_report(
        &mut self,
        info: &RequestInfo,
        error: &Error,
        is_head_sent: bool,
    ) -> Report {
        let is_unrecorded = *error.etype() == COST_NOT_RECORDED;
        let unkept = || self.call.unkept.get().cloned();
        let unrecorded = || {
            let message = "the answer cannot be accounted for at the moment";
            is_unrecorded.then(|| Fault::new(FaultKind::Unavailable, message))
        };
        let pending = self.call.fault.take().or_else(unkept).or_else(unrecorded);
        if is_client_error(error) && pending.is_none() {
            return Report {
                fault: None,
                write: Write::Nothing,
            };
        }
        if self.running.reader.is_complete() && self.state.is_head_sent() && !is_unrecorded {
            // The response is complete, although the provider's connection is still open.
            return Report {
                fault: pending,
                write: Write::EndBody,
            };
        }
        let fault = match pending {
            Some(fault) => self.call.explain(fault),
            None => self.with_routing(self.final_fault(self.now_ms(info))),
        };
        let fault = self.call.request.front.explain(fault);
        if self.call.timing.first_content.is_none() && !self.call.log.failures.is_empty() {
            self.record_failed_experiment(info);
        }
        let write = if is_head_sent {
            match self.error_event(info, &fault) {
                // The response cannot state the error, so it must not look complete.
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

    /// Adds the attempts, and the reasons of the plan if the client asks for them, to the fault of a call without a
    /// response. Source: docs/decisions.md 14, 42.
    fn with_routing(&self, fault: Fault) -> Fault {
        let records = &self.call.log.records;
        if records.is_empty() || self.state.stage() != Stage::Pending {
            return self.call.explain(fault);
        }
        let mut metadata = Vec::new();
        let mut object = Object::open(&mut metadata);
        object.array("routing", records, AttemptRecord::write);
        if let Some(route) = self.call.route() {
            object.value("route", |out| out.extend_from_slice(&route));
        }
        object.close();
        fault.with_metadata(metadata)
    }

    /// Returns the error event that ends a broken stream, after the bytes that are ready before it, and the gate that
    /// waits until the cost is recorded.
    fn error_event(&mut self, info: &RequestInfo, fault: &Fault) -> (Bytes, Option<Gate>) {
        let has_content = self.state.stage() != Stage::Pending;
        let mut gate: Option<Gate> = None;
        if has_content {
            // Received text is delivered but not repaired, because it would look complete.
            self.running.reader.end_text(false);
            let receipt = self.settle(info, CallOutcome::Broken);
            gate = self.gate(receipt, None);
        }
        let settlement = self.call.billing.total().filter(|_| has_content);
        let Some(writer) = self.running.reader.writer_mut() else {
            return (Bytes::new(), gate);
        };
        if !has_content {
            writer.take();
        }
        writer.fail(fault, settlement.as_deref());
        (writer.take(), gate)
    }

    /// Returns the fault of a call whose attempts have all failed. Source: docs/promises-tests.md; docs/decisions.md 5.
    fn final_fault(&self, now_ms: u64) -> Fault {
        let failures = &self.call.log.failures;
        let Some(last) = failures.last() else {
            return Fault::new(
                FaultKind::Internal,
                "the request could not be sent to a provider",
            );
        };
        if self.state.stage() != Stage::Pending {
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
        if let Some(fault) = self.fault_of_own_credential(last, now_ms) {
            return fault;
        }
        match last.kind {
            FailureKind::Status(status) if !last.is_retryable => {
                let kind = Failure::refusal(status);
                let mut fault = Fault::new(kind, with_message("the provider refused the request"));
                fault.param = last.param.as_deref().map(str::to_owned);
                match &last.code {
                    Some(code) => fault.with_provider_code(code.clone()),
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
}

/// The most that clients are told to wait. A vendor may say hours, and clients would wait as long.
const MAX_WAIT_S: u32 = 60;

impl ModelExchange {
    /// Returns the fault of a call whose last failure is about the credential that the caller has brought: the vendor refuses it,
    /// or its limit is used up. Clients sign in anew, or wait, by these statuses. `None`: it is about something else.
    fn fault_of_own_credential(&self, last: &Failure, now_ms: u64) -> Option<Fault> {
        let planned = self.running.planned(&self.call)?;
        let vendor = planned.keys.passed()?.vendor().title();
        let said = match &*last.message {
            "" => String::new(),
            message => format!(": {message}"),
        };
        match last.kind {
            FailureKind::Status(401) => {
                let message =
                    format!("{vendor} refuses the credential that came beside the API key{said}");
                let fault = Fault::new(FaultKind::Unauthenticated, message);
                Some(fault.with_code(FaultCode::OwnCredentialRefused))
            }
            FailureKind::Status(429) => {
                let message = format!(
                    "the limit of the caller's own credential at {vendor} is reached{said}"
                );
                let fault = Fault::new(FaultKind::RateLimited, message);
                let fault = fault.with_code(FaultCode::VendorLimitReached);
                let until_ms = planned.keys.rest_until_ms(planned.deployment.id, now_ms);
                let wait_s = until_ms.map(|until| until.saturating_sub(now_ms).div_ceil(1000));
                let wait_s = wait_s.map(|wait_s| u32::try_from(wait_s).unwrap_or(u32::MAX));
                let wait_s = wait_s.map(|wait_s| wait_s.min(MAX_WAIT_S));
                Some(match wait_s {
                    Some(wait_s) => fault.with_retry_after_s(wait_s),
                    None => fault,
                })
            }
            _ => None,
        }
    }
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
        ran: None,
    }
}

/// Returns the failure of a failed connection. Pingora's own text contains addresses, so ours replaces it.
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

/// Returns whether the connection broke inside the head of a reply. Only the text of Pingora's error tells that.
fn has_read_bytes(error: &Error) -> bool {
    let context = error
        .context
        .as_ref()
        .map_or("", |context| context.as_str());
    let read = context.rsplit_once("bytes already read: ");
    read.is_some_and(|(_, count)| count != "0")
}

/// Returns the failure behind the error of one of our own calls.
pub(super) fn from_call_error(error: &Error, is_pending: bool) -> Failure {
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

/// Returns the failure behind one of Pingora's errors.
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

/// Returns the fault that ends a stream after its first content. Source: docs/promises-tests.md.
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
