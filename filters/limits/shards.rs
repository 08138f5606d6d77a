//! A table of entries by window key, for any number of threads.
//!
//! It is split into shards, each with a lock that is held for one lookup. Entries that have ended are dropped when a shard
//! would grow, and by [`Shards::sweep`].

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::PoisonError;
#[cfg(not(all(test, model)))]
use std::sync::{Mutex, MutexGuard};

#[cfg(all(test, model))]
use loom::sync::{Mutex, MutexGuard};

use super::key::WindowKey;

/// With this many shards two threads rarely meet, and empty shards take little memory.
#[cfg(not(all(test, model)))]
pub(super) const SHARD_COUNT: usize = 256;
/// The model checker explores every lock, so its table has one shard.
#[cfg(all(test, model))]
pub(super) const SHARD_COUNT: usize = 1;

/// The entries of one shard.
pub(super) type Map<E> = HashMap<WindowKey, E>;

/// Aligned so that threads on adjacent shards do not write to one cache line.
#[derive(Debug)]
#[repr(align(128))]
struct Shard<E>(Mutex<Map<E>>);

/// The table.
#[derive(Debug)]
pub(super) struct Shards<E>(Box<[Shard<E>]>);

impl<E> Shards<E> {
    /// Makes an empty table.
    pub(super) fn new() -> Self {
        let shards = (0..SHARD_COUNT).map(|_| Shard(Mutex::new(Map::new())));
        Self(shards.collect())
    }

    /// Acts on the entry of a key, which is created if it is missing. Never returns `None`, because every key has a
    /// shard.
    pub(super) fn with<R>(
        &self,
        key: &WindowKey,
        make: impl FnOnce() -> E,
        has_ended: impl Fn(&E) -> bool,
        act: impl FnOnce(&mut E) -> R,
    ) -> Option<R> {
        let mut map = self.lock(shard_index(key))?;
        if let Some(entry) = map.get_mut(key) {
            return Some(act(entry));
        }
        ensure_capacity(&mut map, has_ended);
        let mut entry = make();
        let result = act(&mut entry);
        map.insert(key.clone(), entry);
        Some(result)
    }

    /// Acts on the entry of a key, if it has one.
    pub(super) fn with_existing<R>(
        &self,
        key: &WindowKey,
        act: impl FnOnce(&mut E) -> R,
    ) -> Option<R> {
        self.lock(shard_index(key))?.get_mut(key).map(act)
    }

    /// Drops the ended entries of one shard and releases their memory. Other shards stay available meanwhile.
    pub(super) fn sweep(&self, shard: usize, has_ended: impl Fn(&E) -> bool) {
        let Some(mut map) = self.lock(shard) else {
            return;
        };
        map.retain(|_, entry| !has_ended(entry));
        if map.len() < map.capacity() / 4 {
            let capacity = map.len() * 2;
            map.shrink_to(capacity);
        }
    }

    /// Returns the number of entries. Cost: every lock, one after another.
    pub(super) fn len(&self) -> usize {
        let shards = 0..self.0.len();
        shards
            .filter_map(|shard| Some(self.lock(shard)?.len()))
            .sum()
    }

    /// Locks a shard. A poisoned shard stays in use, because an entry is consistent wherever a thread can panic.
    pub(super) fn lock(&self, shard: usize) -> Option<MutexGuard<'_, Map<E>>> {
        let shard = self.0.get(shard)?;
        Some(shard.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Drops ended entries before a full map would double. Each pass over a full map pays for as many insertions as it freed
/// entries. A map that stays more than half full doubles, so the cost per insertion stays constant.
pub(super) fn ensure_capacity<E>(map: &mut Map<E>, has_ended: impl Fn(&E) -> bool) {
    // Read before `retain`: afterwards the capacity does not count the slots of dropped entries as free.
    let capacity = map.capacity();
    if map.len() < capacity || map.is_empty() {
        return;
    }
    map.retain(|_, entry| !has_ended(entry));
    if map.len() > capacity / 2 {
        map.reserve(capacity);
    }
}

/// Returns the shard of a key. FNV-1a spreads keys well. It need not resist attacks, because the maps hash with their
/// own keys.
pub(super) fn shard_index(key: &WindowKey) -> usize {
    let mut hasher = Fnv(0xcbf2_9ce4_8422_2325);
    key.hash(&mut hasher);
    let mixed = hasher.finish();
    ((mixed ^ (mixed >> 32)) as usize) % SHARD_COUNT
}

struct Fnv(u64);

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x0000_0100_0000_01b3);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
