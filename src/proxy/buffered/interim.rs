//! Events between a request and its response, in protocols above HTTP that have them: the client cancels the request,
//! or gets notices about its progress.

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

/// Whether the client has cancelled a request. The exchange then ends as if the client had disconnected, and the
/// client gets an empty 202, or the end of its stream.
#[derive(Debug, Default)]
pub struct Cancellation {
    is_cancelled: AtomicBool,
    news: Notify,
}

impl Cancellation {
    /// Cancels the request.
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Release);
        self.news.notify_one();
    }

    /// Waits until the request is cancelled. Only one task may wait.
    pub(super) async fn cancelled(&self) {
        while !self.is_cancelled.load(Ordering::Acquire) {
            self.news.notified().await;
        }
    }
}

/// The events that may happen before the response to one request.
pub struct Interim {
    pub(super) cancellation: Arc<Cancellation>,
    /// The headers of the response, in addition to those of all responses.
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    /// The stream to which a client can return after it lost its connection.
    pub(super) kept: Option<Arc<KeptStream>>,
    notices: Option<Notices>,
}

/// The notices of a response that is an event stream.
struct Notices {
    /// A comment is due after this time without a write.
    keepalive: Duration,
    next: Mutex<Next>,
}

#[derive(Default)]
struct Next {
    /// The first event of the stream, if it was not sent.
    opening: Option<Bytes>,
    /// The newest notice, if it was not sent.
    bytes: Option<Bytes>,
    sent: Option<Instant>,
}

impl Interim {
    /// Returns the events of a response with these headers. With `keepalive` the response is an event stream, which
    /// takes notices, and comments after that time without a write.
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

    /// Sets the stream to which a client can return after it lost its connection.
    #[must_use]
    pub fn with_kept(self, kept: Option<Arc<KeptStream>>) -> Self {
        Self { kept, ..self }
    }

    /// Sends the first event of the stream, if the response is one. Nothing replaces it.
    pub fn send_opening(&self, opening: Bytes) {
        if let Some(notices) = &self.notices {
            notices.next().opening = Some(opening);
        }
    }

    /// Takes the first event of the stream if it was not sent: for what has come before it could be.
    pub fn take_opening(&self) -> Option<Bytes> {
        self.notices.as_ref()?.next().opening.take()
    }

    /// Sends a notice to the client if the response is a stream. It replaces an unsent notice, so a slow client holds
    /// nothing up.
    pub fn send_notice(&self, notice: Bytes) {
        if let Some(notices) = &self.notices {
            notices.next().bytes = Some(notice);
        }
    }

    /// Returns when the next notice or comment is due.
    pub(super) fn due(&self, last_write: Instant) -> Option<Instant> {
        let notices = self.notices.as_ref()?;
        let next = notices.next();
        if next.opening.is_some() {
            return Some(last_write);
        }
        Some(match (&next.bytes, next.sent) {
            (None, _) => last_write + notices.keepalive,
            (Some(_), None) => last_write,
            (Some(_), Some(sent)) => sent + NOTICE_INTERVAL,
        })
    }

    /// Takes the notice that is due.
    pub(super) fn take_notice(&self, now: Instant) -> Option<Bytes> {
        let mut next = self.notices.as_ref()?.next();
        let opening = next.opening.take();
        let bytes = opening.or_else(|| next.bytes.take())?;
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
        interim.send_notice(Bytes::from_static(b"1"));
        assert_eq!(interim.due(now), Some(now));
        assert_eq!(interim.take_notice(now).as_deref(), Some(&b"1"[..]));
        assert_eq!(
            (interim.take_notice(now), interim.due(now)),
            (None, Some(now + minute))
        );
        interim.send_notice(Bytes::from_static(b"2"));
        interim.send_notice(Bytes::from_static(b"3"));
        assert_eq!(interim.due(now), Some(now + NOTICE_INTERVAL));
        assert_eq!(interim.take_notice(now).as_deref(), Some(&b"3"[..]));
        // The beginning of a stream goes before everything.
        interim.send_notice(Bytes::from_static(b"5"));
        interim.send_opening(Bytes::from_static(b"4"));
        assert_eq!(interim.due(now), Some(now));
        assert_eq!(interim.take_notice(now).as_deref(), Some(&b"4"[..]));
        assert_eq!(interim.take_notice(now).as_deref(), Some(&b"5"[..]));
        interim.send_opening(Bytes::from_static(b"6"));
        assert_eq!(interim.take_opening().as_deref(), Some(&b"6"[..]));
        assert_eq!(
            (interim.take_opening(), interim.take_notice(now)),
            (None, None)
        );
        // One body takes none.
        let whole = Interim::new(Arc::default(), Vec::new(), None);
        whole.send_notice(Bytes::from_static(b"1"));
        assert_eq!((whole.due(now), whole.take_notice(now)), (None, None));
    }
}
