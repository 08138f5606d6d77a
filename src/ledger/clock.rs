//! The ledger's clock, which dates calls and asks for the periods of limits.
//!
//! It starts with the system's clock and then runs with the monotonic clock. So a system clock that is set forward opens
//! no period before its time, and one that is set back opens no past one again. Small differences are followed at once,
//! as days and months begin with everyone's clock. A jump is followed once it has lasted: it may have been the earlier
//! time that was wrong.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The greatest difference that is followed at once.
pub(super) const MAX_DRIFT_MS: i64 = 60_000;
/// How long a jump has to last before it is followed.
const JUMP_TRUST_TIME: Duration = Duration::from_secs(3600);

static CLOCK: LazyLock<SteadyClock> = LazyLock::new(|| SteadyClock {
    started: Instant::now(),
    offset_ms: AtomicI64::new(system_ms()),
    follower: Mutex::default(),
});

struct SteadyClock {
    started: Instant,
    /// The time at `started`, as far as it is followed.
    offset_ms: AtomicI64,
    follower: Mutex<Follower>,
}

/// What became of a difference between the system's clock and the ledger's. Units: milliseconds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Difference {
    /// The clocks agree, or a known jump lasts.
    Known,
    /// The ledger's clock is moved.
    Followed(i64),
    /// The system's clock has just jumped.
    Jumped(i64),
}

/// A jump of the system's clock that is not followed yet.
#[derive(Default)]
struct Follower {
    jump: Option<(i64, Duration)>,
}

impl Follower {
    /// Decides about a difference that is seen at this time of the monotonic clock.
    fn follow(&mut self, ahead_ms: i64, at: Duration) -> Difference {
        if ahead_ms.abs() <= MAX_DRIFT_MS {
            self.jump = None;
            return match ahead_ms {
                0 => Difference::Known,
                _ => Difference::Followed(ahead_ms),
            };
        }
        match self.jump {
            Some((jump_ms, since)) if (ahead_ms - jump_ms).abs() <= MAX_DRIFT_MS => {
                if at.saturating_sub(since) < JUMP_TRUST_TIME {
                    return Difference::Known;
                }
                self.jump = None;
                Difference::Followed(ahead_ms)
            }
            _ => {
                self.jump = Some((ahead_ms, at));
                Difference::Jumped(ahead_ms)
            }
        }
    }
}

/// Returns the ledger's time in unix milliseconds.
pub(super) fn unix_ms() -> i64 {
    let elapsed_ms = i64::try_from(CLOCK.started.elapsed().as_millis()).unwrap_or(i64::MAX);
    CLOCK
        .offset_ms
        .load(Ordering::Relaxed)
        .saturating_add(elapsed_ms)
}

/// Compares the ledger's clock with the system's, and moves it where it follows.
pub(super) fn follow_system() -> Difference {
    let follower = CLOCK.follower.lock();
    let mut follower = follower.unwrap_or_else(PoisonError::into_inner);
    let ahead_ms = system_ms().saturating_sub(unix_ms());
    let difference = follower.follow(ahead_ms, CLOCK.started.elapsed());
    if let Difference::Followed(by_ms) = difference {
        CLOCK.offset_ms.fetch_add(by_ms, Ordering::Relaxed);
    }
    difference
}

fn system_ms() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::Difference::{Followed, Jumped, Known};
    use super::*;

    const DAY_MS: i64 = 24 * 3_600_000;

    fn minutes(count: u64) -> Duration {
        Duration::from_secs(60 * count)
    }

    #[test]
    fn small_differences_are_followed_and_jumps_are_not() {
        let mut follower = Follower::default();
        for ahead_ms in [1, -1, MAX_DRIFT_MS, -MAX_DRIFT_MS] {
            assert_eq!(follower.follow(ahead_ms, minutes(0)), Followed(ahead_ms));
        }
        for jump_ms in [DAY_MS, -DAY_MS] {
            assert_eq!(follower.follow(jump_ms, minutes(1)), Jumped(jump_ms));
            assert_eq!(follower.follow(jump_ms + 5, minutes(60)), Known);
            assert_eq!(follower.follow(0, minutes(60)), Known, "it was set right");
        }
        // Each jump lasts for itself.
        assert_eq!(follower.follow(DAY_MS, minutes(60)), Jumped(DAY_MS));
        assert_eq!(
            follower.follow(2 * DAY_MS, minutes(119)),
            Jumped(2 * DAY_MS)
        );
        assert_eq!(follower.follow(2 * DAY_MS, minutes(178)), Known);
    }

    #[test]
    fn a_jump_that_lasts_for_an_hour_is_followed() {
        let mut follower = Follower::default();
        for jump_ms in [DAY_MS, -DAY_MS] {
            assert_eq!(follower.follow(jump_ms, minutes(1)), Jumped(jump_ms));
            assert_eq!(follower.follow(jump_ms, minutes(60)), Known);
            assert_eq!(follower.follow(jump_ms, minutes(61)), Followed(jump_ms));
            assert_eq!(follower.follow(3, minutes(61)), Followed(3));
        }
    }

    #[test]
    fn the_clock_is_the_systems_where_that_runs_on() {
        assert!(matches!(follow_system(), Known | Followed(_)));
        assert!((unix_ms() - system_ms()).abs() < 1000);
    }
}
