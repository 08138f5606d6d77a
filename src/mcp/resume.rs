//! The stream of `GET /mcp` for a client that has lost the answer to a call. It resumes after the last event that the
//! client has seen.

use std::time::Duration;

use bytes::Bytes;
use filters::mcp::message::{INVALID_REQUEST, RpcError};
use futures::future::BoxFuture;
use http::HeaderMap;
use tokio::time::Instant;

use super::McpState;
use super::listen::StreamPermit;
use crate::proxy::buffered::kept_stream::{KeptStream, StreamListener};
use crate::proxy::response::EventSource;

/// The part of an answer that a client has not seen.
pub(super) struct Resumed {
    listener: StreamListener,
    keepalive: Duration,
    quiet_until: Instant,
    _place: StreamPermit,
}

/// Returns the stream and the number of the last event that a client has seen, if it belongs to an answer.
pub(super) fn last_event(headers: &HeaderMap) -> Option<(&str, u64)> {
    let id = headers.get("last-event-id")?;
    KeptStream::read_event_id(id.as_bytes())
}

/// Finds the answer to which a client returns. It has to belong to the client's API key.
///
/// Errors: 400 if the answer is not stored.
pub(super) fn find(
    mcp: &McpState,
    last: (&str, u64),
    key_id: &str,
) -> Result<StreamListener, RpcError> {
    let (stream, after) = last;
    let found = mcp.kept.find(stream, key_id);
    let found = found.ok_or_else(|| {
        let message = "no answer is kept behind this `Last-Event-ID`: it was taken back, has ended too long ago, or is of \
                       another key or process; send the request again";
        RpcError::new(INVALID_REQUEST, 400, message)
    })?;
    Ok(found.listen(after))
}

impl Resumed {
    /// Returns the stream of a listener.
    pub(super) fn new(place: StreamPermit, listener: StreamListener, keepalive: Duration) -> Self {
        Self {
            listener,
            keepalive,
            quiet_until: Instant::now() + keepalive,
            _place: place,
        }
    }

    /// Waits for the next bytes. Returns `None` at the end of the answer. Cancel safety: a dropped call loses
    /// nothing.
    async fn next_bytes(&mut self) -> Option<Bytes> {
        let next = tokio::time::timeout_at(self.quiet_until, self.listener.next()).await;
        self.quiet_until = Instant::now() + self.keepalive;
        next.unwrap_or(Some(Bytes::from_static(b": keepalive\n\n")))
    }
}

impl EventSource for Resumed {
    fn next(&mut self) -> BoxFuture<'_, Option<Bytes>> {
        Box::pin(self.next_bytes())
    }
}
