//! A limit of what runs at once that can change while things run. Nothing ever waits for it, so a counter is enough.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts what runs.
pub struct ConcurrencyLimit {
    max: AtomicUsize,
    running: Arc<AtomicUsize>,
}

/// One or several that run, until it is dropped.
pub struct ConcurrencyPermit {
    running: Arc<AtomicUsize>,
    count: usize,
}

impl ConcurrencyLimit {
    /// Allows `max` at once.
    pub fn new(max: usize) -> Self {
        Self {
            max: AtomicUsize::new(max),
            running: Arc::default(),
        }
    }

    /// Returns a limit that allows `max` at once, and counts the same that runs.
    #[must_use]
    pub fn resized(&self, max: usize) -> Self {
        Self {
            max: AtomicUsize::new(max),
            running: Arc::clone(&self.running),
        }
    }

    /// Sets how many may run at once. What runs already is not ended.
    pub fn set_max(&self, max: usize) {
        self.max.store(max, Ordering::Relaxed);
    }

    /// Returns whether none more may run.
    pub fn is_full(&self) -> bool {
        self.running.load(Ordering::Relaxed) >= self.max.load(Ordering::Relaxed)
    }

    /// Counts one more, or returns `None` if the maximum runs.
    pub fn try_acquire(&self) -> Option<ConcurrencyPermit> {
        self.try_acquire_many(1)
    }

    /// Counts several more, or returns `None` if these are more than may run.
    pub fn try_acquire_many(&self, count: usize) -> Option<ConcurrencyPermit> {
        let max = self.max.load(Ordering::Relaxed);
        let more = |running: usize| running.checked_add(count).filter(|all| *all <= max);
        let counted = self
            .running
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        counted.is_ok().then(|| ConcurrencyPermit {
            running: Arc::clone(&self.running),
            count,
        })
    }
}

impl Drop for ConcurrencyPermit {
    fn drop(&mut self) {
        self.running.fetch_sub(self.count, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_smaller_maximum_ends_nothing_and_takes_none_until_enough_have_ended() {
        let limit = ConcurrencyLimit::new(2);
        let (first, second) = (limit.try_acquire(), limit.try_acquire());
        assert!(first.is_some() && second.is_some());
        assert!(limit.is_full() && limit.try_acquire().is_none());
        limit.set_max(1);
        drop(first);
        assert!(limit.try_acquire().is_none());
        drop(second);
        assert!(!limit.is_full() && limit.try_acquire().is_some());
    }

    #[test]
    fn several_count_together() {
        let limit = ConcurrencyLimit::new(3);
        let two = limit.try_acquire_many(2);
        assert!(two.is_some() && limit.try_acquire_many(2).is_none());
        drop(two);
        assert!(limit.try_acquire_many(3).is_some());
    }

    #[test]
    fn a_resized_limit_counts_the_same() {
        let old = ConcurrencyLimit::new(1);
        let running = old.try_acquire();
        let new = old.resized(2);
        let later = new.try_acquire();
        assert!(later.is_some() && new.is_full() && old.is_full());
        drop(running);
        assert!(old.is_full() && !new.is_full());
    }
}
