//! A limit of what runs at once that can change while things run. Nothing ever waits for it, so a counter is enough.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts what runs.
pub struct ConcurrencyLimit {
    max: AtomicUsize,
    running: AtomicUsize,
}

/// One that runs, until it is dropped.
pub struct ConcurrencyPermit(Arc<ConcurrencyLimit>);

impl ConcurrencyLimit {
    /// Allows `max` at once.
    pub fn new(max: usize) -> Self {
        Self {
            max: AtomicUsize::new(max),
            running: AtomicUsize::new(0),
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
    pub fn try_acquire(self: &Arc<Self>) -> Option<ConcurrencyPermit> {
        let max = self.max.load(Ordering::Relaxed);
        let more = |running| (running < max).then_some(running + 1);
        let running = &self.running;
        let counted = running.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        counted.is_ok().then(|| ConcurrencyPermit(Arc::clone(self)))
    }
}

impl Drop for ConcurrencyPermit {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_smaller_maximum_ends_nothing_and_takes_none_until_enough_have_ended() {
        let limit = Arc::new(ConcurrencyLimit::new(2));
        let (first, second) = (limit.try_acquire(), limit.try_acquire());
        assert!(first.is_some() && second.is_some());
        assert!(limit.is_full() && limit.try_acquire().is_none());
        limit.set_max(1);
        drop(first);
        assert!(limit.try_acquire().is_none());
        drop(second);
        assert!(!limit.is_full() && limit.try_acquire().is_some());
    }
}
