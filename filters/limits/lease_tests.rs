#![allow(clippy::unwrap_used, reason = "tests")]

use super::super::key::{RowId, Subject};
use super::*;

const WINDOW_MS: u64 = 10_000;
const LIMIT: u64 = 1_000;

fn key(name: &str) -> WindowKey {
    WindowKey {
        subject: Subject::Named(name.into()),
        row: RowId::from_name("POST /content/v2"),
    }
}

fn leases() -> Leases {
    Leases::new(Algorithm::Fixed, WINDOW_MS)
}

fn admit(leases: &Leases, now_ms: u64) -> LeaseStep {
    leases.admit(&key("t"), LIMIT, now_ms)
}

/// A window that has counted `count` units, these among them, and lasts for five more seconds.
fn counted(units: u64, count: u64) -> SharedCount {
    SharedCount {
        units,
        count,
        reset_ms: 5_000,
        at_ms: 77,
    }
}

/// Sends requests at one time until the window is to give a lease; returns its size.
fn heat(leases: &Leases, now_ms: u64) -> u64 {
    for _ in 0..HOT_REQUESTS {
        if let LeaseStep::AskForLease(units) = admit(leases, now_ms) {
            return units;
        }
    }
    panic!("the window stays cold")
}

/// A table that has got a lease of this many units at `now_ms`, of which one is spent.
fn with_lease(units: u64, now_ms: u64) -> Leases {
    let leases = leases();
    heat(&leases, now_ms);
    let count = counted(units, units);
    let (_, ends_ms) = leases.record_lease(&key("t"), LIMIT, &count, (now_ms, now_ms));
    assert_eq!(ends_ms, Some(now_ms + 99));
    leases
}

fn verdict(step: LeaseStep) -> Verdict {
    match step {
        LeaseStep::Decided(verdict) => verdict,
        step => panic!("{step:?}"),
    }
}

#[test]
fn a_cold_window_asks_for_each_request() {
    let leases = leases();
    for now_ms in (0..3_000).step_by(34) {
        assert_eq!(admit(&leases, now_ms), LeaseStep::AskForOne, "{now_ms}");
    }
}

#[test]
fn a_hot_window_asks_for_what_it_needed_in_the_last_100_ms() {
    let leases = leases();
    for now_ms in 100..160 {
        admit(&leases, now_ms);
        leases.record_failed_lease(&key("t"));
    }
    assert_eq!(admit(&leases, 200), LeaseStep::AskForLease(60));
    leases.record_failed_lease(&key("t"));
    assert_eq!(
        admit(&leases, 400),
        LeaseStep::AskForOne,
        "it has cooled down"
    );
}

#[test]
fn no_lease_is_larger_than_what_redis_counts_at_once() {
    let leases = leases();
    for _ in 0..5_000 {
        admit(&leases, 0);
        leases.record_failed_lease(&key("t"));
    }
    assert_eq!(admit(&leases, 1), LeaseStep::AskForLease(MAX_UNITS));
}

#[test]
fn one_request_asks_for_a_lease_and_the_others_for_themselves() {
    let leases = leases();
    heat(&leases, 0);
    assert_eq!(admit(&leases, 1), LeaseStep::AskForOne);
    leases.record_failed_lease(&key("t"));
    assert!(matches!(admit(&leases, 2), LeaseStep::AskForLease(_)));
}

#[test]
fn units_are_spent_from_memory_and_say_what_is_left_over_all_processes() {
    let leases = with_lease(3, 1_000);
    let second = verdict(admit(&leases, 1_010));
    assert!(second.is_allowed);
    assert_eq!(second.refund_token.shared_ms(), Some(77));
    assert_eq!((second.remaining, second.reset_ms), (LIMIT - 2, 4_990));
    assert_eq!(verdict(admit(&leases, 1_011)).remaining, LIMIT - 3);
    assert!(matches!(admit(&leases, 1_012), LeaseStep::AskForLease(_)));
    let first = counted(3, 3).verdict(LIMIT);
    assert_eq!((first.remaining, first.is_allowed), (LIMIT - 1, true));
}

#[test]
fn units_are_held_for_less_than_100_ms() {
    let leases = with_lease(9, 1_000);
    assert!(verdict(admit(&leases, 1_098)).is_allowed);
    assert_eq!(leases.end_lease(&key("t"), 1_098), None);
    assert!(matches!(admit(&leases, 1_099), LeaseStep::AskForLease(_)));
    let leftover = Leftover {
        units: 7,
        at_ms: 77,
    };
    assert_eq!(leases.end_lease(&key("t"), 1_099), Some(leftover));
    assert_eq!(leases.end_lease(&key("t"), 1_099), None);
}

