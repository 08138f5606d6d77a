#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use proptest::prelude::*;

use super::super::key::{RowId, Subject};
use super::*;

const THREADS: u64 = 64;
const WINDOW_MS: u64 = 10_000;

fn key() -> WindowKey {
    WindowKey {
        subject: Subject::Named("t".into()),
        row: RowId::from_name("POST /content/v2"),
    }
}

/// Many threads send requests at once until the clock has passed `windows` windows. The clock advances by one window
/// per ten times the limit of requests. Returns how many requests were admitted at each time.
fn storm(table: &Windows, limit: u64, windows: u64) -> BTreeMap<u64, u64> {
    let sent = AtomicU64::new(0);
    let total = windows * limit * 10;
    let ask = || {
        let mut admitted: BTreeMap<u64, u64> = BTreeMap::new();
        loop {
            let number = sent.fetch_add(1, Ordering::Relaxed);
            if number >= total {
                return admitted;
            }
            let now_ms = number * WINDOW_MS / (limit * 10);
            let verdict = table.admit(&key(), limit, now_ms);
            if verdict.is_allowed {
                *admitted.entry(verdict.refund_token.0).or_default() += 1;
            }
        }
    };
    let mut all = BTreeMap::new();
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(ask)).collect();
        for thread in threads {
            for (at_ms, count) in thread.join().unwrap() {
                *all.entry(at_ms).or_default() += count;
            }
        }
    });
    all
}

#[test]
fn sixty_four_threads_are_admitted_the_limit_in_each_of_10_000_windows() {
    // A window takes three times as many ticks as there are threads. So threads that wait with an older time cannot
    // fill a window alone.
    let admitted = storm(&Windows::new(Algorithm::Fixed, WINDOW_MS), 20, 10_000);
    // A thread that is descheduled for long pushes the next window apart: some windows are lost, none admits too few.
    assert!(admitted.len() >= 9_500, "{} windows", admitted.len());
    let last_ms = *admitted.last_key_value().unwrap().0;
    for (start_ms, count) in admitted {
        assert!(count == 20 || start_ms == last_ms, "{count} at {start_ms}");
        assert!(count <= 20, "{count} at {start_ms}");
    }
}

#[test]
fn sixty_four_threads_are_admitted_the_limit_within_one_window() {
    for algorithm in [Algorithm::Fixed, Algorithm::Sliding] {
        let admitted = storm(&Windows::new(algorithm, WINDOW_MS), 1_500, 1);
        assert_eq!(admitted.values().sum::<u64>(), 1_500);
    }
}

#[test]
fn sixty_four_threads_never_pass_a_sliding_limit_in_any_span() {
    let admitted = storm(&Windows::new(Algorithm::Sliding, WINDOW_MS), 10, 1_000);
    for &start_ms in admitted.keys() {
        let span = admitted.range(start_ms..start_ms + WINDOW_MS);
        let count: u64 = span.map(|(_, count)| count).sum();
        assert!(count <= 10, "{count} from {start_ms}");
    }
    // Demand is always ten times the limit, so only descheduled threads leave capacity unused.
    assert!(admitted.values().sum::<u64>() >= 9_500);
}

