//! Work that is done at intervals.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Interval, MissedTickBehavior, interval};

/// The times at which a task works. The first is at once. Work that takes longer than the interval delays what follows.
pub struct Ticks {
    interval: Interval,
    stop: watch::Receiver<bool>,
}

impl Ticks {
    /// Makes the ticks of a task that works until `stop` becomes true or its sender is dropped.
    pub fn new(period: Duration, stop: watch::Receiver<bool>) -> Self {
        let mut interval = interval(period);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { interval, stop }
    }

    /// Waits for the next tick. Returns false when the task has to end.
    pub async fn next(&mut self) -> bool {
        loop {
            tokio::select! {
                changed = self.stop.changed() => {
                    if changed.is_err() || *self.stop.borrow() {
                        return false;
                    }
                }
                _ = self.interval.tick() => return true,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn the_first_tick_is_at_once_and_a_late_one_delays_the_next() {
        let (_stop, stopped) = watch::channel(false);
        let mut ticks = Ticks::new(PERIOD, stopped);
        let started = tokio::time::Instant::now();
        assert!(ticks.next().await);
        assert_eq!(started.elapsed(), Duration::ZERO);
        tokio::time::sleep(PERIOD * 5 / 2).await;
        assert!(ticks.next().await && ticks.next().await);
        assert_eq!(started.elapsed(), PERIOD * 7 / 2);
    }

    #[tokio::test(start_paused = true)]
    async fn they_end_with_the_stop_and_not_with_another_change() {
        let (stop, stopped) = watch::channel(false);
        let mut ticks = Ticks::new(PERIOD, stopped);
        assert!(ticks.next().await);
        stop.send_replace(false);
        assert!(ticks.next().await);
        stop.send_replace(true);
        assert!(!ticks.next().await);
    }

    #[tokio::test(start_paused = true)]
    async fn they_end_when_nobody_can_stop_them_any_more() {
        let (stop, stopped) = watch::channel(false);
        let mut ticks = Ticks::new(PERIOD, stopped);
        assert!(ticks.next().await);
        drop(stop);
        assert!(!ticks.next().await);
    }
}
