#![allow(clippy::unwrap_used, reason = "tests")]

use super::super::key::{RowId, Subject};
use super::super::shards::{Map, ensure_capacity, shard_index};
use super::*;

const WINDOW_MS: u64 = 10_000;

fn key(name: &str) -> WindowKey {
    WindowKey {
        subject: Subject::Named(name.into()),
        row: RowId::from_name("POST /content/v2"),
    }
}

fn fixed() -> Windows {
    Windows::new(Algorithm::Fixed, WINDOW_MS)
}

fn sliding() -> Windows {
    Windows::new(Algorithm::Sliding, WINDOW_MS)
}

/// Returns how many of `tries` requests at one time are admitted.
fn pass(windows: &Windows, limit: u64, tries: u64, now_ms: u64) -> u64 {
    let admitted = (0..tries).filter(|_| windows.admit(&key("t"), limit, now_ms).is_allowed);
    admitted.count() as u64
}

#[test]
fn a_window_admits_its_limit_and_no_more() {
    assert_eq!(pass(&fixed(), 150, 1_000, 0), 150);
    assert_eq!(pass(&sliding(), 150, 1_000, 0), 150);
}

#[test]
fn a_limit_of_zero_admits_nothing() {
    assert_eq!(pass(&fixed(), 0, 5, 0), 0);
    assert_eq!(pass(&sliding(), 0, 5, 0), 0);
}

#[test]
fn a_window_begins_with_its_first_request() {
    let windows = fixed();
    assert_eq!(pass(&windows, 2, 3, 7_777), 2);
    assert_eq!(pass(&windows, 2, 3, 17_776), 0);
    assert_eq!(pass(&windows, 2, 3, 17_777), 2);
}

#[test]
fn the_next_window_begins_with_the_next_request_and_not_at_a_multiple() {
    let windows = fixed();
    pass(&windows, 2, 3, 0);
    assert_eq!(pass(&windows, 2, 3, 15_000), 2);
    assert_eq!(pass(&windows, 2, 3, 20_000), 0);
    assert_eq!(pass(&windows, 2, 3, 25_000), 2);
}

#[test]
fn a_refused_request_is_not_counted_and_moves_no_window() {
    let windows = fixed();
    pass(&windows, 1, 1, 0);
    let refused = windows.admit(&key("t"), 1, 9_999);
    assert_eq!((refused.is_allowed, refused.reset_ms), (false, 1));
    assert!(windows.admit(&key("t"), 1, 10_000).is_allowed);
}

#[test]
fn a_verdict_says_what_is_left_and_until_when() {
    let windows = fixed();
    windows.admit(&key("t"), 3, 100);
    let second = windows.admit(&key("t"), 3, 2_600);
    assert_eq!(
        (second.limit, second.remaining, second.reset_ms),
        (3, 1, 7_500)
    );
}

#[test]
fn keys_do_not_share_a_window() {
    let windows = fixed();
    let get = RowId::from_name("GET /content/v2");
    assert!(windows.admit(&key("a"), 1, 0).is_allowed);
    assert!(windows.admit(&key("b"), 1, 0).is_allowed);
    let read = WindowKey {
        row: get,
        ..key("a")
    };
    assert!(windows.admit(&read, 1, 0).is_allowed);
    assert!(!windows.admit(&key("a"), 1, 0).is_allowed);
}

#[test]
fn a_lowered_limit_holds_at_once_and_leaves_nothing_below_zero() {
    let windows = fixed();
    pass(&windows, 10, 10, 0);
    let lowered = windows.admit(&key("t"), 4, 1);
    assert_eq!((lowered.is_allowed, lowered.remaining), (false, 0));
    assert_eq!(pass(&windows, 12, 5, 2), 2);
}

