//! The provider that a session is bound to. Source: docs/decisions.md 11, docs/facts/model-gateway.md 3.8.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};

/// How many bindings one shard holds.
const PER_SHARD: usize = 8192;
const SHARDS: usize = 16;

/// The bindings of all sessions. The memory is bounded: the oldest bindings are evicted.
#[derive(Debug)]
pub struct SessionAffinity {
    shards: [Mutex<HashMap<u64, Binding>>; SHARDS],
    hasher: RandomState,
    ttl_ms: u64,
}

#[derive(Clone, Copy, Debug)]
struct Binding {
    mapping: usize,
    until_ms: u64,
}

impl SessionAffinity {
    /// Bindings that expire this long after the last response.
    pub fn new(ttl_ms: u64) -> Self {
        Self {
            shards: Default::default(),
            hasher: RandomState::new(),
            ttl_ms,
        }
    }

    /// Returns the key of an organization's session with a model.
    pub fn key(&self, organization: &str, model: &str, session: &str) -> u64 {
        self.hasher.hash_one((organization, model, session))
    }

    /// Returns the mapping that answered the session last.
    pub fn find(&self, key: u64, now_ms: u64) -> Option<usize> {
        let shard = self.shards.get((key % SHARDS as u64) as usize)?;
        let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        shard
            .get(&key)
            .filter(|binding| binding.until_ms > now_ms)
            .map(|binding| binding.mapping)
    }

    /// Binds the session to the mapping that answered it.
    pub fn bind(&self, key: u64, mapping: usize, now_ms: u64) {
        let Some(shard) = self.shards.get((key % SHARDS as u64) as usize) else {
            return;
        };
        let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        if shard.len() >= PER_SHARD && !shard.contains_key(&key) {
            evict(&mut shard, now_ms);
        }
        shard.insert(
            key,
            Binding {
                mapping,
                until_ms: now_ms + self.ttl_ms,
            },
        );
    }
}

/// Drops expired bindings, or the older half if none has expired. This is rare, and costs less than an order that every
/// request maintains.
fn evict(shard: &mut HashMap<u64, Binding>, now_ms: u64) {
    shard.retain(|_, binding| binding.until_ms > now_ms);
    if shard.len() >= PER_SHARD {
        let mut ends: Vec<u64> = shard.values().map(|binding| binding.until_ms).collect();
        let middle = ends.len() / 2;
        let (_, median, _) = ends.select_nth_unstable(middle);
        let median = *median;
        shard.retain(|_, binding| binding.until_ms > median);
    }
}
