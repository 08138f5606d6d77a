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
use pingora_proxy::HttpProxy;
use tokio::time::Instant;

use crate::gateway::Gateway;
use crate::metrics::Metrics;
use crate::request::KEEPALIVE;

tokio::task_local! {
    /// Until when the head has to be there that this connection waits for; none while it waits for none.
    static HEAD_DUE: Cell<Option<Instant>>;
}

/// Says that the head of this task's request is there.
pub fn saw_head() {
    // HTTP/2 streams begin with their head, on tasks of their own: nobody waits for it.
    _ = HEAD_DUE.try_with(|due| due.set(None));
}

/// Counts connections.
pub struct Front {
    heads: Arc<Heads>,
    most: usize,
    open: AtomicUsize,
    metrics: Arc<Metrics>,
}

impl Front {
    /// Lets at most `most` connections through to `proxy`; each has `head_within` for a request's head.
    pub fn new(
        proxy: HttpProxy<Gateway>,
        most: usize,
        head_within: Duration,
        metrics: &Arc<Metrics>,
    ) -> Self {
        let heads = Heads {
            proxy: Arc::new(proxy),
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
struct Open<'f>(&'f Front);

impl<'f> Open<'f> {
    fn count(front: &'f Front) -> (Self, usize) {
        front.metrics.connections.inc();
        let before = front.open.fetch_add(1, Ordering::Relaxed);
        (Self(front), before)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.metrics.connections.dec();
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

#[async_trait]
impl ServerApp for Front {
    async fn process_new(
        self: &Arc<Self>,
        mut stream: Stream,
        shutdown: &ShutdownWatch,
    ) -> Option<Stream> {
        let (_open, before) = Open::count(self);
        if before >= self.most {
            self.metrics.connections_refused.inc();
            return None;
        }
        // Pingora looks for HTTP/2's first bytes without a limit of time.
        let first = tokio::time::timeout(self.heads.within, stream.try_peek(&mut [0])).await;
        first.ok()?.ok()?;
        let work = self.heads.process_new(stream, shutdown);
        HEAD_DUE
            .scope(Cell::new(None), async {
                tokio::select! {
                    biased;
                    reused = work => reused,
                    () = head_is_late(self.heads.within) => None,
                }
            })
            .await
    }

    async fn cleanup(&self) {
        self.heads.cleanup().await;
    }
}

/// Keeps time for request heads.
struct Heads {
    proxy: Arc<HttpProxy<Gateway>>,
    within: Duration,
}

#[async_trait]
impl HttpServerApp for Heads {
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
            // A kept connection may be silent for a while before its next request. Pingora marks a new one by an
            // allowance of its own.
            let is_kept = session.get_keepalive() == Some(KEEPALIVE.as_secs());
            let within = self.within + if is_kept { KEEPALIVE } else { Duration::ZERO };
            _ = HEAD_DUE.try_with(|due| due.set(Some(Instant::now() + within)));
        }
        self.proxy.process_new_http(session, shutdown)
    }

    fn server_options(&self) -> Option<&HttpServerOptions> {
        self.proxy.server_options()
    }

    fn h2_options(&self) -> Option<H2Options> {
        self.proxy.h2_options()
    }

    async fn http_cleanup(&self) {
        self.proxy.http_cleanup().await;
    }
}

/// Returns once a head is not there in time.
///
/// Looks up at due moments alone, so that a request costs no timer: no head is due sooner than `within` from when its
/// connection began to wait for it.
async fn head_is_late(within: Duration) {
    let mut at = Instant::now() + within;
    loop {
        tokio::time::sleep_until(at).await;
        let now = Instant::now();
        at = match HEAD_DUE.with(Cell::get) {
            Some(due) if due <= now => return,
            Some(due) => due,
            None => now + within,
        };
    }
}
