//! The provider's response: its status, and its events or whole reply, which become the client's response.

use bytes::Bytes;
use filters::ledger::CallOutcome;
use filters::models::cloud_credentials::clock_skew;
use filters::models::reply::ResponseKind;
use filters::models::wires::{
    Failure, FailureKind, Progress, ReplyHead, decode_reply, names_quota,
};
use filters::money::ServiceTier;
use http::{StatusCode, header};
use pingora::http::ResponseHeader;
use pingora::{Error, Result};

use super::ModelExchange;
use super::attempt::Attempt;
use super::call::Call;
use super::kept_response::followed;
use crate::models::Models;
use crate::proxy::buffered::error_types::ATTEMPT_ABORTED;
use crate::proxy::buffered::state::Stage;
use crate::proxy::context::RequestInfo;
use crate::proxy::response;

impl Attempt {
    /// Chooses by the head how to read the body of the reply.
    pub(super) fn open(
        &mut self,
        call: &Call,
        models: &Models,
        info: &RequestInfo,
        head: &ResponseHeader,
    ) {
        if let Some(measured) = &mut self.measured {
            measured.record_reply(models.clock.ms_at(info.now));
        }
        let until_answer = self.times.answer(info.now);
        let answered = until_answer.filter(|_| head.status == StatusCode::OK);
        if let Some((after, deployment)) = answered.zip(self.deployment(call)) {
            deployment.metrics.observe_first_byte(after.as_secs_f64());
        }
        self.read_limits(call, models, info, head);
        self.cursor.clock_skew = self.read_clock_skew(info, head);
        let media_type = head.headers.get(header::CONTENT_TYPE);
        let media_type = media_type.map_or(&b""[..], |value| value.as_bytes());
        let Some((deployment, target)) = self.deployment(call).zip(self.target(call)) else {
            return;
        };
        let host = deployment.provider.host;
        let told = |name: Option<&str>| head.headers.get(name?)?.to_str().ok();
        let reply = ReplyHead {
            prompt_tokens: told(host.prompt_tokens_header).and_then(|told| told.parse().ok()),
            is_by_quota: told(host.exception_header).is_some_and(names_quota),
            ..ReplyHead::new(head.status.as_u16(), media_type)
        };
        let tier = deployment.wire.tier_header;
        let tier = tier.and_then(|name| head.headers.get(name)?.to_str().ok());
        let tier = tier.and_then(ServiceTier::from_reply);
        let decoder = decode_reply(deployment.wire, &call.request, &target, &reply);
        let Some(mut decoder) = decoder else {
            return;
        };
        let length = head.headers.get(header::CONTENT_LENGTH);
        let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
        decoder.expect(length.unwrap_or(0));
        self.reader.open(decoder, tier);
    }

    /// Returns by how much this machine's clock differs from that of a provider that refuses a signature or a token; `None`:
    /// not by so much that it would for that.
    fn read_clock_skew(&self, info: &RequestInfo, head: &ResponseHeader) -> Option<Box<str>> {
        let is_refused = matches!(head.status.as_u16(), 401 | 403);
        if !is_refused || self.cursor.held.is_none() {
            return None;
        }
        let date = head.headers.get(header::DATE)?.to_str().ok()?;
        clock_skew::describe(date, info.now_unix_s()).map(String::into_boxed_str)
    }
}

impl ModelExchange {
    /// Checks the provider's status, and chooses how to read the body.
    pub(super) fn judge_status(&mut self, info: &RequestInfo, head: &ResponseHeader) {
        if head.status.is_informational() {
            self.state.record_reply();
            return;
        }
        self.state.record_event(info.now);
        self.running.open(&self.call, &self.models, info, head);
        let refusal = Failure::refused(head.status.as_u16(), "");
        if head.status != StatusCode::OK && refusal.is_retryable {
            self.running.reader.refuse(refusal);
            self.state.record_refusal(info.now);
        }
    }

    /// Replaces the provider's head by ours. The client gets no part of the provider's head.
    pub(super) fn replace_head(&self, info: &RequestInfo, head: &mut ResponseHeader) {
        if head.status.is_informational() {
            return;
        }
        let fields = info.head_fields();
        *head = match self.running.reader.kind() {
            Some(ResponseKind::Events) => response::stream_head(&fields, &[]),
            Some(ResponseKind::Media(media_type)) => response::media_head(&fields, media_type),
            Some(ResponseKind::Json) | None => response::whole_head(&fields),
        };
    }

