//! Counts refused requests by window, for people who look.
//!
//! Only a refusal touches the table, and it holds a bounded number of windows: those that refused last. So it costs the
//! requests that pass nothing, and a caller with many addresses cannot fill the memory.

use std::sync::atomic::{AtomicU64, Ordering};

use super::key::WindowKey;
use super::shards::{Map, SHARD_COUNT, Shards, shard_index};

/// The maximum number of windows in one shard, 4,096 in all.
const MAX_PER_SHARD: usize = 16;

/// The refused requests of one window.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RefusedCount {
    /// Since the window that refused last was full for the first time, until it has room again.
    pub in_window: u64,
    /// Since the window came into the table.
    pub in_all: u64,
    ends_ms: u64,
    last_ms: u64,
}

/// The refused requests of the windows that refused last.
#[derive(Debug)]
pub struct Refusals {
    shards: Shards<RefusedCount>,
    all: AtomicU64,
    dropped_windows: AtomicU64,
}

impl Default for Refusals {
    fn default() -> Self {
        Self {
            shards: Shards::new(),
            all: AtomicU64::new(0),
            dropped_windows: AtomicU64::new(0),
        }
    }
}

impl Refusals {
    /// Counts a refused request of a window that has room again after `reset_ms`. Cost: one lock of one shard.
    pub fn record(&self, key: &WindowKey, reset_ms: u64, now_ms: u64) {
        self.all.fetch_add(1, Ordering::Relaxed);
        let Some(mut map) = self.shards.lock(shard_index(key)) else {
            return;
        };
        if let Some(known) = map.get_mut(key) {
            return known.add(reset_ms, now_ms);
        }
        if map.len() >= MAX_PER_SHARD {
            drop_oldest(&mut map);
            self.dropped_windows.fetch_add(1, Ordering::Relaxed);
        }
        let mut count = RefusedCount::default();
        count.add(reset_ms, now_ms);
        map.insert(key.clone(), count);
    }

    /// Returns the refused requests of a key.
    pub fn count(&self, key: &WindowKey, now_ms: u64) -> RefusedCount {
        let found = self.shards.with_existing(key, |count| *count);
        found.unwrap_or_default().at(now_ms)
    }

    /// Returns at most `max` windows with the most refused requests, that with the most first. Cost: every lock, one at a
    /// time.
    pub fn most(&self, max: usize, now_ms: u64) -> Vec<(WindowKey, RefusedCount)> {
        let mut found = Vec::new();
        for shard in 0..SHARD_COUNT {
            let Some(map) = self.shards.lock(shard) else {
                continue;
            };
            found.extend(
                map.iter()
                    .map(|(key, count)| (key.clone(), count.at(now_ms))),
            );
        }
        found.sort_by_key(|(_, count)| std::cmp::Reverse((count.in_all, count.last_ms)));
        found.truncate(max);
        found
    }

    /// Returns the number of refused requests of all windows.
    pub fn all(&self) -> u64 {
        self.all.load(Ordering::Relaxed)
    }

    /// Returns how many windows were dropped because others refused later.
    pub fn dropped_windows(&self) -> u64 {
        self.dropped_windows.load(Ordering::Relaxed)
    }
}

impl RefusedCount {
    fn add(&mut self, reset_ms: u64, now_ms: u64) {
        if now_ms >= self.ends_ms {
            self.in_window = 0;
            self.ends_ms = now_ms.saturating_add(reset_ms);
        }
        self.in_window += 1;
        self.in_all += 1;
        self.last_ms = self.last_ms.max(now_ms);
    }

    /// Returns the count as it is at this time.
    fn at(self, now_ms: u64) -> Self {
        match now_ms >= self.ends_ms {
            true => Self {
                in_window: 0,
                ..self
            },
            false => self,
        }
    }
}

fn drop_oldest(map: &mut Map<RefusedCount>) {
    let oldest = map.iter().min_by_key(|(_, count)| count.last_ms);
    if let Some(key) = oldest.map(|(key, _)| key.clone()) {
        map.remove(&key);
    }
}

#[cfg(test)]
#[cfg(not(model))]
mod tests {
    #![allow(clippy::indexing_slicing, reason = "tests")]
    use super::super::{RowId, Subject};
    use super::*;

    fn key(name: &str) -> WindowKey {
        WindowKey {
            subject: Subject::Named(name.into()),
            row: RowId::from_name("POST /"),
        }
    }

    #[test]
    fn a_window_begins_at_none_and_the_sum_goes_on() {
        let refusals = Refusals::default();
        let counts = |now_ms| {
            let count = refusals.count(&key("a"), now_ms);
            (count.in_window, count.in_all)
        };
        refusals.record(&key("a"), 500, 100);
        refusals.record(&key("a"), 400, 200);
        assert_eq!(counts(599), (2, 2));
        assert_eq!(counts(600), (0, 2));
        refusals.record(&key("a"), 1_000, 700);
        assert_eq!(counts(700), (1, 3));
        assert_eq!(refusals.count(&key("b"), 700), RefusedCount::default());
        assert_eq!(refusals.all(), 3);
    }

    #[test]
    fn the_table_has_a_bound_and_keeps_whom_it_refused_last() {
        let refusals = Refusals::default();
        for _ in 0..3 {
            refusals.record(&key("often"), 10, 0);
        }
        for number in 0..20_000_u64 {
            refusals.record(&key(&number.to_string()), 10, number);
            refusals.record(&key("often"), 10, number);
        }
        let most = refusals.most(usize::MAX, 0);
        let bound = MAX_PER_SHARD * SHARD_COUNT;
        assert!((bound / 2..=bound).contains(&most.len()), "{}", most.len());
        assert_eq!(most[0].0, key("often"));
        assert_eq!(most[0].1.in_all, 20_003);
        let dropped = 20_001 - most.len() as u64;
        assert_eq!(
            (refusals.dropped_windows(), refusals.all()),
            (dropped, 40_003)
        );
        assert_eq!(refusals.most(7, 0).len(), 7);
    }
}
