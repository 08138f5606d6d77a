//! The equal endpoints of a provider: which of them a call goes to.
//!
//! Most providers have one. Of several, a call takes one in turn, a session's calls take the same one, whose cache has
//! their prefix. An endpoint that a health check finds down, or that has just failed, is taken only if no other is left.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::proxy::origin::Origin;

/// The number of failures in a row after which an endpoint cools down, if it can be connected to.
const MAX_FAILURES: u32 = 3;
/// How long it does.
const COOL_DOWN_MS: u64 = 10_000;

/// See the module.
pub struct Endpoints {
    /// Never empty.
    all: Vec<Endpoint>,
    turn: AtomicUsize,
}

struct Endpoint {
    origin: Arc<Origin>,
    failures_in_a_row: AtomicU32,
    /// The end of its cool-down, in milliseconds of the monotonic clock.
    cools_until_ms: AtomicU64,
}

/// The endpoints that a call has tried, by their numbers. Beyond 64 of them several share a mark.
#[derive(Clone, Copy, Debug, Default)]
pub struct TriedEndpoints(u64);

impl TriedEndpoints {
    /// Adds one.
    pub fn add(&mut self, number: usize) {
        self.0 |= 1 << (number % 64);
    }

    fn contains(self, number: usize) -> bool {
        self.0 & (1 << (number % 64)) != 0
    }
}

impl Endpoints {
    /// Creates the endpoints of these origins, at least one.
    pub fn new(origins: Vec<Arc<Origin>>) -> Self {
        let endpoint = |origin| Endpoint {
            origin,
            failures_in_a_row: AtomicU32::new(0),
            cools_until_ms: AtomicU64::new(0),
        };
        Self {
            all: origins.into_iter().map(endpoint).collect(),
            turn: AtomicUsize::new(0),
        }
    }

    /// Returns their origins.
    pub fn origins(&self) -> impl Iterator<Item = &Arc<Origin>> {
        self.all.iter().map(|endpoint| &endpoint.origin)
    }

    /// Returns whether there are several.
    pub fn are_several(&self) -> bool {
        self.all.len() > 1
    }

    /// Returns the origin of this number; another number is that of the first.
    pub fn origin(&self, number: usize) -> Option<&Arc<Origin>> {
        let endpoint = self.all.get(number).or_else(|| self.all.first());
        endpoint.map(|endpoint| &endpoint.origin)
    }

    /// Returns the number of the endpoint that a call takes next: the first in its turn that is up and was not tried, else
    /// the first that was not tried, else the first.
    pub fn pick(&self, session: Option<u64>, tried: TriedEndpoints, now_ms: u64) -> usize {
        if !self.are_several() {
            return 0;
        }
        let count = self.all.len();
        let turn = match session {
            Some(session) => (session % count as u64) as usize,
            None => self.turn.fetch_add(1, Ordering::Relaxed),
        };
        let in_turn = || (0..count).map(|step| turn.wrapping_add(step) % count);
        let mut untried = in_turn().filter(|number| !tried.contains(*number));
        let up = untried.clone().find(|number| self.is_up(*number, now_ms));
        up.or_else(|| untried.next()).unwrap_or(turn % count)
    }

    /// Returns whether a call could try another endpoint that is up.
    pub fn has_another(&self, tried: TriedEndpoints, now_ms: u64) -> bool {
        let mut numbers = 0..self.all.len();
        self.are_several()
            && numbers.any(|number| !tried.contains(number) && self.is_up(number, now_ms))
    }

    fn is_up(&self, number: usize, now_ms: u64) -> bool {
        self.all.get(number).is_some_and(|endpoint| {
            endpoint.cools_until_ms.load(Ordering::Relaxed) <= now_ms && endpoint.origin.is_up()
        })
    }

    /// Records that a call was answered.
    pub fn record_success(&self, number: usize) {
        if let Some(endpoint) = self.several(number) {
            endpoint.failures_in_a_row.store(0, Ordering::Relaxed);
            endpoint.cools_until_ms.store(0, Ordering::Relaxed);
        }
    }

    /// Records that a call failed. An endpoint that cannot be connected to cools down at once.
    pub fn record_failure(&self, number: usize, is_unreachable: bool, now_ms: u64) {
        if let Some(endpoint) = self.several(number) {
            let before = endpoint.failures_in_a_row.fetch_add(1, Ordering::Relaxed);
            if is_unreachable || before + 1 >= MAX_FAILURES {
                let until_ms = now_ms + COOL_DOWN_MS;
                endpoint.cools_until_ms.store(until_ms, Ordering::Relaxed);
            }
        }
    }

    /// Returns an endpoint of several; how a single one does is known from its provider.
    fn several(&self, number: usize) -> Option<&Endpoint> {
        self.all.get(number).filter(|_| self.are_several())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use std::time::Duration;

    use super::*;
    use crate::proxy::origin::{ConnectTimeouts, Reach};

    fn endpoints(count: usize) -> Endpoints {
        let timeouts = ConnectTimeouts {
            connect: Duration::from_secs(1),
            read_write: Duration::from_secs(1),
        };
        let origin = |number: usize| {
            let url = format!("http://127.0.0.{number}:1").parse().unwrap();
            Arc::new(Origin::new("test", &url, timeouts, Reach::Anywhere).unwrap())
        };
        Endpoints::new((1..=count).map(origin).collect())
    }

    fn tried(numbers: &[usize]) -> TriedEndpoints {
        let mut tried = TriedEndpoints::default();
        numbers.iter().for_each(|number| tried.add(*number));
        tried
    }

    #[test]
    fn calls_take_endpoints_in_turn_and_a_session_keeps_its_own() {
        let endpoints = endpoints(3);
        let none = TriedEndpoints::default();
        let taken: Vec<usize> = (0..6).map(|_| endpoints.pick(None, none, 0)).collect();
        assert_eq!(taken, [0, 1, 2, 0, 1, 2]);
        assert!((0..9).all(|_| endpoints.pick(Some(7), none, 0) == 1));
    }

    #[test]
    fn one_that_failed_rests_and_is_tried_where_no_other_is_left() {
        let endpoints = endpoints(2);
        let none = TriedEndpoints::default();
        endpoints.record_failure(0, true, 100);
        assert!((0..4).all(|_| endpoints.pick(None, none, 5000) == 1));
        assert!(!endpoints.has_another(tried(&[1]), 5000));
        assert_eq!(endpoints.pick(None, tried(&[1]), 5000), 0);
        assert!(endpoints.has_another(tried(&[1]), 100 + COOL_DOWN_MS));
        endpoints.record_success(0);
        assert!(endpoints.has_another(tried(&[1]), 5000));
    }

    #[test]
    fn other_failures_count_when_they_come_in_a_row() {
        let endpoints = endpoints(2);
        let rests = || !endpoints.has_another(tried(&[1]), 1);
        endpoints.record_failure(0, false, 0);
        endpoints.record_failure(0, false, 0);
        endpoints.record_success(0);
        endpoints.record_failure(0, false, 0);
        endpoints.record_failure(0, false, 0);
        assert!(!rests());
        endpoints.record_failure(0, false, 0);
        assert!(rests());
    }

    #[test]
    fn a_single_endpoint_is_taken_whatever_happens() {
        let endpoints = endpoints(1);
        endpoints.record_failure(0, true, 0);
        assert_eq!(endpoints.pick(Some(5), tried(&[0]), 0), 0);
        assert!(!endpoints.has_another(TriedEndpoints::default(), 0));
    }
}
