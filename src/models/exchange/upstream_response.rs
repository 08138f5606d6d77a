//! From the provider: its status, its events or its whole reply, read into the client's response.

use bytes::Bytes;
use filters::ledger::CallOutcome;
use filters::models::chat::delta::Sink;
use filters::models::fronts::chat_completions::envelope::ReplyIdentity;
use filters::models::fronts::chat_completions::fold::WholeWriter;
use filters::models::fronts::chat_completions::stream::ChunkWriter;
use filters::models::metadata::{Metadata, write_usage};
use filters::models::usage::Usage;
use filters::models::wires::{Decoder, Failure, FailureKind, Progress};
use filters::sse;
use futures::FutureExt;
use http::header;
use pingora::http::ResponseHeader;
use pingora::{Error, Result};
use tokio::time::Instant;

use super::ModelExchange;
use super::billing::{self, Settlement};
use crate::proxy::buffered::session::ATTEMPT_ABORTED;
use crate::proxy::buffered::state::Stage;
use crate::proxy::context::RequestInfo;
use crate::proxy::response;

/// The most bytes of a whole reply.
const MAX_REPLY_BYTES: usize = 64 << 20;
/// The most bytes of a refusal that are read.
const MAX_REFUSAL_BYTES: usize = 64 << 10;

/// The answer being read.
#[derive(Default)]
pub(super) struct ReplyReader {
    answer: Option<ResponseWriter>,
    reading: Reading,
    is_complete: bool,
}

/// The answer being made.
enum ResponseWriter {
    Stream(ChunkWriter),
    Fold(WholeWriter),
}

/// How the provider's body is read.
#[derive(Default)]
enum Reading {
    /// No head has come yet.
    #[default]
    Nothing,
    /// As events.
    Events {
        reader: sse::EventReader,
        decoder: Box<dyn Decoder>,
    },
    /// As one whole reply.
    Whole(Vec<u8>),
    /// As the reason of a refusal.
    Refusal { status: u16, body: Vec<u8> },
}

/// Why reading stopped.
enum ReadError {
    TooLong,
    Failed(Failure),
}

impl From<sse::TooLong> for ReadError {
    fn from(_: sse::TooLong) -> Self {
        Self::TooLong
    }
}

impl From<Failure> for ReadError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<ReadError> for Failure {
    fn from(stop: ReadError) -> Self {
        match stop {
            ReadError::TooLong => Self::malformed("an event of the provider is longer than 16 MiB"),
            ReadError::Failed(failure) => failure,
        }
    }
}

impl ReplyReader {
    /// Reads into an answer of this form and identity.
    pub(super) fn new(is_stream: bool, envelope: ReplyIdentity) -> Self {
        let answer = if is_stream {
            ResponseWriter::Stream(ChunkWriter::new(envelope))
        } else {
            ResponseWriter::Fold(WholeWriter::new(envelope))
        };
        Self {
            answer: Some(answer),
            reading: Reading::Nothing,
            is_complete: false,
        }
    }

    /// Whether the whole answer has been made.
    pub(super) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// The chunks written so far that nobody has taken, where the answer is a stream.
    pub(super) fn stream_mut(&mut self) -> Option<&mut ChunkWriter> {
        match &mut self.answer {
            Some(ResponseWriter::Stream(stream)) => Some(stream),
            _ => None,
        }
    }

    /// Usage as reported, else estimated from bytes.
    pub(super) fn usage(&self, prompt_bytes: u64) -> Usage {
        let (reported, bytes, has_finished) = match &self.answer {
            Some(ResponseWriter::Stream(stream)) => (
                stream.reported_usage(),
                stream.output_bytes(),
                stream.has_finished(),
            ),
            Some(ResponseWriter::Fold(fold)) => (fold.reported_usage(), fold.output_bytes(), false),
            None => (None, 0, false),
        };
        match reported {
            Some(usage) if has_finished || self.is_complete => usage,
            Some(usage) => usage.unfinished(prompt_bytes, bytes),
            None => Usage::estimate(prompt_bytes, bytes),
        }
    }
}

