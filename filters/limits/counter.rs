//! The counter of one window: its start and its admissions, without a lock or a clock.

use std::collections::VecDeque;

use super::window::{RefundToken, Verdict};

/// The counter that a table holds per key.
pub(super) trait Counter {
    /// Makes an empty window that starts at `now_ms`.
    fn new(now_ms: u64) -> Self;
    /// Counts one request if the limit allows it.
    fn admit(&mut self, limit: u64, now_ms: u64, window_ms: u64) -> Verdict;
    /// Gives one unit back if its window has not ended. Returns whether it did.
    fn refund(&mut self, refund_token: RefundToken, now_ms: u64, window_ms: u64) -> bool;
    /// Returns how many admissions count now.
    fn count(&self, now_ms: u64, window_ms: u64) -> u64;
    /// Returns a number that is at least what [`Self::count`] returns, without looking at single admissions.
    fn upper_count(&self) -> u64;
    /// Returns the time until an admission that counts now stops counting, or 0 if none counts.
    fn reset_ms(&self, now_ms: u64, window_ms: u64) -> u64;
    /// Returns whether no admission in the window counts any more.
    fn has_ended(&self, now_ms: u64, window_ms: u64) -> bool;
    /// Returns the times of admissions, ascending, each with their number.
    fn runs(&self) -> Vec<(u64, u64)>;
    /// Makes the window of these admissions.
    fn from_runs(runs: &[(u64, u64)]) -> Self;
}

/// A window that starts with its first request and has a fixed end.
#[derive(Debug)]
pub(super) struct Fixed {
    start_ms: u64,
    count: u64,
}

impl Fixed {
    /// Returns the time since the start, or 0 for an older time: a slow thread may have read its clock before the
    /// window started.
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
        if self.has_ended(now_ms, window_ms) {
            *self = Self::new(now_ms);
        }
        let is_allowed = self.count < limit;
        self.count += u64::from(is_allowed);
        Verdict {
            is_allowed,
            limit,
            remaining: limit.saturating_sub(self.count),
            reset_ms: window_ms.saturating_sub(self.elapsed_ms(now_ms)),
            refund_token: RefundToken(self.start_ms),
        }
    }

    fn refund(&mut self, refund_token: RefundToken, now_ms: u64, window_ms: u64) -> bool {
        let is_due =
            refund_token.0 == self.start_ms && self.count > 0 && !self.has_ended(now_ms, window_ms);
        self.count -= u64::from(is_due);
        is_due
    }

    fn count(&self, now_ms: u64, window_ms: u64) -> u64 {
        match self.has_ended(now_ms, window_ms) {
            true => 0,
            false => self.count,
        }
    }

    fn upper_count(&self) -> u64 {
        self.count
    }

    fn reset_ms(&self, now_ms: u64, window_ms: u64) -> u64 {
        window_ms.saturating_sub(self.elapsed_ms(now_ms))
    }

    fn has_ended(&self, now_ms: u64, window_ms: u64) -> bool {
        self.elapsed_ms(now_ms) >= window_ms
    }

    fn runs(&self) -> Vec<(u64, u64)> {
        vec![(self.start_ms, self.count)]
    }

    fn from_runs(runs: &[(u64, u64)]) -> Self {
        Self {
            start_ms: runs.first().map_or(0, |(at_ms, _)| *at_ms),
            count: runs.iter().map(|(_, count)| count).sum(),
        }
    }
}

/// The admissions within the last window length, one run per millisecond that had any.
///
/// Most keys see few requests: the oldest run is stored inline, and the others take memory only if there are any.
#[derive(Debug)]
pub(super) struct Sliding {
    oldest: Run,
    /// The later runs, ascending.
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
    fn drop_expired(&mut self, now_ms: u64, window_ms: u64) {
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

    /// Returns the time at which to record an admission: never before an admission that is already recorded.
    fn effective_ms(&mut self, now_ms: u64) -> u64 {
        now_ms.max(self.latest().at_ms)
    }

    fn add(&mut self, at_ms: u64) {
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

    fn run_at(&mut self, at_ms: u64) -> Option<&mut Run> {
        if self.oldest.at_ms == at_ms {
            return Some(&mut self.oldest);
        }
        let newer = self.newer.as_mut()?;
        let index = newer.binary_search_by_key(&at_ms, |run| run.at_ms).ok()?;
        newer.get_mut(index)
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
        let now_ms = self.effective_ms(now_ms);
        self.drop_expired(now_ms, window_ms);
        let is_allowed = self.count < limit;
        if is_allowed {
            self.add(now_ms);
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
            refund_token: RefundToken(now_ms),
        }
    }

    fn refund(&mut self, refund_token: RefundToken, now_ms: u64, window_ms: u64) -> bool {
        let now_ms = self.effective_ms(now_ms);
        self.drop_expired(now_ms, window_ms);
        let run = self.run_at(refund_token.0).filter(|run| run.count > 0);
        let Some(run) = run else {
            return false;
        };
        run.count -= 1;
        self.count -= 1;
        true
    }

    fn count(&self, now_ms: u64, window_ms: u64) -> u64 {
        let newer = self.newer.iter().flat_map(|newer| newer.iter());
        let runs = std::iter::once(&self.oldest).chain(newer);
        let counting = runs.filter(|run| now_ms.saturating_sub(run.at_ms) < window_ms);
        counting.map(|run| run.count).sum()
    }

    fn upper_count(&self) -> u64 {
        self.count
    }

    fn reset_ms(&self, now_ms: u64, window_ms: u64) -> u64 {
        let newer = self.newer.iter().flat_map(|newer| newer.iter());
        let mut runs = std::iter::once(&self.oldest).chain(newer);
        let rest = |run: &Run| window_ms.saturating_sub(now_ms.saturating_sub(run.at_ms));
        let oldest = runs.find(|run| run.count > 0 && rest(run) > 0);
        oldest.map_or(0, rest)
    }

    fn has_ended(&self, now_ms: u64, window_ms: u64) -> bool {
        let newest = self.newer.as_ref().and_then(|newer| newer.back());
        let newest = newest.unwrap_or(&self.oldest);
        self.count == 0 || now_ms.saturating_sub(newest.at_ms) >= window_ms
    }

    fn runs(&self) -> Vec<(u64, u64)> {
        let newer = self.newer.iter().flat_map(|newer| newer.iter());
        let runs = std::iter::once(&self.oldest).chain(newer);
        runs.map(|run| (run.at_ms, run.count)).collect()
    }

    fn from_runs(runs: &[(u64, u64)]) -> Self {
        let mut window = Self::new(runs.first().map_or(0, |(at_ms, _)| *at_ms));
        let counting = runs.iter().filter(|(_, count)| *count > 0);
        let runs = counting.map(|&(at_ms, count)| Run { at_ms, count });
        let mut runs: VecDeque<Run> = runs.collect();
        window.count = runs.iter().map(|run| run.count).sum();
        if let Some(oldest) = runs.pop_front() {
            window.oldest = oldest;
        }
        window.newer = (!runs.is_empty()).then(|| Box::new(runs));
        window
    }
}
