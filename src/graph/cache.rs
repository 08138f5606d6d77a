//! The cache of responses of the graph service. Equal requests that arrive together share one fetch (single flight).
//!
//! The first request for an uncached response is the leader: it fetches the response and holds a [`FetchGuard`]
//! meanwhile. Equal requests are followers and wait for it, up to a timeout. The fetch ends when the guard is
//! dropped. A follower then finds the cached response or becomes the next leader. If the response is not cacheable,
//! every follower bypasses the cache.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use filters::graph::headers::is_limit_header;
use filters::graph::{CacheKey, age_s, fresh_for_s, is_cacheable};
use http::response::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Version, header};
use tokio::time::Instant;

use crate::single_flight::{FlightGuard, Outcome, Role, SingleFlight};

/// How long a follower waits for the leader's response. Source: docs/decisions.md 28.
const FOLLOWER_TIMEOUT: Duration = Duration::from_secs(5);
/// The size of an entry without its key, headers and body.
const ENTRY_OVERHEAD_BYTES: usize = 256;
/// One response may take up to this fraction of the cache: a quarter.
const MAX_RESPONSE_DIVISOR: u64 = 4;
/// Headers that are not cached, because they belong to one connection or one request.
const UNCACHED_HEADERS: [HeaderName; 10] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    header::PROXY_AUTHENTICATE,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::CONTENT_LENGTH,
    HeaderName::from_static("x-request-id"),
    HeaderName::from_static("request-id"),
];

/// Caches responses and coordinates fetches.
pub struct ResponseCache {
    /// Its hasher reads keys some ten times faster than SHA-256, and has a random seed, so that a client cannot make
    /// keys collide. The bytes of colliding keys are compared.
    responses: moka::sync::Cache<CacheKey, Arc<CachedResponse>, ahash::RandomState>,
    /// The running fetches. Followers look for the response in the cache.
    fetches: Arc<SingleFlight<CacheKey, ()>>,
    ttl: Duration,
    max_response_bytes: usize,
}

/// A cached response.
pub struct CachedResponse {
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub body: Bytes,
    /// The time of arrival, minus the age at arrival.
    pub(super) generated: Instant,
    pub(super) expires: Instant,
}

impl CachedResponse {
    /// Returns the age in seconds.
    pub fn age_s(&self) -> u64 {
        self.generated.elapsed().as_secs()
    }
}

/// The result of a search in the cache.
pub enum Lookup {
    Hit(Arc<CachedResponse>),
    /// No cached response. This request is the leader and fetches it.
    Miss(FetchGuard),
    /// The response is not cacheable, or the leader took too long. This request bypasses the cache.
    Bypass,
}

/// The leader's right to fetch a response for its followers.
pub struct FetchGuard {
    cache: Arc<ResponseCache>,
    flight: FlightGuard<CacheKey, ()>,
}

impl FetchGuard {
    /// Releases the followers: the response is not cacheable.
    fn release_followers(&self) {
        self.flight.release();
    }
}

impl ResponseCache {
    /// Creates an empty cache, which keeps a response for at most `ttl` and takes about `max_bytes`.
    pub fn new(ttl: Duration, max_bytes: u64) -> Self {
        let entry_bytes = |key: &CacheKey, response: &Arc<CachedResponse>| {
            let headers = response.headers.iter();
            let header_bytes: usize = headers
                .map(|(name, value)| name.as_str().len() + value.len())
                .sum();
            let bytes = ENTRY_OVERHEAD_BYTES + key.size() + header_bytes + response.body.len();
            u32::try_from(bytes).unwrap_or(u32::MAX)
        };
        let responses = moka::sync::Cache::builder()
            .max_capacity(max_bytes)
            .weigher(entry_bytes)
            .time_to_live(ttl)
            .build_with_hasher(ahash::RandomState::new());
        Self {
            responses,
            fetches: Arc::default(),
            ttl,
            max_response_bytes: usize::try_from(max_bytes / MAX_RESPONSE_DIVISOR)
                .unwrap_or(usize::MAX),
        }
    }

    /// Finds a cached response, or starts a fetch if `is_read_only` returns true. It waits for an equal request that
    /// is already fetching, for at most [`FOLLOWER_TIMEOUT`].
    ///
    /// Cost of a hit: one look-up. `is_read_only` is only called without a hit.
    pub async fn find(
        self: &Arc<Self>,
        key: CacheKey,
        is_read_only: impl FnOnce() -> bool,
    ) -> Lookup {
        if let Some(cached) = self.find_fresh(&key) {
            return Lookup::Hit(cached);
        }
        if !is_read_only() {
            return Lookup::Bypass;
        }
        let deadline = Instant::now() + FOLLOWER_TIMEOUT;
        loop {
            let mut fetch = match self.fetches.join(&key) {
                // Another leader may have filled the cache since the first search.
                Role::Leader(flight) => {
                    let cached = self.find_fresh(&key);
                    let cache = Arc::clone(self);
                    let miss = || Lookup::Miss(FetchGuard { cache, flight });
                    return cached.map_or_else(miss, Lookup::Hit);
                }
                Role::Follower(fetch) => fetch,
            };
            // After a release or a timeout there is no response to wait for.
            if fetch.wait(deadline).await != Outcome::Vacant {
                return Lookup::Bypass;
            }
            if let Some(cached) = self.find_fresh(&key) {
                return Lookup::Hit(cached);
            }
        }
    }

