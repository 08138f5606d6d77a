//! Answers of the graph service that are given again, and who waits for one that is being fetched.
//!
//! The first request for an answer that is not kept fetches it, and holds a [`FetchGuard`] meanwhile; others for the same
//! answer wait for it, for a while. A flight ends when it is dropped: whoever waits then finds the answer kept, or
//! takes the next flight, or goes alone where the answer turned out to be nobody else's.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use filters::graph::headers::is_limit_header;
use filters::graph::{CacheKey, age_s, fresh_for_s, is_cacheable};
use http::{HeaderMap, HeaderName, HeaderValue, Version, header};
use pingora::http::ResponseHeader;
use tokio::sync::watch;
use tokio::time::Instant;

/// How long a request waits for another one's answer. Source: docs/decisions.md 28.
const FOLLOWER_TIMEOUT: Duration = Duration::from_secs(5);
/// What an entry takes beside its texts: key, map, counters.
const ENTRY_BYTES: usize = 256;
/// One answer may take this part of the whole.
const LARGEST: u64 = 4;
/// Of the connection an answer came on, or said anew each time.
const NOT_KEPT: [HeaderName; 10] = [
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

/// See the module.
pub struct ResponseCache {
    kept: moka::sync::Cache<CacheKey, Arc<CachedResponse>>,
    flights: Mutex<HashMap<CacheKey, watch::Sender<bool>>>,
    ttl: Duration,
    largest_bytes: usize,
}

/// An answer that is given again.
pub struct CachedResponse {
    /// Its headers, but for those of its connection.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Its body.
    pub body: Bytes,
    /// When it came, less the age it had.
    since: Instant,
    until: Instant,
}

impl CachedResponse {
    /// How old it is, in seconds.
    pub fn age_s(&self) -> u64 {
        self.since.elapsed().as_secs()
    }
}

/// What there is for a request.
pub enum Lookup {
    /// An answer.
    Hit(Arc<CachedResponse>),
    /// Nothing: it is for this request to fetch it.
    Nothing(FetchGuard),
    /// Nothing to wait for.
    Alone,
}

/// The right to fetch an answer for all who wait for it.
pub struct FetchGuard {
    cache: Arc<ResponseCache>,
    key: CacheKey,
}

impl FetchGuard {
    /// Tells those who wait that the answer will not be theirs.
    fn is_for_nobody_else(&self) {
        if let Some(waiting) = self.cache.lock().get(&self.key) {
            waiting.send_replace(true);
        }
    }
}

impl Drop for FetchGuard {
    fn drop(&mut self) {
        self.cache.lock().remove(&self.key);
    }
}

enum FetchRole {
    Taken(FetchGuard),
    Behind(watch::Receiver<bool>),
}

impl ResponseCache {
    /// An empty one: answers are kept for `ttl` at most, and take about `max_bytes`.
    pub fn new(ttl: Duration, max_bytes: u64) -> Self {
        let weigh = |_: &CacheKey, kept: &Arc<CachedResponse>| {
            let lines = kept.headers.iter();
            let headers: usize = lines
                .map(|(name, value)| name.as_str().len() + value.len())
                .sum();
            u32::try_from(ENTRY_BYTES + headers + kept.body.len()).unwrap_or(u32::MAX)
        };
        let kept = moka::sync::Cache::builder()
            .max_capacity(max_bytes)
            .weigher(weigh)
            .time_to_live(ttl)
            .build();
        Self {
            kept,
            flights: Mutex::default(),
            ttl,
            largest_bytes: usize::try_from(max_bytes / LARGEST).unwrap_or(usize::MAX),
        }
    }

    /// An answer, or the right to fetch it, where it may be kept; waits while somebody else does, at most
    /// [`FOLLOWER_TIMEOUT`].
    ///
    /// Cost of a hit: one look-up; `may_be_kept` is asked where there is none.
    pub async fn find(
        self: &Arc<Self>,
        key: CacheKey,
        may_be_kept: impl FnOnce() -> bool,
    ) -> Lookup {
        if let Some(kept) = self.fresh(key) {
            return Lookup::Hit(kept);
        }
        if !may_be_kept() {
            return Lookup::Alone;
        }
        let until = Instant::now() + FOLLOWER_TIMEOUT;
        loop {
            let mut behind = match self.take(key) {
                // It may have been kept while the seat was taken.
                FetchRole::Taken(flight) => {
                    return self.fresh(key).map_or(Lookup::Nothing(flight), Lookup::Hit);
                }
                FetchRole::Behind(behind) => behind,
            };
            let ended = behind.wait_for(|is_for_nobody_else| *is_for_nobody_else);
            let ended = tokio::time::timeout_at(until, ended).await;
            if !matches!(ended, Ok(Err(_))) {
                return Lookup::Alone;
            }
            if let Some(kept) = self.fresh(key) {
                return Lookup::Hit(kept);
            }
        }
    }

    fn fresh(&self, key: CacheKey) -> Option<Arc<CachedResponse>> {
        let kept = self.kept.get(&key)?;
        (Instant::now() < kept.until).then_some(kept)
    }

    fn take(self: &Arc<Self>, key: CacheKey) -> FetchRole {
        let mut flights = self.lock();
        if let Some(flight) = flights.get(&key) {
            return FetchRole::Behind(flight.subscribe());
        }
        flights.insert(key, watch::Sender::new(false));
        let cache = Arc::clone(self);
        FetchRole::Taken(FetchGuard { cache, key })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<CacheKey, watch::Sender<bool>>> {
        self.flights.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An answer on its way into the cache.
pub struct CacheWriter {
    flight: FetchGuard,
    answer: Option<Answer>,
}

struct Answer {
    headers: Vec<(HeaderName, HeaderValue)>,
    body: BytesMut,
    length: Option<usize>,
    age: Duration,
    fresh_for: Duration,
}

impl CacheWriter {
    /// Nothing of the answer is there yet.
    pub fn new(flight: FetchGuard) -> Self {
        Self {
            flight,
            answer: None,
        }
    }

    /// The head of the answer; answers whether it may be kept. If not, nobody waits for it any longer.
    pub fn head(&mut self, head: &ResponseHeader) -> bool {
        self.answer = self.readable(head);
        if self.answer.is_none() {
            self.flight.is_for_nobody_else();
        }
        self.answer.is_some()
    }

    /// What an answer with this head begins with, where it may be kept and its end can be told.
    fn readable(&self, head: &ResponseHeader) -> Option<Answer> {
        let (headers, cache) = (&head.headers, &self.flight.cache);
        let length = headers.get(header::CONTENT_LENGTH);
        let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
        let is_framed = length.is_some()
            || headers.contains_key(header::TRANSFER_ENCODING)
            || head.version == Version::HTTP_2;
        let fresh_for = fresh_for_s(headers).map_or(cache.ttl, Duration::from_secs);
        let is_small = length.is_none_or(|length| length <= cache.largest_bytes);
        let is_kept = is_cacheable(head.status, headers) && is_framed && is_small;
        (is_kept && !fresh_for.is_zero()).then(|| Answer {
            headers: end_to_end(headers),
            body: BytesMut::with_capacity(length.unwrap_or_default()),
            length,
            age: Duration::from_secs(age_s(headers).unwrap_or_default()),
            fresh_for: fresh_for.min(cache.ttl),
        })
    }

    /// A piece of the answer; keeps the whole at its end.
    pub fn body(&mut self, piece: &[u8], is_end: bool) {
        let Some(answer) = &mut self.answer else {
            return;
        };
        if answer.body.len() + piece.len() > self.flight.cache.largest_bytes {
            self.answer = None;
            self.flight.is_for_nobody_else();
            return;
        }
        answer.body.extend_from_slice(piece);
        if !is_end {
            return;
        }
        let Some(answer) = self.answer.take() else {
            return;
        };
        if answer
            .length
            .is_none_or(|length| length == answer.body.len())
        {
            self.keep(answer);
        }
    }

    fn keep(&self, answer: Answer) {
        let now = Instant::now();
        let kept = CachedResponse {
            headers: answer.headers,
            // Of an answer without a length more was taken than it needs.
            body: Bytes::copy_from_slice(&answer.body),
            since: now.checked_sub(answer.age).unwrap_or(now),
            until: now + answer.fresh_for,
        };
        let cache = &self.flight.cache;
        cache.kept.insert(self.flight.key, Arc::new(kept));
    }
}

fn end_to_end(headers: &HeaderMap) -> Vec<(HeaderName, HeaderValue)> {
    let lines = headers.iter();
    let kept = lines.filter(|(name, _)| {
        !NOT_KEPT.contains(name) && *name != header::AGE && !is_limit_header(name)
    });
    kept.map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;
