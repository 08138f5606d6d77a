//! Windows as requests meet them: one question to ask, and an organ that drops what has ended.
//!
//! Who asks says whose request it is, of which kind, and what the limit is; nobody else knows where it is counted:
//! in this process, where nothing waits, or in the Redis of `shared.redis` for all processes together. While that is
//! gone each process counts alone as `shared.on_outage` says. What was counted alone is not told to Redis later, and
//! what Redis counted too late is taken back, so nothing counts twice. In a span of one window around the moment
//! where Redis goes or returns the two may add up: the limit once in Redis, and once over all processes.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use filters::fault::Fault;
use filters::limits::{Algorithm, RefundToken, Verdict, WindowKey, Windows};
use pingora::server::ShutdownWatch;
use pingora::services::background::BackgroundService;
use tokio::time::Instant;

use crate::config::OnOutage;
use crate::limits::redis_windows::RedisWindows;
use crate::redis::Redis;

/// How often ended windows are looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// The windows of one length.
pub struct WindowCounters {
    windows: Windows,
    shared: Option<RedisWindows>,
    begun: Instant,
}

impl WindowCounters {
    /// No windows yet.
    pub fn new(algorithm: Algorithm, window: Duration) -> Self {
        Self {
            windows: Windows::new(algorithm, milliseconds(window)),
            shared: None,
            begun: Instant::now(),
        }
    }

    /// The same for all processes of a Redis, where there is one.
    pub fn shared(
        algorithm: Algorithm,
        window: Duration,
        redis: Option<&Redis>,
        on_outage: OnOutage,
    ) -> Self {
        let shared =
            redis.map(|redis| RedisWindows::new(redis.clone(), on_outage, algorithm, window));
        Self {
            shared,
            ..Self::new(algorithm, window)
        }
    }

    /// Counts one request if its limit has room for it.
    ///
    /// Errors: 503, where nobody can say whether there is room. Cost: one lock of one shard, or one question to Redis.
    pub async fn admit(&self, key: &WindowKey, limit: u64) -> Result<Verdict, Fault> {
        let Some(shared) = &self.shared else {
            return Ok(self.windows.admit(key, limit, self.now_ms()));
        };
        if let Ok(verdict) = shared.admit(key, limit).await {
            return Ok(verdict);
        }
        let part = shared.alone(limit)?;
        // The policy has not changed: callers are told the whole limit, and what this process has left for them.
        Ok(Verdict {
            limit,
            ..self.windows.admit(key, part, self.now_ms())
        })
    }

    /// Gives one unit back, and answers whether it did: only while its window runs, and at most once a ticket.
    pub async fn refund(&self, key: &WindowKey, ticket: RefundToken) -> bool {
        match (ticket.shared_ms(), &self.shared) {
            (Some(at_ms), Some(shared)) => shared.refund(key, at_ms).await,
            _ => self.windows.refund(key, ticket, self.now_ms()),
        }
    }

    /// How many windows are held.
    pub fn held(&self) -> usize {
        self.windows.len()
    }

    /// The process's own clock: it never goes back, whatever the wall clock does.
    fn now_ms(&self) -> u64 {
        milliseconds(self.begun.elapsed())
    }

    /// Drops ended windows part by part, so that all are looked at once in a window's length.
    fn sweep(&self, from: usize) -> usize {
        let (parts, window_ms) = (self.windows.parts(), self.windows.window_ms());
        let ticks = (window_ms / milliseconds(SWEEP_EVERY)).max(1);
        let share = parts.div_ceil(usize::try_from(ticks).unwrap_or(usize::MAX));
        for part in (from..parts).take(share) {
            self.windows.sweep(part, self.now_ms());
        }
        if from + share < parts {
            from + share
        } else {
            0
        }
    }
}

pub(super) fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Drops ended windows, for memory's sake: who comes again finds a new window either way.
pub struct Sweeper(pub Arc<WindowCounters>);

#[async_trait]
impl BackgroundService for Sweeper {
    async fn start(&self, mut shutdown: ShutdownWatch) {
        let mut from = 0;
        loop {
            tokio::select! {
                () = tokio::time::sleep(SWEEP_EVERY) => from = self.0.sweep(from),
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

    fn key(who: u32) -> WindowKey {
        WindowKey {
            who: Subject::Named(who.to_string().into()),
            row: RowId::of("POST /content/v2"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn ended_windows_are_dropped() {
        let counters = Arc::new(WindowCounters::new(
            Algorithm::Fixed,
            Duration::from_secs(10),
        ));
        for who in 0..1_000 {
            assert!(counters.admit(&key(who), 1).await.unwrap().is_allowed);
        }
        assert_eq!(counters.held(), 1_000);
        let (stop, stopped) = tokio::sync::watch::channel(false);
        let sweeper = Sweeper(Arc::clone(&counters));
        let sweeping = tokio::spawn(async move { sweeper.start(stopped).await });
        tokio::time::sleep(Duration::from_secs(22)).await;
        assert_eq!(counters.held(), 0);
        stop.send_replace(true);
        sweeping.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_unit_is_given_back_in_its_own_window_alone() {
        let counters = WindowCounters::new(Algorithm::Fixed, Duration::from_secs(10));
        let first = counters.admit(&key(1), 1).await.unwrap();
        assert!(!counters.admit(&key(1), 1).await.unwrap().is_allowed);
        assert!(counters.refund(&key(1), first.ticket).await);
        let second = counters.admit(&key(1), 1).await.unwrap();
        assert!(second.is_allowed);
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert!(!counters.refund(&key(1), second.ticket).await);
    }
}
