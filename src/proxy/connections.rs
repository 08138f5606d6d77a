//! Limits client connections: their number, in all and by address, and the time that each may take to send a request head.
//!
//! It stands between Pingora's listener and its proxy, because neither has these limits. A connection over the limit is
//! closed at once, without a byte, and so is a connection that does not send a head in time.

use std::cell::Cell;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::OptionFuture;
use pingora::apps::{HttpServerApp, HttpServerOptions, ReusedHttpStream, ServerApp};
use pingora::protocols::http::ServerSession;
use pingora::protocols::http::v2::server::H2Options;
use pingora::protocols::{ALPN, Stream};
use pingora::server::ShutdownWatch;
use pingora_proxy::{HttpProxy, Session};
use tokio::time::Instant;

use super::address_limits::{AddressConnection, AddressLimits, TooManyConnections};
use super::state::ProxyState;
use super::stream_resets::StreamResets;
use crate::config::{Cidr, Listen};
use crate::proxy::hooks::Proxy;
use crate::proxy::tls::Tls;
use crate::telemetry::metrics::Metrics;

/// How long a client connection may idle between requests. After that, an HTTP/1 connection still has the timeout of a
/// head.
pub const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(75);
/// Pingora's value for a connection that stays open without a timer of Pingora's own.
const UNTIMED_KEEPALIVE: Option<u64> = Some(0);
/// The start of HTTP/2's connection preface. No HTTP/1 request starts with it.
const HTTP2_PREFACE: [u8; 3] = *b"PRI";

tokio::task_local! {
    /// The deadline of the connection that this task serves.
    static HEAD_DEADLINE: HeadDeadline;
}

/// The deadline of a connection for its next request head.
struct HeadDeadline {
    /// When the next head or the end of the handshake is due; `None` while neither is expected.
    due: Cell<Option<Instant>>,
    /// How long a head may take.
    timeout: Duration,
    /// Whether the connection started with HTTP/2's preface.
    is_http2: bool,
    /// Whether HTTP/2's handshake is running.
    is_in_handshake: Cell<bool>,
}

impl HeadDeadline {
    fn new(is_http2: bool, timeout: Duration) -> Self {
        Self {
            due: Cell::new(Some(Instant::now() + timeout)),
            timeout,
            is_http2,
            is_in_handshake: Cell::new(false),
        }
    }
}

/// Clears the deadline of this task's connection, because a head has arrived.
pub fn clear_head_deadline() {
    // An HTTP/2 stream starts with its head, on a task of its own that has no deadline.
    _ = HEAD_DEADLINE.try_with(|deadline| deadline.due.set(None));
}

/// Sets the deadline of the next head on this task's connection, because a request has ended at `now`.
pub fn expect_next_head(now: Instant) {
    // The streams of an HTTP/2 connection have no deadline. The connection may idle before its next request.
    _ = HEAD_DEADLINE.try_with(|deadline| {
        if !deadline.is_http2 {
            let due = now + deadline.timeout + KEEPALIVE_TIMEOUT;
            deadline.due.set(Some(due));
        }
    });
}

/// Keeps the connection of a request open for the next one, unless the client asked to close it or the framing of the
/// request forces that.
pub fn enable_keepalive(session: &mut Session) {
    if session.get_keepalive().is_some() {
        session.set_keepalive(UNTIMED_KEEPALIVE);
    }
}

/// Limits the number of client connections.
pub struct ConnectionLimiter {
    /// Encrypts the connections, if they are to be encrypted.
    tls: Option<Tls>,
    proxy: Arc<TimedProxy>,
    max_connections: usize,
    open_connections: AtomicUsize,
    address_limits: Arc<AddressLimits>,
    stream_resets: Arc<StreamResets>,
    trusted_proxies: Vec<Cidr>,
    metrics: Arc<Metrics>,
}

