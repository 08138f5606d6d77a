//! The stream of `GET /mcp`, which announces changes of lists to a session.
//!
//! Only the list of prompts can change while a process runs; tools and resources are fixed by the configuration. The
//! id of an event is the version of the list as the caller sees it. So a client that resumes, in any process, learns
//! whether it has missed a change. One event may stand for several changes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use filters::accounts::Caller;
use filters::fault::{ExceededLimit, Fault};
use filters::mcp::session::Session;
use filters::mcp::stream;
use futures::future::BoxFuture;
use tokio::time::Instant;

use super::McpState;
use crate::proxy::response::EventSource;

/// The interval at which a stream checks for changes.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// The milliseconds after which a key with all its streams open may try again.
const RETRY_MS: u64 = 10_000;

/// The number of streams of each API key.
#[derive(Default)]
pub(super) struct StreamCounts(Mutex<HashMap<Arc<str>, usize>>);

/// One stream of a key, until it is dropped.
pub(super) struct StreamPermit {
    mcp: Arc<McpState>,
    key_id: Arc<str>,
}

impl StreamPermit {
    /// Takes a stream of the key.
    ///
    /// Errors: 429 if the key has the maximum number of streams.
    pub(super) fn take(mcp: &Arc<McpState>, key_id: &Arc<str>) -> Result<Self, Fault> {
        let mut counts = lock(&mcp.streams);
        let count = counts.entry(Arc::clone(key_id)).or_default();
        if *count >= mcp.max_streams {
            let message = format!(
                "this API key has {count} streams open; accepted are {} (`mcp.streams_per_key`)",
                mcp.max_streams
            );
            let exceeded = ExceededLimit {
                limit: mcp.max_streams as u64,
                window_ms: RETRY_MS,
                reset_ms: RETRY_MS,
            };
            return Err(Fault::over_limit(exceeded, message));
        }
        *count += 1;
        Ok(Self {
            mcp: Arc::clone(mcp),
            key_id: Arc::clone(key_id),
        })
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut counts = lock(&self.mcp.streams);
        if let Some(count) = counts.get_mut(&self.key_id) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.key_id);
            }
        }
    }
}

fn lock(counts: &StreamCounts) -> std::sync::MutexGuard<'_, HashMap<Arc<str>, usize>> {
    counts.0.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The changes for a session.
pub(super) struct PromptChanges {
    place: StreamPermit,
    caller: Arc<Caller>,
    session: Session,
    /// The wall clock at `started`, in milliseconds.
    started_ms: u64,
    started: Instant,
    /// The version of the list that the client knows.
    version: String,
    /// The revision of the store at the last check.
    revision: i64,
    /// The first bytes of the stream.
    first: Option<Bytes>,
    next_check: Instant,
    quiet_until: Instant,
}

impl PromptChanges {
    /// Returns the stream of a session. `last_id` is the id of the last event that the client has seen.
    pub(super) async fn begin(
        place: StreamPermit,
        caller: &Arc<Caller>,
        session: Session,
        last_id: Option<&[u8]>,
        now_ms: u64,
    ) -> Self {
        let mcp = &place.mcp;
        let revision = mcp.accounts.current().revision();
        let version = mcp.reads.prompts_version(caller, now_ms).await;
        let version = version.unwrap_or_default();
        let mut first = stream::beginning(&version, session.revision);
        if last_id.is_some_and(|id| id != version.as_bytes()) {
            first.extend(stream::prompts_changed(&version));
        }
        let now = Instant::now();
        Self {
            quiet_until: now + mcp.keepalive,
            caller: Arc::clone(caller),
            session,
            started_ms: now_ms,
            started: now,
            version,
            revision,
            first: Some(first.into()),
            next_check: now + CHECK_INTERVAL,
            place,
        }
    }

    /// Waits for the next bytes. Returns `None` when the session has ended. Cancel safety: a dropped call loses
    /// nothing.
    async fn next_bytes(&mut self) -> Option<Bytes> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        loop {
            tokio::time::sleep_until(self.next_check).await;
            let now = Instant::now();
            let elapsed = now.duration_since(self.started).as_millis();
            let now_ms = self.started_ms + u64::try_from(elapsed).unwrap_or_default();
            let (now_s, is_due) = (now_ms / 1000, now >= self.quiet_until);
            let sessions = &self.place.mcp.sessions;
            // Ends in other processes are checked whenever a comment is due.
            let has_ended = now_s >= self.session.ends_s
                || sessions.has_ended_here(&self.session)
                || is_due
                    && sessions
                        .has_ended(&self.session, &self.caller.key_id, now_s)
                        .await;
            if has_ended {
                return None;
            }
            let changed = self.find_change(now_ms).await;
            self.next_check = now + CHECK_INTERVAL;
            if changed.is_some() || is_due {
                self.quiet_until = now + self.place.mcp.keepalive;
                return changed.or(Some(Bytes::from_static(b": keepalive\n\n")));
            }
        }
    }

    /// Returns the event of a change since the last one. Cost: a comparison, unless the store has changed.
    async fn find_change(&mut self, now_ms: u64) -> Option<Bytes> {
        let mcp = &self.place.mcp;
        let revision = mcp.accounts.current().revision();
        if revision == self.revision {
            return None;
        }
        let version = mcp.reads.prompts_version(&self.caller, now_ms).await?;
        self.revision = revision;
        if version == self.version {
            return None;
        }
        self.version = version;
        Some(stream::prompts_changed(&self.version).into())
    }
}

impl EventSource for PromptChanges {
    fn next(&mut self) -> BoxFuture<'_, Option<Bytes>> {
        Box::pin(self.next_bytes())
    }
}
