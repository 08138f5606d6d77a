//! One window: when it began and what it admitted, as a value without a lock or a clock.

use std::collections::VecDeque;

use super::window::{RefundToken, Verdict};

/// What a table holds for one key.
pub(super) trait Counter {
    /// A window that begins now, with nothing in it.
    fn new(now_ms: u64) -> Self;
    /// Counts one request if there is room.
    fn admit(&mut self, limit: u64, now_ms: u64, window_ms: u64) -> Verdict;
    /// Gives one unit back, if its window still runs.
    fn refund(&mut self, ticket: RefundToken, now_ms: u64, window_ms: u64) -> bool;
    /// Whether nothing in it counts any more.
    fn is_over(&self, now_ms: u64, window_ms: u64) -> bool;
}

/// A window from its first request to its end.
#[derive(Debug)]
pub(super) struct Fixed {
    start_ms: u64,
    count: u64,
}

impl Fixed {
    /// A clock that stands before the start was read by a thread that came late: the window runs.
    fn elapsed_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.start_ms)
    }
}

impl Counter for Fixed {
    fn new(now_ms: u64) -> Self {
        Self {
            start_ms: now_ms,
            count: 0,
        }
    }

    fn admit(&mut self, limit: u64, now_ms: u64, window_ms: u64) -> Verdict {
        if self.is_over(now_ms, window_ms) {
            *self = Self::new(now_ms);
        }
        let is_allowed = self.count < limit;
        self.count += u64::from(is_allowed);
        Verdict {
            is_allowed,
            limit,
            remaining: limit.saturating_sub(self.count),
            reset_ms: window_ms.saturating_sub(self.elapsed_ms(now_ms)),
            ticket: RefundToken(self.start_ms),
        }
    }

    fn refund(&mut self, ticket: RefundToken, now_ms: u64, window_ms: u64) -> bool {
        let is_due =
            ticket.0 == self.start_ms && self.count > 0 && !self.is_over(now_ms, window_ms);
        self.count -= u64::from(is_due);
        is_due
    }

    fn is_over(&self, now_ms: u64, window_ms: u64) -> bool {
        self.elapsed_ms(now_ms) >= window_ms
    }
}

/// The admissions of the last window's length, a run for each millisecond that had any.
///
/// Most keys see few requests: the oldest run stands inline, and the others take memory once there are any.
#[derive(Debug)]
pub(super) struct Sliding {
    oldest: Run,
    /// Ascending.
    #[expect(
        clippy::box_collection,
        reason = "8 bytes instead of 32 for each of a million keys that have none"
    )]
    newer: Option<Box<VecDeque<Run>>>,
    /// The sum of all runs.
    count: u64,
}

/// Requests admitted in one millisecond.
#[derive(Clone, Copy, Debug)]
struct Run {
    at_ms: u64,
    count: u64,
}

impl Sliding {
    fn forget(&mut self, now_ms: u64, window_ms: u64) {
        while self.oldest.count == 0 || now_ms.saturating_sub(self.oldest.at_ms) >= window_ms {
            self.count -= self.oldest.count;
            self.oldest.count = 0;
            let next = self.newer.as_mut().and_then(|newer| newer.pop_front());
            let Some(next) = next else {
                self.newer = None;
                return;
            };
            self.oldest = next;
        }
    }

    fn latest(&mut self) -> &mut Run {
        let newer = self.newer.as_mut();
        newer
            .and_then(|newer| newer.back_mut())
            .unwrap_or(&mut self.oldest)
    }

    /// The moment under which an admission is kept: a clock read early must not stand before one read late.
    fn moment_ms(&mut self, now_ms: u64) -> u64 {
        now_ms.max(self.latest().at_ms)
    }

    fn count(&mut self, at_ms: u64) {
        self.count += 1;
        let run = Run { at_ms, count: 1 };
        if self.oldest.count == 0 && self.newer.is_none() {
            self.oldest = run;
            return;
        }
        let latest = self.latest();
        if latest.at_ms == at_ms {
            latest.count += 1;
        } else {
            self.newer.get_or_insert_default().push_back(run);
        }
    }

    fn run(&mut self, at_ms: u64) -> Option<&mut Run> {
        if self.oldest.at_ms == at_ms {
            return Some(&mut self.oldest);
        }
        let newer = self.newer.as_mut()?;
        let place = newer.binary_search_by_key(&at_ms, |run| run.at_ms).ok()?;
        newer.get_mut(place)
    }
}

impl Counter for Sliding {
    fn new(now_ms: u64) -> Self {
        Self {
            oldest: Run {
                at_ms: now_ms,
                count: 0,
            },
            newer: None,
            count: 0,
        }
    }

    fn admit(&mut self, limit: u64, now_ms: u64, window_ms: u64) -> Verdict {
        let now_ms = self.moment_ms(now_ms);
        self.forget(now_ms, window_ms);
        let is_allowed = self.count < limit;
        if is_allowed {
            self.count(now_ms);
        }
        let age_ms = match self.oldest.count {
            0 => 0,
            _ => now_ms.saturating_sub(self.oldest.at_ms),
        };
        Verdict {
            is_allowed,
            limit,
            remaining: limit.saturating_sub(self.count),
            reset_ms: window_ms.saturating_sub(age_ms),
            ticket: RefundToken(now_ms),
        }
    }

    fn refund(&mut self, ticket: RefundToken, now_ms: u64, window_ms: u64) -> bool {
        let now_ms = self.moment_ms(now_ms);
        self.forget(now_ms, window_ms);
        let run = self.run(ticket.0).filter(|run| run.count > 0);
        let Some(run) = run else {
            return false;
        };
        run.count -= 1;
        self.count -= 1;
        true
    }

    fn is_over(&self, now_ms: u64, window_ms: u64) -> bool {
        let newest = self.newer.as_ref().and_then(|newer| newer.back());
        let newest = newest.unwrap_or(&self.oldest);
        self.count == 0 || now_ms.saturating_sub(newest.at_ms) >= window_ms
    }
}