impl ConnectionLimiter {
    /// Creates a limiter in front of `proxy`, with the limits of the configuration. A handshake of TLS has the time of a
    /// request head.
    pub fn new(
        proxy: HttpProxy<Proxy>,
        tls: Option<Tls>,
        listen: &Listen,
        state: &ProxyState,
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
            max_connections: listen.max_connections,
            open_connections: AtomicUsize::new(0),
            address_limits: Arc::clone(&state.address_limits),
            stream_resets: Arc::clone(&state.stream_resets),
            trusted_proxies: listen.trusted_proxies.clone(),
            metrics: Arc::clone(&state.metrics),
        }
    }

    /// Counts a connection of its address, if there is a limit. A trusted proxy has the connections of many clients.
    fn count_address(
        &self,
        client: Option<SocketAddr>,
    ) -> Result<Option<AddressConnection>, TooManyConnections> {
        let Some(address) = client.map(|client| client.ip()) else {
            return Ok(None);
        };
        let mut trusted = self.trusted_proxies.iter();
        if trusted.any(|block| block.contains(address)) {
            return Ok(None);
        }
        self.address_limits.open(address)
    }

    /// Encrypts the connection, if that is wanted. Returns it, and whether the client speaks HTTP/2; `None` if the client
    /// gives up.
    async fn negotiate(&self, mut stream: Stream) -> Option<(Stream, bool)> {
        if let Some(tls) = &self.tls {
            // Boxed, because the state of a handshake is large and every connection would keep room for it.
            let stream = Box::pin(tls.accept(stream)).await?;
            let is_http2 = matches!(stream.selected_alpn_proto(), Some(ALPN::H2));
            return Some((stream, is_http2));
        }
        // Pingora itself would wait without a limit for the whole preface, which is longer than some HTTP/1 requests.
        let mut start = [0; HTTP2_PREFACE.len()];
        stream.try_peek(&mut start).await.ok()?;
        Some((stream, start == HTTP2_PREFACE))
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
    /// Counts a connection; returns the guard and the number of connections that were open before.
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
        let served = self.proxy.process_new(stream, shutdown);
        let deadline = HeadDeadline::new(is_http2, timeout);
        let timed = async {
            tokio::select! {
                biased;
                reused = served => reused,
                () = head_expired(timeout) => None,
                Some(()) = abandoned => None,
            }
        };
        HEAD_DEADLINE.scope(deadline, timed).await
    }

    async fn cleanup(&self) {
        self.proxy.cleanup().await;
    }
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
    // Written out because `async_trait` would add one more future around Pingora's for each request. It does nothing else:
    // with a look at `session` the compiler copied the whole future of Pingora, 14 KB, for each request.
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
        let is_http2 = HEAD_DEADLINE.try_with(|deadline| {
            // Pingora calls this again after the handshake; the streams that follow have no deadline.
            if deadline.is_in_handshake.take() {
                deadline.due.set(None);
            }
            deadline.is_http2
        });
        match is_http2 {
            Ok(false) => Some(&self.http1_options),
            _ => self.proxy.server_options(),
        }
    }

    fn h2_options(&self) -> Option<H2Options> {
        // Pingora calls this right before the handshake.
        _ = HEAD_DEADLINE.try_with(|deadline| {
            deadline.is_in_handshake.set(true);
            let due = Instant::now() + self.head_timeout;
            deadline.due.set(Some(due));
        });
        self.proxy.h2_options()
    }

    async fn http_cleanup(&self) {
        self.proxy.http_cleanup().await;
    }
}

/// Returns once the deadline of this task's connection has passed.
///
/// It reads the deadline only when one may be due, so that a request costs no timer: every deadline is at least
/// `timeout` after the moment at which it was set.
async fn head_expired(timeout: Duration) {
    let mut next_check = Instant::now() + timeout;
    loop {
        tokio::time::sleep_until(next_check).await;
        let now = Instant::now();
        next_check = match HEAD_DEADLINE.with(|deadline| deadline.due.get()) {
            Some(due) if due <= now => return,
            Some(due) => due,
            None => now + timeout,
        };
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;

    use super::*;

    const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

    /// Returns the seconds after which a connection that does this has expired.
    async fn expires_after(connection: impl Future<Output = ()>) -> u64 {
        let started = Instant::now();
        let serves = async {
            connection.await;
            std::future::pending::<()>().await;
        };
        let timed = async {
            tokio::select! {
                () = serves => {}
                () = head_expired(HEAD_TIMEOUT) => {}
            }
        };
        let deadline = HeadDeadline::new(false, HEAD_TIMEOUT);
        HEAD_DEADLINE.scope(deadline, timed).await;
        started.elapsed().as_secs()
    }

    /// Waits, then sets a deadline in this many seconds from then.
    async fn set_due_after(seconds: u64, due: Option<u64>) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        let due = due.map(|seconds| Instant::now() + Duration::from_secs(seconds));
        HEAD_DEADLINE.with(|deadline| deadline.due.set(due));
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_connection_expires() {
        assert_eq!(expires_after(async {}).await, 10);
    }

    #[tokio::test(start_paused = true)]
    async fn a_second_head_expires_at_its_own_deadline() {
        let connection = async {
            set_due_after(3, None).await;
            set_due_after(2, Some(85)).await;
        };
        assert_eq!(expires_after(connection).await, 90);
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_that_moves_between_checks_counts() {
        let connection = async {
            set_due_after(9, None).await;
            set_due_after(0, Some(20)).await;
            set_due_after(18, None).await;
            set_due_after(0, Some(12)).await;
        };
        assert_eq!(expires_after(connection).await, 39);
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_after_a_long_response_expires_too() {
        let connection = async {
            set_due_after(1, None).await;
            set_due_after(3600, Some(10)).await;
        };
        assert_eq!(expires_after(connection).await, 3611);
    }
}
