//! Whether the threads that serve requests still run tasks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

/// The interval of the rounds.
const ROUND: Duration = Duration::from_millis(250);

/// The rounds of a task among those that serve requests. The task runs only while a thread of their runtime is free, so
/// a count that stands still tells that all of them are stuck. Clones share it.
#[derive(Clone, Default)]
pub struct WorkerProgress(Arc<Rounds>);

#[derive(Default)]
struct Rounds {
    count: AtomicU64,
    is_stalled: AtomicBool,
}

impl WorkerProgress {
    /// Counts rounds for as long as the current runtime runs tasks.
    pub async fn count_rounds(self) {
        let mut rounds = interval(ROUND);
        // Rounds that were missed are not made up for: they would hide the next stall.
        rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            rounds.tick().await;
            self.0.count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the number of rounds so far.
    pub fn rounds(&self) -> u64 {
        self.0.count.load(Ordering::Relaxed)
    }

    /// Sets whether the threads are stuck, as the one who compares the rounds has found.
    pub fn set_stalled(&self, is_stalled: bool) {
        self.0.is_stalled.store(is_stalled, Ordering::Relaxed);
    }

    /// Returns whether the threads are stuck.
    pub fn is_stalled(&self) -> bool {
        self.0.is_stalled.load(Ordering::Relaxed)
    }
}
