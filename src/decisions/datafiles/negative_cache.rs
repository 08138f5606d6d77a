//! Keys for which a source was asked in vain, remembered for a while: nobody can make us ask without end, and nobody
//! waits for what has just failed.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use filters::decisions::errors::DATAFILE_RETRY_AFTER_S;
use http::StatusCode;
use tokio::time::Instant;

use super::disk_cache::digest;
use super::local::ProjectLookup;
use crate::decisions::lock;

/// How many are remembered; all are forgotten when there are more.
const MAX_KEYS: usize = 10_000;

/// How the source was asked in vain.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Why {
    /// It refused the key with this status.
    Refused(StatusCode),
    /// It did not answer, or with nothing that can be used.
    Failed,
}

/// See the module.
pub(super) struct NegativeCache {
    refused_for: Duration,
    by_key: Mutex<HashMap<[u8; 16], (Why, Instant)>>,
}

impl NegativeCache {
    /// Refusals count for so long; failures until a caller is to come again.
    pub(super) fn new(refused_for: Duration) -> Self {
        Self {
            refused_for,
            by_key: Mutex::default(),
        }
    }

    /// What to answer without asking again.
    pub(super) fn of(&self, key: &str) -> Option<ProjectLookup> {
        let (why, at) = lock(&self.by_key).get(&digest(key)).copied()?;
        let (period, found) = match why {
            Why::Refused(status) => (self.refused_for, ProjectLookup::Refused(status)),
            Why::Failed => (
                Duration::from_secs(DATAFILE_RETRY_AFTER_S.into()),
                ProjectLookup::Unusable,
            ),
        };
        (at.elapsed() < period).then_some(found)
    }

    /// Remembers one.
    pub(super) fn add(&self, key: &str, why: Why) {
        let mut by_key = lock(&self.by_key);
        if by_key.len() >= MAX_KEYS {
            by_key.clear();
        }
        by_key.insert(digest(key), (why, Instant::now()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_failure_is_forgotten_before_a_refusal() {
        let away = NegativeCache::new(Duration::from_secs(30));
        away.add("refused", Why::Refused(StatusCode::NOT_FOUND));
        away.add("failed", Why::Failed);
        tokio::time::advance(Duration::from_secs(4)).await;
        assert!(matches!(away.of("failed"), Some(ProjectLookup::Unusable)));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(away.of("failed").is_none());
        let refused = away.of("refused");
        assert!(matches!(
            refused,
            Some(ProjectLookup::Refused(StatusCode::NOT_FOUND))
        ));
        tokio::time::advance(Duration::from_secs(25)).await;
        assert!(away.of("refused").is_none());
    }
}
