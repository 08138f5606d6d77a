//! The streams that tell clients of OpenFeature's protocol when their flags may have changed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use filters::decisions::ofrep;
use futures::future::BoxFuture;
use tokio::sync::watch::Receiver;
use tokio::time::{Instant, timeout_at};

use super::datafiles::announcer::Announcer;
use super::datafiles::loaded::LoadedDatafile;
use super::stream_tickets::StreamTickets;
use crate::proxy::response::EventSource;

/// The time without an event after which a comment shows that the stream is alive.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(15);
/// A stream that begins so soon after a datafile announces it: its client may have evaluated its flags before.
const RECENT: Duration = Duration::from_secs(30);

/// The path of the streams.
pub const PATH: &str = "/ofrep/v1/event-stream";

/// The streams of a configuration.
pub struct ChangeStreams {
    pub announcer: Announcer,
    pub tickets: StreamTickets,
    /// The maximum number of open streams.
    pub max: usize,
    /// The number of open streams, of earlier configurations too.
    pub open: Arc<AtomicUsize>,
}

/// Counts an open stream until it is dropped.
struct OpenStream(Arc<AtomicUsize>);

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl ChangeStreams {
    /// Returns the path and the query of a stream for clients with this SDK key, or `None` while there is no room for one.
    /// Clients without a stream poll.
    pub fn uri(&self, sdk_key: &str, now_ms: u64) -> Option<String> {
        let has_room = self.open.load(Ordering::Relaxed) < self.max;
        let ticket = has_room.then(|| self.tickets.write(sdk_key, now_ms))??;
        Some(format!("{PATH}?ticket={ticket}"))
    }

    /// Takes room for a stream. Returns `None` if too many are open.
    fn take_room(&self) -> Option<OpenStream> {
        // A stream that finds no room gives it back at once.
        let room = OpenStream(Arc::clone(&self.open));
        (self.open.fetch_add(1, Ordering::Relaxed) < self.max).then_some(room)
    }

    /// Opens a stream, which waits for the project of its SDK key: `loaded` returns it. `datafile_key` is the key under which it is
    /// announced, and `last_event_id` is that of the client's stream before.
    ///
    /// Errors: those of `loaded`; `None` if too many streams are open.
    pub async fn open<E>(
        &self,
        datafile_key: &str,
        last_event_id: Option<&[u8]>,
        loaded: impl Future<Output = Result<Arc<LoadedDatafile>, E>>,
    ) -> Result<Option<ChangeStream>, E> {
        let Some(room) = self.take_room() else {
            return Ok(None);
        };
        // A datafile that comes in force in between is announced twice rather than never.
        let changes = self.announcer.subscribe(datafile_key);
        let loaded = loaded.await?;
        Ok(Some(ChangeStream::new(
            changes,
            &loaded,
            last_event_id,
            room,
        )))
    }
}

/// The changes of one SDK key's datafile.
pub struct ChangeStream {
    /// The tags of datafiles.
    changes: Receiver<Arc<str>>,
    /// The tag that the client knows.
    known: Arc<str>,
    /// An event that is due at once.
    due: Option<Arc<str>>,
    quiet_until: Instant,
    _room: OpenStream,
}

impl ChangeStream {
    fn new(
        changes: Receiver<Arc<str>>,
        loaded: &LoadedDatafile,
        last_event_id: Option<&[u8]>,
        room: OpenStream,
    ) -> Self {
        let etag = &loaded.etag;
        let is_due = match last_event_id {
            Some(last) => last != etag.as_bytes(),
            None => loaded.loaded_at.elapsed() < RECENT,
        };
        Self {
            changes,
            known: Arc::clone(etag),
            due: is_due.then(|| Arc::clone(etag)),
            quiet_until: Instant::now() + HEARTBEAT_INTERVAL,
            _room: room,
        }
    }

    /// Waits for the next bytes of the stream. Returns `None` at its end. Cancel safety: a dropped call loses nothing.
    async fn next_bytes(&mut self) -> Option<Bytes> {
        let bytes = match self.due.take() {
            Some(etag) => ofrep::refetch_event(&etag).into(),
            None => self.next_change().await?,
        };
        self.quiet_until = Instant::now() + HEARTBEAT_INTERVAL;
        Some(bytes)
    }

    async fn next_change(&mut self) -> Option<Bytes> {
        loop {
            let Ok(changed) = timeout_at(self.quiet_until, self.changes.changed()).await else {
                return Some(Bytes::from_static(b": alive\n\n"));
            };
            changed.ok()?;
            let etag = Arc::clone(&self.changes.borrow_and_update());
            if etag != self.known {
                self.known = Arc::clone(&etag);
                return Some(ofrep::refetch_event(&etag).into());
            }
        }
    }
}

impl EventSource for ChangeStream {
    fn next(&mut self) -> BoxFuture<'_, Option<Bytes>> {
        Box::pin(self.next_bytes())
    }
}
