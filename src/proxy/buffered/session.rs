//! The client's session during an attempt. Pingora's own loop runs every attempt, and the client does not see
//! attempts that fail.
//!
//! Pingora reads the request body from its downstream session, writes the reply to it and waits for it while the provider
//! is silent. [`BufferedSession`] decorates the real session at exactly these points: it replays the body of the current
//! attempt from slices, buffers the head until there is content, and runs the timers and the hedge. It passes
//! everything else on. When it is dropped, it returns the real session to the [`SessionSlot`], so that connections
//! are reused.
//!
//! [`wait`] waits for the client, [`held_events`] lets one write take many events, and [`own_writes`] sends texts that no
//! provider wrote.

mod held_events;
mod own_writes;
mod wait;

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::FutureExt;
use futures::future::{self, BoxFuture, Either};
use http::HeaderMap;
use pingora::http::{RequestHeader, ResponseHeader};
use pingora::protocols::Digest;
use pingora::protocols::http::custom::CustomMessageWrite;
use pingora::protocols::http::custom::server::Session as CustomSession;
use pingora::protocols::http::{HttpTask, ServerSession};
use pingora::protocols::l4::socket::SocketAddr;
use pingora::{Error, ErrorType, Result};
use tokio::time::{Instant, Sleep};

use self::held_events::HeldEvents;
pub(in crate::proxy) use self::own_writes::write_queued;
use self::wait::Waited;
use super::discard::{discard, empty_reply};
use super::error_types::{ATTEMPT_ABORTED, COST_NOT_RECORDED};
use super::state::{AttemptState, Gate, Progress, Wake};
use crate::proxy::response::{self, HeadFields};

/// A slot that receives the real session when the buffered one is dropped.
pub type SessionSlot = Arc<Mutex<Option<Box<ServerSession>>>>;

/// Decorates the real session.
pub struct BufferedSession {
    inner: Option<Box<ServerSession>>,
    slot: SessionSlot,
    state: Arc<AttemptState>,
    head: Option<Box<ResponseHeader>>,
    /// The fields of the head before a first keepalive comment.
    head_fields: HeadFields,
    /// The timer of [`AttemptState::next_wake`]; it starts when the provider is first silent.
    sleep: Option<Pin<Box<Sleep>>>,
    held: HeldEvents,
    /// Whether a client that cancelled its request was told that no response comes.
    has_taken_leave: bool,
}

impl BufferedSession {
    /// Replaces `session` by a buffered one. The fields are for the head of a keepalive comment that is sent before the
    /// provider's first event.
    pub fn wrap(
        session: &mut pingora_proxy::Session,
        state: Arc<AttemptState>,
        head_fields: HeadFields,
    ) -> SessionSlot {
        let slot = SessionSlot::default();
        let inner = std::mem::replace(&mut session.downstream_session, Box::new(placeholder()));
        let buffered = Self {
            inner: Some(inner),
            slot: Arc::clone(&slot),
            state,
            head: None,
            head_fields,
            sleep: None,
            held: HeldEvents::default(),
            has_taken_leave: false,
        };
        *session.downstream_session = ServerSession::new_custom(Box::new(buffered));
        slot
    }

    /// Checks without waiting whether the client is still connected.
    ///
    /// Errors: the client has disconnected, or the time of the attempt is over.
    pub fn check_client(session: &mut pingora_proxy::Session) -> Result<()> {
        let waiting = session.downstream_session.read_body_or_idle(true);
        match waiting.now_or_never() {
            None => Ok(()),
            Some(Err(error)) => Err(error.into_down()),
            Some(Ok(_)) => {
                let gone = Error::explain(ErrorType::ConnectionClosed, "before the request");
                Err(gone.into_down())
            }
        }
    }

    /// Waits for what an attempt needs, and meanwhile keeps the client's connection alive.
    ///
    /// Errors: the client has disconnected, or the time of the request is over.
    pub async fn watch_client(
        session: &mut pingora_proxy::Session,
        wait: BoxFuture<'_, ()>,
    ) -> Result<()> {
        let watching = Box::pin(session.downstream_session.read_body_or_idle(true));
        match future::select(wait, watching).await {
            Either::Left(((), _)) => Ok(()),
            Either::Right((Err(error), _)) => Err(error),
            // The session has called the exchange, which waits.
            Either::Right((Ok(_), wait)) => {
                wait.await;
                Ok(())
            }
        }
    }

