//! Limits client connections: their number, in total and by address, and the time in which each has to send a request
//! head.
//!
//! This code sits between Pingora's listener and its proxy, because neither has these limits. A connection over the
//! limit is closed at once, without a byte, and so is a connection that does not send a head in time.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use async_trait::async_trait;
use futures::future::OptionFuture;
use pingora::apps::{HttpServerApp, HttpServerOptions, ReusedHttpStream, ServerApp};
use pingora::protocols::http::ServerSession;
use pingora::protocols::http::v2::server::H2Options;
use pingora::protocols::{ALPN, Stream};
use pingora::server::ShutdownWatch;
use pingora_proxy::{HttpProxy, Session};

use super::address_limits::{AddressConnection, AddressLimits, TooManyConnections};
use super::connection_state::{self, CONNECTION, ConnectionState, head_expired};
use super::drain::Drain;
use super::framed_stream::FramedStream;
use super::state::ProxyState;
use super::stream_resets::StreamResets;
use crate::config::Listen;
use crate::proxy::hooks::Proxy;
use crate::proxy::tls::Tls;
use crate::telemetry::metrics::Metrics;

/// Pingora's value for a connection that stays open without a timer of Pingora's own.
const UNTIMED_KEEPALIVE: Option<u64> = Some(0);
/// HTTP/2's connection preface.
const HTTP2_PREFACE: [u8; 24] = *b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The bytes of the preface that are awaited from every client. Some HTTP/1 requests are shorter than the whole
/// preface.
const PREFACE_START_BYTES: usize = 3;

/// Keeps the connection of a request open for the next one, unless the client asked to close it, the framing of the
/// request forces that, or the process is about to end.
pub fn enable_keepalive(session: &mut Session, drain: &Drain) {
    if session.get_keepalive().is_some() {
        session.set_keepalive(UNTIMED_KEEPALIVE);
        close_if_draining(session, drain);
    }
}

/// Closes the connection after the response if the process is about to end. Call it before the head is sent.
pub fn close_if_draining(session: &mut Session, drain: &Drain) {
    if drain.has_begun() {
        session.set_keepalive(None);
    }
}

/// The limiter for new connections. A connection takes it once, and stays with it. Clones share it.
#[derive(Clone)]
pub struct CurrentLimiter(Arc<ArcSwap<ConnectionLimiter>>);

impl CurrentLimiter {
    /// Starts with this limiter.
    pub fn new(limiter: ConnectionLimiter) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(limiter)))
    }

    /// Returns the limiter for a new connection.
    pub fn get(&self) -> Arc<ConnectionLimiter> {
        self.0.load_full()
    }

    /// Replaces the limiter for new connections.
    pub fn replace(&self, limiter: ConnectionLimiter) {
        self.0.store(Arc::new(limiter));
    }
}

#[async_trait]
impl ServerApp for CurrentLimiter {
    async fn process_new(
        self: &Arc<Self>,
        stream: Stream,
        shutdown: &ShutdownWatch,
    ) -> Option<Stream> {
        self.get().process_new(stream, shutdown).await
    }

    async fn cleanup(&self) {
        self.get().cleanup().await;
    }
}

/// Limits the number of client connections.
pub struct ConnectionLimiter {
    /// Encrypts the connections if TLS is configured.
    tls: Option<Tls>,
    proxy: Arc<TimedProxy>,
    /// Whether clients without TLS may speak HTTP/2.
    is_http2_on: bool,
    max_head_bytes: usize,
    max_connections: usize,
    open_connections: Arc<AtomicUsize>,
    address_limits: Arc<AddressLimits>,
    stream_resets: Arc<StreamResets>,
    metrics: Arc<Metrics>,
}

impl ConnectionLimiter {
    /// Creates a limiter in front of `proxy`, with the limits of the configuration. A TLS handshake has the same time
    /// as a request head. The connections of the limiter `before` count on.
    pub fn new(
        (proxy, tls): (HttpProxy<Proxy>, Option<Tls>),
        listen: &Listen,
        state: &ProxyState,
        before: Option<&Self>,
    ) -> Self {
        let mut http1_options = proxy.server_options.clone().unwrap_or_default();
        http1_options.h2c = false;
        let proxy = TimedProxy {
            proxy: Arc::new(proxy),
            http1_options,
            head_timeout: listen.header_timeout,
        };
        Self {
            tls,
            proxy: Arc::new(proxy),
            is_http2_on: listen.http2,
            max_head_bytes: listen.header_bytes,
            max_connections: listen.max_connections,
            open_connections: before
                .map(|before| Arc::clone(&before.open_connections))
                .unwrap_or_default(),
            address_limits: Arc::clone(&state.address_limits),
            stream_resets: Arc::clone(&state.stream_resets),
            metrics: Arc::clone(&state.metrics),
        }
    }

    /// Counts a connection of an address, if there is a limit.
    fn count_address(
        &self,
        client: Option<SocketAddr>,
    ) -> Result<Option<AddressConnection>, TooManyConnections> {
        let opened = client.map(|client| self.address_limits.open(client.ip()));
        opened.unwrap_or(Ok(None))
    }

