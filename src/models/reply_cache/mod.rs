//! The cache of model replies: in memory, and in Redis if processes share one ([`shared`]).
//!
//! Equal requests that arrive together share one call (single flight): the leader calls, and the followers wait for
//! its reply. If the leader's client disconnects, a follower calls. If the reply may not be stored, every follower
//! makes its own call. `filters::models::reply_cache` decides which requests are equal and what is stored. Source:
//! docs/response-cache.md.

mod handover;
mod shared;

use std::sync::Arc;
use std::time::{Duration, Instant};

use filters::models::reply_cache::cached_reply::CachedReply;
use filters::models::reply_cache::key::{KeyScope, ReplyKey, ReplyKeys};
use filters::models::request::ModelRequest;
use moka::Expiry;
use tokio::time::Instant as Time;

use self::shared::SharedReplies;
use crate::redis::Redis;
use crate::single_flight::{FlightGuard, Outcome, Role, SingleFlight};
use crate::telemetry::metrics::Metrics;

/// How long a follower waits for the leader's reply.
const FOLLOWER_TIMEOUT: Duration = Duration::from_secs(5);
/// The size of an entry without its reply: key, map, counters.
const ENTRY_BYTES: usize = 512;
/// One reply may take up to this fraction of the memory: a sixteenth.
const MAX_REPLY_DIVISOR: u64 = 16;

/// The purposes of the secrets for keys and encryption. Processes with other secrets do not find each other's
/// replies.
pub const SECRET_PURPOSES: [&str; 2] = [
    "keys of cached replies, version 1",
    "sealing cached replies, version 1",
];

/// The replies in memory.
type Replies = moka::sync::Cache<ReplyKey, StoredReply, ahash::RandomState>;

/// Stores replies and coordinates calls.
pub struct ReplyCache {
    /// Keys are uniform hashes with a secret, so clients cannot make them collide.
    replies: Replies,
    calls: Arc<SingleFlight<ReplyKey, Arc<CachedReply>>>,
    keys: ReplyKeys,
    shared: Option<SharedReplies>,
    max_bytes: u64,
    max_reply_bytes: usize,
    metrics: Arc<Metrics>,
}

/// A reply in memory, and its time to live.
#[derive(Clone)]
struct StoredReply {
    reply: Arc<CachedReply>,
    stays: Duration,
    stored: Time,
}

/// Each entry has the time to live of its project.
struct EntryExpiry;

impl Expiry<ReplyKey, StoredReply> for EntryExpiry {
    fn expire_after_create(
        &self,
        _: &ReplyKey,
        entry: &StoredReply,
        _: Instant,
    ) -> Option<Duration> {
        Some(entry.stays)
    }

    fn expire_after_update(
        &self,
        _: &ReplyKey,
        entry: &StoredReply,
        _: Instant,
        _: Option<Duration>,
    ) -> Option<Duration> {
        Some(entry.stays)
    }
}

/// A search: the key, and the replies that count.
#[derive(Clone, Copy, Debug)]
pub struct Search {
    /// The request's key.
    pub key: ReplyKey,
    /// The maximum age of a reply.
    pub ttl: Duration,
    /// The wall clock, in unix milliseconds.
    pub now_ms: u64,
}

/// The result of a search.
pub enum ReplyLookup {
    Hit(Arc<CachedReply>),
    /// No reply. This request is the leader, and stores the reply that it gets.
    Miss(CallGuard),
    /// The leader's reply may not be stored, or takes too long. This request makes its own call.
    Bypass,
}

/// The leader's right to call for its followers. If it is dropped without a reply, one of them becomes the next
/// leader.
pub struct CallGuard {
    cache: Arc<ReplyCache>,
    call: FlightGuard<ReplyKey, Arc<CachedReply>>,
    ttl: Duration,
}

impl CallGuard {
    /// Returns the maximum bytes of a reply that is recorded.
    pub fn max_bytes(&self) -> usize {
        self.cache.max_reply_bytes
    }

    /// Stores a reply, and gives it to the followers.
    pub fn store(self, reply: CachedReply) {
        let reply = Arc::new(reply);
        let key = *self.call.key();
        self.cache.store_in_memory(key, &reply, self.ttl);
        if let Some(shared) = &self.cache.shared {
            shared.store(key, &reply, self.ttl);
        }
        self.call.land(reply);
    }

    /// Lets every follower make its own call, because the reply may not be stored.
    pub fn release_followers(&self) {
        self.call.release();
    }
}