    /// Restores the real session, unless that has happened already.
    pub fn unwrap(session: &mut pingora_proxy::Session, slot: &SessionSlot) {
        if !session.downstream_session.is_custom() {
            return;
        }
        // The assignment drops the buffered session, which fills the slot.
        *session.downstream_session = placeholder();
        let inner = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(inner) = inner {
            session.downstream_session = inner;
        }
    }

    fn inner(&self) -> &ServerSession {
        #[expect(clippy::expect_used, reason = "only Drop takes it")]
        self.inner
            .as_deref()
            .expect("the real session is there until the buffered one is dropped")
    }

    fn inner_mut(&mut self) -> &mut ServerSession {
        #[expect(clippy::expect_used, reason = "only Drop takes it")]
        self.inner
            .as_deref_mut()
            .expect("the real session is there until the buffered one is dropped")
    }

    /// Returns the tasks that may be sent now, and the error that ends the attempt, if any. As soon as there is
    /// content, the head is one of them.
    fn release_tasks(
        &mut self,
        tasks: Vec<HttpTask>,
        mut is_head_sent: bool,
    ) -> (Vec<HttpTask>, Option<Box<Error>>) {
        let broken = self.state.take_break();
        let is_whole = broken.is_none();
        let mut out = Vec::with_capacity(tasks.len() + 1);
        for task in tasks {
            match task {
                HttpTask::Header(head, is_end) => {
                    if !head.status.is_informational() && !is_head_sent {
                        self.head = Some(head);
                    }
                    if is_end {
                        return (out, Some(empty_reply()));
                    }
                }
                HttpTask::Body(Some(body), is_end) if !body.is_empty() => {
                    let head = self.head.take().filter(|_| !is_head_sent);
                    is_head_sent |= head.is_some();
                    out.extend(head.map(|head| HttpTask::Header(head, false)));
                    out.push(HttpTask::Body(Some(body), is_end && is_whole));
                }
                HttpTask::Failed(error) => return (out, broken.or(Some(error))),
                // After a comment too, a piece without content is not sent, so another attempt remains possible.
                HttpTask::Body(_, false) => {}
                // The error event is still to come.
                _ if !is_whole => {}
                task if is_head_sent => out.push(task),
                task if task.is_end() => return (out, Some(empty_reply())),
                _ => {}
            }
        }
        (out, broken)
    }

    /// Passes tasks on to the client, or holds them for a moment. Returns whether the response has ended.
    async fn pass_on(&mut self, tasks: Vec<HttpTask>, is_head_sent: bool) -> Result<bool> {
        let is_full_pipe = HeldEvents::is_full_pipe(&tasks);
        let (mut out, error) = self.release_tasks(tasks, is_head_sent);
        let mut is_done = false;
        if !out.is_empty() {
            if !is_head_sent && self.state.is_draining() {
                self.inner_mut().set_keepalive(None);
            }
            let is_whole =
                !is_head_sent && error.is_none() && response::set_content_length(&mut out);
            let may_wait = is_full_pipe && is_head_sent && error.is_none();
            if let Some(gate) = self.state.commit(Instant::now()) {
                self.write_held().await?;
                self.pass_gate(gate).await?;
            }
            self.state.release_kept();
            if may_wait && self.holds_events() && self.held.hold(&out) {
                return Ok(false);
            }
            out.splice(..0, self.held.release());
            let is_end = out.iter().any(HttpTask::is_end);
            is_done = if self.state.is_lost() {
                is_end
            } else {
                match self.send(out, is_whole).await {
                    Err(_) if self.state.lose_client(Instant::now()) => is_end,
                    sent => sent?,
                }
            };
        }
        error.map_or(Ok(is_done), Err)
    }

    /// Takes the result of a write of our own. Without the client, the reply may still be read to its end.
    fn outlive_client(&self, written: Result<()>) -> Result<()> {
        match written {
            Err(_) if self.state.lose_client(Instant::now()) => Ok(()),
            written => written,
        }
    }

    /// Returns whether events may wait for a moment. HTTP/2 gathers what it writes itself.
    fn holds_events(&self) -> bool {
        self.state.is_stream()
            && matches!(self.inner(), ServerSession::H1(_))
            && !self.state.is_lost()
    }

