//! User profiles: what users got before, in this process or in the Redis that processes share.

use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;

use filters::flags::{Compat, Profile, kept};
use sha2::{Digest, Sha256};

use super::{Whose, lock};
use crate::config::{Decisions, ProfilesIn};
use crate::redis::{Call, Gone, Redis, Script};

/// How many profiles are kept in memory; the oldest goes first. Source: interface.
const MOST: usize = 100_000;

/// Adds to a profile as one step, so that two processes do not undo each other.
const MERGE: &str = include_str!("remember.lua");

/// Profiles by SDK key and user.
pub enum Profiles {
    /// In this process.
    Memory(Memory),
    /// In Redis, where they stay.
    Redis(Shelf),
}

impl Profiles {
    /// Where the configuration wants them; `None`: nowhere.
    pub fn new(decisions: &Decisions, redis: Option<&Redis>) -> Option<Self> {
        Some(match (decisions.profiles?, redis) {
            (ProfilesIn::Redis, Some(redis)) => Self::Redis(Shelf {
                redis: redis.clone(),
                is_plain: decisions.compat == Compat::Agent,
                merge: Script::new(MERGE),
            }),
            _ => Self::Memory(Memory::default()),
        })
    }

    /// The profile of a user. Errors: Redis does not answer.
    pub async fn of(&self, sdk_key: &str, user: &str) -> Result<Profile, Gone> {
        match self {
            Self::Memory(memory) => Ok(memory.of(sdk_key, user)),
            Self::Redis(shelf) => shelf.of(sdk_key, user).await,
        }
    }

    /// Puts a profile in the place of the one before. Errors: Redis does not answer.
    pub async fn replace(&self, sdk_key: &str, user: &str, profile: Profile) -> Result<(), Gone> {
        match self {
            Self::Memory(memory) => {
                memory.replace(sdk_key, user, profile);
                Ok(())
            }
            Self::Redis(shelf) => shelf.replace(sdk_key, user, &profile).await,
        }
    }

    /// Adds what decisions found: experiment ids and variation ids. What Redis does not take is found again.
    pub async fn remember(&self, sdk_key: &str, user: &str, found: &[(&str, &str)]) {
        if found.is_empty() {
            return;
        }
        match self {
            Self::Memory(memory) => memory.remember(sdk_key, user, found),
            Self::Redis(shelf) => shelf.remember(sdk_key, user, found).await,
        }
    }
}

/// Profiles in this process.
#[derive(Default)]
pub struct Memory(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    profiles: HashMap<Whose, Profile>,
    order: VecDeque<Whose>,
}

impl Memory {
    fn of(&self, sdk_key: &str, user: &str) -> Profile {
        let kept = lock(&self.0);
        let profile = kept.profiles.get(&(sdk_key.into(), user.into()));
        profile.cloned().unwrap_or_default()
    }

    fn replace(&self, sdk_key: &str, user: &str, profile: Profile) {
        let key: Whose = (sdk_key.into(), user.into());
        let mut kept = lock(&self.0);
        if kept.profiles.insert(key.clone(), profile).is_none() {
            kept.order.push_back(key);
        }
        if kept.order.len() > MOST
            && let Some(oldest) = kept.order.pop_front()
        {
            kept.profiles.remove(&oldest);
        }
    }

    fn remember(&self, sdk_key: &str, user: &str, found: &[(&str, &str)]) {
        let mut profile = self.of(sdk_key, user);
        let found = found.iter();
        profile.extend(
            found.map(|(experiment, variation)| ((*experiment).into(), (*variation).into())),
        );
        self.replace(sdk_key, user, profile);
    }
}

/// Profiles in Redis. Shape: `{"EXPERIMENT ID": {"variation_id": "ID"}}`. Source: facts, UPS wire.
pub struct Shelf {
    redis: Redis,
    /// Whether the key is the user's id alone, as the agent of old has it.
    is_plain: bool,
    merge: Script,
}

impl Shelf {
    async fn of(&self, sdk_key: &str, user: &str) -> Result<Profile, Gone> {
        let text = self.redis.get(&self.name(sdk_key, user)).await?;
        Ok(text.as_deref().map(kept::read).unwrap_or_default())
    }

    async fn replace(&self, sdk_key: &str, user: &str, profile: &Profile) -> Result<(), Gone> {
        let (name, mut text) = (self.name(sdk_key, user), Vec::new());
        kept::write(profile, &mut text);
        self.redis.set(&name, &text, None).await
    }

    async fn remember(&self, sdk_key: &str, user: &str, found: &[(&str, &str)]) {
        let pairs = found
            .iter()
            .flat_map(|(experiment, variation)| [*experiment, *variation]);
        let call = Call {
            script: self.merge.clone(),
            keys: vec![self.name(sdk_key, user)],
            args: pairs.map(str::to_owned).collect(),
        };
        _ = self.redis.eval::<()>(call).await;
    }

    /// Source: interface, `decisions.user_profiles`.
    fn name(&self, sdk_key: &str, user: &str) -> Vec<u8> {
        if self.is_plain {
            return user.as_bytes().to_vec();
        }
        let hash = Sha256::digest(sdk_key.as_bytes());
        let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("weirgate:ups:{hex}:{user}").into_bytes()
    }
}
