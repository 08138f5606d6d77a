//! Sessions. They begin with `initialize`, consist of their id alone, and end by `DELETE` or by time.
//!
//! Redis key: `weirgate:mcp:ended:` and the id of the API key. It has the ended sessions, by the time of their own
//! end, and lives until the last of these times.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use filters::fault::{Fault, FaultKind};
use filters::mcp::revision::Revision;
use filters::mcp::session::{EndedSessions, SESSION_HEADER, Session, SessionIds};
use http::{HeaderName, HeaderValue};

use crate::redis::{Redis, Script, ScriptCall};

/// How long a message waits for Redis to learn whether another process has ended its session. The time is short,
/// because most sessions were not ended.
const FIND_TIMEOUT: Duration = Duration::from_millis(20);

/// The maximum number of remembered ended sessions of an API key. Beyond it, those that end first become valid again,
/// for that key only. Our choice: some 100 KB.
const MAX_ENDED_OF_KEY: usize = 1024;
const END: &str = include_str!("end_session.lua");

/// The sessions that were ended, which outlive the configuration.
pub(super) type SharedEndedSessions = Arc<Mutex<EndedSessions>>;

/// Begins, finds and ends sessions.
pub(super) struct McpSessions {
    ids: Option<SessionIds>,
    lifetime: Duration,
    ended: SharedEndedSessions,
    redis: Option<Redis>,
    end: Script,
}

impl McpSessions {
    /// Returns the sessions of a secret, with this lifetime. Without Redis, only this process learns when one is
    /// ended.
    pub(super) fn new(
        secret: &[u8; 32],
        lifetime: Duration,
        redis: Option<&Redis>,
        ended: &SharedEndedSessions,
    ) -> Self {
        Self {
            ids: SessionIds::new(secret),
            lifetime,
            ended: Arc::clone(ended),
            redis: redis.cloned(),
            end: Script::new(END),
        }
    }

    /// Begins a session of an API key and returns the header that names it.
    ///
    /// Errors: 500 if there are no random bytes.
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

    /// Returns the session of an id, or `None` if it belongs to another API key or has ended.
    pub(super) async fn find(&self, id: &[u8], key_id: &str, now_s: u64) -> Option<Session> {
        let session = self.ids.as_ref()?.read(id, key_id, now_s)?;
        (!self.has_ended(&session, key_id, now_s).await).then_some(session)
    }

    /// Returns whether a session was ended in this process, or is known to have been ended in another.
    pub(super) fn has_ended_here(&self, session: &Session) -> bool {
        self.ended().contains(session)
    }

    /// Returns whether a session was ended in this process, or in another one as far as Redis responds.
    pub(super) async fn has_ended(&self, session: &Session, key_id: &str, now_s: u64) -> bool {
        if self.has_ended_here(session) {
            return true;
        }
        let Some(redis) = &self.redis else {
            return false;
        };
        let name = name(key_id);
        let told = redis.score(&name, &session.nonce, FIND_TIMEOUT);
        let has_ended = told.await.is_ok_and(|told| told.is_some());
        if has_ended {
            self.ended().insert(*session, now_s);
        }
        has_ended
    }

    /// Ends a session of an API key in this process, and in all processes as far as Redis responds.
    pub(super) async fn end(&self, session: Session, key_id: &str, now_s: u64) {
        self.ended().insert(session, now_s);
        let Some(redis) = &self.redis else { return };
        let numbers = [now_s, session.ends_s].map(|number| number.to_string().into_bytes());
        let [now, ends] = numbers;
        let most = MAX_ENDED_OF_KEY.to_string().into_bytes();
        let call = ScriptCall {
            script: self.end.clone(),
            keys: vec![name(key_id)],
            args: vec![now, ends, session.nonce.to_vec(), most],
        };
        if redis.eval::<()>(call).await.is_err() {
            log::warn!("shared.redis: the end of an MCP session was told to no other process");
        }
    }

    fn ended(&self) -> MutexGuard<'_, EndedSessions> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn name(key_id: &str) -> Vec<u8> {
    format!("weirgate:mcp:ended:{key_id}").into_bytes()
}
