//! From the provider: its status, its events or its whole reply, read into the client's response.

use bytes::Bytes;
use filters::ledger::CallOutcome;
use filters::models::metadata::{AnswerMembers, Metadata, UsedNames};
use filters::models::reply::{Reported, ResponseKind, Sink, StructuredAnswer, Writer};
use filters::models::reply_cache::recorder::{Recording, ReplyRecorder};
use filters::models::usage::Usage;
use filters::models::wires::{Decoder, Failure, FailureKind, Progress, ReplyHead, decode_reply};
use filters::money::{ServiceTier, UnitCounts};
use http::{StatusCode, header};
use pingora::http::ResponseHeader;
use pingora::{Error, Result};

use super::{
    ModelExchange, billing, caching, cancelled, feedback, hedging, jobs, parts, rate_limits,
};
use crate::proxy::buffered::error_types::ATTEMPT_ABORTED;
use crate::proxy::buffered::state::Stage;
use crate::proxy::context::RequestInfo;
use crate::proxy::response;

/// The reply being read, and the response being made of it.
#[derive(Default)]
pub(super) struct ReplyReader {
    writer: Option<Box<dyn Writer>>,
    /// From the head of the reply on.
    decoder: Option<Box<dyn Decoder>>,
    /// The failure of a status that the next provider may mend, if the body does not tell more.
    refusal: Option<Failure>,
    is_complete: bool,
    /// Records the reply, if the cache stores it.
    recorder: Option<ReplyRecorder>,
}

impl ReplyReader {
    /// Reads into this writer.
    pub(super) fn new(writer: Box<dyn Writer>, recorder: Option<ReplyRecorder>) -> Self {
        Self {
            writer: Some(writer),
            decoder: None,
            refusal: None,
            is_complete: false,
            recorder,
        }
    }

    /// Ends a part of the reply; the next one follows.
    pub(super) fn end_part(&mut self) {
        if let Some(writer) = &mut self.writer {
            writer.end_part();
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.end_part();
        }
    }

    /// Begins the reply to another part than the first, or to the same once more.
    pub(super) fn begin_part(&mut self) {
        self.decoder = None;
        self.refusal = None;
        if let Some(writer) = &mut self.writer {
            writer.begin_part();
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.begin_part();
        }
    }

    /// Takes the record of the reply.
    pub(super) fn take_recorder(&mut self) -> Option<ReplyRecorder> {
        self.recorder.take()
    }

    /// Returns whether the head of the reply has come.
    pub(super) fn is_open(&self) -> bool {
        self.decoder.is_some()
    }

    /// Reads a piece of a reply of which nobody gets anything yet; returns whether content has come, held back or not.
    pub(super) fn read_ahead(&mut self, chunk: &Bytes, is_end: bool) -> Result<bool, Failure> {
        let progress = self.read(chunk, is_end)?;
        let has_content = self.writer.as_ref().is_some_and(|it| it.has_content());
        Ok(has_content || self.holds_text() || progress == Progress::Complete)
    }

    /// Returns whether the whole response has been made.
    pub(super) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Returns the failure of a status that the next provider may mend, once.
    pub(super) fn take_refusal(&mut self) -> Option<Failure> {
        self.refusal.take()
    }

    /// The response being made.
    pub(super) fn writer_mut(&mut self) -> Option<&mut (dyn Writer + 'static)> {
        self.writer.as_deref_mut()
    }

    /// Returns whether text has come that the writer holds back.
    fn holds_text(&self) -> bool {
        self.writer
            .as_ref()
            .is_some_and(|writer| writer.holds_text())
    }

    /// Ends the text that the writer holds back; `is_whole`: it did not break off.
    pub(super) fn end_text(&mut self, is_whole: bool) {
        if let Some(writer) = &mut self.writer {
            writer.end_text(is_whole);
        }
    }

