//! The socket of an HTTP/1 connection below Pingora. It shows Pingora the bytes of one request at a time.
//!
//! Pingora repairs heads before any hook sees them, accepts invalid chunks, and takes bytes before the end of a
//! response for a disconnect. So this socket follows the raw bytes. It passes a head on once the head is complete and
//! valid, and replaces a refused head by a stand-in, whose response is the refusal. It passes a body on as far as its
//! chunks are valid. Bytes that come early wait until the previous response has ended.
//!
//! Source: docs/hostile-input.md 1 to 6, 9, 12.

use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Buf, BytesMut};
use filters::proxy::{RequestFollower, RequestRefusal, write_stand_in};
use pingora::protocols::raw_connect::ProxyDigest;
use pingora::protocols::tls::SslDigest;
use pingora::protocols::{
    ALPN, GetProxyDigest, GetSocketDigest, GetTimingDigest, Peek, Shutdown, SocketDigest, Ssl,
    Stream, TimingDigest, UniqueID, UniqueIDType,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};

use super::connection_state;

/// The maximum bytes that wait for the previous response. Beyond that nothing is read, so the client waits too.
const MAX_EARLY_BYTES: usize = 16 << 10;
/// The maximum early bytes that are read at once.
const EARLY_PIECE_BYTES: usize = 2 << 10;
/// How long a refused client may continue to send. Closing a connection with unread bytes can destroy the response.
const LINGER_TIMEOUT: Duration = Duration::from_secs(1);
/// The bytes that a refused client may continue to send.
const LINGER_BYTES: u64 = 1 << 20;

/// A connection, and the position of the running request on it.
#[derive(Debug)]
pub(super) struct FramedStream {
    inner: Stream,
    follower: RequestFollower,
    /// The bytes that have arrived and that Pingora has not read: the start of a head, or early bytes.
    held: BytesMut,
    /// The number of held bytes that Pingora may read.
    free_bytes: usize,
}

impl FramedStream {
    /// Returns the connection around `inner`, from which no byte was read.
    pub(super) fn new(inner: Stream, max_head_bytes: usize) -> Self {
        Self {
            inner,
            follower: RequestFollower::new(max_head_bytes),
            held: BytesMut::new(),
            free_bytes: 0,
        }
    }

    /// Passes held bytes to Pingora.
    fn hand_on(&mut self, out: &mut ReadBuf<'_>) {
        let count = self.free_bytes.min(out.remaining());
        out.put_slice(self.held.get(..count).unwrap_or_default());
        self.held.advance(count);
        self.free_bytes -= count;
        if self.held.is_empty() {
            // The buffer is freed, so that an idle connection keeps no memory for it.
            self.held = BytesMut::new();
        }
    }

    /// Frees the held bytes that belong to the running request.
    ///
    /// Errors: the body of the request is refused.
    fn free(&mut self) -> io::Result<()> {
        match follow(&mut self.follower, &self.held)? {
            FollowedBytes::Free(count) => self.free_bytes = count,
            FollowedBytes::StandIn(head) => self.use_stand_in(&head),
        }
        Ok(())
    }

    /// Replaces all received bytes by a stand-in.
    fn use_stand_in(&mut self, head: &[u8]) {
        self.held = BytesMut::from(head);
        self.free_bytes = head.len();
    }

    /// Reads bytes of the running request. Bytes that may be passed on go into Pingora's buffer, and the others are
    /// held. Returns whether Pingora has something now, which may be the end of the connection.
    ///
    /// Errors: the connection broke, or the request's body is refused.
    fn poll_request(
        &mut self,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<bool>> {
        let before = out.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(context, out))?;
        let came = out.filled().get(before..).unwrap_or_default();
        if came.is_empty() {
            return Poll::Ready(Ok(true));
        }
        let mut count = 0;
        if self.held.is_empty() {
            match follow(&mut self.follower, came)? {
                FollowedBytes::Free(free) => count = free,
                FollowedBytes::StandIn(head) => {
                    out.set_filled(before);
                    self.use_stand_in(&head);
                    return Poll::Ready(Ok(false));
                }
            }
        }
        self.held
            .extend_from_slice(came.get(count..).unwrap_or_default());
        out.set_filled(before + count);
        Poll::Ready(Ok(count > 0))
    }