#[test]
fn sixty_four_threads_with_refunds_are_served_the_limit() {
    let windows = Windows::new(Algorithm::Fixed, WINDOW_MS);
    let refunded = AtomicU64::new(0);
    let admitted = AtomicU64::new(0);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (windows, refunded, admitted) = (&windows, &refunded, &admitted);
            scope.spawn(move || {
                for number in 0..1_000 {
                    let verdict = windows.admit(&key(), 3_000, 1);
                    admitted.fetch_add(u64::from(verdict.is_allowed), Ordering::Relaxed);
                    let is_hit = verdict.is_allowed && (thread + number) % 3 == 0;
                    if is_hit && windows.refund(&key(), verdict.refund_token, 2) {
                        refunded.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let (admitted, refunded) = (admitted.into_inner(), refunded.into_inner());
    assert!(refunded > 0);
    let left = windows.admit(&key(), u64::MAX, 3);
    assert_eq!(u64::MAX - left.remaining - 1, admitted - refunded);
    assert!(admitted - refunded <= 3_000);
}

/// The definition of a window, written simply.
#[derive(Default)]
struct Model {
    start_ms: Option<u64>,
    count: u64,
}

impl Model {
    fn admit(&mut self, limit: u64, now_ms: u64) -> bool {
        if self
            .start_ms
            .is_none_or(|start_ms| now_ms >= start_ms + WINDOW_MS)
        {
            *self = Self {
                start_ms: Some(now_ms),
                count: 0,
            };
        }
        let fits = self.count < limit;
        self.count += u64::from(fits);
        fits
    }
}

/// Steps of a clock: most are small, some go to an edge or just beside it.
fn steps() -> impl Strategy<Value = Vec<u64>> {
    let step = prop_oneof![
        5 => 0..3_u64,
        2 => 0..3_000_u64,
        1 => 9_998..10_003_u64,
        1 => Just(3 * WINDOW_MS),
    ];
    prop::collection::vec(step, 0..400)
}

proptest! {
    #[test]
    fn a_fixed_window_answers_as_its_definition(steps in steps(), limit in 0..6_u64) {
        let windows = Windows::new(Algorithm::Fixed, WINDOW_MS);
        let (mut model, mut now_ms) = (Model::default(), 0);
        for step in steps {
            now_ms += step;
            let verdict = windows.admit(&key(), limit, now_ms);
            prop_assert_eq!(verdict.is_allowed, model.admit(limit, now_ms));
            prop_assert_eq!(verdict.remaining, limit - model.count);
            prop_assert_eq!(Some(now_ms + verdict.reset_ms), model.start_ms.map(|at| at + WINDOW_MS));
        }
    }

    #[test]
    fn a_sliding_window_refuses_only_where_the_last_span_is_full(steps in steps(), limit in 0..6_u64) {
        let windows = Windows::new(Algorithm::Sliding, WINDOW_MS);
        let (mut admitted, mut now_ms) = (Vec::<u64>::new(), 0);
        for step in steps {
            now_ms += step;
            let recent = admitted.iter().filter(|at_ms| **at_ms + WINDOW_MS > now_ms).count();
            let verdict = windows.admit(&key(), limit, now_ms);
            prop_assert_eq!(verdict.is_allowed, (recent as u64) < limit);
            if verdict.is_allowed {
                admitted.push(now_ms);
            }
        }
    }

    #[test]
    fn what_a_verdict_promises_is_kept(steps in steps(), limit in 1..6_u64) {
        for algorithm in [Algorithm::Fixed, Algorithm::Sliding] {
            let windows = Windows::new(algorithm, WINDOW_MS);
            let mut now_ms = 0;
            for step in &steps {
                now_ms += step;
                let verdict = windows.admit(&key(), limit, now_ms);
                if !verdict.is_allowed {
                    now_ms += verdict.reset_ms;
                    prop_assert!(verdict.reset_ms > 0);
                    prop_assert!(windows.admit(&key(), limit, now_ms).is_allowed);
                }
            }
        }
    }

    #[test]
    fn early_clocks_and_refunds_leave_a_sliding_window_exact(
        steps in prop::collection::vec((0..4_000_u64, 0..3_u64, any::<Option<prop::sample::Index>>()), 0..200),
        limit in 1..6_u64,
    ) {
        let windows = Windows::new(Algorithm::Sliding, WINDOW_MS);
        let (mut admitted, mut now_ms, mut latest_ms) = (Vec::<u64>::new(), 0, 0);
        for (step, early_ms, refund) in steps {
            now_ms += step;
            let read_ms = now_ms.saturating_sub(early_ms);
            let verdict = windows.admit(&key(), limit, read_ms);
            latest_ms = read_ms.max(latest_ms);
            admitted.retain(|at_ms| at_ms + WINDOW_MS > latest_ms);
            prop_assert_eq!(verdict.is_allowed, (admitted.len() as u64) < limit);
            if verdict.is_allowed {
                admitted.push(verdict.refund_token.0);
            }
            prop_assert_eq!(verdict.remaining, limit - admitted.len() as u64);
            if let Some(refund) = refund.filter(|_| !admitted.is_empty()) {
                let at_ms = admitted.swap_remove(refund.index(admitted.len()));
                prop_assert!(windows.refund(&key(), RefundToken(at_ms), read_ms));
            }
        }
    }
}
