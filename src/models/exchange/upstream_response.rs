//! From the provider: its status, its events or its whole reply, read into the answer that the client gets.

use bytes::Bytes;
use filters::ledger::CallOutcome;
use filters::models::metadata::Metadata;
use filters::models::reply::{Sink, Writer};
use filters::models::usage::Usage;
use filters::models::wires::{Decoder, Failure, FailureKind, Progress, ReplyHead, decode_reply};
use http::header;
use pingora::http::ResponseHeader;
use pingora::{Error, Result};
use tokio::time::Instant;

use super::{ModelExchange, billing};
use crate::app::state::AppState;
use crate::graph::exchange;
use crate::proxy::buffered::session::ATTEMPT_ABORTED;
use crate::proxy::buffered::state::Stage;
use crate::proxy::context::Context;
use crate::proxy::response;

/// The reply being read, and the response being made of it.
#[derive(Default)]
pub struct ReplyReader {
    writer: Option<Box<dyn Writer>>,
    /// From the head of the reply on.
    decoder: Option<Box<dyn Decoder>>,
    is_complete: bool,
}

impl ReplyReader {
    /// Reads into this writer.
    pub fn new(writer: Box<dyn Writer>) -> Self {
        Self {
            writer: Some(writer),
            decoder: None,
            is_complete: false,
        }
    }

    /// Whether the whole answer has been made.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// The response being made.
    pub fn writer_mut(&mut self) -> Option<&mut (dyn Writer + 'static)> {
        self.writer.as_deref_mut()
    }

    /// Usage as reported, else estimated from bytes.
    pub fn usage(&self, prompt_bytes: u64) -> Usage {
        let reported = self.writer.as_ref().map(|writer| writer.reported());
        reported
            .unwrap_or_default()
            .to_usage(prompt_bytes, self.is_complete)
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
    let media_type = head
        .headers
        .get(header::CONTENT_TYPE)
        .map_or(&b""[..], |value| value.as_bytes());
    let head = ReplyHead::new(head.status.as_u16(), media_type);
    let Some((step, target)) = call.step().zip(call.target()) else {
        return Ok(());
    };
    match decode_reply(step.upstream.wire, &call.request, &target, &head) {
        Ok(decoder) => call.receiving.decoder = Some(decoder),
        Err(failure) => return Err(abort_attempt(call, failure)),
    }
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
    *head = if call.request.is_stream {
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
    let progress = match call.receiving.read(&chunk, is_end) {
        Ok(progress) => progress,
        Err(failure) => return Err(abort_attempt(call, failure)),
    };
    if progress == Progress::Complete {
        call.receiving.is_complete = true;
        complete(call, request_id.text(), caller.as_deref(), *started);
    }
    let out = match call.receiving.writer_mut() {
        Some(writer) if writer.has_content() => writer.take(),
        _ => Vec::new(),
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

impl ReplyReader {
    /// Reads a piece of the reply into the response.
    fn read(&mut self, chunk: &[u8], is_end: bool) -> Result<Progress, Failure> {
        let Some(writer) = self.writer.as_deref_mut() else {
            return Err(Failure::malformed("no answer is expected"));
        };
        let Some(decoder) = self.decoder.as_deref_mut() else {
            return Err(Failure::malformed("a body came before its head"));
        };
        let sink: &mut dyn Sink = writer;
        let mut progress = decoder.feed(chunk, sink)?;
        if is_end && progress == Progress::Open {
            progress = decoder.end(sink)?;
        }
        Ok(progress)
    }
}

/// Ends a whole answer: settles what it took, and writes usage and metadata.
fn complete(
    call: &mut ModelExchange,
    request_id: &str,
    caller: Option<&filters::accounts::Caller>,
    started: Instant,
) {
    let Some(record) = call.record(None) else {
        return;
    };
    call.attempted.push(record);
    let outcome = if call.watch.has_left() {
        CallOutcome::ClientGone
    } else {
        CallOutcome::Answered
    };
    let ticket = billing::settle(call, outcome, started);
    call.watch.hold(ticket);
    let Some(mut writer) = call.receiving.writer.take() else {
        return;
    };
    write_end(call, request_id, caller, &mut *writer);
    call.receiving.writer = Some(writer);
}

fn write_end(
    call: &ModelExchange,
    request_id: &str,
    caller: Option<&filters::accounts::Caller>,
    writer: &mut dyn Writer,
) {
    let (Some(step), Some(settlement)) = (call.step(), &call.settled) else {
        return;
    };
    let metadata = Metadata {
        request_id,
        requested_model: &call.request.model,
        requested_provider: call.requested_provider.as_deref(),
        used_model: &call.used_model(),
        used_provider: &step.upstream.name,
        used_region: step.region.as_deref(),
        underlying_used_model: &step.mapping.name,
        organization_id: caller.map_or("", |caller| &caller.organization_id),
        project_id: caller.map_or("", |caller| &caller.project_id),
        routing: &call.attempted,
    };
    writer.complete(settlement, &metadata);
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