#[test]
fn a_clock_read_before_the_window_began_counts_in_it() {
    for windows in [fixed(), sliding()] {
        assert_eq!(pass(&windows, 2, 1, 5_000), 1);
        assert_eq!(pass(&windows, 2, 3, 4_990), 1);
        assert_eq!(windows.admit(&key("t"), 2, 4_990).reset_ms, WINDOW_MS);
    }
}

#[test]
fn a_refund_makes_room_for_one_more() {
    for windows in [fixed(), sliding()] {
        let refund_token = windows.admit(&key("t"), 1, 0).refund_token;
        assert!(windows.refund(&key("t"), refund_token, 9_999));
        assert_eq!(pass(&windows, 1, 3, 9_999), 1);
    }
}

#[test]
fn a_refund_never_reaches_another_window() {
    let windows = fixed();
    let refund_token = windows.admit(&key("t"), 1, 0).refund_token;
    assert!(!windows.refund(&key("t"), refund_token, 10_000));
    windows.admit(&key("t"), 1, 10_000);
    assert!(!windows.refund(&key("t"), refund_token, 10_001));
    assert_eq!(pass(&windows, 1, 3, 10_002), 0);
    assert!(!windows.refund(&key("unknown"), refund_token, 0));
}

#[test]
fn refunds_never_go_below_zero() {
    for windows in [fixed(), sliding()] {
        let refund_token = windows.admit(&key("t"), 5, 0).refund_token;
        assert!(windows.refund(&key("t"), refund_token, 1));
        assert!(!windows.refund(&key("t"), refund_token, 1));
        assert_eq!(pass(&windows, 5, 10, 1), 5);
    }
}

#[test]
fn a_sliding_window_frees_each_unit_when_its_own_time_has_ended() {
    let windows = sliding();
    assert_eq!(pass(&windows, 2, 1, 0), 1);
    assert_eq!(pass(&windows, 2, 3, 9_000), 1);
    let refused = windows.admit(&key("t"), 2, 9_500);
    assert_eq!((refused.is_allowed, refused.reset_ms), (false, 500));
    assert_eq!(pass(&windows, 2, 3, 10_000), 1);
    assert_eq!(pass(&windows, 2, 3, 18_999), 0);
    assert_eq!(pass(&windows, 2, 3, 19_000), 1);
}

fn fill(windows: &Windows, keys: u64, now_ms: u64) {
    for number in 0..keys {
        windows.admit(&key(&number.to_string()), 1, now_ms);
    }
}

#[test]
fn sweeping_drops_what_has_ended_and_keeps_what_runs() {
    for windows in [fixed(), sliding()] {
        fill(&windows, 1_000, 0);
        windows.admit(&key("late"), 1, 5_000);
        (0..windows.shard_count()).for_each(|shard| windows.sweep(shard, 10_000));
        assert_eq!(windows.len(), 1);
        assert!(!windows.admit(&key("late"), 1, 10_000).is_allowed);
        (0..windows.shard_count()).for_each(|shard| windows.sweep(shard, 15_000));
        assert!(windows.is_empty());
    }
}

#[test]
fn ended_windows_are_dropped_without_a_sweep_too() {
    let windows = fixed();
    for round in 0..50 {
        for number in 0..10_000_u32 {
            let name = format!("{round} {number}");
            windows.admit(&key(&name), 1, round * WINDOW_MS);
        }
    }
    assert!(windows.len() < 60_000, "{}", windows.len());
}

#[test]
fn a_token_knows_whether_redis_counted_its_unit() {
    assert_eq!(RefundToken::from_shared_ms(77).shared_ms(), Some(77));
    let verdict = fixed().admit(&key("t"), 1, 77);
    assert_eq!(verdict.refund_token.shared_ms(), None);
}

#[test]
fn a_table_knows_its_length_and_whether_it_is_empty() {
    let windows = fixed();
    assert_eq!(windows.window_ms(), WINDOW_MS);
    assert!(windows.is_empty());
    windows.admit(&key("t"), 1, 0);
    assert!(!windows.is_empty());
}

