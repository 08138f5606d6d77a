//! Segments of users: fetched from the customer-data platform where a caller wants it, and cached.
//! Source: docs/facts/decision-engine.md E.

use std::sync::{Arc, Once};
use std::time::Duration;

use filters::decisions::odp;
use filters::decisions::project::Odp;
use filters::decisions::request_body::SegmentOptions;
use moka::future::Cache;
use reqwest::Url;
use sha2::{Digest, Sha256};
use tokio::runtime::Handle;

use super::user_key::UserKey;
use crate::config::DecisionsConfig;
use crate::outbound::{self, Outbound};
use crate::redis::Redis;

/// The capacity of the cache in memory.
const MAX_CACHE_BYTES: u64 = 32 << 20;
/// About what a user, and a segment, take beside their texts.
const ENTRY_BYTES: usize = 128;
const SEGMENT_BYTES: usize = 32;
const CACHE_TTL: Duration = Duration::from_secs(600);
/// How many bytes a reply may have.
const MAX_REPLY_BYTES: usize = 1 << 20;
/// How long a request may take.
const SEGMENTS_TIMEOUT: Duration = Duration::from_secs(10);

/// See the module.
pub struct Segments {
    /// The configured host, which overrides that of every datafile.
    host: Option<String>,
    /// The hosts that a datafile may name.
    hosts: OdpHosts,
    client: Outbound,
    handle: Handle,
    cache: SegmentCache,
}

/// Where segments are cached.
#[derive(Clone)]
enum SegmentCache {
    Memory(Cache<UserKey, Arc<[String]>>),
    Redis(Redis),
}

/// The platform did not answer, or there is none.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SegmentsUnavailable;

impl Segments {
    /// The segments of a configuration, cached in `redis` if it is shared. Requests run on `handle`.
    ///
    /// Errors: no HTTP client can be made.
    pub fn new(
        decisions: &DecisionsConfig,
        handle: Handle,
        redis: Option<Redis>,
    ) -> reqwest::Result<Self> {
        let in_memory = || {
            let cache = Cache::builder()
                .max_capacity(MAX_CACHE_BYTES)
                .weigher(weight)
                .time_to_live(CACHE_TTL);
            SegmentCache::Memory(cache.support_invalidation_closures().build())
        };
        Ok(Self {
            host: decisions.odp_host.clone(),
            hosts: OdpHosts::new(&decisions.odp_hosts),
            client: Outbound::new(SEGMENTS_TIMEOUT, decisions.written_odp_hosts())?,
            handle,
            cache: redis
                .filter(|_| decisions.shares_segments)
                .map_or_else(in_memory, SegmentCache::Redis),
        })
    }

    /// The host and the key of the platform; `None`: the project has none, or its datafile names a host that
    /// `decisions.odp.hosts` does not.
    pub fn target<'p>(&'p self, odp: Option<&'p Odp>) -> Option<(&'p str, &'p str)> {
        let target = odp::odp_target(self.host.as_deref(), odp)?;
        (self.host.is_some() || self.hosts.contains(target.0)).then_some(target)
    }

    /// Returns the segments of a user among `wanted`, which are those of the project's conditions.
    ///
    /// Errors: [`SegmentsUnavailable`]. An empty list is never cached, so that a user who joins a segment is in it at once.
    pub async fn find(
        &self,
        user_key: UserKey,
        odp: Option<&Odp>,
        wanted: &[Box<str>],
        options: SegmentOptions,
    ) -> Result<Arc<[String]>, SegmentsUnavailable> {
        let (host, key) = self.target(odp).ok_or(SegmentsUnavailable)?;
        if wanted.is_empty() {
            return Ok([].into());
        }
        if options.reset_cache {
            self.cache.reset(&user_key).await;
        }
        if !options.ignore_cache
            && let Some(known) = self.cache.get(&user_key).await
        {
            return Ok(known);
        }
        let url = format!("{}/v3/graphql", host.trim_end_matches('/'));
        let request = self.client.post(&url).map_err(log_failure)?;
        let request = request
            .header("content-type", "application/json")
            .header("x-api-key", key)
            .body(odp::segments_query(&user_key.1, wanted));
        let task = self.handle.spawn(async move { fetch(request).await });
        let found = task.await.map_err(|_| SegmentsUnavailable)?;
        let found: Arc<[String]> = found.map_err(log_failure)?.into();
        if !found.is_empty() && !options.ignore_cache {
            self.cache.insert(user_key, Arc::clone(&found)).await;
        }
        Ok(found)
    }
}

