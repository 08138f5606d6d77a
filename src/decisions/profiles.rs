//! User profiles: the variations that users got before, in this process or in shared Redis.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use filters::decisions::protocol::Protocol;
use filters::decisions::{Profile, profile_json};

use super::handover::{self, UserEntry};
use super::mutex::lock;
use super::user_key::UserKey;
use crate::config::{DecisionsConfig, ProfileStore};
use crate::redis::{Redis, Script, ScriptCall, Unavailable};

/// The maximum bytes of profiles in memory. The oldest is dropped first. Source: docs/interface.md.
const MAX_BYTES: usize = 64 << 20;
/// The approximate size of a profile, and of a decision in it, without texts.
const PROFILE_BYTES: usize = 256;
const DECISION_BYTES: usize = 64;

/// The maximum bytes of a profile in Redis to which decisions are added. Our choice: those of some thousand
/// experiments.
const MAX_PROFILE_BYTES: usize = 256 << 10;

/// Adds to a profile atomically, so that two processes do not overwrite each other.
const MERGE: &str = include_str!("remember.lua");
/// Reads a profile and renews its lifetime.
const RECALL: &str = include_str!("recall.lua");
/// Counts users.
const HAS_ROOM: &str = include_str!("has_room.lua");

/// Profiles by SDK key and user.
pub enum Profiles {
    /// Profiles in the memory of this process.
    Memory(Arc<Memory>),
    /// Profiles in Redis.
    Redis(RedisProfiles),
}

impl Profiles {
    /// Returns the profiles of a configuration, or `None` if profiles are not stored. Previous ones in memory go on.
    pub fn new(
        decisions: &DecisionsConfig,
        redis: Option<&Redis>,
        previous: Option<&Self>,
    ) -> Option<Self> {
        let known = match previous {
            Some(Self::Memory(known)) => Some(known),
            _ => None,
        };
        Some(match (decisions.profiles?, redis) {
            (ProfileStore::Redis, Some(redis)) => Self::Redis(RedisProfiles {
                redis: redis.clone(),
                protocol: decisions.protocol,
                ttl: decisions.profile_ttl,
                max_users: decisions.max_profiles,
                merge: Script::new(MERGE),
                recall: Script::new(RECALL),
                has_room: Script::new(HAS_ROOM),
                was_told: Once::new(),
            }),
            _ => Self::Memory(known.map_or_else(Arc::default, Arc::clone)),
        })
    }

    /// Returns the profile of a user. Errors: Redis does not respond.
    pub async fn find(&self, sdk_key: &str, user: &str) -> Result<Profile, Unavailable> {
        match self {
            Self::Memory(memory) => Ok(memory.find(sdk_key, user)),
            Self::Redis(redis) => redis.find(sdk_key, user).await,
        }
    }

    /// Replaces a profile. Errors: Redis does not respond.
    pub async fn replace(
        &self,
        sdk_key: &str,
        user: &str,
        profile: Profile,
    ) -> Result<(), Unavailable> {
        match self {
            Self::Memory(memory) => {
                memory.replace(sdk_key, user, profile);
                Ok(())
            }
            Self::Redis(redis) => redis.replace(sdk_key, user, &profile).await,
        }
    }

    /// Returns the profiles in memory for another process.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Memory(memory) => memory.to_bytes(),
            Self::Redis(_) => Vec::new(),
        }
    }

    /// Takes in the profiles of another process's memory. Returns how many.
    pub(super) fn take_in(&self, bytes: &[u8]) -> usize {
        match self {
            Self::Memory(memory) => memory.take_in(bytes),
            Self::Redis(_) => 0,
        }
    }

    /// Adds experiment ids and variation ids. If Redis does not accept them, the next decision buckets again.
    pub async fn remember(&self, sdk_key: &str, user: &str, found: &[(&str, &str)]) {
        if found.is_empty() {
            return;
        }
        match self {
            Self::Memory(memory) => memory.remember(sdk_key, user, found),
            Self::Redis(redis) => Box::pin(redis.remember(sdk_key, user, found)).await,
        }
    }
}

