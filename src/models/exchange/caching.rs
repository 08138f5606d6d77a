//! The part of the response cache in a call: it goes past the cache, stores the reply that comes, or was answered by a stored one.

use std::sync::Arc;
use std::time::Duration;

use filters::accounts::Caller;
use filters::models::reply_cache::cached_reply::CachedReply;
use filters::models::reply_cache::key::KeyScope;
use filters::models::reply_cache::recorder::ReplyRecorder;
use filters::models::request::ModelRequest;
use http::{HeaderMap, HeaderName};

use crate::models::reply_cache::{CallGuard, ReplyCache, Search};

const NO_CACHE: HeaderName = HeaderName::from_static("x-no-cache");

/// The part of the cache in a call.
#[derive(Default)]
pub(super) enum Caching {
    /// None: its project has no cache, or this call goes past it.
    #[default]
    Off,
    /// It is the one that calls, and stores its reply.
    Storing(CallGuard),
    /// It was answered by this reply.
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

    /// Lets the followers of a call that ended without a reply call for themselves. If its client has left, one of them calls
    /// for all.
    pub(super) fn release(&mut self, is_client_gone: bool) {
        if let Self::Storing(guard) = std::mem::take(self)
            && !is_client_gone
        {
            guard.release_followers();
        }
    }
}

/// Returns how old a cached answer to a request may be; `None`: it goes past the cache.
///
/// Cost without a cache: one branch.
pub fn ttl(caller: Option<&Caller>, headers: &HeaderMap) -> Option<Duration> {
    let ttl_s = caller?.cache_ttl_s.filter(|ttl_s| *ttl_s > 0)?;
    let refuses = headers.get(NO_CACHE).is_some_and(|value| value == "true");
    (!refuses).then(|| Duration::from_secs(ttl_s.into()))
}

/// Returns the search for a reply to a request, if the cache may answer it. `candidates` is the digest of those that the
/// caller may use, and `now_ms` the wall clock.
pub fn search(
    cache: &ReplyCache,
    caller: Option<&Caller>,
    request: &ModelRequest,
    candidates: Option<[u8; 32]>,
    (ttl, now_ms): (Duration, u64),
) -> Option<Search> {
    let (caller, candidates) = (caller?, candidates?);
    if !request.payload.operation().is_cacheable() {
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
