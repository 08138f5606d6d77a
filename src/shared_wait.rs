//! How long one request waits for what processes share.
//!
//! All its waits for Redis, one after the other or at once, draw from one budget. The core holds the budget of a request
//! while it runs the request's work, and whoever waits for Redis finds it in the task, so that no wait can be forgotten.
//! Work in the background has no budget.

use std::cell::Cell;
use std::time::Duration;

use tokio::time::Instant;

/// How long no request waits longer for Redis. Source: docs/interface.md, `shared.redis`.
pub const MAX_WAIT: Duration = Duration::from_millis(50);
/// How much later than its end a wait may be noticed: timers are late by up to 2 ms, and a busy machine wakes its threads late.
const LATENESS: Duration = Duration::from_millis(6);
/// The budget of a request: its last wait is noticed within [`MAX_WAIT`].
pub const BUDGET: Duration = MAX_WAIT.saturating_sub(LATENESS);

tokio::task_local! {
    static HELD: Cell<WaitBudget>;
}

/// What a request has waited so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct WaitBudget {
    waited: Duration,
    /// The end of the last wait. What others waited at the same time counts once.
    counted_until: Option<Instant>,
}

impl WaitBudget {
    /// Returns how long the request has waited: more than [`BUDGET`] by as much as the machine was late to wake it, and
    /// more than [`MAX_WAIT`] only on a very busy one.
    pub fn waited(&self) -> Duration {
        self.waited
    }

    /// Runs work of the request, and returns what it has waited then.
    pub async fn hold<W: Future>(self, work: W) -> (W::Output, Self) {
        let held = async {
            let output = work.await;
            (output, HELD.with(Cell::get))
        };
        HELD.scope(Cell::new(self), held).await
    }

    fn count(mut self, started: Instant, ended: Instant) -> Self {
        let from = self.counted_until.map_or(started, |at| at.max(started));
        self.waited += ended.saturating_duration_since(from);
        self.counted_until = self.counted_until.max(Some(ended));
        self
    }
}

/// Returns how long the running request may still wait; in the background always the whole budget.
pub fn left() -> Duration {
    let held = HELD.try_with(Cell::get).unwrap_or_default();
    BUDGET.saturating_sub(held.waited)
}

/// A wait that counts until it is dropped.
#[must_use]
pub struct Wait {
    started: Instant,
}

/// Begins a wait.
pub fn begin() -> Wait {
    Wait {
        started: Instant::now(),
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        let ended = Instant::now();
        // In the background nothing is counted.
        _ = HELD.try_with(|held| held.set(held.get().count(self.started, ended)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn wait(ms: u64) {
        let _wait = begin();
        tokio::time::sleep(Duration::from_millis(ms).min(left())).await;
    }

    #[tokio::test(start_paused = true)]
    async fn waits_of_one_request_draw_from_one_budget() {
        let ((), first) = WaitBudget::default().hold(wait(30)).await;
        assert_eq!(first.waited(), Duration::from_millis(30));
        let work = async {
            wait(10).await;
            assert_eq!(left(), BUDGET - Duration::from_millis(40));
            wait(40).await;
            assert_eq!(left(), Duration::ZERO);
        };
        let ((), second) = first.hold(work).await;
        assert_eq!(second.waited(), BUDGET);
        assert_eq!(left(), BUDGET, "nothing is held here");
    }

    #[tokio::test(start_paused = true)]
    async fn waits_at_the_same_time_count_once_and_work_between_them_not_at_all() {
        let work = async {
            futures::future::join3(wait(10), wait(20), wait(20)).await;
            tokio::time::sleep(Duration::from_secs(1)).await;
            wait(5).await;
            // One that is given up counts until then.
            let given_up = Box::pin(wait(20));
            let sleep = Box::pin(tokio::time::sleep(Duration::from_millis(3)));
            drop(futures::future::select(given_up, sleep).await);
        };
        let ((), budget) = WaitBudget::default().hold(work).await;
        assert_eq!(budget.waited(), Duration::from_millis(28));
    }
}