/// Profiles in this process.
#[derive(Default)]
pub struct Memory(Mutex<ProfileTable>);

#[derive(Default)]
struct ProfileTable {
    profiles: HashMap<UserKey, Profile>,
    order: VecDeque<UserKey>,
    /// The bytes of all profiles, by [`profile_bytes`].
    bytes: usize,
}

impl Memory {
    fn find(&self, sdk_key: &str, user: &str) -> Profile {
        let table = lock(&self.0);
        let profile = table.profiles.get(&(sdk_key.into(), user.into()));
        profile.cloned().unwrap_or_default()
    }

    fn replace(&self, sdk_key: &str, user: &str, profile: Profile) {
        self.change(sdk_key, user, |stored| *stored = profile);
    }

    fn remember(&self, sdk_key: &str, user: &str, found: &[(&str, &str)]) {
        self.change(sdk_key, user, |stored| {
            for (experiment, variation) in found {
                stored.insert((*experiment).into(), (*variation).into());
            }
        });
    }

    /// Returns all profiles, the newest first, because these are kept if there is no room for all.
    fn to_bytes(&self) -> Vec<u8> {
        let table = lock(&self.0);
        let newest = table.order.iter().rev().filter_map(|key| {
            let profile = table.profiles.get(key)?;
            Some(UserEntry {
                sdk_key: key.0.clone(),
                user: key.1.clone(),
                variations: profile.clone().into_iter().collect(),
            })
        });
        handover::write(newest)
    }

    fn take_in(&self, bytes: &[u8]) -> usize {
        let mut entries: Vec<UserEntry> = handover::read(bytes).collect();
        // The oldest one is dropped first here, too.
        entries.reverse();
        let count = entries.len();
        for entry in entries {
            let profile = entry.variations.into_iter().collect();
            self.replace(&entry.sdk_key, &entry.user, profile);
        }
        count
    }

    /// Changes a profile under one lock, so that two decisions do not overwrite each other.
    fn change(&self, sdk_key: &str, user: &str, change: impl FnOnce(&mut Profile)) {
        let key: UserKey = (sdk_key.into(), user.into());
        let mut table = lock(&self.0);
        let table = &mut *table;
        let (before, after) = if let Some(profile) = table.profiles.get_mut(&key) {
            let before = profile_bytes(&key, profile);
            change(profile);
            (before, profile_bytes(&key, profile))
        } else {
            let mut profile = Profile::default();
            change(&mut profile);
            let bytes = profile_bytes(&key, &profile);
            table.profiles.insert(key.clone(), profile);
            table.order.push_back(key);
            (0, bytes)
        };
        table.bytes = table.bytes.saturating_sub(before) + after;
        table.evict();
    }
}

impl ProfileTable {
    /// Drops the oldest profiles until the others fit.
    fn evict(&mut self) {
        while self.bytes > MAX_BYTES
            && let Some(oldest) = self.order.pop_front()
        {
            if let Some(profile) = self.profiles.remove(&oldest) {
                self.bytes = self.bytes.saturating_sub(profile_bytes(&oldest, &profile));
            }
        }
    }
}

/// Returns the approximate size of a profile. Its key is both in the table and in the order.
fn profile_bytes((sdk_key, user): &UserKey, profile: &Profile) -> usize {
    let decisions = profile.iter();
    let decisions = decisions
        .map(|(experiment, variation)| experiment.len() + variation.len() + DECISION_BYTES);
    PROFILE_BYTES + 2 * (sdk_key.len() + user.len()) + decisions.sum::<usize>()
}

/// Profiles in Redis. Shape: `{"EXPERIMENT ID": {"variation_id": "ID"}}`.
/// Source: docs/facts/decision-engine.md E, wire of profiles.
pub struct RedisProfiles {
    redis: Redis,
    protocol: &'static dyn Protocol,
    /// The lifetime of a profile after its last use, or `None` for profiles without an end.
    ttl: Option<Duration>,
    /// The approximate maximum of users of an SDK key whose profiles are written in that time.
    max_users: u64,
    merge: Script,
    recall: Script,
    has_room: Script,
    was_told: Once,
}