/// Judges the provider's status, and chooses how its body is read.
///
/// Errors: a status that means failure without a look at the body.
pub(super) fn judge_status(exchange: &mut ModelExchange, head: &ResponseHeader) -> Result<()> {
    if head.status.is_informational() {
        return Ok(());
    }
    exchange.state.record_event(Instant::now());
    let status = head.status.as_u16();
    let media_type = head
        .headers
        .get(header::CONTENT_TYPE)
        .map_or(&b""[..], |value| value.as_bytes());
    let is_events = media_type.starts_with(b"text/event-stream");
    if status == 200 {
        let decoder = exchange
            .attempt()
            .zip(exchange.target())
            .map(|(attempt, target)| attempt.provider.wire.stream(&target));
        exchange.reader.reading = match decoder {
            Some(decoder) if is_events => Reading::Events {
                reader: sse::EventReader::default(),
                decoder,
            },
            _ => Reading::Whole(Vec::new()),
        };
        return Ok(());
    }
    let failure = Failure::refused(status, "");
    if failure.is_retryable {
        return Err(abort_attempt(exchange, failure));
    }
    // Only the body says whether the request or our account is at fault.
    exchange.reader.reading = Reading::Refusal {
        status,
        body: Vec::new(),
    };
    Ok(())
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
    let (id, quota) = (info.id.as_header(), info.quota.as_ref());
    *head = if exchange.request.stream {
        response::stream_head(id, quota, info.is_http1_1)
    } else {
        response::whole_head(id, quota, info.is_http1_1)
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
        exchange.state.record_event(Instant::now());
    }
    if exchange.reader.is_complete {
        return Ok(());
    }
    let progress = match read(exchange, &chunk, is_end) {
        Ok(progress) => progress,
        Err(failure) => return Err(abort_attempt(exchange, failure)),
    };
    let mut finished = None;
    if progress == Progress::Complete {
        exchange.reader.is_complete = true;
        finished = complete(exchange, info);
    }
    let out = match &mut exchange.reader.answer {
        Some(ResponseWriter::Stream(stream)) if stream.has_content() => stream.take(),
        _ => finished.unwrap_or_default(),
    };
    if !out.is_empty() {
        let timing = &mut exchange.timing;
        timing.first_content.get_or_insert_with(Instant::now);
        *body = Some(out.into());
        if progress == Progress::Complete {
            exchange.state.set_stage(Stage::Complete);
        } else {
            billing::deliver(exchange);
        }
    }
    Ok(())
}

/// Reads a piece into the answer.
fn read(exchange: &mut ModelExchange, chunk: &[u8], is_end: bool) -> Result<Progress, Failure> {
    let mut reader = std::mem::take(&mut exchange.reader);
    let read = reader.read(exchange, chunk, is_end);
    exchange.reader = reader;
    read
}

impl ReplyReader {
    fn read(
        &mut self,
        exchange: &ModelExchange,
        chunk: &[u8],
        is_end: bool,
    ) -> Result<Progress, Failure> {
        let sink: &mut dyn Sink = match &mut self.answer {
            Some(ResponseWriter::Stream(stream)) => stream,
            Some(ResponseWriter::Fold(fold)) => fold,
            None => return Err(Failure::malformed("no answer is expected")),
        };
        match &mut self.reading {
            Reading::Nothing => Err(Failure::malformed("a body came before its head")),
            Reading::Events { reader, decoder } => {
                events(reader, decoder.as_mut(), chunk, is_end, sink).map_err(Failure::from)
            }
            Reading::Whole(body) => {
                take(body, chunk, MAX_REPLY_BYTES)?;
                if !is_end {
                    return Ok(Progress::Open);
                }
                let (attempt, target) = exchange
                    .attempt()
                    .zip(exchange.target())
                    .ok_or_else(|| Failure::malformed("no attempt is running"))?;
                attempt.provider.wire.decode(body, &target, sink)?;
                Ok(Progress::Complete)
            }
            Reading::Refusal { status, body } => {
                let is_full = take(body, chunk, MAX_REFUSAL_BYTES).is_err();
                if !is_end && !is_full {
                    return Ok(Progress::Open);
                }
                Err(exchange.attempt().map_or_else(
                    || Failure::refused(*status, ""),
                    |attempt| attempt.provider.wire.refusal(*status, body),
                ))
            }
        }
    }
}