#[test]
fn after_a_refund_of_all_units_a_sliding_window_has_no_age() {
    let windows = sliding();
    windows.admit(&key("t"), 0, 0);
    assert_eq!(windows.admit(&key("t"), 0, 4_000).reset_ms, WINDOW_MS);
}

#[test]
fn keys_spread_over_all_shards() {
    let mut counts = vec![0_usize; SHARD_COUNT];
    (0..100 * SHARD_COUNT).for_each(|number| {
        let shard = shard_index(&key(&number.to_string()));
        counts
            .iter_mut()
            .skip(shard)
            .take(1)
            .for_each(|count| *count += 1);
    });
    let is_fair = |count: &usize| (40..=200).contains(count);
    assert!(counts.iter().all(is_fair), "{counts:?}");
}

/// A map with room for some hundred windows, of which the first ones have ended at [`WINDOW_MS`].
fn map(ended: usize, running: usize) -> Map<Fixed> {
    let mut map = Map::default();
    map.reserve(448);
    for number in 0..ended + running {
        let began_ms = if number < ended { 0 } else { WINDOW_MS };
        let mut counter = Fixed::new(began_ms);
        counter.admit(1, began_ms, WINDOW_MS);
        map.insert(key(&number.to_string()), counter);
    }
    map
}

fn has_ended(counter: &Fixed) -> bool {
    counter.has_ended(WINDOW_MS, WINDOW_MS)
}

/// The capacity of such a map.
fn room() -> usize {
    map(0, 0).capacity()
}

#[test]
fn a_sweep_releases_memory_once_less_than_a_quarter_is_used() {
    let swept = |ended: usize, running: usize| {
        let shards = Shards::<Fixed>::new();
        *shards.lock(0).unwrap() = map(ended, running);
        shards.sweep(0, has_ended);
        let map = shards.lock(0).unwrap();
        (map.len(), map.capacity())
    };
    let quarter = room() / 4;
    assert_eq!(swept(0, quarter), (quarter, room()));
    let (windows, capacity) = swept(9, quarter - 12);
    assert_eq!(windows, quarter - 12);
    assert!(capacity < room() && capacity >= 2 * windows, "{capacity}");
}

#[test]
fn a_full_map_drops_ended_windows_before_it_grows() {
    let grown = |ended: usize, running: usize| {
        let mut map = map(ended, running);
        ensure_capacity(&mut map, has_ended);
        (map.len(), map.capacity())
    };
    let (room, half) = (room(), room() / 2);
    assert_eq!(
        grown(9, room - 10),
        (room - 1, room),
        "a map with room is left alone"
    );
    let (windows, capacity) = grown(half, room - half);
    assert_eq!(windows, room - half);
    assert!(capacity <= room, "half of it is free again: {capacity}");
    let (windows, capacity) = grown(half - 1, room - half + 1);
    assert_eq!(windows, room - half + 1);
    assert!(capacity >= 2 * room - half, "{capacity}");
}

#[test]
fn a_look_counts_nothing_and_begins_no_window() {
    for windows in [fixed(), sliding()] {
        assert_eq!(windows.count(&key("t"), 5_000), 0);
        assert!(windows.is_empty());
        pass(&windows, 3, 2, 6_000);
        pass(&windows, 3, 5, 9_000);
        assert_eq!(windows.count(&key("t"), 9_000), 3);
        assert_eq!(windows.count(&key("t"), 15_999), 3);
        assert_eq!(windows.count(&key("other"), 9_000), 0);
        assert_eq!(pass(&windows, 4, 5, 9_000), 1);
    }
    let windows = fixed();
    pass(&windows, 9, 1, 0);
    pass(&windows, 9, 2, 9_000);
    assert_eq!(windows.count(&key("t"), 10_000), 0);
    let windows = sliding();
    pass(&windows, 9, 1, 0);
    pass(&windows, 9, 2, 9_000);
    assert_eq!(windows.count(&key("t"), 10_000), 2);
}