impl RedisProfiles {
    async fn find(&self, sdk_key: &str, user: &str) -> Result<Profile, Unavailable> {
        let name = self.protocol.profile_key(sdk_key, user);
        let text: Option<Vec<u8>> = match self.ttl {
            None => self.redis.get(&name).await?,
            Some(_) => {
                let recall = ScriptCall {
                    script: self.recall.clone(),
                    keys: vec![name],
                    args: vec![self.ttl_ms()],
                };
                self.redis.eval(recall).await?
            }
        };
        Ok(text.as_deref().map(profile_json::read).unwrap_or_default())
    }

    async fn replace(
        &self,
        sdk_key: &str,
        user: &str,
        profile: &Profile,
    ) -> Result<(), Unavailable> {
        if !self.has_room(sdk_key, user).await? {
            return Err(Unavailable);
        }
        let (name, mut text) = (self.protocol.profile_key(sdk_key, user), Vec::new());
        profile_json::write(profile, &mut text);
        self.redis.set(&name, &text, self.ttl).await
    }

    /// Counts a user. Returns whether the profile may be written. In agent mode keys are plain user ids, so no key is
    /// left for a count.
    async fn has_room(&self, sdk_key: &str, user: &str) -> Result<bool, Unavailable> {
        let Some(name) = self.protocol.profile_count_key(sdk_key) else {
            return Ok(true);
        };
        let call = ScriptCall {
            script: self.has_room.clone(),
            keys: vec![name],
            args: vec![
                user.as_bytes().to_vec(),
                self.max_users.to_string().into_bytes(),
                self.ttl_ms(),
            ],
        };
        let has_room: i64 = self.redis.eval(call).await?;
        if has_room == 0 {
            self.was_told.call_once(|| {
                log::warn!(
                    "decisions.user_profiles_max: no more profiles are written for an SDK key"
                );
            });
        }
        Ok(has_room != 0)
    }

    /// Returns the lifetime of a profile in milliseconds, or 0 for no end.
    fn ttl_ms(&self) -> Vec<u8> {
        let ttl = self.ttl.unwrap_or_default().as_millis();
        ttl.to_string().into_bytes()
    }

    async fn remember(&self, sdk_key: &str, user: &str, found: &[(&str, &str)]) {
        if !self.has_room(sdk_key, user).await.unwrap_or(false) {
            return;
        }
        let bounds = [self.ttl_ms(), MAX_PROFILE_BYTES.to_string().into_bytes()];
        let pairs = found
            .iter()
            .flat_map(|(experiment, variation)| [*experiment, *variation]);
        let call = ScriptCall {
            script: self.merge.clone(),
            keys: vec![self.protocol.profile_key(sdk_key, user)],
            args: bounds
                .into_iter()
                .chain(pairs.map(|text| text.as_bytes().to_vec()))
                .collect(),
        };
        _ = self.redis.eval::<()>(call).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_of_one_user_at_once_are_all_remembered() {
        const EACH: usize = 300;
        let memory = Memory::default();
        let remember = &|thread: usize| {
            for number in 0..EACH {
                let experiment = format!("{thread}-{number}");
                memory.remember("k", "u", &[(&experiment, "v")]);
            }
        };
        std::thread::scope(|scope| {
            for thread in 0..8 {
                scope.spawn(move || remember(thread));
            }
        });
        assert_eq!(memory.find("k", "u").len(), 8 * EACH);
    }

    #[test]
    fn profiles_take_so_many_bytes_and_the_oldest_goes() {
        let memory = Memory::default();
        let large = "v".repeat(1 << 20);
        for user in 0..65 {
            memory.remember("k", &user.to_string(), &[("e", &large)]);
        }
        assert!(lock(&memory.0).bytes <= MAX_BYTES);
        assert_eq!(memory.find("k", "0").len(), 0);
        assert_eq!(memory.find("k", "64").len(), 1);
        // A profile that grows counts too, and one that shrinks makes room.
        for user in 60..65 {
            memory.replace("k", &user.to_string(), Profile::default());
        }
        assert!(lock(&memory.0).bytes <= MAX_BYTES - 5 * (1 << 20));
    }
}