    /// Returns the answer, where it was held back to be repaired.
    pub(super) fn structured(&self) -> Option<StructuredAnswer<'_>> {
        self.writer.as_ref()?.structured()
    }

    /// Returns the usage of the reply at hand as reported, else estimated from what the request tells; `is_whole`: it has
    /// come to its end. `asked` are the units that the request asks for.
    pub(super) fn usage(&self, prompt_bytes: u64, asked: UnitCounts, is_whole: bool) -> Usage {
        let reported = self.reported();
        let usage = reported.to_usage(prompt_bytes, is_whole);
        match reported.usage {
            Some(_) => usage,
            None => Usage {
                units: asked,
                ..usage
            },
        }
    }

    /// Returns what the provider has reported so far.
    pub(super) fn reported(&self) -> Reported {
        let writer = self.writer.as_ref();
        writer.map(|writer| writer.reported()).unwrap_or_default()
    }

    /// Returns the tier that the provider says it used.
    pub(super) fn service_tier(&self) -> Option<ServiceTier> {
        self.writer.as_ref()?.reported().service_tier
    }

    /// Reads a piece of the reply into the response. Errors: those of the wire, and a reply that has come to its end and is no
    /// answer.
    fn read_whole(&mut self, chunk: &Bytes, is_end: bool) -> Result<Progress, Failure> {
        let progress = self.read(chunk, is_end)?;
        let writer = self.writer.as_ref();
        match writer.and_then(|writer| writer.lack()) {
            Some(lack) if progress == Progress::Complete => Err(Failure::malformed(lack)),
            _ => Ok(progress),
        }
    }

    fn read(&mut self, chunk: &Bytes, is_end: bool) -> Result<Progress, Failure> {
        let (Some(writer), Some(decoder)) = (&mut self.writer, &mut self.decoder) else {
            return Err(Failure::malformed("a body came before its head"));
        };
        let sink: &mut dyn Sink = writer.as_mut();
        match &mut self.recorder {
            None => decode(decoder.as_mut(), chunk, is_end, sink),
            Some(recorder) => {
                let mut recording = Recording { sink, recorder };
                decode(decoder.as_mut(), chunk, is_end, &mut recording)
            }
        }
    }
}

fn decode(
    decoder: &mut dyn Decoder,
    chunk: &Bytes,
    is_end: bool,
    sink: &mut dyn Sink,
) -> Result<Progress, Failure> {
    let progress = decoder.feed(chunk, sink)?;
    if is_end && progress == Progress::Open {
        return decoder.end(sink);
    }
    Ok(progress)
}

/// Judges the provider's status, and chooses how its body is read.
pub(super) fn judge_status(
    exchange: &mut ModelExchange,
    info: &RequestInfo,
    head: &ResponseHeader,
) {
    if head.status.is_informational() {
        exchange.state.record_reply();
        return;
    }
    exchange.state.record_event(info.now);
    let refusal = Failure::refused(head.status.as_u16(), "");
    open(exchange, info, head);
    if head.status != StatusCode::OK && refusal.is_retryable {
        exchange.reader.refusal = Some(refusal);
        exchange.state.record_refusal(info.now);
    }
}

/// Chooses by its head how the body of a reply is read.
pub(super) fn open(exchange: &mut ModelExchange, info: &RequestInfo, head: &ResponseHeader) {
    let now_ms = exchange.models.clock.ms_at(info.now);
    if let Some(measured) = &mut exchange.measured {
        measured.record_reply(now_ms);
    }
    rate_limits::read(exchange, info, head);
    let media_type = head
        .headers
        .get(header::CONTENT_TYPE)
        .map_or(&b""[..], |value| value.as_bytes());
    let reply = ReplyHead::new(head.status.as_u16(), media_type);
    let Some((deployment, target)) = exchange.deployment().zip(exchange.target()) else {
        return;
    };
    let tier = deployment.wire.tier_header();
    let tier = tier.and_then(|name| head.headers.get(name)?.to_str().ok());
    let tier = tier.and_then(ServiceTier::from_reply);
    let mut decoder = decode_reply(deployment.wire, &exchange.request, &target, &reply);
    let length = head.headers.get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
    decoder.expect(length.unwrap_or(0));
    if let Some((writer, format)) = exchange.reader.writer_mut().zip(decoder.media_format()) {
        writer.media_format(format);
    }
    exchange.reader.decoder = Some(decoder);
    if let Some((writer, tier)) = exchange.reader.writer_mut().zip(tier) {
        writer.service_tier(tier);
    }
}

/// Replaces the provider's head by ours; nothing of it reaches the client.
pub(super) fn replace_head(
    exchange: &ModelExchange,
    info: &RequestInfo,
    head: &mut ResponseHeader,
) {
    if head.status.is_informational() {
        return;
    }
    let fields = info.head_fields();
    let kind = exchange.reader.writer.as_ref().map(|writer| writer.kind());
    *head = match kind {
        Some(ResponseKind::Events) => response::stream_head(&fields, &[]),
        Some(ResponseKind::Media(media_type)) => response::media_head(&fields, media_type),
        Some(ResponseKind::Json) | None => response::whole_head(&fields),
    };
}