    /// Returns all responses, stale ones too.
    pub(super) fn entries(&self) -> impl Iterator<Item = (Arc<CacheKey>, Arc<CachedResponse>)> {
        self.responses.iter()
    }

    /// Adds a response of another process.
    pub(super) fn insert(&self, key: CacheKey, mut response: CachedResponse) {
        response.expires = response.expires.min(Instant::now() + self.ttl);
        if response.body.len() <= self.max_response_bytes {
            self.responses.insert(key, Arc::new(response));
        }
    }

    fn find_fresh(&self, key: &CacheKey) -> Option<Arc<CachedResponse>> {
        let cached = self.responses.get(key)?;
        (Instant::now() < cached.expires).then_some(cached)
    }
}

/// Collects the leader's response and writes it to the cache.
pub struct CacheWriter {
    guard: FetchGuard,
    partial: Option<PartialResponse>,
}

/// A cacheable response whose body is not complete yet.
struct PartialResponse {
    headers: Vec<(HeaderName, HeaderValue)>,
    body: BytesMut,
    length: Option<usize>,
    age: Duration,
    fresh_for: Duration,
}

impl CacheWriter {
    /// Creates the writer of a leader, before its response arrives.
    pub fn new(guard: FetchGuard) -> Self {
        Self {
            guard,
            partial: None,
        }
    }

    /// Takes the head of the response. Returns whether the response is cacheable; if not, it releases the followers.
    pub fn write_head(&mut self, head: &Parts) -> bool {
        self.partial = self.start(head);
        if self.partial.is_none() {
            self.guard.release_followers();
        }
        self.partial.is_some()
    }

    /// Returns an empty response with this head, if it is cacheable and its framing shows where it ends.
    fn start(&self, head: &Parts) -> Option<PartialResponse> {
        let (headers, cache) = (&head.headers, &self.guard.cache);
        let length = headers.get(header::CONTENT_LENGTH);
        let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
        let is_framed = length.is_some()
            || headers.contains_key(header::TRANSFER_ENCODING)
            || head.version == Version::HTTP_2;
        let fresh_for = fresh_for_s(headers).map_or(cache.ttl, Duration::from_secs);
        let is_small = length.is_none_or(|length| length <= cache.max_response_bytes);
        let is_cached = is_cacheable(head.status, headers) && is_framed && is_small;
        (is_cached && !fresh_for.is_zero()).then(|| PartialResponse {
            headers: end_to_end_headers(headers),
            body: BytesMut::with_capacity(length.unwrap_or_default()),
            length,
            age: Duration::from_secs(age_s(headers).unwrap_or_default()),
            fresh_for: fresh_for.min(cache.ttl),
        })
    }

    /// Takes a piece of the body. At the end it caches the response if the response is complete.
    pub fn write_body(&mut self, piece: &[u8], is_end: bool) {
        let Some(partial) = &mut self.partial else {
            return;
        };
        if partial.body.len() + piece.len() > self.guard.cache.max_response_bytes {
            self.partial = None;
            self.guard.release_followers();
            return;
        }
        partial.body.extend_from_slice(piece);
        if !is_end {
            return;
        }
        let Some(whole) = self.partial.take() else {
            return;
        };
        if whole.length.is_none_or(|length| length == whole.body.len()) {
            self.store(whole);
        }
    }

    fn store(&self, whole: PartialResponse) {
        let now = Instant::now();
        let response = CachedResponse {
            headers: whole.headers,
            // The buffer of a response without a length has spare capacity, so the cache gets a copy.
            body: Bytes::copy_from_slice(&whole.body),
            generated: now.checked_sub(whole.age).unwrap_or(now),
            expires: now + whole.fresh_for,
        };
        let cache = &self.guard.cache;
        let key = self.guard.flight.key().clone();
        cache.responses.insert(key, Arc::new(response));
    }
}

fn end_to_end_headers(headers: &HeaderMap) -> Vec<(HeaderName, HeaderValue)> {
    let is_cached = |name: &HeaderName| {
        !UNCACHED_HEADERS.contains(name) && *name != header::AGE && !is_limit_header(name)
    };
    let cached = headers.iter().filter(|(name, _)| is_cached(name));
    cached
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;
