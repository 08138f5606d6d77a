//! The process's clocks: a monotonic clock and the wall clock.

use std::time::{SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

/// Both clocks. Copies share the start of the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    started: Instant,
}

impl Clock {
    /// Starts the monotonic clock.
    pub fn start() -> Self {
        Self {
            started: Instant::now(),
        }
    }

    /// Returns the milliseconds since the start of the monotonic clock.
    pub fn now_ms(&self) -> u64 {
        self.ms_at(Instant::now())
    }

    /// Returns the milliseconds between the start of the monotonic clock and `now`.
    pub fn ms_at(&self, now: Instant) -> u64 {
        let since = now.saturating_duration_since(self.started);
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    /// Returns the seconds of the wall clock since 1970.
    pub fn unix_s(&self) -> u64 {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs())
    }

    /// Returns the microseconds of the wall clock since 1970.
    pub fn unix_us(&self) -> u64 {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
    }

    /// Returns the milliseconds of the wall clock since 1970.
    pub fn unix_ms(&self) -> i64 {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }
}
