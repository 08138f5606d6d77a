//! Remembers failed fetches by SDK key for a while, so that no caller can cause endless fetches, and no request waits
//! for a fetch that has just failed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use filters::decisions::errors::DATAFILE_RETRY_AFTER_S;
use http::StatusCode;
use tokio::time::Instant;

use super::disk_cache::digest;
use super::local::ProjectLookup;
use crate::decisions::mutex::lock;

/// The capacity. When it is exceeded, all keys are dropped.
const MAX_KEYS: usize = 10_000;

/// The reason for which a fetch failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum FetchFailure {
    Refused(StatusCode),
    /// The source did not respond, or its datafile is unusable.
    Failed,
}

/// Failed fetches, and the time of each, by a hash of the SDK key.
type Failures = HashMap<[u8; 16], (FetchFailure, Instant)>;

/// The recently failed fetches by SDK key.
pub(super) struct NegativeCache {
    refused_for: Duration,
    by_key: Arc<Mutex<Failures>>,
}

impl NegativeCache {
    /// Creates a cache that keeps refusals for `refused_for`, and other failures until a caller may try again.
    pub(super) fn new(refused_for: Duration) -> Self {
        Self {
            refused_for,
            by_key: Arc::default(),
        }
    }

    /// Returns a cache of the same failures that keeps refusals for another time.
    pub(super) fn keeping(&self, refused_for: Duration) -> Self {
        Self {
            refused_for,
            by_key: Arc::clone(&self.by_key),
        }
    }

    /// Returns the result for a key that need not be fetched again.
    pub(super) fn find(&self, key: &str) -> Option<ProjectLookup> {
        let failure = lock(&self.by_key).get(&digest(key)).copied()?;
        self.is_current(&failure).then_some(match failure.0 {
            FetchFailure::Refused(status) => ProjectLookup::Refused(status),
            FetchFailure::Failed => ProjectLookup::Unusable,
        })
    }

    /// Returns the number of keys that need not be fetched again.
    pub(super) fn count(&self) -> usize {
        let by_key = lock(&self.by_key);
        let current = by_key.values().filter(|failure| self.is_current(failure));
        current.count()
    }

    fn is_current(&self, (failure, at): &(FetchFailure, Instant)) -> bool {
        let period = match failure {
            FetchFailure::Refused(_) => self.refused_for,
            FetchFailure::Failed => Duration::from_secs(DATAFILE_RETRY_AFTER_S.into()),
        };
        at.elapsed() < period
    }

    /// Adds a key.
    pub(super) fn add(&self, key: &str, failure: FetchFailure) {
        let mut by_key = lock(&self.by_key);
        if by_key.len() >= MAX_KEYS {
            by_key.clear();
        }
        by_key.insert(digest(key), (failure, Instant::now()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_failure_is_forgotten_before_a_refusal() {
        let cache = NegativeCache::new(Duration::from_secs(30));
        cache.add("refused", FetchFailure::Refused(StatusCode::NOT_FOUND));
        cache.add("failed", FetchFailure::Failed);
        tokio::time::advance(Duration::from_secs(4)).await;
        assert!(matches!(
            cache.find("failed"),
            Some(ProjectLookup::Unusable)
        ));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(cache.find("failed").is_none());
        let refused = cache.find("refused");
        assert!(matches!(
            refused,
            Some(ProjectLookup::Refused(StatusCode::NOT_FOUND))
        ));
        tokio::time::advance(Duration::from_secs(25)).await;
        assert!(cache.find("refused").is_none());
    }
}
