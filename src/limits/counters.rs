//! Counts requests in windows, either in this process or in Redis, and drops ended windows in the background.
//!
//! A caller passes the subject, the kind of request and the limit. Only this module knows where the window is: in this
//! process, where nothing waits, or in the Redis of `shared.redis` for all processes. While Redis is unavailable, each
//! process counts alone, as `shared.on_outage` says. Redis never gets the counts of that time, and a count that Redis
//! made too late is undone, so no request counts twice. In the span of one window around the start or end of an outage,
//! the two limits may add up: once in Redis and once over all processes.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use async_trait::async_trait;
use filters::fault::Fault;
use filters::limits::{Algorithm, RefundToken, Refusals, Verdict, WindowKey, Windows};
use pingora::server::ShutdownWatch;
use pingora::services::background::BackgroundService;
use tokio::time::Instant;

use super::handover::AskCounts;
use super::shared_windows::{SharedWindows, Sharing};
use crate::redis::Unavailable;

/// The interval between two sweeps.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// The time of the clock when the process starts: longer than any window, so that those of the process before fit before it.
const CLOCK_START_MS: u64 = 7 * 24 * 3_600_000;

/// The windows of one length.
pub struct WindowCounters {
    algorithm: Algorithm,
    pub(super) windows: Arc<Windows>,
    pub(super) shared: Option<SharedWindows>,
    /// What was refused since the start of the process.
    pub(super) refusals: Arc<Refusals>,
    started: Instant,
    /// The way to the process that counts in place of this one, if one does.
    pub(super) elsewhere: Arc<ArcSwapOption<Arc<AskCounts>>>,
}

impl WindowCounters {
    /// Makes windows in this process.
    pub fn new(algorithm: Algorithm, window: Duration) -> Self {
        Self {
            algorithm,
            windows: Arc::new(Windows::new(algorithm, to_ms(window))),
            shared: None,
            refusals: Arc::default(),
            started: Instant::now(),
            elsewhere: Arc::default(),
        }
    }

    /// Makes windows that processes share, or windows in this process if nothing is shared. Those of a previous
    /// configuration go on, unless their algorithm or length has changed.
    pub fn with_sharing(
        algorithm: Algorithm,
        window: Duration,
        sharing: Option<&Sharing>,
        previous: Option<&Self>,
    ) -> Self {
        let window_ms = to_ms(window).max(1);
        // What was refused stays known, by the same clock.
        let refused = previous.map(|it| (Arc::clone(&it.refusals), it.started));
        let (refusals, started) = refused.unwrap_or_else(|| (Arc::default(), Instant::now()));
        let is_same = |it: &&Self| it.algorithm == algorithm && it.windows.window_ms() == window_ms;
        let previous = previous.filter(is_same);
        let before = previous.and_then(|it| it.shared.as_ref());
        let shared = sharing.map(|it| SharedWindows::new(it, algorithm, window, before));
        let own = match previous {
            Some(previous) => Self {
                algorithm,
                windows: Arc::clone(&previous.windows),
                shared: None,
                refusals: Arc::default(),
                started: previous.started,
                elsewhere: Arc::clone(&previous.elsewhere),
            },
            None => Self::new(algorithm, window),
        };
        Self {
            shared,
            refusals,
            started,
            ..own
        }
    }

    /// Counts one request if its limit allows it.
    ///
    /// Errors: 503 if Redis is unavailable and `shared.on_outage` is `closed`. Cost: one lock of one shard; for a shared
    /// window one call to Redis, unless `limits.shared_exact` is off and the window is hot.
    pub async fn admit(&self, key: &WindowKey, limit: u64) -> Result<Verdict, Fault> {
        let verdict = match &self.shared {
            None => match self.admit_elsewhere(key, limit).await {
                Some(verdict) => verdict,
                None => self.windows.admit(key, limit, self.now_ms()),
            },
            Some(shared) => match shared.admit(key, limit).await {
                Ok(verdict) => verdict,
                Err(Unavailable) => {
                    let share = shared.outage_limit(limit)?;
                    // The policy is unchanged, so clients see the full limit, and what this process has left of its share.
                    Verdict {
                        limit,
                        ..self.windows.admit(key, share, self.now_ms())
                    }
                }
            },
        };
        if !verdict.is_allowed {
            self.refusals.record(key, verdict.reset_ms, self.now_ms());
        }
        Ok(verdict)
    }

    /// Returns how many more requests a limit allows now, and counts none. What other processes hold of a shared window counts as
    /// used.
    ///
    /// Errors: as [`Self::admit`]. Cost: one lock of one shard, or one call to Redis.
    pub async fn remaining(&self, key: &WindowKey, limit: u64) -> Result<u64, Fault> {
        let (count, limit) = match &self.shared {
            None => (self.windows.count(key, self.now_ms()), limit),
            Some(shared) => match shared.count(key).await {
                Ok(count) => (count, limit),
                Err(Unavailable) => {
                    let share = shared.outage_limit(limit)?;
                    (self.windows.count(key, self.now_ms()), share)
                }
            },
        };
        Ok(limit.saturating_sub(count))
    }