/// Reads a piece of the provider's body, and replaces it by what goes to the client now.
///
/// Errors: the attempt failed; the exchange keeps the reason for [`super::failure`].
pub(super) fn translate(
    exchange: &mut ModelExchange,
    info: &RequestInfo,
    body: &mut Option<Bytes>,
    is_end: bool,
) -> Result<()> {
    let chunk = body.take().unwrap_or_default();
    if !chunk.is_empty() {
        exchange.state.record_event(info.now);
    }
    if exchange.reader.is_complete {
        return Ok(());
    }
    let progress = match exchange.reader.read_whole(&chunk, is_end) {
        Ok(progress) => progress,
        Err(failure) => return Err(abort_attempt(exchange, failure)),
    };
    if progress == Progress::Complete {
        parts::end(exchange)?;
        // The whole answer may come at once, and lists the attempts.
        hedging::cancel(exchange, info);
        exchange.reader.is_complete = true;
        exchange.timing.completed = Some(info.now);
        complete(exchange, info);
    }
    // Pingora drops what was handed out in the turn in which an attempt ends, so parts before the last one hand out nothing.
    let is_followed = parts::is_followed(exchange);
    let out = match exchange.reader.writer_mut() {
        Some(writer) if writer.has_content() && !is_followed => writer.take(),
        _ => Bytes::new(),
    };
    let has_content = !out.is_empty();
    if has_content {
        if exchange.timing.first_content.is_none() {
            hedging::cancel(exchange, info);
            feedback::record_first_content(exchange, info);
        }
        feedback::hold_session(exchange, info);
        *body = Some(out);
    } else if exchange.reader.holds_text() {
        hedging::cancel(exchange, info);
        feedback::record_content(exchange, info);
    }
    if progress == Progress::Complete && exchange.timing.first_content.is_some() {
        exchange.state.set_stage(Stage::Complete);
    } else if has_content {
        billing::deliver(exchange);
    }
    Ok(())
}

/// Ends a complete response: settles what it took, and writes usage and metadata.
fn complete(exchange: &mut ModelExchange, info: &RequestInfo) {
    let Some(record) = exchange.record(None) else {
        return;
    };
    exchange.log.records.push(record);
    exchange.reader.end_text(true);
    let outcome = if exchange.state.is_disconnected() {
        CallOutcome::ClientDisconnected
    } else {
        CallOutcome::Completed
    };
    let receipt = match jobs::begin(exchange, info) {
        Some(receipt) => receipt,
        None => billing::settle(exchange, info, outcome),
    };
    let told = feedback::bind_session(exchange, info);
    if let Some(gate) = cancelled::gate(exchange, receipt, told) {
        exchange.state.set_gate(gate);
    }
    let Some(mut writer) = exchange.reader.writer.take() else {
        return;
    };
    write_end(exchange, info, &mut *writer);
    exchange.reader.writer = Some(writer);
    caching::store(exchange, info);
}

fn write_end(exchange: &ModelExchange, info: &RequestInfo, writer: &mut dyn Writer) {
    let settlement = exchange.billing.settlement();
    let (Some(deployment), Some(settlement)) = (exchange.deployment(), settlement) else {
        return;
    };
    let answer = answer_members(exchange, &deployment.used);
    with_metadata(exchange, info, answer, |metadata| {
        writer.complete(settlement, metadata);
    });
}

/// Returns the members of an answer's metadata.
pub(super) fn answer_members<'e>(
    exchange: &'e ModelExchange,
    used: &'e UsedNames,
) -> AnswerMembers<'e> {
    AnswerMembers::Fresh {
        used,
        price: exchange.billing.price_notes(),
        routing: &exchange.log.records,
    }
}

/// Calls `write` with the metadata of the answer.
pub(super) fn with_metadata(
    exchange: &ModelExchange,
    info: &RequestInfo,
    answer: AnswerMembers<'_>,
    write: impl FnOnce(&Metadata<'_>),
) {
    let caller = info.caller.as_deref();
    let route = exchange.route();
    exchange.billing.with_log_id(|log_id| {
        write(&Metadata {
            request_id: info.id.as_str(),
            requested_model: exchange.request.requested_model(),
            managed: exchange
                .request
                .managed
                .as_ref()
                .map(|managed| &*managed.members),
            requested_provider: exchange.requested_provider.as_deref(),
            organization_id: caller.map_or("", |caller| &caller.organization_id),
            project_id: caller.map_or("", |caller| &caller.project_id),
            log_id,
            answer,
            route: route.as_deref(),
        });
    });
}

/// Ends the attempt; the exchange keeps the reason for [`super::failure`].
fn abort_attempt(exchange: &mut ModelExchange, failure: Failure) -> Box<Error> {
    let kind = failure.kind;
    if exchange.log.aborted.is_none() {
        exchange.log.aborted = Some(failure.scrubbed(&exchange.revealing()));
    }
    let mut error = Error::explain(ATTEMPT_ABORTED, format!("{kind:?}")).into_up();
    error.set_retry(matches!(
        kind,
        FailureKind::Status(_) | FailureKind::Malformed
    ));
    error
}