    /// Holds early bytes, until the client closes the connection or enough bytes wait.
    fn poll_early(
        &mut self,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.held.len() >= MAX_EARLY_BYTES {
            return Poll::Pending;
        }
        // Pingora watches the client with a buffer of one byte, which mostly stays empty.
        let before = out.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(context, out))?;
        let came = out.filled().get(before..).unwrap_or_default();
        if came.is_empty() {
            return Poll::Ready(Ok(()));
        }
        self.hold_early(came);
        out.set_filled(before);
        let mut room = [0; EARLY_PIECE_BYTES];
        while self.held.len() < MAX_EARLY_BYTES {
            let mut more = ReadBuf::new(&mut room);
            ready!(Pin::new(&mut self.inner).poll_read(context, &mut more))?;
            if more.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            self.hold_early(more.filled());
        }
        Poll::Pending
    }

    /// Holds early bytes, unless the connection ends with the running request.
    fn hold_early(&mut self, bytes: &[u8]) {
        if self.follower.refusal().is_none() {
            self.held.extend_from_slice(bytes);
        }
    }
}

/// The result of following bytes.
enum FollowedBytes {
    /// This many bytes may be passed on.
    Free(usize),
    /// This head replaces the bytes.
    StandIn(Vec<u8>),
}

/// Follows a request through bytes, and records the results for its head and body.
///
/// Errors: the body of the request is refused.
fn follow(follower: &mut RequestFollower, bytes: &[u8]) -> io::Result<FollowedBytes> {
    let is_in_head = follower.is_in_head();
    match follower.follow(bytes) {
        Ok(count) => {
            if is_in_head && count > 0 {
                connection_state::judge_head(Ok(()));
            }
            Ok(FollowedBytes::Free(count))
        }
        Err(RequestRefusal::Head(error)) => {
            connection_state::judge_head(Err(error));
            Ok(FollowedBytes::StandIn(write_stand_in(bytes)))
        }
        Err(RequestRefusal::Body(error)) => {
            connection_state::refuse_body(error);
            let message = "the chunks of the body are refused";
            Err(io::Error::new(ErrorKind::InvalidData, message))
        }
    }
}

impl AsyncRead for FramedStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let stream = self.get_mut();
        loop {
            if stream.free_bytes > 0 {
                stream.hand_on(out);
                return Poll::Ready(Ok(()));
            }
            let is_over = match stream.follower.refusal() {
                Some(refusal) => matches!(refusal, RequestRefusal::Head(_)),
                None => stream.follower.is_whole() && !connection_state::take_turn(),
            };
            if is_over {
                return stream.poll_early(context, out);
            }
            stream.follower.begin_next();
            stream.free()?;
            if stream.free_bytes == 0 && ready!(stream.poll_request(context, out))? {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl AsyncWrite for FramedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}

#[async_trait]
impl Shutdown for FramedStream {
    async fn shutdown(&mut self) {
        if self.follower.refusal().is_some()
            && AsyncWriteExt::shutdown(&mut self.inner).await.is_ok()
        {
            let mut rest = (&mut self.inner).take(LINGER_BYTES);
            let mut nowhere = tokio::io::sink();
            let lingering = tokio::io::copy(&mut rest, &mut nowhere);
            // The client closes, sends too much or takes too long. The connection ends in each case.
            _ = tokio::time::timeout(LINGER_TIMEOUT, lingering).await;
        }
        Shutdown::shutdown(&mut *self.inner).await;
    }
}

// All other calls go to the real connection.

impl UniqueID for FramedStream {
    fn id(&self) -> UniqueIDType {
        self.inner.id()
    }
}

impl Ssl for FramedStream {
    fn get_ssl_digest(&self) -> Option<Arc<SslDigest>> {
        self.inner.get_ssl_digest()
    }
    fn selected_alpn_proto(&self) -> Option<ALPN> {
        self.inner.selected_alpn_proto()
    }
}

impl GetTimingDigest for FramedStream {
    fn get_timing_digest(&self) -> Vec<Option<TimingDigest>> {
        self.inner.get_timing_digest()
    }
    fn get_read_pending_time(&self) -> Duration {
        self.inner.get_read_pending_time()
    }
    fn get_write_pending_time(&self) -> Duration {
        self.inner.get_write_pending_time()
    }
}

impl GetProxyDigest for FramedStream {
    fn get_proxy_digest(&self) -> Option<Arc<ProxyDigest>> {
        self.inner.get_proxy_digest()
    }
    fn set_proxy_digest(&mut self, digest: ProxyDigest) {
        self.inner.set_proxy_digest(digest);
    }
}

impl GetSocketDigest for FramedStream {
    fn get_socket_digest(&self) -> Option<Arc<SocketDigest>> {
        self.inner.get_socket_digest()
    }
    fn set_socket_digest(&mut self, digest: SocketDigest) {
        self.inner.set_socket_digest(digest);
    }
}

impl Peek for FramedStream {}

#[cfg(test)]
#[path = "framed_stream_tests.rs"]
mod tests;
