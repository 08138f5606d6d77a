//! Fetched datafiles that are in force: so many at the most, and whoever was not asked for the longest goes.
//!
//! A source that does not look at access tokens answers any of them, so each name has room for a few only.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use arc_swap::{ArcSwap, ArcSwapOption};
use filters::decisions::credentials::key_name;
use tokio::time::Instant;

use super::local::LoadedDatafile;
use crate::decisions::lock;

/// How many there are at the most.
pub(super) const MAX_DATAFILES: usize = 1024;
/// How many of one name are there with an access token, at the most.
const MOST_TOKENS: usize = 8;
/// How exactly it is known when one was asked for last.
const EXACT_MS: u64 = 10;

/// The datafile of a key.
#[derive(Default)]
pub(super) struct Slot {
    /// What is in force.
    pub(super) current: ArcSwapOption<LoadedDatafile>,
    /// Held while the source is asked.
    pub(super) asked: tokio::sync::Mutex<CacheEntry>,
    used_ms: AtomicU64,
}

/// What was learned when the source was asked.
#[derive(Default)]
pub(super) struct CacheEntry {
    /// When the datafile was last changed, in the source's words.
    pub(super) modified: Option<String>,
    /// It is on the shelf no more: the source need not be asked again.
    pub(super) is_out: bool,
}

/// Slots by key.
pub(super) type Slots = HashMap<Box<str>, Arc<Slot>>;

/// See the module.
pub(super) struct DatafileCache {
    slots: ArcSwap<Slots>,
    writing: Mutex<()>,
    begun: Instant,
}

impl Default for DatafileCache {
    fn default() -> Self {
        Self {
            slots: ArcSwap::default(),
            writing: Mutex::default(),
            begun: Instant::now(),
        }
    }
}

impl DatafileCache {
    /// What is in force for a key. Cost: no lock.
    pub(super) fn get(&self, key: &str) -> Option<Arc<LoadedDatafile>> {
        let slots = self.slots.load();
        let slot = slots.get(key)?;
        self.use_now(slot);
        slot.current.load_full()
    }

    fn use_now(&self, slot: &Slot) {
        let now = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        if now >= slot.used_ms.load(Ordering::Relaxed) + EXACT_MS {
            slot.used_ms.store(now, Ordering::Relaxed);
        }
    }

    /// All of them.
    pub(super) fn all(&self) -> Arc<Slots> {
        self.slots.load_full()
    }

    /// Puts one there; answers those that had to go for it. Cost: copies the table.
    pub(super) fn add(&self, key: &str, slot: &Arc<Slot>) -> Vec<(Box<str>, Arc<Slot>)> {
        self.use_now(slot);
        let _writing = lock(&self.writing);
        let mut slots = Slots::clone(&self.slots.load());
        slots.insert(key.into(), Arc::clone(slot));
        let name = key_name(key);
        let is_alike = |one: &str| one.contains(':') && key_name(one) == name;
        let surplus = [
            surplus(&mut slots, key, MOST_TOKENS, is_alike),
            surplus(&mut slots, key, MAX_DATAFILES, |_| true),
        ];
        self.slots.store(Arc::new(slots));
        surplus.into_iter().flatten().collect()
    }
}

/// Takes the one out that was not asked for the longest, where more than `most` of a kind are there.
fn surplus(
    slots: &mut Slots,
    new: &str,
    most: usize,
    is_counted: impl Fn(&str) -> bool,
) -> Option<(Box<str>, Arc<Slot>)> {
    let counted = || slots.iter().filter(|(key, _)| is_counted(key));
    if counted().count() <= most {
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

    async fn add(shelf: &DatafileCache, key: &str) -> Vec<String> {
        tokio::time::advance(Duration::from_secs(1)).await;
        let out = shelf.add(key, &Arc::default());
        out.into_iter().map(|(key, _)| key.into()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn tokens_of_a_name_push_one_another_out_and_nobody_else() {
        let shelf = DatafileCache::default();
        assert!(add(&shelf, "other:1").await.is_empty());
        assert!(add(&shelf, "key").await.is_empty());
        for token in 0..MOST_TOKENS {
            assert!(add(&shelf, &format!("key:{token}")).await.is_empty());
        }
        tokio::time::advance(Duration::from_secs(1)).await;
        shelf.get("key:0");
        assert_eq!(add(&shelf, "key:new").await, ["key:1"]);
        assert_eq!(shelf.all().len(), MOST_TOKENS + 2);
    }

    #[tokio::test(start_paused = true)]
    async fn who_was_not_asked_for_the_longest_goes_when_there_are_too_many() {
        let shelf = DatafileCache::default();
        for number in 0..MAX_DATAFILES {
            assert!(add(&shelf, &format!("key{number}")).await.is_empty());
        }
        tokio::time::advance(Duration::from_secs(1)).await;
        shelf.get("key0");
        assert_eq!(add(&shelf, "one more").await, ["key1"]);
        assert_eq!(shelf.all().len(), MAX_DATAFILES);
    }
}