/// The hosts of customer-data platforms that a datafile may name: whoever writes a datafile does not choose where this
/// process connects to.
struct OdpHosts {
    urls: Vec<Url>,
    was_told: Once,
}

impl OdpHosts {
    fn new(urls: &[String]) -> Self {
        let urls = urls.iter().filter_map(|url| Url::parse(url).ok());
        Self {
            urls: urls.collect(),
            was_told: Once::new(),
        }
    }

    fn contains(&self, url: &str) -> bool {
        let is_known = Url::parse(url).is_ok_and(|url| {
            let mut known = self.urls.iter().map(Url::origin);
            known.any(|origin| origin == url.origin())
        });
        if !is_known {
            self.was_told.call_once(|| {
                log::warn!("segments: a datafile names a host that is not in decisions.odp.hosts");
            });
        }
        is_known
    }
}

fn weight((sdk_key, user): &UserKey, segments: &Arc<[String]>) -> u32 {
    let texts = segments.iter().map(|one| one.len() + SEGMENT_BYTES);
    let bytes = ENTRY_BYTES + sdk_key.len() + user.len() + texts.sum::<usize>();
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

fn log_failure(why: String) -> SegmentsUnavailable {
    log::warn!("segments: {why}");
    SegmentsUnavailable
}

async fn fetch(request: reqwest::RequestBuilder) -> Result<Vec<String>, String> {
    let reply = request.send().await.map_err(outbound::describe)?;
    let body = outbound::read_success(reply, MAX_REPLY_BYTES).await?;
    odp::read_segments(&body).ok_or_else(|| "the answer does not tell segments".to_owned())
}

impl SegmentCache {
    async fn get(&self, user_key: &UserKey) -> Option<Arc<[String]>> {
        match self {
            Self::Memory(cache) => cache.get(user_key).await,
            Self::Redis(redis) => {
                let text = redis.get(&redis_key(user_key)).await.ok()??;
                let read: Vec<String> = serde_json::from_slice(&text).ok()?;
                Some(read.into())
            }
        }
    }

    async fn insert(&self, user_key: UserKey, segments: Arc<[String]>) {
        match self {
            Self::Memory(cache) => cache.insert(user_key, segments).await,
            Self::Redis(redis) => {
                let text = serde_json::json!(segments).to_string();
                // Segments that cannot be cached are fetched again.
                _ = redis
                    .set(&redis_key(&user_key), text.as_bytes(), Some(CACHE_TTL))
                    .await;
            }
        }
    }

    /// Removes the segments of all users of an SDK key. In Redis, which others share, it removes this user's alone.
    async fn reset(&self, user_key: &UserKey) {
        match self {
            Self::Memory(cache) => {
                let key = user_key.0.clone();
                // This fails only in a cache that was built without support for closures.
                _ = cache.invalidate_entries_if(move |(owner, _), _| *owner == key);
            }
            Self::Redis(redis) => {
                _ = redis
                    .set(&redis_key(user_key), b"", Some(Duration::from_secs(1)))
                    .await
            }
        }
    }
}

/// The key in Redis. It reveals neither the SDK key nor the user.
fn redis_key((sdk_key, user): &UserKey) -> Vec<u8> {
    let hash = Sha256::new()
        .chain_update(sdk_key.as_bytes())
        .chain_update([0]);
    let hash = hash.chain_update(user.as_bytes()).finalize();
    let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("weirgate:segments:{hex}").into_bytes()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[tokio::test]
    async fn caches_of_users_are_bounded_in_bytes() {
        let key = ("k".into(), "user".into());
        let long: Arc<[String]> = [String::from("s").repeat(1 << 20)].into();
        assert!(weight(&key, &long) > 1 << 20);
        assert!(weight(&key, &[].into()) < 1024);
        let cache = Cache::builder().max_capacity(MAX_CACHE_BYTES);
        let cache: Cache<UserKey, Arc<[String]>> = cache.weigher(weight).build();
        for user in 0..64 {
            let key = ("k".into(), user.to_string().into());
            cache.insert(key, Arc::clone(&long)).await;
        }
        cache.run_pending_tasks().await;
        assert!(cache.weighted_size() <= MAX_CACHE_BYTES);
    }
}
