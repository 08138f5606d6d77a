//! Segments of users. They are fetched from the customer-data platform if a caller asks for them, and cached.
//!
//! Concurrent requests for the segments of one user share a fetch. In agent mode the cache in Redis is that of the
//! original agent: its keys, and a list of names as JSON. Source: docs/facts/decision-engine.md E.

use std::sync::{Arc, Once};
use std::time::Duration;

use filters::decisions::odp;
use filters::decisions::project::Odp;
use filters::decisions::protocol::Protocol;
use filters::decisions::request_body::SegmentOptions;
use moka::future::Cache;
use reqwest::Url;
use tokio::runtime::Handle;

use super::user_key::UserKey;
use crate::config::DecisionsConfig;
use crate::outbound::{self, Outbound};
use crate::redis::Redis;

/// The capacity of the cache in memory.
const MAX_CACHE_BYTES: u64 = 32 << 20;
/// The approximate size of a user, and of a segment, without texts.
const ENTRY_BYTES: usize = 128;
const SEGMENT_BYTES: usize = 32;
const CACHE_TTL: Duration = Duration::from_secs(600);
/// The maximum bytes of a reply.
const MAX_REPLY_BYTES: usize = 1 << 20;
/// The maximum time of a request.
const SEGMENTS_TIMEOUT: Duration = Duration::from_secs(10);

/// The segments of users, fetched and cached.
pub struct Segments {
    /// The hosts of the configuration: that of all datafiles, those that a datafile may name, and those that the operator
    /// wrote.
    configured: (Option<String>, Vec<String>, Vec<String>),
    /// The configured host, which overrides the host of every datafile.
    host: Option<String>,
    /// The hosts that a datafile may name.
    hosts: OdpHosts,
    client: Outbound,
    handle: Handle,
    protocol: &'static dyn Protocol,
    /// Segments in memory, and the fetches that callers share.
    memory: Cache<UserKey, Arc<[String]>>,
    /// The Redis in which segments are cached instead.
    redis: Option<Redis>,
}

/// The platform did not respond, or the project has none.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SegmentsUnavailable;

/// The result of a shared look-up that is not cached in memory.
enum Unkept {
    Segments(Arc<[String]>),
    Unavailable,
}

impl Segments {
    /// Returns the segments of a configuration, cached in `redis` if it is shared. Requests run on `handle`. What a previous
    /// value has cached goes on if all hosts are the same.
    ///
    /// Errors: no HTTP client can be created.
    pub fn new(
        decisions: &DecisionsConfig,
        handle: Handle,
        redis: Option<Redis>,
        previous: Option<&Self>,
    ) -> reqwest::Result<Self> {
        let configured = (
            decisions.odp_host.clone(),
            decisions.odp_hosts.clone(),
            decisions.own_odp_hosts.clone(),
        );
        let same = previous.filter(|previous| previous.configured == configured);
        Ok(Self {
            configured,
            host: decisions.odp_host.clone(),
            hosts: OdpHosts::new(&decisions.odp_hosts),
            client: match same {
                Some(same) => same.client.clone(),
                None => Outbound::new(SEGMENTS_TIMEOUT, decisions.written_odp_hosts())?,
            },
            handle,
            protocol: decisions.protocol,
            memory: same.map_or_else(memory, |same| same.memory.clone()),
            redis: redis.filter(|_| decisions.shares_segments),
        })
    }

