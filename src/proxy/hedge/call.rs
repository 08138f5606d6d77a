//! The hedge's request and reply, on a connection of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream};
use http::Version;
use pingora::connectors::http::v1::Connector;
use pingora::http::RequestHeader;
use pingora::protocols::ALPN;
use pingora::protocols::http::v1::client::HttpSession;
use pingora::{Error, ErrorType, Result};

use super::Piece;
use crate::proxy::origin::Origin;

/// The pieces of a reply, or `None` if the call was not permitted.
pub(in crate::proxy) type HedgeReply = BoxStream<'static, Result<Option<Piece>>>;

/// Resolves to whether the hedge may be sent.
pub type Permission = BoxFuture<'static, bool>;

/// Makes the connections of hedges.
///
/// Our choice: each hedge gets a new HTTP/1.1 connection. Closing it cancels only the hedge, and a new connection is
/// never already closed.
pub struct HedgeConnector(Connector);

impl HedgeConnector {
    /// Returns a connector. It trusts the certificate authorities of the system.
    pub fn new() -> Self {
        Self(Connector::new(None))
    }
}

impl Default for HedgeConnector {
    fn default() -> Self {
        Self::new()
    }
}

/// A request to send as a hedge.
pub struct HedgeCall {
    pub connector: Arc<HedgeConnector>,
    pub origin: Arc<Origin>,
    /// The head, with the length of the body.
    pub head: RequestHeader,
    pub body: Vec<Bytes>,
    /// The maximum time of each read.
    pub read_timeout: Duration,
    /// The permission that is awaited before the provider is asked.
    pub permission: Option<Permission>,
}

enum CallStep {
    Open(Box<HedgeCall>, Arc<AtomicBool>),
    Read(Box<HttpSession>),
    Ended,
}

impl HedgeCall {
    /// Returns the reply. Nothing happens until the stream is polled, and dropping it closes the connection. It sets
    /// `is_sent` once the whole request is sent.
    pub(in crate::proxy) fn run(self, is_sent: Arc<AtomicBool>) -> HedgeReply {
        let first = CallStep::Open(Box::new(self), is_sent);
        stream::try_unfold(first, |step| step.next()).boxed()
    }

    async fn open(mut self, is_sent: &AtomicBool) -> Result<HttpSession> {
        let mut peer = self.origin.peer().await?;
        peer.options.alpn = ALPN::H1;
        let (mut session, _) = self.connector.0.get_http_session(&peer).await?;
        session.read_timeout = Some(self.read_timeout);
        session.write_timeout = peer.options.write_timeout;
        self.head.set_version(Version::HTTP_11);
        session.write_request_header(Box::new(self.head)).await?;
        for piece in &self.body {
            session.write_body(piece).await?;
        }
        is_sent.store(true, Ordering::Relaxed);
        session.finish_body().await?;
        Ok(session)
    }
}

impl CallStep {
    /// Returns the next piece and the next step.
    async fn next(self) -> Result<Option<(Option<Piece>, Self)>> {
        match self {
            Self::Open(mut call, is_sent) => {
                if let Some(permission) = call.permission.take()
                    && !permission.await
                {
                    return Ok(Some((None, Self::Ended)));
                }
                let mut session = call.open(&is_sent).await?;
                let head = read_head(&mut session).await?;
                Ok(Some((Some(head), Self::Read(Box::new(session)))))
            }
            Self::Read(mut session) => loop {
                match session.read_body_bytes().await? {
                    Some(bytes) if bytes.is_empty() => {}
                    Some(bytes) => {
                        return Ok(Some((Some(Piece::Body(bytes)), Self::Read(session))));
                    }
                    None => return Ok(None),
                }
            },
            Self::Ended => Ok(None),
        }
    }
}

/// Reads the head of the reply, and skips informational ones.
async fn read_head(session: &mut HttpSession) -> Result<Piece> {
    loop {
        session.read_response().await?;
        match session.resp_header() {
            Some(head) if head.status.is_informational() => {}
            Some(head) => return Ok(Piece::Head(Box::new(head.clone()))),
            None => return Error::e_explain(ErrorType::ReadError, "no head was read"),
        }
    }
}