fn take(body: &mut Vec<u8>, chunk: &[u8], limit: usize) -> Result<(), Failure> {
    if body.len() + chunk.len() > limit {
        return Err(Failure::malformed("the provider's reply is too long"));
    }
    body.extend_from_slice(chunk);
    Ok(())
}

fn events(
    reader: &mut sse::EventReader,
    decoder: &mut dyn Decoder,
    chunk: &[u8],
    is_end: bool,
    sink: &mut dyn Sink,
) -> Result<Progress, ReadError> {
    let mut progress = Progress::Open;
    let mut take = |event: sse::SseEvent<'_>| {
        if progress == Progress::Open {
            progress = decoder.event(event, sink)?;
        }
        Ok::<(), ReadError>(())
    };
    reader.feed(chunk, &mut take)?;
    if is_end {
        reader.finish(&mut take)?;
    }
    if is_end && progress == Progress::Open {
        progress = decoder.ended(sink)?;
    }
    Ok(progress)
}

/// Ends a complete response: settles what it took, and writes usage and metadata.
fn complete(exchange: &mut ModelExchange, info: &RequestInfo) -> Option<Vec<u8>> {
    let record = exchange.record(None)?;
    exchange.log.records.push(record);
    let outcome = if exchange.state.is_disconnected() {
        CallOutcome::ClientGone
    } else {
        CallOutcome::Answered
    };
    let receipt = billing::settle(exchange, info, outcome);
    if !receipt.is_ready() {
        exchange.state.set_gate(receipt.is_safe().boxed());
    }
    let used_model = exchange.used_model();
    let attempt = exchange.attempt()?;
    let caller = info.caller.as_deref();
    let metadata = Metadata {
        request_id: info.id.as_str(),
        requested_model: &exchange.request.model,
        requested_provider: exchange.requested_provider.as_deref(),
        used_model: &used_model,
        used_provider: &attempt.provider.name,
        used_region: attempt.region.as_deref(),
        underlying_used_model: &attempt.mapping.name,
        organization_id: caller.map_or("", |caller| &caller.organization_id),
        project_id: caller.map_or("", |caller| &caller.project_id),
        routing: &exchange.log.records,
    };
    let metadata = metadata.write();
    let usage = usage(exchange);
    let with_usage = exchange.request.include_usage;
    match exchange.reader.answer.as_mut()? {
        ResponseWriter::Stream(stream) => {
            stream.complete(&usage, &metadata, with_usage);
            None
        }
        ResponseWriter::Fold(_) => match exchange.reader.answer.take() {
            Some(ResponseWriter::Fold(fold)) => Some(fold.render(&usage, &metadata)),
            _ => None,
        },
    }
}

/// Returns what the call took, as the `usage` of its response.
pub(super) fn usage(exchange: &ModelExchange) -> Vec<u8> {
    let Some(Settlement { usage, cost }) = exchange.billing.settlement() else {
        return b"null".to_vec();
    };
    let cost = cost.map(|cost| (cost.total.to_string(), cost.details.to_json()));
    let cost = cost.as_ref().map(|(total, details)| (&**total, &**details));
    write_usage(usage, cost)
}

/// Ends the attempt; the exchange keeps the reason for [`super::failure`].
fn abort_attempt(exchange: &mut ModelExchange, failure: Failure) -> Box<Error> {
    let kind = failure.kind;
    exchange.log.aborted.get_or_insert(failure);
    let mut error = Error::explain(ATTEMPT_ABORTED, format!("{kind:?}")).into_up();
    error.set_retry(matches!(
        kind,
        FailureKind::Status(_) | FailureKind::Malformed
    ));
    error
}
