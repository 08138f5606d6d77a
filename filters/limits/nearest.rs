//! Finds the windows that are nearest to their limits, for people who look.
//!
//! One shard is locked at a time, and only to copy keys and counts: requests wait no longer than for a sweep. Of very many
//! windows a part is compared, the same number in each shard, into which keys fall at random.

use std::cmp::Ordering;

use super::counter::Counter;
use super::key::WindowKey;
use super::shards::{SHARD_COUNT, Shards};
use super::window::{Table, Windows};

/// The maximum number of windows that are compared. Our choice: some milliseconds of work, and 800 keys under one lock.
const MAX_COMPARED: usize = 200_000;
/// So many times more windows are counted exactly than are wanted. The counts by which they are chosen may be too high
/// where requests of a sliding window have stopped counting.
const SPARE_FACTOR: usize = 4;

/// How much of its limit a window has used.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct WindowUse {
    pub key: WindowKey,
    pub used: u64,
    pub limit: u64,
    /// The time until more requests are available.
    pub reset_ms: u64,
}

impl WindowUse {
    /// Returns the used part of the limit; 1 is all of it.
    pub fn share(&self) -> f64 {
        match self.limit {
            0 => 1.0,
            limit => self.used as f64 / limit as f64,
        }
    }

    /// Orders the fullest window first.
    pub fn cmp_fullest(&self, other: &Self) -> Ordering {
        let by_share = other.share().total_cmp(&self.share());
        by_share.then(other.used.cmp(&self.used))
    }
}

/// The windows that are nearest to their limits.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct NearestWindows {
    /// The fullest first.
    pub windows: Vec<WindowUse>,
    /// How many windows were compared.
    pub compared: usize,
    /// How many windows there are, with ended ones that are not dropped yet.
    pub count: usize,
}

impl Windows {
    /// Returns at most `max` windows, the fullest first. `limit` returns the limit of a key, or `None` for a window that is
    /// left out.
    ///
    /// Cost: every lock, one at a time; compares at most [`MAX_COMPARED`] windows.
    pub fn nearest(
        &self,
        now_ms: u64,
        max: usize,
        limit: impl Fn(&WindowKey) -> Option<u64>,
    ) -> NearestWindows {
        let times = (now_ms, self.window_ms);
        match &self.table {
            Table::Fixed(shards) => nearest(shards, times, (max, MAX_COMPARED), limit),
            Table::Sliding(shards) => nearest(shards, times, (max, MAX_COMPARED), limit),
        }
    }
}

fn nearest<C: Counter>(
    shards: &Shards<C>,
    (now_ms, window_ms): (u64, u64),
    (max, max_compared): (usize, usize),
    limit: impl Fn(&WindowKey) -> Option<u64>,
) -> NearestWindows {
    let mut found = NearestWindows::default();
    let (per_shard, spare) = (max_compared.div_ceil(SHARD_COUNT), max * SPARE_FACTOR);
    for shard in 0..SHARD_COUNT {
        let Some(map) = shards.lock(shard) else {
            continue;
        };
        found.count += map.len();
        found.compared += map.len().min(per_shard);
        let compared = map.iter().take(per_shard);
        let running = compared.filter(|(_, counter)| !counter.has_ended(now_ms, window_ms));
        let running = running.map(|(key, counter)| (key.clone(), counter.upper_count()));
        let running: Vec<(WindowKey, u64)> = running.collect();
        drop(map);
        for (key, used) in running {
            if let Some(limit) = limit(&key) {
                found.windows.push(WindowUse {
                    key,
                    used,
                    limit,
                    reset_ms: 0,
                });
            }
        }
        keep_fullest(&mut found.windows, spare);
    }
    for window in &mut found.windows {
        let exact = shards.with_existing(&window.key, |counter| {
            (
                counter.count(now_ms, window_ms),
                counter.reset_ms(now_ms, window_ms),
            )
        });
        (window.used, window.reset_ms) = exact.unwrap_or_default();
    }
    found
        .windows
        .retain(|window| window.used > 0 || window.limit == 0);
    keep_fullest(&mut found.windows, max);
    found
}