    /// Sends tasks. `is_whole` tells that they are a head with a length, and the whole body.
    ///
    /// Such a head waits in the connection's buffer and is passed on alone. Pingora copies a body that comes together
    /// with its head, and writes a body that comes alone without a copy.
    async fn send(&mut self, mut tasks: Vec<HttpTask>, is_whole: bool) -> Result<bool> {
        let inner = self.inner_mut();
        if is_whole && tasks.len() == 2 && matches!(inner, ServerSession::H1(_)) {
            let body = tasks.split_off(1);
            inner.response_duplex_vec(tasks).await?;
            tasks = body;
        }
        inner.response_duplex_vec(tasks).await
    }

    /// Returns whether still no client has returned in time. One may have returned since the timer was set.
    fn is_given_up(&self) -> bool {
        let (at, wake) = self.state.next_wake();
        wake == Wake::GiveUp && at <= Instant::now()
    }

    /// Waits until the response may be completed.
    async fn pass_gate(&self, gate: Gate) -> Result<()> {
        if !gate.await {
            return Error::e_explain(COST_NOT_RECORDED, "neither journal nor store took it");
        }
        self.state.record_write(Instant::now());
        Ok(())
    }
}

/// Returns the error of an attempt whose client has left before its end.
fn client_left(why: &'static str) -> Box<Error> {
    Error::explain(ErrorType::ConnectionClosed, why).into_down()
}

fn placeholder() -> ServerSession {
    ServerSession::new_custom(Box::new(()))
}

impl Drop for BufferedSession {
    /// Returns the real session. What it has not written yet, its owner writes.
    fn drop(&mut self) {
        self.queue_held();
        *self.slot.lock().unwrap_or_else(PoisonError::into_inner) = self.inner.take();
    }
}

#[async_trait]
impl CustomSession for BufferedSession {
    // The request body of the current attempt, in slices; Pingora may read it more than once.

    fn is_body_done(&mut self) -> bool {
        self.state.is_body_done()
    }
    fn is_body_empty(&mut self) -> bool {
        self.state.first_piece().is_none()
    }
    fn get_retry_buffer(&self) -> Option<Bytes> {
        self.state.first_piece()
    }
    fn enable_retry_buffering(&mut self) {}
    fn retry_buffer_truncated(&self) -> bool {
        false
    }
    async fn read_body_bytes(&mut self) -> Result<Option<Bytes>> {
        Ok(None)
    }
    async fn drain_request_body(&mut self) -> Result<()> {
        Ok(())
    }

    async fn read_body_or_idle(&mut self, no_body_expected: bool) -> Result<Option<Bytes>> {
        if !no_body_expected {
            let next = self.state.next_bytes();
            let next = next.map_err(|error| {
                Error::explain(
                    ATTEMPT_ABORTED,
                    format!("the upload cannot be read: {error}"),
                )
            })?;
            if next.is_some() {
                return Ok(next);
            }
        }
        if self.state.is_replay() {
            return self.inner_mut().read_body_or_idle(true).await;
        }
        loop {
            if !self.held.is_empty() {
                self.held.settled().await;
                self.write_held().await?;
            }
            match self.wait_for_client().await {
                Waited::Client(end) => return end,
                Waited::Again => {}
                Waited::Cancelled => {
                    let is_lost = self.state.is_lost();
                    let is_drained = self.state.disconnect(Instant::now());
                    if !is_lost {
                        Box::pin(self.take_leave()).await;
                    }
                    if !is_drained {
                        return Err(client_left("the client has taken its request back"));
                    }
                }
                Waited::Due(Wake::GiveUp) => {
                    if self.is_given_up() && !self.state.disconnect(Instant::now()) {
                        return Err(client_left("nobody has come back for the answer"));
                    }
                }
                // An empty piece of an unfinished body makes Pingora call the exchange, and sends nothing.
                Waited::News | Waited::Due(Wake::Hedge) => {
                    self.state.call_exchange();
                    return Ok(Some(Bytes::new()));
                }
                // Comments are rare, and their large futures would enlarge every wait.
                Waited::Due(Wake::Keepalive) => {
                    let sent = Box::pin(self.send_keepalive()).await;
                    self.outlive_client(sent)?;
                }
                Waited::Due(Wake::Finish) => {
                    return Error::e_explain(ATTEMPT_ABORTED, "the reply is complete");
                }
                Waited::Due(Wake::Abort) => {
                    self.state.record_timeout();
                    return Error::e_explain(ATTEMPT_ABORTED, "the provider took too long");
                }
            }
        }
    }

    // The response. No byte is sent before there is content.

