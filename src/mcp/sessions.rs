//! Sessions: begun with `initialize`, known by their id alone, ended by `DELETE` or by time.
//!
//! Redis key: `weirgate:mcp:ended:` and the session's random bytes in hex, until the session would have ended by itself.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use filters::fault::{Fault, FaultKind};
use filters::mcp::revision::Revision;
use filters::mcp::session::{EndedSessions, SESSION_HEADER, Session, SessionIds};
use http::{HeaderName, HeaderValue};

use crate::redis::Redis;

/// How long a message waits for Redis at the most to learn whether its session was ended by another process: not as long as it may,
/// because most were not.
const FIND_TIMEOUT: Duration = Duration::from_millis(20);

/// Begins, finds and ends sessions.
pub(super) struct Sessions {
    ids: Option<SessionIds>,
    lifetime: Duration,
    ended: Mutex<EndedSessions>,
    redis: Option<Redis>,
}

impl Sessions {
    /// Returns what makes sessions of this lifetime under a secret. Without Redis, an end is known to this process alone.
    pub(super) fn new(secret: &[u8; 32], lifetime: Duration, redis: Option<&Redis>) -> Self {
        Self {
            ids: SessionIds::new(secret),
            lifetime,
            ended: Mutex::default(),
            redis: redis.cloned(),
        }
    }

    /// Begins a session of an API key and returns the header that names it.
    ///
    /// Errors: 500 without randomness.
    pub(super) fn begin(
        &self,
        revision: Revision,
        key_id: &str,
        now_s: u64,
    ) -> Result<(HeaderName, HeaderValue), Fault> {
        let no_id = || Fault::new(FaultKind::Internal, "no session can begin at the moment");
        let mut session = Session {
            ends_s: now_s.saturating_add(self.lifetime.as_secs()),
            nonce: [0; 16],
            revision,
        };
        getrandom::fill(&mut session.nonce).map_err(|_| no_id())?;
        let ids = self.ids.as_ref().ok_or_else(no_id)?;
        let id = HeaderValue::try_from(ids.write(&session, key_id));
        let id = id.map_err(|_| no_id())?;
        Ok((HeaderName::from_static(SESSION_HEADER), id))
    }

    /// Returns the session of an id; `None`: it is none of this API key, or it has ended.
    pub(super) async fn find(&self, id: &[u8], key_id: &str, now_s: u64) -> Option<Session> {
        let session = self.ids.as_ref()?.read(id, key_id, now_s)?;
        (!self.has_ended(&session, now_s).await).then_some(session)
    }

    /// Returns whether a session was ended in this process, or is known to have been in another.
    pub(super) fn has_ended_here(&self, session: &Session) -> bool {
        self.ended().contains(session)
    }

    /// Returns whether a session was ended, here or, as far as Redis answers, in another process.
    pub(super) async fn has_ended(&self, session: &Session, now_s: u64) -> bool {
        if self.has_ended_here(session) {
            return true;
        }
        let Some(redis) = &self.redis else {
            return false;
        };
        let told = redis.get_start(&name(session), 1, FIND_TIMEOUT).await;
        let has_ended = told.is_ok_and(|told| !told.is_empty());
        if has_ended {
            self.ended().insert(*session, now_s);
        }
        has_ended
    }

    /// Ends a session: here, and, as far as Redis answers, in all processes.
    pub(super) async fn end(&self, session: Session, now_s: u64) {
        self.ended().insert(session, now_s);
        let Some(redis) = &self.redis else { return };
        let left = Duration::from_secs(session.ends_s.saturating_sub(now_s));
        if redis.set(&name(&session), b"1", Some(left)).await.is_err() {
            log::warn!("shared.redis: the end of an MCP session was told to no other process");
        }
    }

    fn ended(&self) -> MutexGuard<'_, EndedSessions> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn name(session: &Session) -> Vec<u8> {
    let mut name = b"weirgate:mcp:ended:".to_vec();
    for byte in session.nonce {
        name.extend(format!("{byte:02x}").bytes());
    }
    name
}