fn keep_fullest(windows: &mut Vec<WindowUse>, max: usize) {
    windows.sort_by(WindowUse::cmp_fullest);
    windows.truncate(max);
}

#[cfg(test)]
#[cfg(not(model))]
mod tests {
    #![allow(clippy::indexing_slicing, reason = "tests")]
    use super::super::{Algorithm, RowId, Subject};
    use super::*;

    const WINDOW_MS: u64 = 1_000;

    fn key(name: &str) -> WindowKey {
        WindowKey {
            subject: Subject::Named(name.into()),
            row: RowId::from_name("POST /"),
        }
    }

    fn admit(windows: &Windows, name: &str, count: u64, now_ms: u64) {
        for _ in 0..count {
            windows.admit(&key(name), u64::MAX, now_ms);
        }
    }

    fn names(found: &NearestWindows) -> Vec<(String, u64, u64)> {
        let uses = found.windows.iter();
        uses.map(|one| (one.key.subject.to_string(), one.used, one.reset_ms))
            .collect()
    }

    #[test]
    fn the_fullest_windows_come_first_whatever_their_limits_are() {
        for algorithm in [Algorithm::Fixed, Algorithm::Sliding] {
            let windows = Windows::new(algorithm, WINDOW_MS);
            admit(&windows, "half", 50, 100);
            admit(&windows, "full", 5, 100);
            admit(&windows, "left out", 9, 100);
            admit(&windows, "over", 3, 100);
            let limit = |key: &WindowKey| match key.subject.to_string().as_str() {
                "half" => Some(100),
                "full" => Some(5),
                "over" => Some(1),
                _ => None,
            };
            let found = windows.nearest(300, 2, limit);
            assert_eq!(
                names(&found),
                [("over".to_owned(), 3, 800), ("full".to_owned(), 5, 800)],
                "{algorithm:?}"
            );
            assert_eq!((found.compared, found.count), (4, 4));
        }
    }

    #[test]
    fn ended_windows_and_requests_that_count_no_more_are_not_shown() {
        let windows = Windows::new(Algorithm::Sliding, WINDOW_MS);
        admit(&windows, "early", 9, 0);
        admit(&windows, "early", 1, 900);
        admit(&windows, "late", 5, 800);
        admit(&windows, "ended", 9, 0);
        let found = windows.nearest(1_200, 10, |_| Some(10));
        assert_eq!(
            names(&found),
            [("late".to_owned(), 5, 600), ("early".to_owned(), 1, 700)]
        );
        let fixed = Windows::new(Algorithm::Fixed, WINDOW_MS);
        admit(&fixed, "ended", 9, 0);
        assert!(fixed.nearest(1_000, 10, |_| Some(10)).windows.is_empty());
    }

    #[test]
    fn looking_counts_nothing_and_begins_no_window() {
        let windows = Windows::new(Algorithm::Fixed, WINDOW_MS);
        admit(&windows, "a", 2, 0);
        for _ in 0..3 {
            assert_eq!(windows.nearest(1, 10, |_| Some(3)).windows[0].used, 2);
        }
        assert_eq!((windows.count(&key("a"), 1), windows.len()), (2, 1));
    }

    #[test]
    fn of_many_windows_a_part_is_compared_and_the_result_says_so() {
        let windows = Windows::new(Algorithm::Fixed, WINDOW_MS);
        for number in 0..10_000_u64 {
            windows.admit(&key(&number.to_string()), 9, 0);
        }
        let Table::Fixed(shards) = &windows.table else {
            unreachable!()
        };
        let found = nearest(shards, (0, WINDOW_MS), (50, 1_000), |_| Some(9));
        assert_eq!((found.windows.len(), found.count), (50, 10_000));
        assert!(
            (900..=1_024).contains(&found.compared),
            "{}",
            found.compared
        );
    }
}
