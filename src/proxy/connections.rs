//! Client connections: how many there may be, and how long one may take to say what it wants.
//!
//! Stands between Pingora's listener and its proxy, because neither bounds either. A connection over the limit is
//! closed at once, without a byte; so is one whose request head is not there in time.

use std::cell::Cell;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use pingora::apps::{HttpServerApp, HttpServerOptions, ReusedHttpStream, ServerApp};
use pingora::protocols::Stream;
use pingora::protocols::http::ServerSession;
use pingora::protocols::http::v2::server::H2Options;
use pingora::server::ShutdownWatch;
use pingora_proxy::{HttpProxy, Session};
use tokio::time::Instant;

use crate::proxy::hooks::Proxy;
use crate::telemetry::metrics::Metrics;

/// How long a client connection may idle; one of HTTP/1 then has as long as any other for its next head.
pub const KEEPALIVE: Duration = Duration::from_secs(75);
/// Pingora's mark of a connection that is kept, and for which it starts no timer of its own.
const KEPT: Option<u64> = Some(0);
/// What HTTP/2 begins with where no handshake has settled it, as far as no request of HTTP/1 does.
const HTTP2: [u8; 3] = *b"PRI";

tokio::task_local! {
    /// What this connection is waited on for.
    static WAIT: HeadDeadline;
}

/// See [`WAIT`].
struct HeadDeadline {
    /// Until when its next head has to be there, or its handshake be over; none while neither is waited for.
    due: Cell<Option<Instant>>,
    /// Whether it began as HTTP/2 does.
    is_http2: bool,
    /// Whether it is in HTTP/2's handshake.
    is_greeting: Cell<bool>,
}

impl HeadDeadline {
    fn new(is_http2: bool, within: Duration) -> Self {
        Self {
            due: Cell::new(Some(Instant::now() + within)),
            is_http2,
            is_greeting: Cell::new(false),
        }
    }
}

/// Says that the head of this task's request is there.
pub fn saw_head() {
    // HTTP/2 streams begin with their head, on tasks of their own: nobody waits for it.
    _ = WAIT.try_with(|wait| wait.due.set(None));
}

/// Keeps the connection of a request for the next one, unless the client wants it closed, or framed its request so that
/// it has to be.
pub fn keep(session: &mut Session) {
    if session.get_keepalive().is_some() {
        session.set_keepalive(KEPT);
    }
}

/// Counts connections.
pub struct ConnectionLimiter {
    heads: Arc<TimedProxy>,
    most: usize,
    open: AtomicUsize,
    metrics: Arc<Metrics>,
}

impl ConnectionLimiter {
    /// Lets at most `most` connections through to `proxy`; each has `head_within` for a request's head.
    pub fn new(
        proxy: HttpProxy<Proxy>,
        most: usize,
        head_within: Duration,
        metrics: &Arc<Metrics>,
    ) -> Self {
        let mut http1 = proxy.server_options.clone().unwrap_or_default();
        http1.h2c = false;
        let heads = TimedProxy {
            proxy: Arc::new(proxy),
            http1,
            within: head_within,
        };
        Self {
            heads: Arc::new(heads),
            most,
            open: AtomicUsize::new(0),
            metrics: Arc::clone(metrics),
        }
    }
}

/// One connection, counted until it is dropped.
struct ConnectionGuard<'f>(&'f ConnectionLimiter);

impl<'f> ConnectionGuard<'f> {
    fn count(front: &'f ConnectionLimiter) -> (Self, usize) {
        front.metrics.connections.inc();
        let before = front.open.fetch_add(1, Ordering::Relaxed);
        (Self(front), before)
    }
}

