//! Segments of users: asked for where a caller wants it, and kept for a while. Source: docs/facts/decision-engine.md E.

use std::sync::Arc;
use std::time::Duration;

use filters::decisions::ask::SegmentOptions;
use filters::decisions::project::Odp;
use filters::decisions::segment;
use moka::future::Cache;
use sha2::{Digest, Sha256};
use tokio::runtime::Handle;

use super::UserKey;
use crate::config::DecisionsConfig;
use crate::redis::Redis;

/// How many users' segments are kept in memory.
const MAX_USERS: u64 = 10_000;
const CACHE_TTL: Duration = Duration::from_secs(600);
/// How long the source may take.
const SEGMENTS_TIMEOUT: Duration = Duration::from_secs(10);

/// See the module.
pub struct Segments {
    /// Stands in for the host of every datafile.
    host: Option<String>,
    client: reqwest::Client,
    handle: Handle,
    kept: SegmentCache,
}

/// Where they are kept.
#[derive(Clone)]
enum SegmentCache {
    Memory(Cache<UserKey, Arc<[String]>>),
    Redis(Redis),
}

/// The source did not tell, or there is none.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Untold;

impl Segments {
    /// The segments of a configuration; `redis` where they are kept there. The source is asked on `handle`.
    ///
    /// Errors: no HTTP client can be made.
    pub fn new(
        decisions: &DecisionsConfig,
        handle: Handle,
        redis: Option<Redis>,
    ) -> reqwest::Result<Self> {
        let in_memory = || {
            let cache = Cache::builder()
                .max_capacity(MAX_USERS)
                .time_to_live(CACHE_TTL);
            SegmentCache::Memory(cache.support_invalidation_closures().build())
        };
        Ok(Self {
            host: decisions.odp_host.clone(),
            client: reqwest::Client::builder()
                .timeout(SEGMENTS_TIMEOUT)
                .build()?,
            handle,
            kept: redis
                .filter(|_| decisions.shares_segments)
                .map_or_else(in_memory, SegmentCache::Redis),
        })
    }

    /// The host and the key of the platform; `None`: the project has none.
    pub fn target<'p>(&'p self, odp: Option<&'p Odp>) -> Option<(&'p str, &'p str)> {
        segment::odp_target(self.host.as_deref(), odp)
    }

    /// The segments of a user, among those that the project asks for.
    ///
    /// Errors: [`Untold`]. An empty list is never kept: who joins a segment is in it at once.
    pub async fn find(
        &self,
        whose: UserKey,
        odp: Option<&Odp>,
        asked: &[Box<str>],
        options: SegmentOptions,
    ) -> Result<Arc<[String]>, Untold> {
        let (host, key) = self.target(odp).ok_or(Untold)?;
        if asked.is_empty() {
            return Ok([].into());
        }
        if options.reset_cache {
            self.kept.reset(&whose).await;
        }
        if !options.ignore_cache
            && let Some(known) = self.kept.get(&whose).await
        {
            return Ok(known);
        }
        let request = self
            .client
            .post(format!("{}/v3/graphql", host.trim_end_matches('/')));
        let request = request.header("content-type", "application/json");
        let request = request
            .header("x-api-key", key)
            .body(segment::question(&whose.1, asked));
        let answer = self.handle.spawn(async move { ask(request).await });
        let found = answer.await.map_err(|_| Untold)?;
        let found: Arc<[String]> = found.map_err(told)?.into();
        if !found.is_empty() && !options.ignore_cache {
            self.kept.put(whose, Arc::clone(&found)).await;
        }
        Ok(found)
    }
}

fn told(why: String) -> Untold {
    log::warn!("segments: {why}");
    Untold
}

async fn ask(request: reqwest::RequestBuilder) -> Result<Vec<String>, String> {
    let told = |error: reqwest::Error| error.without_url().to_string();
    let answer = request.send().await.map_err(told)?;
    let answer = answer.error_for_status().map_err(told)?;
    let body = answer.bytes().await.map_err(told)?;
    segment::qualified(&body).ok_or_else(|| "the answer does not tell segments".to_owned())
}

impl SegmentCache {
    async fn get(&self, whose: &UserKey) -> Option<Arc<[String]>> {
        match self {
            Self::Memory(cache) => cache.get(whose).await,
            Self::Redis(redis) => {
                let text = redis.get(&name(whose)).await.ok()??;
                let read: Vec<String> = serde_json::from_slice(&text).ok()?;
                Some(read.into())
            }
        }
    }

    async fn put(&self, whose: UserKey, segments: Arc<[String]>) {
        match self {
            Self::Memory(cache) => cache.insert(whose, segments).await,
            Self::Redis(redis) => {
                let text = serde_json::json!(segments).to_string();
                // What cannot be kept is asked for again.
                _ = redis
                    .set(&name(&whose), text.as_bytes(), Some(CACHE_TTL))
                    .await;
            }
        }
    }

    /// Forgets the segments of an SDK key's users; in Redis, which others use too, this user's alone.
    async fn reset(&self, whose: &UserKey) {
        match self {
            Self::Memory(cache) => {
                let key = whose.0.clone();
                // Refused only without support for closures, which the cache was built with.
                _ = cache.invalidate_entries_if(move |(owner, _), _| *owner == key);
            }
            Self::Redis(redis) => {
                _ = redis
                    .set(&name(whose), b"", Some(Duration::from_secs(1)))
                    .await
            }
        }
    }
}

/// A name in Redis that tells neither SDK key nor user.
fn name((sdk_key, user): &UserKey) -> Vec<u8> {
    let hash = Sha256::new()
        .chain_update(sdk_key.as_bytes())
        .chain_update([0]);
    let hash = hash.chain_update(user.as_bytes()).finalize();
    let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("weirgate:segments:{hex}").into_bytes()
}
