//! The socket from which Pingora reads an adopted hedge.
//!
//! The socket gives an HTTP/1.1 reply without a length, which ends with the connection. The request was sent long
//! ago, so Pingora's writes are dropped.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use async_trait::async_trait;
use bytes::{BufMut, Bytes};
use futures::{StreamExt, stream};
use http::header;
use pingora::connectors::l4::Connect;
use pingora::http::{RequestHeader, ResponseHeader};
use pingora::protocols::ALPN;
use pingora::protocols::l4::socket::SocketAddr as PeerAddr;
use pingora::protocols::l4::stream::Stream;
use pingora::protocols::l4::virt::{VirtualSockOpt, VirtualSocket, VirtualSocketStream};
use pingora::upstreams::peer::HttpPeer;
use pingora::{Error, ErrorType, Result};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::call::HedgeReply;
use super::{Piece, Race};

/// Numbers the peers, so that Pingora's pool never confuses the connections of two hedges.
static NEXT_GROUP: AtomicU64 = AtomicU64::new(1);

/// A hedge that becomes Pingora's attempt.
pub struct Adopted {
    socket: Mutex<Option<ReplySocket>>,
}

impl Adopted {
    pub(super) fn new(kept: Vec<Piece>, reply: HedgeReply, race: Arc<Race>) -> Self {
        let socket = ReplySocket {
            ready: kept.into_iter().map(Piece::into_bytes).collect(),
            reply: Mutex::new(Some(reply)),
            race,
        };
        Self {
            socket: Mutex::new(Some(socket)),
        }
    }

    /// Returns one whose reply has come to its end: for a response of which only the end is left to write.
    pub fn ended() -> Arc<Self> {
        let head = ResponseHeader::build(200, None).map(|head| Piece::Head(Box::new(head)));
        let race = Arc::new(Race::new(Duration::ZERO));
        let kept = head.into_iter().collect();
        Arc::new(Self::new(kept, stream::empty().boxed(), race))
    }

    /// Returns the peer through which Pingora connects to the hedge.
    pub fn peer(self: Arc<Self>) -> HttpPeer {
        // Pingora needs an address, but the connector does not use it.
        let nobody = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let mut peer = HttpPeer::new(nobody, false, String::new());
        peer.group_key = NEXT_GROUP.fetch_add(1, Ordering::Relaxed);
        peer.options.alpn = ALPN::H1;
        peer.options.custom_l4 = Some(self);
        peer
    }

    /// Replaces the head of Pingora's request, which is not sent anywhere.
    ///
    /// Errors: none, unless the head cannot take another header.
    pub fn write_head(head: &mut RequestHeader) -> Result<()> {
        *head = RequestHeader::build("POST", b"/", None)?;
        head.insert_header(header::CONTENT_LENGTH, "0")
    }
}

impl fmt::Debug for Adopted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Adopted")
    }
}

#[async_trait]
impl Connect for Adopted {
    async fn connect(&self, _: &PeerAddr) -> Result<Stream> {
        let mut socket = self.socket.lock().unwrap_or_else(PoisonError::into_inner);
        match socket.take() {
            Some(socket) => Ok(VirtualSocketStream::new(Box::new(socket)).into()),
            None => Error::e_explain(ErrorType::ConnectError, "the hedge was taken before"),
        }
    }
}

/// The reply as the bytes of a connection.
struct ReplySocket {
    ready: VecDeque<Bytes>,
    /// The lock is never taken. It only makes the socket `Sync`.
    reply: Mutex<Option<HedgeReply>>,
    race: Arc<Race>,
}

impl fmt::Debug for ReplySocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReplySocket")
    }
}

impl AsyncRead for ReplySocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let socket = &mut *self;
        loop {
            if let Some(front) = socket.ready.front_mut() {
                let count = front.len().min(buffer.remaining());
                buffer.put_slice(&front.split_to(count));
                if front.is_empty() {
                    socket.ready.pop_front();
                }
                return Poll::Ready(Ok(()));
            }
            let reply = socket.reply.get_mut();
            let reply = reply.unwrap_or_else(PoisonError::into_inner);
            let Some(open) = reply else {
                return Poll::Ready(Ok(()));
            };
            match ready!(open.poll_next_unpin(context)) {
                Some(Ok(Some(piece))) => socket.ready.push_back(piece.into_bytes()),
                // The end of the connection. A hedge that was not permitted never becomes Pingora's attempt.
                Some(Ok(None)) | None => *reply = None,
                Some(Err(error)) => {
                    *reply = None;
                    socket.race.record_error(error);
                    return Poll::Ready(Err(io::Error::other("the hedge broke")));
                }
            }
        }
    }
}

impl AsyncWrite for ReplySocket {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl VirtualSocket for ReplySocket {
    fn set_socket_option(&self, _: VirtualSockOpt) -> io::Result<()> {
        Ok(())
    }
}

impl Piece {
    /// Returns the piece as bytes of a connection. The head says that the body ends with the connection, whatever the
    /// provider said.
    fn into_bytes(self) -> Bytes {
        match self {
            Self::Body(bytes) => bytes,
            Self::Head(head) => head_bytes(&head),
        }
    }
}

fn head_bytes(head: &ResponseHeader) -> Bytes {
    let mut out = Vec::with_capacity(1024);
    out.put_slice(b"HTTP/1.1 ");
    out.put_slice(head.status.as_str().as_bytes());
    out.put_slice(b" \r\n");
    let framing = [
        header::CONNECTION,
        header::CONTENT_LENGTH,
        header::TRANSFER_ENCODING,
        header::UPGRADE,
    ];
    for (name, value) in &head.headers {
        if !framing.contains(name) {
            out.put_slice(name.as_str().as_bytes());
            out.put_slice(b": ");
            out.put_slice(value.as_bytes());
            out.put_slice(b"\r\n");
        }
    }
    out.put_slice(b"connection: close\r\n\r\n");
    out.into()
}