#[test]
fn units_of_a_fixed_window_end_with_it_and_those_of_a_sliding_one_do_not() {
    let ends_ms = |algorithm| {
        let leases = Leases::new(algorithm, WINDOW_MS);
        heat(&leases, 0);
        let count = SharedCount {
            reset_ms: 20,
            ..counted(5, 5)
        };
        leases
            .record_lease(&key("t"), LIMIT, &count, (1_000, 1_001))
            .1
    };
    assert_eq!(ends_ms(Algorithm::Fixed), Some(1_019));
    assert_eq!(ends_ms(Algorithm::Sliding), Some(1_099));
}

#[test]
fn units_are_not_spent_by_a_clock_read_before_they_were_there() {
    let leases = with_lease(9, 1_000);
    assert!(!matches!(admit(&leases, 999), LeaseStep::Decided(_)));
}

#[test]
fn units_counted_under_another_limit_are_not_spent() {
    let leases = with_lease(9, 1_000);
    let step = leases.admit(&key("t"), LIMIT - 1, 1_001);
    assert!(!matches!(step, LeaseStep::Decided(_)));
}

#[test]
fn what_is_left_of_a_lease_goes_back_when_another_replaces_it() {
    let leases = with_lease(9, 1_000);
    let times = (1_100, 1_101);
    let (leftover, _) = leases.record_lease(&key("t"), LIMIT, &counted(2, 11), times);
    let expected = Leftover {
        units: 8,
        at_ms: 77,
    };
    assert_eq!(leftover, Some(expected));
    let (leftover, ends_ms) = leases.record_lease(&key("t"), LIMIT, &counted(1, 12), times);
    assert_eq!(
        (leftover, ends_ms),
        (None, None),
        "one unit is spent at once"
    );
}

#[test]
fn a_refund_goes_to_the_lease_of_its_window() {
    let leases = with_lease(2, 1_000);
    assert!(!leases.refund(&key("t"), 78, 1_001));
    assert!(!leases.refund(&key("other"), 77, 1_001));
    assert!(leases.refund(&key("t"), 77, 1_001));
    let spent = (0..2).map(|_| verdict(admit(&leases, 1_002)).is_allowed);
    assert!(spent.eq([true, true]));
    assert!(!leases.refund(&key("t"), 77, 1_099), "its time is over");
}

#[test]
fn a_full_window_that_is_hot_is_not_asked_again_for_10_ms() {
    let leases = leases();
    heat(&leases, 1_000);
    leases.record_lease(&key("t"), LIMIT, &counted(0, LIMIT), (1_000, 1_001));
    let refused = verdict(admit(&leases, 1_009));
    assert_eq!(
        (refused.is_allowed, refused.limit, refused.remaining),
        (false, LIMIT, 0)
    );
    assert_eq!(refused.reset_ms, 4_991);
    assert!(!matches!(admit(&leases, 1_010), LeaseStep::Decided(_)));
    leases.record_count(&key("t"), LIMIT, &counted(0, LIMIT), 1_010);
    assert!(!verdict(admit(&leases, 1_019)).is_allowed);
    assert!(!leases.refund(&key("t"), 77, 1_019));
    assert!(
        !matches!(admit(&leases, 1_019), LeaseStep::Decided(_)),
        "there is room"
    );
}

#[test]
fn a_refusal_does_not_outlast_its_window_and_a_cold_one_is_asked_again() {
    let ended = leases();
    heat(&ended, 1_000);
    let count = SharedCount {
        reset_ms: 3,
        ..counted(0, LIMIT)
    };
    ended.record_lease(&key("t"), LIMIT, &count, (1_000, 1_000));
    assert!(!verdict(admit(&ended, 1_001)).is_allowed);
    assert!(!matches!(admit(&ended, 1_002), LeaseStep::Decided(_)));
    let cold = leases();
    admit(&cold, 0);
    cold.record_count(&key("t"), LIMIT, &counted(0, LIMIT), 0);
    assert_eq!(admit(&cold, 1), LeaseStep::AskForOne);
}

#[test]
fn keys_without_requests_are_forgotten_unless_they_hold_units() {
    let leases = with_lease(5, 1_000);
    leases.admit(&key("idle"), LIMIT, 1_000);
    let sweep = |now_ms| (0..leases.shard_count()).for_each(|shard| leases.sweep(shard, now_ms));
    sweep(2_000);
    assert_eq!(leases.shards.len(), 2);
    sweep(2_100);
    assert_eq!(leases.shards.len(), 1);
    leases.end_lease(&key("t"), 2_100);
    sweep(2_100);
    assert_eq!(leases.shards.len(), 0);
}

#[test]
fn the_parts_of_all_processes_leave_half_of_the_rest() {
    assert_eq!([0, 1, 3].map(lease_parts), [2, 2, 6]);
    assert_eq!([1, 500, 60_000].map(lease_ms), [1, 50, 100]);
}
