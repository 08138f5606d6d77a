//! Overrides: variations that users get in experiments, whatever the datafile says.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use moka::ops::compute::Op;
use moka::policy::EvictionPolicy;
use moka::sync::Cache;

use super::handover::{self, UserEntry};
use super::user_key::UserKey;

/// The capacity of the cache, which evicts the least recently used overrides first.
const MAX_CACHE_BYTES: u64 = 32 << 20;
/// How long a user's overrides live after the last of them was set.
const OVERRIDE_TTL: Duration = Duration::from_secs(24 * 60 * 60);
/// The maximum number of overrides of a user. The oldest is dropped first.
const MAX_OVERRIDES_PER_USER: usize = 100;
/// The approximate size of an entry without its texts.
const ENTRY_BYTES: usize = 128;

/// Experiment key and variation key.
type OverrideEntry = Vec<(Box<str>, Box<str>)>;

/// Overrides by SDK key and user. They are only in memory, because they are for debugging.
/// Source: docs/decision-agent.md 4, rule 3; docs/hostile-input.md 62.
pub struct Overrides {
    is_used: AtomicBool,
    by_user: Cache<UserKey, Arc<OverrideEntry>>,
}

impl Default for Overrides {
    fn default() -> Self {
        Self::new(MAX_CACHE_BYTES, OVERRIDE_TTL)
    }
}

impl Overrides {
    fn new(max_bytes: u64, ttl: Duration) -> Self {
        let by_user = Cache::builder()
            .max_capacity(max_bytes)
            .weigher(weight)
            .eviction_policy(EvictionPolicy::lru())
            .time_to_live(ttl);
        Self {
            is_used: AtomicBool::new(false),
            by_user: by_user.build(),
        }
    }

    /// Returns the overrides of a user. Cost: no look-up unless an override was set for any user.
    pub fn find(&self, sdk_key: &str, user: &str) -> OverrideEntry {
        if !self.is_used.load(Ordering::Acquire) {
            return OverrideEntry::new();
        }
        let found = self.by_user.get(&(sdk_key.into(), user.into()));
        found.map(Arc::unwrap_or_clone).unwrap_or_default()
    }

    /// Sets an override, or removes it if the variation is empty. Returns the previous variation.
    pub fn set(
        &self,
        sdk_key: &str,
        user: &str,
        experiment: &str,
        variation: &str,
    ) -> Option<Box<str>> {
        let mut previous = None;
        let entry = self.by_user.entry((sdk_key.into(), user.into()));
        _ = entry.and_compute_with(|entry| {
            let overrides = entry.map(|entry| Arc::unwrap_or_clone(entry.into_value()));
            let mut overrides = overrides.unwrap_or_default();
            let at = overrides.iter().position(|(one, _)| **one == *experiment);
            previous = at.map(|at| overrides.remove(at).1);
            if !variation.is_empty() {
                overrides.push((experiment.into(), variation.into()));
            }
            if overrides.len() > MAX_OVERRIDES_PER_USER {
                overrides.remove(0);
            }
            if overrides.is_empty() {
                return Op::Remove;
            }
            Op::Put(Arc::new(overrides))
        });
        self.is_used.store(true, Ordering::Release);
        previous
    }

    /// Returns all overrides for another process.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let all = self.by_user.iter().map(|(user, overrides)| UserEntry {
            sdk_key: user.0.clone(),
            user: user.1.clone(),
            variations: overrides.to_vec(),
        });
        handover::write(all)
    }

    /// Takes in the overrides of another process. They live for a whole day again. Returns of how many users.
    pub(super) fn take_in(&self, bytes: &[u8]) -> usize {
        let entries = handover::read(bytes).map(|entry: UserEntry| {
            for (experiment, variation) in &entry.variations {
                self.set(&entry.sdk_key, &entry.user, experiment, variation);
            }
        });
        entries.count()
    }
}

fn weight((sdk_key, user): &UserKey, overrides: &Arc<OverrideEntry>) -> u32 {
    let texts: usize = overrides
        .iter()
        .map(|(experiment, variation)| experiment.len() + variation.len() + ENTRY_BYTES)
        .sum();
    u32::try_from(sdk_key.len() + user.len() + texts + ENTRY_BYTES).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing, reason = "tests")]
    use super::*;

    #[test]
    fn an_override_is_of_one_key_and_user_until_it_is_removed() {
        let overrides = Overrides::default();
        assert_eq!(overrides.set("k", "u", "e", "a"), None);
        assert_eq!(overrides.set("k", "u", "f", "x"), None);
        assert_eq!(overrides.set("k", "u", "e", "b").as_deref(), Some("a"));
        let expected: OverrideEntry = vec![("f".into(), "x".into()), ("e".into(), "b".into())];
        assert_eq!(overrides.find("k", "u"), expected);
        assert_eq!(overrides.find("k", "v"), []);
        assert_eq!(overrides.find("other", "u"), []);
        assert_eq!(overrides.set("k", "u", "e", "").as_deref(), Some("b"));
        assert_eq!(overrides.find("k", "u"), expected[..1]);
    }

    #[test]
    fn the_next_process_takes_over_the_overrides_of_all_users() {
        let (old, new) = (Overrides::default(), Overrides::default());
        old.set("k", "u", "f", "x\"y");
        old.set("k", "u", "e", "a");
        old.set("k2", "v", "e", "b");
        assert_eq!(new.take_in(&old.to_bytes()), 2);
        assert_eq!(new.find("k", "u"), old.find("k", "u"));
        assert_eq!(new.find("k2", "v"), old.find("k2", "v"));
        assert_eq!(new.take_in(b"{\"sdk_key\":1}\nno JSON\n\n"), 0);
    }

    #[test]
    fn no_more_are_kept_than_there_is_room_for_and_the_newest_is() {
        let overrides = Overrides::new(10_000, OVERRIDE_TTL);
        for user in 0..1_000 {
            overrides.set("k", &user.to_string(), "e", "a");
        }
        overrides.by_user.run_pending_tasks();
        assert!(overrides.by_user.weighted_size() <= 10_000);
        assert_eq!(overrides.find("k", "0"), []);
        assert_eq!(overrides.find("k", "999").len(), 1);
    }

    #[test]
    fn a_user_has_so_many_overrides_and_the_oldest_goes() {
        let overrides = Overrides::default();
        for experiment in 0..=MAX_OVERRIDES_PER_USER {
            overrides.set("k", "u", &experiment.to_string(), "a");
        }
        let overrides = overrides.find("k", "u");
        assert_eq!(
            (overrides.len(), &*overrides[0].0),
            (MAX_OVERRIDES_PER_USER, "1")
        );
    }

    #[test]
    fn overrides_do_not_stay_for_ever() {
        let overrides = Overrides::new(10_000, Duration::ZERO);
        overrides.set("k", "u", "e", "a");
        assert_eq!(overrides.find("k", "u"), []);
    }
}
