//! From the provider: its status, its events or its whole reply, read into the answer that the client gets.

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
use http::header;
use pingora::http::ResponseHeader;
use pingora::{Error, Result};
use tokio::time::Instant;

use super::{ModelExchange, Settlement, billing};
use crate::app::state::AppState;
use crate::graph::exchange;
use crate::proxy::buffered::session::ATTEMPT_ABORTED;
use crate::proxy::buffered::state::Stage;
use crate::proxy::context::Context;
use crate::proxy::response;

/// The most bytes of a whole reply.
const MAX_REPLY_BYTES: usize = 64 << 20;
/// The most bytes of a refusal that are read.
const MAX_REFUSAL_BYTES: usize = 64 << 10;

/// The answer being read.
#[derive(Default)]
pub struct ReplyReader {
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
    pub fn new(is_stream: bool, envelope: ReplyIdentity) -> Self {
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
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// The chunks written so far that nobody has taken, where the answer is a stream.
    pub fn stream_mut(&mut self) -> Option<&mut ChunkWriter> {
        match &mut self.answer {
            Some(ResponseWriter::Stream(stream)) => Some(stream),
            _ => None,
        }
    }

    /// Usage as reported, else estimated from bytes.
    pub fn usage(&self, prompt_bytes: u64) -> Usage {
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

/// The verdict over the provider's status, and how its body is to be read.
///
/// Errors: a status that means failure without looking at the body.
pub async fn status(house: &AppState, ctx: &mut Context, head: &ResponseHeader) -> Result<()> {
    if let (Some(graph), Some(call)) = (&house.graph, &mut ctx.graph) {
        exchange::verdict(house, graph, call, head).await;
        return Ok(());
    }
    let Some(call) = ctx.call.as_deref_mut() else {
        return Ok(());
    };
    if head.status.is_informational() {
        return Ok(());
    }
    call.watch.saw_event(Instant::now());
    let status = head.status.as_u16();
    let media_type = head
        .headers
        .get(header::CONTENT_TYPE)
        .map_or(&b""[..], |value| value.as_bytes());
    let is_events = media_type.starts_with(b"text/event-stream");
    if status == 200 {
        let decoder = call
            .step()
            .zip(call.target())
            .map(|(step, target)| step.upstream.wire.stream(&target));
        call.receiving.reading = match decoder {
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
        return Err(abort_attempt(call, failure));
    }
    // Only the body tells whether the request or our account is to blame.
    call.receiving.reading = Reading::Refusal {
        status,
        body: Vec::new(),
    };
    Ok(())
}

/// Replaces the provider's head by ours; nothing of it reaches the client.
///
/// Errors: none; what we write are headers.
pub fn head(ctx: &Context, head: &mut ResponseHeader) -> Result<()> {
    if let Some(call) = &ctx.graph {
        return exchange::answer(call, head, ctx.request_id.header());
    }
    let Some(call) = ctx.call.as_deref() else {
        return Ok(());
    };
    if head.status.is_informational() {
        return Ok(());
    }
    // Pingora has put it in where the client's protocol wants it, for want of a length.
    let (quota, is_chunked) = (ctx.quota.as_ref(), ctx.is_http1_1);
    *head = if call.request.stream {
        response::stream_head(ctx.request_id.header(), quota, is_chunked)
    } else {
        response::whole_head(ctx.request_id.header(), quota, is_chunked)
    };
    Ok(())
}

/// Reads a piece of the provider's body; puts in its place what goes to the client now.
///
/// Errors: the attempt failed; [`super::failure`] finds the reason in the watch.
pub fn body(ctx: &mut Context, body: &mut Option<Bytes>, is_end: bool) -> Result<()> {
    if let Some(call) = &mut ctx.graph {
        exchange::body(call, body.as_ref(), is_end);
        return Ok(());
    }
    let Context {
        request_id,
        caller,
        started,
        call: Some(call),
        ..
    } = ctx
    else {
        return Ok(());
    };
    let chunk = body.take().unwrap_or_default();
    if !chunk.is_empty() {
        call.watch.saw_event(Instant::now());
    }
    if call.receiving.is_complete {
        return Ok(());
    }
    let progress = match read(call, &chunk, is_end) {
        Ok(progress) => progress,
        Err(failure) => return Err(abort_attempt(call, failure)),
    };
    let mut finished = None;
    if progress == Progress::Complete {
        call.receiving.is_complete = true;
        finished = complete(call, request_id.text(), caller.as_deref(), *started);
    }
    let out = match &mut call.receiving.answer {
        Some(ResponseWriter::Stream(stream)) if stream.has_content() => stream.take(),
        _ => finished.unwrap_or_default(),
    };
    if !out.is_empty() {
        call.first_content.get_or_insert_with(Instant::now);
        *body = Some(out.into());
        if progress == Progress::Complete {
            call.watch.advance(Stage::Complete);
        } else {
            billing::delivered(call);
        }
    }
    Ok(())
}

/// Reads a piece into the answer.
fn read(call: &mut ModelExchange, chunk: &[u8], is_end: bool) -> Result<Progress, Failure> {
    let mut receiving = std::mem::take(&mut call.receiving);
    let read = receiving.read(call, chunk, is_end);
    call.receiving = receiving;
    read
}

impl ReplyReader {
    fn read(
        &mut self,
        call: &ModelExchange,
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
                let (step, target) = call
                    .step()
                    .zip(call.target())
                    .ok_or_else(|| Failure::malformed("no attempt is running"))?;
                step.upstream.wire.decode(body, &target, sink)?;
                Ok(Progress::Complete)
            }
            Reading::Refusal { status, body } => {
                let is_full = take(body, chunk, MAX_REFUSAL_BYTES).is_err();
                if !is_end && !is_full {
                    return Ok(Progress::Open);
                }
                Err(call.step().map_or_else(
                    || Failure::refused(*status, ""),
                    |step| step.upstream.wire.refusal(*status, body),
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

/// Ends a whole answer: settles what it took, and writes usage and metadata.
fn complete(
    call: &mut ModelExchange,
    request_id: &str,
    caller: Option<&filters::accounts::Caller>,
    started: Instant,
) -> Option<Vec<u8>> {
    let record = call.record(None)?;
    call.attempted.push(record);
    let outcome = if call.watch.has_left() {
        CallOutcome::ClientDisconnected
    } else {
        CallOutcome::Completed
    };
    let ticket = billing::settle(call, outcome, started);
    call.watch.hold(ticket);
    let used_model = call.used_model();
    let step = call.step()?;
    let metadata = Metadata {
        request_id,
        requested_model: &call.request.model,
        requested_provider: call.requested_provider.as_deref(),
        used_model: &used_model,
        used_provider: &step.upstream.name,
        used_region: step.region.as_deref(),
        underlying_used_model: &step.mapping.name,
        organization_id: caller.map_or("", |caller| &caller.organization_id),
        project_id: caller.map_or("", |caller| &caller.project_id),
        routing: &call.attempted,
    };
    let metadata = metadata.write();
    let usage = usage(call);
    match call.receiving.answer.as_mut()? {
        ResponseWriter::Stream(stream) => {
            stream.complete(&usage, &metadata, call.request.include_usage);
            None
        }
        ResponseWriter::Fold(_) => match call.receiving.answer.take() {
            Some(ResponseWriter::Fold(fold)) => Some(fold.render(&usage, &metadata)),
            _ => None,
        },
    }
}

/// What the call took, as `usage` of its answer.
pub fn usage(call: &ModelExchange) -> Vec<u8> {
    let Some(Settlement { usage, cost }) = &call.settled else {
        return b"null".to_vec();
    };
    let cost = cost.map(|cost| (cost.total.to_string(), cost.details.to_json()));
    let cost = cost.as_ref().map(|(total, details)| (&**total, &**details));
    write_usage(usage, cost)
}

/// Leaves the reason where [`super::failure`] looks for it.
fn abort_attempt(call: &ModelExchange, failure: Failure) -> Box<Error> {
    let kind = failure.kind;
    call.watch.fail(failure);
    let mut error = Error::explain(ATTEMPT_ABORTED, format!("{kind:?}")).into_up();
    error.set_retry(matches!(
        kind,
        FailureKind::Status(_) | FailureKind::Malformed
    ));
    error
}
