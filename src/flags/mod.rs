//! The decision endpoints' organ: projects by SDK key, overrides, profiles, tokens, events.
//!
//! What is decided is decided in `filters::flags`; here stands what has to be kept between requests. The request
//! path takes no lock for a decision: projects are snapshots, overrides are only looked at where there are any.

pub mod events;
pub mod projects;

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use filters::auth::sdk::SdkRules;
use filters::auth::token::Tokens;
use filters::flags::{Compat, Profile};

use self::events::Events;
use self::projects::Projects;
use crate::config::{Client, Decisions};

/// How many profiles are kept in memory; the oldest goes first. Source: interface.
const PROFILES: usize = 100_000;

/// See the module.
pub struct Flags {
    /// Whose behaviour is shown.
    pub compat: Compat,
    /// How callers show who they are.
    pub credentials: SdkRules,
    /// Projects by SDK key.
    pub projects: Arc<Projects>,
    /// Events on their way to the backend.
    pub events: Events,
    /// Who may ask for tokens.
    pub clients: Vec<Client>,
    /// The most operations of a batch, and how many run at once.
    pub batch: (usize, usize),
    /// `None` where overrides may not be set.
    pub overrides: Option<Overrides>,
    /// `None` where no profiles are kept.
    pub profiles: Option<Profiles>,
}

impl Flags {
    /// The organ of a configuration.
    pub fn new(decisions: &Decisions, projects: Arc<Projects>, events: Events) -> Self {
        let keys = decisions.token_keys.iter();
        let keys: Vec<Vec<u8>> = keys.map(|key| key.expose().to_vec()).collect();
        let has_clients = !decisions.clients.is_empty();
        Self {
            compat: decisions.compat,
            credentials: SdkRules {
                headers: decisions.sdk_key_headers.clone(),
                tokens: Tokens::new(&keys, decisions.token_ttl_s).filter(|_| has_clients),
                is_agent: decisions.compat == Compat::Agent,
            },
            projects,
            events,
            clients: decisions.clients.clone(),
            batch: (decisions.batch_max_operations, decisions.batch_concurrency),
            overrides: decisions.overrides.then(Overrides::default),
            profiles: decisions.keeps_profiles.then(Profiles::default),
        }
    }
}

/// An SDK key and a user of its project.
type Whose = (Box<str>, Box<str>);

/// What a user gets in an experiment whatever the datafile says: experiment key, variation key.
type Chosen = Vec<(Box<str>, Box<str>)>;

/// Overrides by SDK key and user. In memory alone: they are for debugging. Source: decision-agent 4, rule 3.
#[derive(Default)]
pub struct Overrides {
    count: AtomicUsize,
    by_user: Mutex<HashMap<Whose, Chosen>>,
}

impl Overrides {
    /// Those of a user. Cost: no lock while nobody has any.
    pub fn of(&self, sdk_key: &str, user: &str) -> Chosen {
        if self.count.load(Ordering::Acquire) == 0 {
            return Chosen::new();
        }
        let found = lock(&self.by_user)
            .get(&(sdk_key.into(), user.into()))
            .cloned();
        found.unwrap_or_default()
    }

    /// Sets one; an empty variation removes it. Answers the one before.
    pub fn set(
        &self,
        sdk_key: &str,
        user: &str,
        experiment: &str,
        variation: &str,
    ) -> Option<Box<str>> {
        let mut by_user = lock(&self.by_user);
        let key = (sdk_key.into(), user.into());
        let chosen = by_user.entry(key).or_default();
        let at = chosen.iter().position(|(one, _)| **one == *experiment);
        let before = at.map(|at| chosen.remove(at).1);
        if !variation.is_empty() {
            chosen.push((experiment.into(), variation.into()));
        }
        by_user.retain(|_, chosen| !chosen.is_empty());
        self.count.store(by_user.len(), Ordering::Release);
        before
    }
}

/// Profiles by SDK key and user.
#[derive(Default)]
pub struct Profiles(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    profiles: HashMap<Whose, Profile>,
    order: VecDeque<Whose>,
}

impl Profiles {
    /// The profile of a user.
    pub fn of(&self, sdk_key: &str, user: &str) -> Profile {
        let kept = lock(&self.0);
        kept.profiles
            .get(&(sdk_key.into(), user.into()))
            .cloned()
            .unwrap_or_default()
    }

    /// Puts a profile in the place of the one before.
    pub fn replace(&self, sdk_key: &str, user: &str, profile: Profile) {
        let key: Whose = (sdk_key.into(), user.into());
        let mut kept = lock(&self.0);
        if kept.profiles.insert(key.clone(), profile).is_none() {
            kept.order.push_back(key);
        }
        if kept.order.len() > PROFILES
            && let Some(oldest) = kept.order.pop_front()
        {
            kept.profiles.remove(&oldest);
        }
    }

    /// Adds what decisions found: experiment ids and variation ids.
    pub fn remember(&self, sdk_key: &str, user: &str, found: &[(&str, &str)]) {
        if found.is_empty() {
            return;
        }
        let mut profile = self.of(sdk_key, user);
        profile.extend(
            found
                .iter()
                .map(|(experiment, variation)| ((*experiment).into(), (*variation).into())),
        );
        self.replace(sdk_key, user, profile);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