    fn response_written(&self) -> Option<&ResponseHeader> {
        let head = self.inner().response_written();
        head.filter(|head| !head.status.is_informational())
    }

    async fn response_duplex_vec(&mut self, tasks: Vec<HttpTask>) -> Result<bool> {
        if self.state.is_replay() {
            return self.inner_mut().response_duplex_vec(tasks).await;
        }
        let Progress {
            is_disconnected,
            is_head_sent,
        } = self.state.progress();
        if is_disconnected {
            return discard(tasks);
        }
        if !self.state.is_lost() && self.inner().has_pending_downstream_proxy_tasks() {
            let written = Box::pin(self.write_queued()).await;
            self.outlive_client(written)?;
            if self.state.is_disconnected() {
                return discard(tasks);
            }
        }
        self.pass_on(tasks, is_head_sent).await
    }

    // All other calls go to the real session.

    fn req_header(&self) -> &RequestHeader {
        self.inner().req_header()
    }
    fn req_header_mut(&mut self) -> &mut RequestHeader {
        self.inner_mut().req_header_mut()
    }
    async fn write_response_header(&mut self, head: Box<ResponseHeader>, _end: bool) -> Result<()> {
        self.inner_mut().write_response_header(head).await
    }
    async fn write_response_header_ref(&mut self, head: &ResponseHeader, _end: bool) -> Result<()> {
        self.inner_mut().write_response_header_ref(head).await
    }
    async fn write_body(&mut self, data: Bytes, end: bool) -> Result<()> {
        self.inner_mut().write_response_body(data, end).await
    }
    async fn write_trailers(&mut self, trailers: HeaderMap) -> Result<()> {
        self.inner_mut().write_response_trailers(trailers).await
    }
    fn set_read_timeout(&mut self, timeout: Option<Duration>) {
        self.inner_mut().set_read_timeout(timeout);
    }
    fn get_read_timeout(&self) -> Option<Duration> {
        self.inner().get_read_timeout()
    }
    fn set_write_timeout(&mut self, timeout: Option<Duration>) {
        self.inner_mut().set_write_timeout(timeout);
    }
    fn get_write_timeout(&self) -> Option<Duration> {
        self.inner().get_write_timeout()
    }
    fn set_total_drain_timeout(&mut self, timeout: Option<Duration>) {
        self.inner_mut().set_total_drain_timeout(timeout);
    }
    fn get_total_drain_timeout(&self) -> Option<Duration> {
        self.inner().get_total_drain_timeout()
    }
    fn request_summary(&self) -> String {
        self.inner().request_summary()
    }
    async fn shutdown(&mut self, _code: u32, _ctx: &str) {
        self.inner_mut().shutdown().await;
    }
    async fn finish(&mut self) -> Result<()> {
        if self.state.is_head_sent() && !self.state.is_lost() {
            self.inner_mut().finish_body().await
        } else {
            Ok(())
        }
    }
    fn body_bytes_sent(&self) -> usize {
        self.inner().body_bytes_sent()
    }
    fn body_bytes_read(&self) -> usize {
        self.inner().body_bytes_read()
    }
    fn digest(&self) -> Option<&Digest> {
        self.inner().digest()
    }
    fn digest_mut(&mut self) -> Option<&mut Digest> {
        self.inner_mut().digest_mut()
    }
    fn client_addr(&self) -> Option<&SocketAddr> {
        self.inner().client_addr()
    }
    fn server_addr(&self) -> Option<&SocketAddr> {
        self.inner().server_addr()
    }
    fn pseudo_raw_h1_request_header(&self) -> Bytes {
        Bytes::new()
    }
    async fn finish_custom(&mut self) -> Result<()> {
        Ok(())
    }
    fn take_custom_message_reader(
        &mut self,
    ) -> Option<Box<dyn futures::Stream<Item = Result<Bytes>> + Unpin + Send + Sync + 'static>>
    {
        None
    }
    fn restore_custom_message_reader(
        &mut self,
        _reader: Box<dyn futures::Stream<Item = Result<Bytes>> + Unpin + Send + Sync + 'static>,
    ) -> Result<()> {
        Ok(())
    }
    fn take_custom_message_writer(&mut self) -> Option<Box<dyn CustomMessageWrite>> {
        None
    }
    fn restore_custom_message_writer(
        &mut self,
        _writer: Box<dyn CustomMessageWrite>,
    ) -> Result<()> {
        Ok(())
    }
}
