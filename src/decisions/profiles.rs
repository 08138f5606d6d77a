//! User profiles: what users got before, in this process or in the Redis that processes share.

use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;

use filters::decisions::protocol::Protocol;
use filters::decisions::{Profile, profile_json};

use super::{UserKey, lock};
use crate::config::{DecisionsConfig, ProfileStore};
use crate::redis::{Redis, Script, ScriptCall, Unavailable};

/// How many profiles are kept in memory; the oldest goes first. Source: docs/interface.md.
const MAX_PROFILES: usize = 100_000;

/// Adds to a profile as one step, so that two processes do not undo each other.
const MERGE: &str = include_str!("remember.lua");

/// Profiles by SDK key and user.
pub enum Profiles {
    /// In this process.
    Memory(Memory),
    /// In Redis, where they stay.
    Redis(RedisProfiles),
}

impl Profiles {
    /// Where the configuration wants them; `None`: nowhere.
    pub fn new(decisions: &DecisionsConfig, redis: Option<&Redis>) -> Option<Self> {
        Some(match (decisions.profiles?, redis) {
            (ProfileStore::Redis, Some(redis)) => Self::Redis(RedisProfiles {
                redis: redis.clone(),
                protocol: decisions.protocol,
                merge: Script::new(MERGE),
            }),
            _ => Self::Memory(Memory::default()),
        })
    }

    /// The profile of a user. Errors: Redis does not answer.
    pub async fn find(&self, sdk_key: &str, user: &str) -> Result<Profile, Unavailable> {
        match self {
            Self::Memory(memory) => Ok(memory.find(sdk_key, user)),
            Self::Redis(redis) => redis.find(sdk_key, user).await,
        }
    }

    /// Puts a profile in the place of the one before. Errors: Redis does not answer.
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

    /// Adds what decisions found: experiment ids and variation ids. What Redis does not take is found again.
    pub async fn remember(&self, sdk_key: &str, user: &str, found: &[(&str, &str)]) {
        if found.is_empty() {
            return;
        }
        match self {
            Self::Memory(memory) => memory.remember(sdk_key, user, found),
            Self::Redis(redis) => redis.remember(sdk_key, user, found).await,
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
}

impl Memory {
    fn find(&self, sdk_key: &str, user: &str) -> Profile {
        let kept = lock(&self.0);
        let profile = kept.profiles.get(&(sdk_key.into(), user.into()));
        profile.cloned().unwrap_or_default()
    }

    fn replace(&self, sdk_key: &str, user: &str, profile: Profile) {
        self.change(sdk_key, user, |kept| *kept = profile);
    }

    fn remember(&self, sdk_key: &str, user: &str, found: &[(&str, &str)]) {
        self.change(sdk_key, user, |kept| {
            for (experiment, variation) in found {
                kept.insert((*experiment).into(), (*variation).into());
            }
        });
    }

    /// One step under one lock, so that two decisions do not undo each other.
    fn change(&self, sdk_key: &str, user: &str, change: impl FnOnce(&mut Profile)) {
        let key: UserKey = (sdk_key.into(), user.into());
        let mut kept = lock(&self.0);
        if let Some(profile) = kept.profiles.get_mut(&key) {
            return change(profile);
        }
        let mut profile = Profile::default();
        change(&mut profile);
        kept.profiles.insert(key.clone(), profile);
        kept.order.push_back(key);
        if kept.order.len() > MAX_PROFILES
            && let Some(oldest) = kept.order.pop_front()
        {
            kept.profiles.remove(&oldest);
        }
    }
}

/// Profiles in Redis. Shape: `{"EXPERIMENT ID": {"variation_id": "ID"}}`.
/// Source: docs/facts/decision-engine.md E, wire of profiles.
pub struct RedisProfiles {
    redis: Redis,
    protocol: &'static dyn Protocol,
    merge: Script,
}

impl RedisProfiles {
    async fn find(&self, sdk_key: &str, user: &str) -> Result<Profile, Unavailable> {
        let text = self
            .redis
            .get(&self.protocol.profile_key(sdk_key, user))
            .await?;
        Ok(text.as_deref().map(profile_json::read).unwrap_or_default())
    }

    async fn replace(
        &self,
        sdk_key: &str,
        user: &str,
        profile: &Profile,
    ) -> Result<(), Unavailable> {
        let (name, mut text) = (self.protocol.profile_key(sdk_key, user), Vec::new());
        profile_json::write(profile, &mut text);
        self.redis.set(&name, &text, None).await
    }

    async fn remember(&self, sdk_key: &str, user: &str, found: &[(&str, &str)]) {
        let pairs = found
            .iter()
            .flat_map(|(experiment, variation)| [*experiment, *variation]);
        let call = ScriptCall {
            script: self.merge.clone(),
            keys: vec![self.protocol.profile_key(sdk_key, user)],
            args: pairs.map(str::to_owned).collect(),
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
}
