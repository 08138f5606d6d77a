//! The session's own writes: comments, notices, and the end of a cancelled request.

use pingora::Result;
use pingora::protocols::http::{HttpTask, ServerSession};
use tokio::time::Instant;

use super::BufferedSession;
use crate::proxy::response;

/// Writes what a session has queued.
pub(in crate::proxy) async fn write_queued(session: &mut ServerSession) -> Result<()> {
    while session.has_pending_downstream_proxy_tasks() {
        session.write_downstream_proxy_tasks().await?;
    }
    Ok(())
}

impl BufferedSession {
    /// Writes the held events.
    pub(super) async fn write_held(&mut self) -> Result<()> {
        self.queue_held();
        if self.state.is_lost() || !self.inner().has_pending_downstream_proxy_tasks() {
            return Ok(());
        }
        // The future is boxed, because it is large and most waits do without it.
        let written = Box::pin(self.write_queued()).await;
        self.outlive_client(written)
    }

    /// Queues the held events.
    pub(super) fn queue_held(&mut self) {
        if self.held.is_empty() || self.state.is_lost() {
            return;
        }
        let (held, inner) = (self.held.release(), self.inner.as_deref_mut());
        if let (Some(events), Some(inner)) = (held, inner) {
            inner.set_proxy_tasks_enabled(true);
            inner.send_downstream_proxy_task(events);
        }
    }

    /// Writes what is queued: a keepalive comment or held events, of which another event may have interrupted the write.
    pub(super) async fn write_queued(&mut self) -> Result<()> {
        write_queued(self.inner_mut()).await
    }

    /// Sends a notice or a comment, after our own head if none was sent yet.
    ///
    /// On HTTP/1 both are queued and written as far as the connection accepts. The next call continues an interrupted
    /// write.
    pub(super) async fn send_keepalive(&mut self) -> Result<()> {
        let now = Instant::now();
        let interim = self.state.interim();
        let comment = interim
            .and_then(|interim| interim.take_notice(now))
            .unwrap_or_else(|| self.state.keepalive());
        self.state.record_write(now);
        let own_headers = interim.map_or(&[][..], |interim| &interim.headers);
        let head = (!self.state.is_head_sent())
            .then(|| Box::new(response::stream_head(&self.head_fields, own_headers)));
        self.state.mark_head_sent();
        if head.is_some() && self.state.is_draining() {
            self.inner_mut().set_keepalive(None);
        }
        if matches!(self.inner(), ServerSession::H1(_)) {
            let inner = self.inner_mut();
            inner.set_proxy_tasks_enabled(true);
            if let Some(head) = head {
                inner.send_downstream_proxy_task(HttpTask::Header(head, false));
            }
            inner.send_downstream_proxy_task(HttpTask::Body(Some(comment), false));
            return self.write_queued().await;
        }
        if let Some(head) = head {
            self.inner_mut().write_response_header(head).await?;
        }
        self.inner_mut().write_response_body(comment, false).await
    }

    /// Tells the client of a cancelled request that no response comes: by the end of its stream, or by an empty 202.
    /// Write errors are ignored.
    pub(super) async fn take_leave(&mut self) {
        if std::mem::replace(&mut self.has_taken_leave, true) {
            return;
        }
        if !self.state.is_head_sent() {
            self.state.mark_head_sent();
            let own_headers = self.state.interim().map_or(&[][..], |it| &it.headers);
            let head = response::empty_head(202, &self.head_fields, own_headers);
            if self
                .inner_mut()
                .write_response_header(Box::new(head))
                .await
                .is_err()
            {
                return;
            }
        } else if self.write_queued().await.is_err() {
            return;
        }
        _ = self.inner_mut().finish_body().await;
    }
}
