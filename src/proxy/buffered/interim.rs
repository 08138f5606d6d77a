//! What may happen between a request and its response, where the protocol above HTTP has words for it: the client takes the request
//! back, and it is told how far the work is.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::kept_stream::KeptStream;

/// The least time between two notices.
const NOTICE_INTERVAL: Duration = Duration::from_millis(500);

/// Whether a request was taken back. The exchange then ends as if its client had left, and the client gets an empty 202, or the end of
/// its stream.
#[derive(Debug, Default)]
pub struct Cancellation {
    is_cancelled: AtomicBool,
    news: Notify,
}

impl Cancellation {
    /// Takes the request back.
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Release);
        self.news.notify_one();
    }

    /// Waits until the request is taken back. One task waits.
    pub(super) async fn cancelled(&self) {
        while !self.is_cancelled.load(Ordering::Acquire) {
            self.news.notified().await;
        }
    }
}

/// What may happen before the response to one request.
pub struct Interim {
    pub(super) cancellation: Arc<Cancellation>,
    /// The headers of the response, beside those of all responses.
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    /// What a client finds that has lost its connection and comes back.
    pub(super) kept: Option<Arc<KeptStream>>,
    notices: Option<Notices>,
}

/// The notices of a response that is an event stream.
struct Notices {
    /// After how long without a write a comment is due.
    keepalive: Duration,
    next: Mutex<Next>,
}

#[derive(Default)]
struct Next {
    /// The newest notice that was not sent.
    bytes: Option<Bytes>,
    sent: Option<Instant>,
}

impl Interim {
    /// Returns that of a response with these headers. With `keepalive` it is an event stream, which takes notices, and a comment
    /// after so long without any.
    pub fn new(
        cancellation: Arc<Cancellation>,
        headers: Vec<(HeaderName, HeaderValue)>,
        keepalive: Option<Duration>,
    ) -> Self {
        let notices = keepalive.map(|keepalive| Notices {
            keepalive,
            next: Mutex::default(),
        });
        Self {
            cancellation,
            headers,
            kept: None,
            notices,
        }
    }

    /// Sets where a client goes on that has lost its connection.
    #[must_use]
    pub fn with_kept(self, kept: Option<Arc<KeptStream>>) -> Self {
        Self { kept, ..self }
    }

    /// Tells the client something, unless the response is no stream. It replaces what was not sent yet, so a client that reads
    /// slowly holds nothing up.
    pub fn tell(&self, notice: Bytes) {
        if let Some(notices) = &self.notices {
            notices.next().bytes = Some(notice);
        }
    }

    /// Returns when the next notice or comment is due.
    pub(super) fn due(&self, last_write: Instant) -> Option<Instant> {
        let notices = self.notices.as_ref()?;
        let next = notices.next();
        Some(match (&next.bytes, next.sent) {
            (None, _) => last_write + notices.keepalive,
            (Some(_), None) => last_write,
            (Some(_), Some(sent)) => sent + NOTICE_INTERVAL,
        })
    }

    /// Takes the notice that is due, if there is one.
    pub(super) fn take_notice(&self, now: Instant) -> Option<Bytes> {
        let mut next = self.notices.as_ref()?.next();
        let bytes = next.bytes.take()?;
        next.sent = Some(now);
        Some(bytes)
    }
}

impl Notices {
    fn next(&self) -> MutexGuard<'_, Next> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_notice_is_sent_twice_a_second_at_the_most() {
        let now = Instant::now();
        let minute = Duration::from_secs(60);
        let interim = Interim::new(Arc::default(), Vec::new(), Some(minute));
        assert_eq!(interim.due(now), Some(now + minute));
        interim.tell(Bytes::from_static(b"1"));
        assert_eq!(interim.due(now), Some(now));
        assert_eq!(interim.take_notice(now).as_deref(), Some(&b"1"[..]));
        assert_eq!(
            (interim.take_notice(now), interim.due(now)),
            (None, Some(now + minute))
        );
        interim.tell(Bytes::from_static(b"2"));
        interim.tell(Bytes::from_static(b"3"));
        assert_eq!(interim.due(now), Some(now + NOTICE_INTERVAL));
        assert_eq!(interim.take_notice(now).as_deref(), Some(&b"3"[..]));
        // One body takes none.
        let whole = Interim::new(Arc::default(), Vec::new(), None);
        whole.tell(Bytes::from_static(b"1"));
        assert_eq!((whole.due(now), whole.take_notice(now)), (None, None));
    }
}