impl ReplyCache {
    /// Creates an empty cache of about `max_bytes` with the secrets of [`SECRET_PURPOSES`], or `None` without a
    /// cache. A previous one of this size goes on; one of another size leaves its replies and its running calls to this one.
    pub fn new(
        max_bytes: u64,
        [key_secret, sealing_secret]: &[[u8; 32]; 2],
        redis: Option<&Redis>,
        metrics: &Arc<Metrics>,
        previous: Option<&Arc<Self>>,
    ) -> Option<Arc<Self>> {
        if max_bytes == 0 {
            return None;
        }
        if let Some(same) = previous.filter(|it| it.max_bytes == max_bytes) {
            return Some(Arc::clone(same));
        }
        let entry_bytes = |_: &ReplyKey, entry: &StoredReply| {
            u32::try_from(ENTRY_BYTES + entry.reply.size()).unwrap_or(u32::MAX)
        };
        let replies = moka::sync::Cache::builder()
            .max_capacity(max_bytes)
            .weigher(entry_bytes)
            .expire_after(EntryExpiry)
            .build_with_hasher(ahash::RandomState::new());
        let max_reply_bytes = usize::try_from(max_bytes / MAX_REPLY_DIVISOR);
        if let Some(previous) = previous {
            leave(&previous.replies, &replies);
        }
        Some(Arc::new(Self {
            replies,
            calls: previous.map_or_else(Arc::default, |it| Arc::clone(&it.calls)),
            keys: ReplyKeys::new(key_secret)?,
            shared: redis.map(|redis| SharedReplies::new(redis.clone(), sealing_secret, metrics)),
            max_bytes,
            max_reply_bytes: max_reply_bytes.unwrap_or(usize::MAX),
            metrics: Arc::clone(metrics),
        }))
    }

    /// Returns the key of a request. Cost: as [`ReplyKeys::key`].
    pub fn key(&self, scope: &KeyScope<'_>, request: &ModelRequest) -> Option<ReplyKey> {
        self.keys.key(scope, request)
    }

    /// Finds a reply, or lets this request call. It waits for an equal request that already calls, for at most
    /// [`FOLLOWER_TIMEOUT`]. The metrics count it under `route`.
    ///
    /// Cost of a hit in memory: one look-up.
    pub async fn find(self: &Arc<Self>, search: &Search, route: &str) -> ReplyLookup {
        let found = self.search(search).await;
        let counter = match found {
            ReplyLookup::Hit(_) => &self.metrics.cache_hits,
            ReplyLookup::Miss(_) | ReplyLookup::Bypass => &self.metrics.cache_misses,
        };
        counter.with_label_values(&[route]).inc();
        found
    }

    async fn search(self: &Arc<Self>, search: &Search) -> ReplyLookup {
        if let Some(reply) = self.find_fresh(search) {
            return ReplyLookup::Hit(reply);
        }
        let deadline = Time::now() + FOLLOWER_TIMEOUT;
        loop {
            let mut follower = match self.calls.join(&search.key) {
                Role::Leader(call) => return self.lead(search, call).await,
                Role::Follower(follower) => follower,
            };
            match follower.wait(deadline).await {
                Outcome::Landed(reply) => return ReplyLookup::Hit(reply),
                Outcome::Alone => return ReplyLookup::Bypass,
                Outcome::Vacant => {}
            }
        }
    }

    /// Searches once more, and in Redis, before the leader calls.
    async fn lead(
        self: &Arc<Self>,
        search: &Search,
        call: FlightGuard<ReplyKey, Arc<CachedReply>>,
    ) -> ReplyLookup {
        // Another leader may have stored a reply since the first search.
        if let Some(reply) = self.find_fresh(search) {
            call.land(Arc::clone(&reply));
            return ReplyLookup::Hit(reply);
        }
        let shared = match &self.shared {
            Some(shared) => shared.find(search.key).await,
            None => None,
        };
        let max_age_ms = to_ms(search.ttl);
        let shared = shared.filter(|reply| reply.age_ms(search.now_ms) < max_age_ms);
        if let Some(reply) = shared {
            let reply = Arc::new(reply);
            let left_ms = max_age_ms - reply.age_ms(search.now_ms);
            self.store_in_memory(search.key, &reply, Duration::from_millis(left_ms));
            call.land(Arc::clone(&reply));
            return ReplyLookup::Hit(reply);
        }
        ReplyLookup::Miss(CallGuard {
            cache: Arc::clone(self),
            call,
            ttl: search.ttl,
        })
    }

    /// Returns a reply in memory, unless it is older than the project now allows.
    fn find_fresh(&self, search: &Search) -> Option<Arc<CachedReply>> {
        let entry = self.replies.get(&search.key)?;
        let is_fresh = entry.reply.age_ms(search.now_ms) < to_ms(search.ttl);
        is_fresh.then_some(entry.reply)
    }

    fn store_in_memory(&self, key: ReplyKey, reply: &Arc<CachedReply>, stays: Duration) {
        if reply.size() <= self.max_reply_bytes {
            let reply = Arc::clone(reply);
            let stored = Time::now();
            let entry = StoredReply {
                reply,
                stays,
                stored,
            };
            self.replies.insert(key, entry);
        }
    }
}

/// Copies the replies of one cache to another, for the rest of their time. The bytes are shared.
fn leave(from: &Replies, to: &Replies) {
    for (key, entry) in from {
        let stays = entry.stays.saturating_sub(entry.stored.elapsed());
        let stored = Time::now();
        let left = StoredReply {
            stays,
            stored,
            ..entry
        };
        if !stays.is_zero() {
            to.insert(*key, left);
        }
    }
}

fn to_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