    /// Encrypts the connection if TLS is configured. Returns it, and whether the client speaks HTTP/2. Returns `None`
    /// if the client gives up.
    async fn negotiate(&self, mut stream: Stream) -> Option<(Stream, bool)> {
        if let Some(tls) = &self.tls {
            // Boxed, because the state of a handshake is large and every connection would reserve memory for it.
            let stream = Box::pin(tls.accept(stream)).await?;
            let is_http2 = matches!(stream.selected_alpn_proto(), Some(ALPN::H2));
            return Some((stream, is_http2));
        }
        // Pingora itself would wait without a limit for the whole preface, which is longer than some HTTP/1 requests.
        let mut start = [0; PREFACE_START_BYTES];
        stream.try_peek(&mut start).await.ok()?;
        if !self.is_http2_on || !HTTP2_PREFACE.starts_with(&start) {
            return Some((stream, false));
        }
        // Pingora takes a connection without the whole preface for HTTP/1, so only the whole preface may bypass the
        // framing checks of HTTP/1.
        let mut preface = [0; HTTP2_PREFACE.len()];
        stream.try_peek(&mut preface).await.ok()?;
        Some((stream, preface == HTTP2_PREFACE))
    }
}

/// Returns the address and port of a connection's client.
fn client_address(stream: &Stream) -> Option<SocketAddr> {
    let digest = stream.get_socket_digest()?;
    digest.peer_addr()?.as_inet().copied()
}

/// Counts one connection as open until it is dropped.
struct ConnectionGuard<'l>(&'l ConnectionLimiter);

impl<'l> ConnectionGuard<'l> {
    /// Counts a connection. Returns the guard and the number of connections that were open before.
    fn open(limiter: &'l ConnectionLimiter) -> (Self, usize) {
        limiter.metrics.connections.inc();
        let open_before = limiter.open_connections.fetch_add(1, Ordering::Relaxed);
        (Self(limiter), open_before)
    }
}

impl Drop for ConnectionGuard<'_> {
    fn drop(&mut self) {
        self.0.metrics.connections.dec();
        self.0.open_connections.fetch_sub(1, Ordering::Relaxed);
    }
}

#[async_trait]
impl ServerApp for ConnectionLimiter {
    async fn process_new(
        self: &Arc<Self>,
        stream: Stream,
        shutdown: &ShutdownWatch,
    ) -> Option<Stream> {
        let (_guard, open_before) = ConnectionGuard::open(self);
        let client = client_address(&stream);
        let of_address = self.count_address(client);
        if open_before >= self.max_connections || of_address.is_err() {
            self.metrics.connections_refused.inc();
            return None;
        }
        let timeout = self.proxy.head_timeout;
        let negotiated = tokio::time::timeout(timeout, self.negotiate(stream)).await;
        let Ok(Some((stream, is_http2))) = negotiated else {
            if self.tls.is_some() {
                self.metrics.tls_failures.inc();
            }
            return None;
        };
        let counted = client.filter(|_| is_http2);
        let counted = counted.map(|client| self.stream_resets.open(client));
        let abandoned = OptionFuture::from(counted.as_ref().map(|counted| counted.is_over()));
        let stream = match is_http2 {
            true => stream,
            false => Box::new(FramedStream::new(stream, self.max_head_bytes)),
        };
        let served = self.proxy.process_new(stream, shutdown);
        let state = ConnectionState::new(is_http2, timeout);
        let timed = async {
            tokio::select! {
                biased;
                reused = served => reused,
                () = head_expired(timeout) => None,
                Some(()) = abandoned => None,
            }
        };
        CONNECTION.scope(state, timed).await
    }

    /// Closes no idle connection, as Pingora would: a request may be on its way. Its response closes the connection, and the
    /// end of the process closes the others.
    async fn cleanup(&self) {}
}

/// Sets the deadlines of request heads.
struct TimedProxy {
    proxy: Arc<HttpProxy<Proxy>>,
    /// The options of connections that do not start with HTTP/2's preface.
    http1_options: HttpServerOptions,
    head_timeout: Duration,
}

#[async_trait]
impl HttpServerApp for TimedProxy {
    // Written out, because `async_trait` would wrap Pingora's future in another one for each request. The body does
    // not touch `session`: otherwise the compiler copied Pingora's whole future, 14 KB, for each request.
    fn process_new_http<'s, 'w, 'f>(
        self: &'s Arc<Self>,
        session: ServerSession,
        shutdown: &'w ShutdownWatch,
    ) -> Pin<Box<dyn Future<Output = Option<ReusedHttpStream>> + Send + 'f>>
    where
        's: 'f,
        'w: 'f,
        Self: 'f,
    {
        self.proxy.process_new_http(session, shutdown)
    }

    fn server_options(&self) -> Option<&HttpServerOptions> {
        match connection_state::is_http2() {
            Some(false) => Some(&self.http1_options),
            _ => self.proxy.server_options(),
        }
    }

    fn h2_options(&self) -> Option<H2Options> {
        // Pingora calls this directly before the handshake.
        connection_state::begin_handshake();
        self.proxy.h2_options()
    }
}