    /// Returns one unit to its window if that has not ended. Returns whether it did. Use a token at most once.
    pub async fn refund(&self, key: &WindowKey, refund_token: RefundToken) -> bool {
        match (refund_token.shared_ms(), &self.shared) {
            (Some(at_ms), Some(shared)) => shared.refund(key, at_ms).await,
            _ => self.windows.refund(key, refund_token, self.now_ms()),
        }
    }

    /// Returns the number of windows in this process.
    pub fn window_count(&self) -> usize {
        self.windows.len()
    }

    /// Returns whether the windows are in Redis.
    pub(super) fn is_shared(&self) -> bool {
        self.shared.is_some()
    }

    /// Returns the time of a monotonic clock, which is later than the start of any window that another process passes.
    pub(super) fn now_ms(&self) -> u64 {
        CLOCK_START_MS + to_ms(self.started.elapsed())
    }

    /// Sweeps the next shards, so that each shard is swept once per window length. Returns the shard to go on with.
    fn sweep(&self, first: usize) -> usize {
        let (shards, window_ms) = (self.windows.shard_count(), self.windows.window_ms());
        let ticks = (window_ms / to_ms(SWEEP_INTERVAL)).max(1);
        let share = shards.div_ceil(usize::try_from(ticks).unwrap_or(usize::MAX));
        for shard in (first..shards).take(share) {
            self.windows.sweep(shard, self.now_ms());
            self.shared.iter().for_each(|shared| shared.sweep(shard));
        }
        if first + share < shards {
            first + share
        } else {
            0
        }
    }
}

pub(super) fn to_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Drops ended windows to free memory. It never affects a verdict.
pub struct Sweeper(pub Arc<WindowCounters>);

#[async_trait]
impl BackgroundService for Sweeper {
    async fn start(&self, mut shutdown: ShutdownWatch) {
        let mut first = 0;
        loop {
            tokio::select! {
                () = tokio::time::sleep(SWEEP_INTERVAL) => first = self.0.sweep(first),
                _ = shutdown.changed() => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use filters::limits::{RowId, Subject};

    use super::*;

    fn key(subject: u32) -> WindowKey {
        WindowKey {
            subject: Subject::Named(subject.to_string().into()),
            row: RowId::from_name("POST /content/v2"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn ended_windows_are_dropped() {
        let counters = Arc::new(WindowCounters::new(
            Algorithm::Fixed,
            Duration::from_secs(10),
        ));
        for subject in 0..1_000 {
            assert!(counters.admit(&key(subject), 1).await.unwrap().is_allowed);
        }
        assert_eq!(counters.window_count(), 1_000);
        let (stop, stopped) = tokio::sync::watch::channel(false);
        let sweeper = Sweeper(Arc::clone(&counters));
        let sweeping = tokio::spawn(async move { sweeper.start(stopped).await });
        tokio::time::sleep(Duration::from_secs(22)).await;
        assert_eq!(counters.window_count(), 0);
        stop.send_replace(true);
        sweeping.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn windows_go_on_under_new_limits_unless_their_length_or_algorithm_changes() {
        let (algorithm, length) = (Algorithm::Fixed, Duration::from_secs(10));
        let old = WindowCounters::new(algorithm, length);
        let new = WindowCounters::with_sharing(algorithm, length, None, Some(&old));
        let counted = old.admit(&key(1), 2).await.unwrap();
        assert!(new.admit(&key(1), 2).await.unwrap().is_allowed);
        assert!(!new.admit(&key(1), 2).await.unwrap().is_allowed);
        assert_eq!(new.remaining(&key(1), 5).await.unwrap(), 3);
        // A request of the old generation gives back what the new one counts.
        assert!(old.refund(&key(1), counted.refund_token).await);
        assert_eq!(new.remaining(&key(1), 5).await.unwrap(), 4);
        for (algorithm, seconds) in [(Algorithm::Fixed, 11), (Algorithm::Sliding, 10)] {
            let length = Duration::from_secs(seconds);
            let other = WindowCounters::with_sharing(algorithm, length, None, Some(&new));
            assert_eq!(other.remaining(&key(1), 5).await.unwrap(), 5);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_unit_is_given_back_in_its_own_window_alone() {
        let counters = WindowCounters::new(Algorithm::Fixed, Duration::from_secs(10));
        let first = counters.admit(&key(1), 1).await.unwrap();
        assert!(!counters.admit(&key(1), 1).await.unwrap().is_allowed);
        assert!(counters.refund(&key(1), first.refund_token).await);
        let second = counters.admit(&key(1), 1).await.unwrap();
        assert!(second.is_allowed);
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert!(!counters.refund(&key(1), second.refund_token).await);
    }
}
