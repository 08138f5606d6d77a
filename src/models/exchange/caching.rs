//! The response cache's part in a call: the call bypasses the cache, stores its reply, or gets a stored reply.

use std::sync::Arc;
use std::time::Duration;

use filters::accounts::Caller;
use filters::models::dialects::compaction::Compaction;
use filters::models::reply_cache::cached_reply::CachedReply;
use filters::models::reply_cache::key::KeyScope;
use filters::models::reply_cache::recorder::ReplyRecorder;
use filters::models::request::ModelRequest;
use http::{HeaderMap, HeaderName};

use crate::models::reply_cache::{CallGuard, ReplyCache, Search};

const NO_CACHE: HeaderName = HeaderName::from_static("x-no-cache");

/// The response cache's part in a call.
#[derive(Default)]
pub(super) enum Caching {
    /// The project has no cache, or the call bypasses it.
    #[default]
    Off,
    /// The call is the leader, and stores its reply.
    Storing(CallGuard),
    /// The response is this stored reply.
    Replayed(Arc<CachedReply>),
}

impl Caching {
    /// Returns the recorder of an attempt's reply, if the call stores it.
    pub(super) fn recorder(&self) -> Option<ReplyRecorder> {
        match self {
            Self::Storing(guard) => Some(ReplyRecorder::new(guard.max_bytes())),
            _ => None,
        }
    }

    /// Lets the followers of a call without a reply make their own calls. If the client has left, one of the
    /// followers calls for all.
    pub(super) fn release(&mut self, is_client_gone: bool) {
        if let Self::Storing(guard) = std::mem::take(self)
            && !is_client_gone
        {
            guard.release_followers();
        }
    }
}

/// Returns the maximum age of a cached response, or `None` if the request bypasses the cache.
///
/// Cost without a cache: one branch.
pub fn ttl(caller: Option<&Caller>, headers: &HeaderMap) -> Option<Duration> {
    let ttl_s = caller?.cache_ttl_s.filter(|ttl_s| *ttl_s > 0)?;
    let refuses = headers.get(NO_CACHE).is_some_and(|value| value == "true");
    (!refuses).then(|| Duration::from_secs(ttl_s.into()))
}

/// Returns the search for a reply, if the cache may respond. `candidates` is the digest of the candidates that the
/// caller may use, and `now_ms` the wall clock.
pub fn search(
    cache: &ReplyCache,
    caller: Option<&Caller>,
    request: &ModelRequest,
    candidates: Option<[u8; 32]>,
    (ttl, now_ms): (Duration, u64),
) -> Option<Search> {
    let (caller, candidates) = (caller?, candidates?);
    // What the vendor's hosts make of a history is read again by the same host alone.
    let is_summary = request.compaction() != Compaction::No;
    if is_summary || !request.payload.operation().is_cacheable() {
        return None;
    }
    let scope = KeyScope {
        organization_id: &caller.organization_id,
        project_id: &caller.project_id,
        mode: caller.mode,
        candidates,
    };
    let key = cache.key(&scope, request)?;
    Some(Search { key, ttl, now_ms })
}