    /// Reads a piece of the provider's body, and replaces it by the bytes that the client gets now.
    ///
    /// Errors: the attempt failed. The call keeps the reason for [`super::failure`].
    pub(super) fn translate(
        &mut self,
        info: &RequestInfo,
        body: &mut Option<Bytes>,
        is_end: bool,
    ) -> Result<()> {
        let chunk = body.take().unwrap_or_default();
        if !chunk.is_empty() {
            self.state.record_event(info.now);
        }
        let is_judged = self.is_judged();
        let is_between = self.is_between_turns() && !is_judged;
        let has_ended = self.running.reader.is_complete() || is_between;
        if has_ended || self.call.log.aborted.is_some() {
            return Ok(());
        }
        let read = match is_judged {
            // The reply that is read now says nothing.
            true => Ok(Progress::Complete),
            false => self.running.reader.read_whole(&chunk, is_end),
        };
        let progress = match read {
            Ok(progress) => progress,
            Err(failure) => {
                let error = self.abort_attempt(failure);
                return self.state.break_off(error);
            }
        };
        if progress == Progress::Complete {
            self.end_part()?;
            if let Some(error) = self.end_turn(info) {
                *body = self.rest_of_turn(info);
                return self.state.end_part(error);
            }
            // A complete answer may come at once, and lists the attempts, so the hedge has to end first.
            self.cancel_hedge(info);
            self.running.reader.complete();
            self.call.timing.completed = Some(info.now);
            self.complete(info);
        }
        self.hand_out(info, progress, body);
        Ok(())
    }

    /// Gives the client what it gets now.
    fn hand_out(&mut self, info: &RequestInfo, progress: Progress, body: &mut Option<Bytes>) {
        // Pingora drops the bytes of the call in which an attempt ends. So parts before the last one return no bytes.
        let is_followed = self.running.cursor.parts.has_next();
        let out = match self.running.reader.writer_mut() {
            Some(writer) if writer.has_content() && !is_followed => writer.take(),
            _ => Bytes::new(),
        };
        let has_content = !out.is_empty();
        if has_content {
            if self.call.timing.first_content.is_none() {
                self.cancel_hedge(info);
                self.call.timing.first_content = Some(info.now);
                info.open_call.as_ref().inspect(|call| call.content());
                self.record_content(info);
            }
            self.hold_session(info);
            *body = Some(out);
        } else if self.running.reader.holds_text() {
            self.cancel_hedge(info);
            self.record_content(info);
        }
        if progress == Progress::Complete && self.call.timing.first_content.is_some() {
            self.state.set_stage(Stage::Complete);
        } else if has_content {
            self.deliver();
        }
    }

    /// Returns what the client gets of a turn that has ended, where it gets a response as it comes.
    fn rest_of_turn(&mut self, info: &RequestInfo) -> Option<Bytes> {
        let writer = self.running.reader.writer_mut();
        let writer = writer.filter(|writer| writer.has_content());
        let rest = writer
            .map(|writer| writer.take())
            .filter(|rest| !rest.is_empty())?;
        self.call.timing.first_content.get_or_insert(info.now);
        Some(rest)
    }

    /// Ends a complete response: settles the usage, and writes usage and metadata.
    fn complete(&mut self, info: &RequestInfo) {
        if !self.is_judged() {
            let record = self.running.record(&self.call, info, None);
            self.call.log.records.extend(record);
        }
        self.running.reader.end_text(true);
        let outcome = match self.state.is_disconnected() {
            true => CallOutcome::ClientDisconnected,
            false => CallOutcome::Completed,
        };
        let receipt = match self.begin_job(info) {
            Some(receipt) => receipt,
            None => self.settle(info, outcome),
        };
        self.trace_answer(info);
        let told = self.keep_session(info);
        self.write_end(info);
        let kept = self.keep_response(info);
        if let Some(gate) = followed(self.gate(receipt, told), kept) {
            self.state.set_gate(gate);
        }
        self.store_reply(info);
    }

    fn write_end(&mut self, info: &RequestInfo) {
        let (call, deployment) = (&self.call, self.running.deployment(&self.call));
        let writer = self.running.reader.writer_mut();
        let Some(((writer, deployment), settlement)) =
            writer.zip(deployment).zip(call.billing.total())
        else {
            return;
        };
        call.with_metadata(info, call.answer_members(&deployment.used), |metadata| {
            writer.complete(&settlement, metadata);
        });
    }

    /// Ends the attempt. The call keeps the reason for [`super::failure`].
    fn abort_attempt(&mut self, failure: Failure) -> Box<Error> {
        let kind = failure.kind;
        if self.call.log.aborted.is_none() {
            self.call.log.aborted = Some(self.running.scrubbed(&self.call, failure));
        }
        let mut error = Error::explain(ATTEMPT_ABORTED, format!("{kind:?}")).into_up();
        error.set_retry(matches!(
            kind,
            FailureKind::Status(_) | FailureKind::Malformed
        ));
        error
    }
}
