//! One window: when it began and what it admitted, as a value without a lock or a clock.

use std::collections::VecDeque;

use super::window::{Ticket, Verdict};

/// What a table holds for one key.
pub(super) trait Counter {
    /// A window that begins now, with nothing in it.
    fn new(now_ms: u64) -> Self;
    /// Counts one request if there is room.
    fn admit(&mut self, limit: u64, now_ms: u64, window_ms: u64) -> Verdict;
    /// Gives one unit back, if its window still runs.
    fn refund(&mut self, ticket: Ticket, now_ms: u64, window_ms: u64) -> bool;
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
            ticket: Ticket(self.start_ms),
        }
    }

    fn refund(&mut self, ticket: Ticket, now_ms: u64, window_ms: u64) -> bool {
        let is_due =
            ticket.0 == self.start_ms && self.count > 0 && !self.is_over(now_ms, window_ms);
        self.count -= u64::from(is_due);
        is_due
    }

    fn is_over(&self, now_ms: u64, window_ms: u64) -> bool {
        self.elapsed_ms(now_ms) >= window_ms
    }
}

/// The admissions of the last window's length, a pair of millisecond and count for each millisecond that had any.
#[derive(Debug)]
pub(super) struct Sliding {
    /// Ascending.
    admitted: VecDeque<(u64, u64)>,
    /// The sum of the counts.
    count: u64,
}

impl Sliding {
    fn forget(&mut self, now_ms: u64, window_ms: u64) {
        while let Some(&(at_ms, count)) = self.admitted.front() {
            if count > 0 && now_ms.saturating_sub(at_ms) < window_ms {
                break;
            }
            self.count -= count;
            self.admitted.pop_front();
        }
    }

    /// The moment under which an admission is kept: a clock read early must not stand before one read late.
    fn moment_ms(&self, now_ms: u64) -> u64 {
        let last_ms = self.admitted.back().map_or(0, |(at_ms, _)| *at_ms);
        now_ms.max(last_ms)
    }

    fn count(&mut self, at_ms: u64) {
        self.count += 1;
        match self.admitted.back_mut() {
            Some((last_ms, count)) if *last_ms == at_ms => *count += 1,
            _ => self.admitted.push_back((at_ms, 1)),
        }
    }
}

impl Counter for Sliding {
    fn new(_now_ms: u64) -> Self {
        Self {
            admitted: VecDeque::new(),
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
        let oldest_ms = self.admitted.front().map_or(now_ms, |(at_ms, _)| *at_ms);
        Verdict {
            is_allowed,
            limit,
            remaining: limit.saturating_sub(self.count),
            reset_ms: window_ms.saturating_sub(now_ms - oldest_ms),
            ticket: Ticket(now_ms),
        }
    }

    fn refund(&mut self, ticket: Ticket, now_ms: u64, window_ms: u64) -> bool {
        let now_ms = self.moment_ms(now_ms);
        self.forget(now_ms, window_ms);
        let place = self
            .admitted
            .binary_search_by_key(&ticket.0, |(at_ms, _)| *at_ms);
        let entry = place.ok().and_then(|place| self.admitted.get_mut(place));
        let Some((_, count)) = entry.filter(|(_, count)| *count > 0) else {
            return false;
        };
        *count -= 1;
        self.count -= 1;
        true
    }

    fn is_over(&self, now_ms: u64, window_ms: u64) -> bool {
        let last = self.admitted.back();
        last.is_none_or(|(at_ms, _)| now_ms.saturating_sub(*at_ms) >= window_ms)
    }
}