    /// Returns the host and the key of the platform. Returns `None` if the project has no platform, or its datafile
    /// names a host that is not in `decisions.odp.hosts`.
    pub fn target<'p>(&'p self, odp: Option<&'p Odp>) -> Option<(&'p str, &'p str)> {
        let target = odp::odp_target(self.host.as_deref(), odp)?;
        (self.host.is_some() || self.hosts.contains(target.0)).then_some(target)
    }

    /// Returns the segments of a user among `wanted`, the segments of the project's conditions.
    ///
    /// Errors: [`SegmentsUnavailable`]. An empty list is never cached, so that a user who joins a segment is in it at once.
    pub async fn find(
        &self,
        user_key: UserKey,
        odp: Option<&Odp>,
        wanted: &[Box<str>],
        options: SegmentOptions,
    ) -> Result<Arc<[String]>, SegmentsUnavailable> {
        let target = self.target(odp).ok_or(SegmentsUnavailable)?;
        if wanted.is_empty() {
            return Ok([].into());
        }
        if options.reset_cache {
            self.reset(&user_key).await;
        }
        if options.ignore_cache {
            return self.fetch(target, &user_key.1, wanted).await;
        }
        let found = self.find_or_fetch(target, &user_key, wanted);
        match self.memory.try_get_with_by_ref(&user_key, found).await {
            Ok(found) => Ok(found),
            Err(unkept) => match &*unkept {
                Unkept::Segments(found) => Ok(Arc::clone(found)),
                Unkept::Unavailable => Err(SegmentsUnavailable),
            },
        }
    }

    /// Returns segments to cache in memory for a user without cached segments. Errors: a result that is not cached
    /// there.
    async fn find_or_fetch(
        &self,
        target: (&str, &str),
        user_key: &UserKey,
        wanted: &[Box<str>],
    ) -> Result<Arc<[String]>, Unkept> {
        let (sdk_key, user) = user_key;
        let Some(redis) = &self.redis else {
            let found = self.fetch(target, user, wanted).await?;
            return match found.is_empty() {
                true => Err(Unkept::Segments(found)),
                false => Ok(found),
            };
        };
        let key = self.protocol.segments_key(sdk_key, user);
        if let Ok(Some(text)) = redis.get(&key).await
            && let Ok(known) = serde_json::from_slice::<Vec<String>>(&text)
        {
            return Err(Unkept::Segments(known.into()));
        }
        let found = self.fetch(target, user, wanted).await?;
        if !found.is_empty() {
            let text = serde_json::json!(found).to_string();
            // Segments that cannot be cached are fetched again.
            _ = redis.set(&key, text.as_bytes(), Some(CACHE_TTL)).await;
        }
        Err(Unkept::Segments(found))
    }

    /// Asks the platform on the runtime of background tasks.
    async fn fetch(
        &self,
        (host, key): (&str, &str),
        user: &str,
        wanted: &[Box<str>],
    ) -> Result<Arc<[String]>, SegmentsUnavailable> {
        let url = format!("{}/v3/graphql", host.trim_end_matches('/'));
        let request = self.client.post(&url);
        let request = request.map_err(|why| log_failure(why.to_string()))?;
        let request = request
            .header("content-type", "application/json")
            .header("x-api-key", key)
            .body(odp::segments_query(user, wanted));
        let task = self.handle.spawn(async move { fetch(request).await });
        let found = task.await.map_err(|_| SegmentsUnavailable)?;
        Ok(found.map_err(log_failure)?.into())
    }

    /// Removes the segments of all users of an SDK key. In a shared Redis it only removes those of this user.
    async fn reset(&self, (sdk_key, user): &UserKey) {
        if let Some(redis) = &self.redis {
            _ = redis
                .remove(&self.protocol.segments_key(sdk_key, user))
                .await;
            return;
        }
        let key = sdk_key.clone();
        // This only fails in a cache that was built without support for closures.
        _ = self
            .memory
            .invalidate_entries_if(move |(owner, _), _| *owner == key);
    }
}

impl From<SegmentsUnavailable> for Unkept {
    fn from(_: SegmentsUnavailable) -> Self {
        Self::Unavailable
    }
}

fn memory() -> Cache<UserKey, Arc<[String]>> {
    let cache = Cache::builder()
        .max_capacity(MAX_CACHE_BYTES)
        .weigher(weight)
        .time_to_live(CACHE_TTL);
    cache.support_invalidation_closures().build()
}

/// The hosts of customer-data platforms that a datafile may name. The author of a datafile must not choose the hosts
/// to which this process connects.
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
        let cache = memory();
        for user in 0..64 {
            let key = ("k".into(), user.to_string().into());
            cache.insert(key, Arc::clone(&long)).await;
        }
        cache.run_pending_tasks().await;
        assert!(cache.weighted_size() <= MAX_CACHE_BYTES);
    }
}
