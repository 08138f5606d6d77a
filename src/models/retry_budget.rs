//! Limits the second and later fallbacks of all calls together, so that an outage of some providers does not multiply
//! the load on the others.
//!
//! Our choice: the numbers of Envoy's retry budget. A call's first fallback never needs the budget.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The maximum share of running calls at a second or later fallback, in percent.
const BUDGET_PERCENT: usize = 20;
/// The number of such calls that is always allowed.
const MIN_LATER: usize = 3;

/// The running calls, and the number of them at a second or later fallback.
#[derive(Debug, Default)]
pub struct RetryBudget {
    running: AtomicUsize,
    later: AtomicUsize,
}

/// A running call, until it is dropped.
#[derive(Debug)]
pub struct RunningCall {
    budget: Arc<RetryBudget>,
    is_later: bool,
}

impl RetryBudget {
    /// Counts a call.
    pub fn begin(self: &Arc<Self>) -> RunningCall {
        self.running.fetch_add(1, Ordering::Relaxed);
        RunningCall {
            budget: Arc::clone(self),
            is_later: false,
        }
    }

    fn max_later(&self) -> usize {
        let share = self.running.load(Ordering::Relaxed) * BUDGET_PERCENT / 100;
        share.max(MIN_LATER)
    }
}

impl RunningCall {
    /// Returns whether the call may start a second or later fallback. Once allowed, it stays allowed.
    pub fn try_later_fallback(&mut self) -> bool {
        if !self.is_later {
            let max = self.budget.max_later();
            let later = &self.budget.later;
            let add = |count| (count < max).then_some(count + 1);
            let added = later.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
            self.is_later = added.is_ok();
        }
        self.is_later
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        self.budget.running.fetch_sub(1, Ordering::Relaxed);
        if self.is_later {
            self.budget.later.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(running: usize) -> usize {
        let budget = Arc::new(RetryBudget::default());
        let mut calls: Vec<RunningCall> = (0..running).map(|_| budget.begin()).collect();
        calls
            .iter_mut()
            .filter_map(|call| call.try_later_fallback().then_some(()))
            .count()
    }

    #[test]
    fn a_fifth_of_the_running_calls_may_and_three_in_any_case() {
        assert_eq!([1, 3, 10, 20, 100].map(allowed), [1, 3, 3, 4, 20]);
    }

    #[test]
    fn a_call_that_ends_makes_room_and_one_that_may_keeps_its_place() {
        let budget = Arc::new(RetryBudget::default());
        let mut calls: Vec<RunningCall> = (0..4).map(|_| budget.begin()).collect();
        let mut waiting = calls.remove(0);
        assert!(calls.iter_mut().all(RunningCall::try_later_fallback));
        assert!(calls.iter_mut().all(RunningCall::try_later_fallback));
        assert!(!waiting.try_later_fallback());
        calls.pop();
        assert!(waiting.try_later_fallback());
    }
}