impl Drop for ConnectionGuard<'_> {
    fn drop(&mut self) {
        self.0.metrics.connections.dec();
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

#[async_trait]
impl ServerApp for ConnectionLimiter {
    async fn process_new(
        self: &Arc<Self>,
        mut stream: Stream,
        shutdown: &ShutdownWatch,
    ) -> Option<Stream> {
        let (_open, before) = ConnectionGuard::count(self);
        if before >= self.most {
            self.metrics.connections_refused.inc();
            return None;
        }
        // Pingora would wait without end for as many bytes as HTTP/2 begins with, which is more than some requests have.
        let within = self.heads.within;
        let mut start = [0; HTTP2.len()];
        let first = tokio::time::timeout(within, stream.try_peek(&mut start)).await;
        first.ok()?.ok()?;
        let work = self.heads.process_new(stream, shutdown);
        WAIT.scope(HeadDeadline::new(start == HTTP2, within), async {
            tokio::select! {
                biased;
                reused = work => reused,
                () = is_late(within) => None,
            }
        })
        .await
    }

    async fn cleanup(&self) {
        self.heads.cleanup().await;
    }
}

/// Keeps time for request heads.
struct TimedProxy {
    proxy: Arc<HttpProxy<Proxy>>,
    /// The options for connections that do not begin as HTTP/2 does.
    http1: HttpServerOptions,
    within: Duration,
}

#[async_trait]
impl HttpServerApp for TimedProxy {
    // As `async_trait` would have it, but for one more future around Pingora's, once a request.
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
        if session.as_http1().is_some() {
            // A kept connection may be silent for a while before its next request.
            let is_kept = session.get_keepalive() == KEPT;
            let within = self.within + if is_kept { KEEPALIVE } else { Duration::ZERO };
            _ = WAIT.try_with(|wait| wait.due.set(Some(Instant::now() + within)));
        }
        self.proxy.process_new_http(session, shutdown)
    }

    fn server_options(&self) -> Option<&HttpServerOptions> {
        let is_http2 = WAIT.try_with(|wait| {
            // Pingora asks again behind the handshake, and then for streams: they come when they come.
            if wait.is_greeting.take() {
                wait.due.set(None);
            }
            wait.is_http2
        });
        match is_http2 {
            Ok(false) => Some(&self.http1),
            _ => self.proxy.server_options(),
        }
    }

    fn h2_options(&self) -> Option<H2Options> {
        // Pingora asks right before the handshake.
        _ = WAIT.try_with(|wait| {
            wait.is_greeting.set(true);
            wait.due.set(Some(Instant::now() + self.within));
        });
        self.proxy.h2_options()
    }

    async fn http_cleanup(&self) {
        self.proxy.http_cleanup().await;
    }
}

/// Returns once a head is not there in time.
///
/// Looks up at due moments alone, so that a request costs no timer: nothing is due sooner than `within` from when its
/// connection began to wait for it.
async fn is_late(within: Duration) {
    let mut at = Instant::now() + within;
    loop {
        tokio::time::sleep_until(at).await;
        let now = Instant::now();
        at = match WAIT.with(|wait| wait.due.get()) {
            Some(due) if due <= now => return,
            Some(due) => due,
            None => now + within,
        };
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;

    use super::*;

    const WITHIN: Duration = Duration::from_secs(10);

    /// How long it takes until a connection is late that does this.
    async fn late_after(connection: impl Future<Output = ()>) -> u64 {
        let begun = Instant::now();
        let works = async {
            connection.await;
            std::future::pending::<()>().await;
        };
        let both = async {
            tokio::select! {
                () = works => {}
                () = is_late(WITHIN) => {}
            }
        };
        WAIT.scope(HeadDeadline::new(false, WITHIN), both).await;
        begun.elapsed().as_secs()
    }

    async fn after(seconds: u64, due: Option<u64>) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        let due = due.map(|seconds| Instant::now() + Duration::from_secs(seconds));
        WAIT.with(|wait| wait.due.set(due));
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_connection_is_late() {
        assert_eq!(late_after(async {}).await, 10);
    }

    #[tokio::test(start_paused = true)]
    async fn a_second_head_is_late_by_its_own_moment() {
        let connection = async {
            after(3, None).await;
            after(2, Some(85)).await;
        };
        assert_eq!(late_after(connection).await, 90);
    }

    #[tokio::test(start_paused = true)]
    async fn a_moment_that_moves_while_nobody_looks_counts_where_it_is() {
        let connection = async {
            after(9, None).await;
            after(0, Some(20)).await;
            after(18, None).await;
            after(0, Some(12)).await;
        };
        assert_eq!(late_after(connection).await, 39);
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_behind_a_long_answer_is_late_too() {
        let connection = async {
            after(1, None).await;
            after(3600, Some(10)).await;
        };
        assert_eq!(late_after(connection).await, 3611);
    }
}
