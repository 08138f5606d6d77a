//! Limits how many fetches run at once, in the process and for one organization.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

/// The permits of all fetches. An organization has at most half of them, over all its requests, and a request a
/// quarter.
pub(super) struct FetchPermits {
    all: Arc<Semaphore>,
    max_fetches: usize,
    organizations: Mutex<HashMap<Box<str>, Weak<Semaphore>>>,
}

/// The right to one fetch. Dropping it frees it.
pub(super) struct FetchPermit {
    _of_organization: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl FetchPermits {
    pub(super) fn new(max_fetches: usize) -> Self {
        Self {
            all: Arc::new(Semaphore::new(max_fetches)),
            max_fetches,
            organizations: Mutex::default(),
        }
    }

    /// Returns the maximum number of concurrent fetches of one request.
    pub(super) fn max_per_request(&self) -> usize {
        (self.max_fetches / 4).max(1)
    }

    /// Waits for a permit. The queue of one organization delays no other.
    pub(super) async fn acquire(&self, organization: &str) -> Result<FetchPermit, AcquireError> {
        let own = self.organization(organization);
        let own = own.acquire_owned().await?;
        Ok(FetchPermit {
            _of_organization: own,
            _of_all: Arc::clone(&self.all).acquire_owned().await?,
        })
    }

    fn organization(&self, organization: &str) -> Arc<Semaphore> {
        let organizations = self.organizations.lock();
        let mut organizations = organizations.unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = organizations.get(organization).and_then(Weak::upgrade) {
            return known;
        }
        organizations.retain(|_, permits| permits.strong_count() > 0);
        let permits = Arc::new(Semaphore::new((self.max_fetches / 2).max(1)));
        organizations.insert(organization.into(), Arc::downgrade(&permits));
        permits
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn an_organization_leaves_permits_for_others() {
        let permits = FetchPermits::new(4);
        let first = permits.acquire("a").await.unwrap();
        let second = permits.acquire("a").await.unwrap();
        assert!(permits.acquire("a").now_or_never().is_none());
        let others: Vec<FetchPermit> = ["b", "c"]
            .into_iter()
            .map(|name| permits.acquire(name).now_or_never().unwrap().unwrap())
            .collect();
        assert!(permits.acquire("e").now_or_never().is_none());
        drop(first);
        assert!(permits.acquire("e").now_or_never().is_some());
        drop((second, others));
        assert!(permits.acquire("a").now_or_never().is_some());
        assert!(permits.organizations.lock().unwrap().len() < 3);
    }
}
