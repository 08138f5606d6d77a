//! An LRU cache of fetched datafiles, with at most [`MAX_DATAFILES`].
//!
//! A source that ignores access tokens accepts any of them, so each key may have only a few entries.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use arc_swap::{ArcSwap, ArcSwapOption};
use filters::decisions::credentials::key_name;
use tokio::time::Instant;

use super::loaded::LoadedDatafile;
use crate::decisions::mutex::lock;

/// The capacity of the cache.
pub(super) const MAX_DATAFILES: usize = 1024;
/// The maximum number of entries for one key with different access tokens.
const MAX_TOKENS_PER_KEY: usize = 8;
/// The resolution of the time of last use.
const USED_RESOLUTION_MS: u64 = 10;

/// The entry of a key.
#[derive(Default)]
pub(super) struct Slot {
    /// The datafile in force.
    pub(super) current: ArcSwapOption<LoadedDatafile>,
    /// Locked during a fetch.
    pub(super) fetch_state: tokio::sync::Mutex<FetchState>,
    /// The last fetch that has ended.
    pub(super) last_fetch: ArcSwapOption<LastFetch>,
    used_ms: AtomicU64,
}

/// A fetch that has ended.
pub(super) struct LastFetch {
    pub(super) at: Instant,
    /// Why it brought no usable datafile, in the words of the log.
    pub(super) error: Option<String>,
}

impl Slot {
    /// Keeps how a fetch has ended.
    pub(super) fn end_fetch(&self, error: Option<String>) {
        let at = Instant::now();
        self.last_fetch
            .store(Some(Arc::new(LastFetch { at, error })));
    }
}

/// The state of a key between two fetches.
#[derive(Default)]
pub(super) struct FetchState {
    /// The source's `Last-Modified`.
    pub(super) modified: Option<String>,
    pub(super) is_evicted: bool,
    /// The time of the last fetch for clients that knew of another datafile.
    pub(super) caught_up: Option<Instant>,
}

/// Slots by key.
pub(super) type Slots = HashMap<Box<str>, Arc<Slot>>;

/// The LRU cache of fetched datafiles.
pub(super) struct DatafileCache {
    slots: ArcSwap<Slots>,
    writing: Mutex<()>,
    started: Instant,
}

impl Default for DatafileCache {
    fn default() -> Self {
        Self {
            slots: ArcSwap::default(),
            writing: Mutex::default(),
            started: Instant::now(),
        }
    }
}

impl DatafileCache {
    /// Returns the datafile in force for a key. Cost: no lock.
    pub(super) fn get(&self, key: &str) -> Option<Arc<LoadedDatafile>> {
        let slots = self.slots.load();
        let slot = slots.get(key)?;
        self.touch(slot);
        slot.current.load_full()
    }

    fn touch(&self, slot: &Slot) {
        let now = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        if now >= slot.used_ms.load(Ordering::Relaxed) + USED_RESOLUTION_MS {
            slot.used_ms.store(now, Ordering::Relaxed);
        }
    }

    /// Returns all entries.
    pub(super) fn all(&self) -> Arc<Slots> {
        self.slots.load_full()
    }

    /// Adds an entry. Returns the entries that were evicted. Cost: copies the table.
    pub(super) fn add(&self, key: &str, slot: &Arc<Slot>) -> Vec<(Box<str>, Arc<Slot>)> {
        self.touch(slot);
        let _writing = lock(&self.writing);
        let mut slots = Slots::clone(&self.slots.load());
        slots.insert(key.into(), Arc::clone(slot));
        let name = key_name(key);
        let is_same_key = |one: &str| one.contains(':') && key_name(one) == name;
        let evicted = [
            evict(&mut slots, key, MAX_TOKENS_PER_KEY, is_same_key),
            evict(&mut slots, key, MAX_DATAFILES, |_| true),
        ];
        self.slots.store(Arc::new(slots));
        evicted.into_iter().flatten().collect()
    }
}

/// Removes the least recently used entry except `new`, if there are more than `max`.
fn evict(
    slots: &mut Slots,
    new: &str,
    max: usize,
    is_counted: impl Fn(&str) -> bool,
) -> Option<(Box<str>, Arc<Slot>)> {
    let counted = || slots.iter().filter(|(key, _)| is_counted(key));
    if counted().count() <= max {
        return None;
    }
    let others = counted().filter(|(key, _)| ***key != *new);
    let oldest = others.min_by_key(|(_, slot)| slot.used_ms.load(Ordering::Relaxed));
    let key = oldest?.0.clone();
    slots.remove_entry(&key)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    async fn add(cache: &DatafileCache, key: &str) -> Vec<String> {
        tokio::time::advance(Duration::from_secs(1)).await;
        let out = cache.add(key, &Arc::default());
        out.into_iter().map(|(key, _)| key.into()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn tokens_of_a_name_push_one_another_out_and_nobody_else() {
        let cache = DatafileCache::default();
        assert!(add(&cache, "other:1").await.is_empty());
        assert!(add(&cache, "key").await.is_empty());
        for token in 0..MAX_TOKENS_PER_KEY {
            assert!(add(&cache, &format!("key:{token}")).await.is_empty());
        }
        tokio::time::advance(Duration::from_secs(1)).await;
        cache.get("key:0");
        assert_eq!(add(&cache, "key:new").await, ["key:1"]);
        assert_eq!(cache.all().len(), MAX_TOKENS_PER_KEY + 2);
    }

    #[tokio::test(start_paused = true)]
    async fn who_was_not_asked_for_the_longest_goes_when_there_are_too_many() {
        let cache = DatafileCache::default();
        for number in 0..MAX_DATAFILES {
            assert!(add(&cache, &format!("key{number}")).await.is_empty());
        }
        tokio::time::advance(Duration::from_secs(1)).await;
        cache.get("key0");
        assert_eq!(add(&cache, "one more").await, ["key1"]);
        assert_eq!(cache.all().len(), MAX_DATAFILES);
    }
}
