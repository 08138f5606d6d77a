//! The provider that a session is bound to, and when a session leaves it. Source: docs/decisions.md 11, 36,
//! docs/facts/model-gateway.md 3.8.

mod passing;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::catalog::Catalog;
use crate::money::PriceSet;

/// How many bindings one shard holds.
const PER_SHARD: usize = 8192;
const SHARDS: usize = 16;
/// A binding that others share is told to them anew after this fraction of its time to live.
const TOLD_DIVISOR: u64 = 4;
/// Below this percentage of answered attempts a provider loses its sessions. Source: docs/facts/model-gateway.md 3.8.
pub(super) const MIN_SESSION_UPTIME: f64 = 85.0;
/// A session leaves a healthy provider only for one whose call is expected to cost less than this share.
///
/// Our choice: another provider knows neither the prefix nor the state of the reasoning so far, and answers differently. So
/// what moving saves must be large, and not only more than nothing.
const MAX_MOVED_COST: f64 = 0.4;

/// The key of an organization's session with a model.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct SessionKey(pub [u8; 16]);

impl SessionKey {
    /// Returns a uniform number that stands for the session.
    pub fn number(self) -> u64 {
        u128::from_le_bytes(self.0) as u64
    }
}

/// Makes keys of sessions: HMAC-SHA256 under a secret of the server, equal in all processes that share the secret. An id of
/// any length is as good as another.
#[derive(Clone)]
pub struct SessionKeys(Hmac<Sha256>);

impl SessionKeys {
    /// Prepares the secret.
    pub fn new(secret: &[u8; 32]) -> Self {
        // A key of one block, which zeros fill up.
        let mut block = [0; 64];
        block
            .iter_mut()
            .zip(secret)
            .for_each(|(to, from)| *to = *from);
        Self(Hmac::new(&block.into()))
    }

    /// Returns the key of a session. `scope` is that of [`session_scope`]. Cost: three blocks of SHA-256 and more for long
    /// ids.
    pub fn key(&self, organization: &str, scope: &str, session: &[u8]) -> SessionKey {
        let mut key = [0; 16];
        let mac = self.mac(&[b"key", organization.as_bytes(), scope.as_bytes(), session]);
        key.copy_from_slice(mac.first_chunk::<16>().unwrap_or(&[0; 16]));
        SessionKey(key)
    }

    /// Returns what proves that a process with the secret has written `text` for the session.
    pub fn prove(&self, key: SessionKey, text: &[u8]) -> [u8; 32] {
        self.mac(&[b"proof", &key.0, text])
    }

    fn mac(&self, parts: &[&[u8]]) -> [u8; 32] {
        let mut mac = self.0.clone();
        for part in parts {
            mac.update(&(part.len() as u64).to_le_bytes());
            mac.update(part);
        }
        mac.finalize().into_bytes().into()
    }
}

/// Returns what a session is bound within: the model behind an alias, and the provider and region that the model string
/// names, if it does. So an alias is the same session, and a pinned provider does not move the session of the model.
pub fn session_scope<'m>(model: &'m str, catalog: &Catalog) -> Cow<'m, str> {
    if let Some(known) = catalog.find(model) {
        return match *known.id == *model {
            true => Cow::Borrowed(model),
            false => Cow::Owned(known.id.to_string()),
        };
    }
    let pinned = model.split_once('/');
    let known = pinned.and_then(|(provider, name)| Some((provider, catalog.find(name)?)));
    match known {
        Some((provider, known)) => Cow::Owned(format!("{provider}/{}", known.id)),
        None => Cow::Borrowed(model),
    }
}

/// Where a session is bound.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Binding {
    /// The id of the mapping that answered it last, which means the same in another catalogue.
    pub mapping: u64,
    /// The tokens of its prompt that the provider had in its cache then, or wrote to it.
    pub cached_tokens: u64,
}

/// The bindings of all sessions. The memory is bounded: the oldest bindings are evicted.
#[derive(Debug)]
pub struct SessionAffinity {
    shards: Arc<[Mutex<HashMap<SessionKey, Bound>>; SHARDS]>,
    ttl_ms: u64,
}

#[derive(Clone, Copy, Debug)]
struct Bound {
    binding: Binding,
    until_ms: u64,
    /// When other processes were told, if they were.
    told_ms: Option<u64>,
}

impl SessionAffinity {
    /// Bindings that expire this long after the last response.
    pub fn new(ttl_ms: u64) -> Self {
        Self {
            shards: Arc::default(),
            ttl_ms,
        }
    }

    /// Returns the same bindings, of which those that are made from now on expire this long after the last response.
    #[must_use]
    pub fn with_ttl(&self, ttl_ms: u64) -> Self {
        Self {
            shards: Arc::clone(&self.shards),
            ttl_ms,
        }
    }

    /// Returns where the session is bound.
    pub fn find(&self, key: SessionKey, now_ms: u64) -> Option<Binding> {
        let shard = self.shard(key)?;
        let bound = shard.get(&key);
        bound
            .filter(|bound| bound.until_ms > now_ms)
            .map(|bound| bound.binding)
    }

    /// Binds the session to what answered it; returns whether other processes should be told: it has moved, or they will
    /// forget it.
    pub fn bind(&self, key: SessionKey, binding: Binding, now_ms: u64) -> bool {
        let Some(mut shard) = self.shard(key) else {
            return false;
        };
        let before = shard.get(&key).copied();
        if before.is_none() && shard.len() >= PER_SHARD {
            evict(&mut shard, now_ms);
        }
        let told_ms = before.filter(|bound| bound.binding.mapping == binding.mapping);
        let told_ms = told_ms.and_then(|bound| bound.told_ms);
        let told_ms =
            told_ms.filter(|told_ms| now_ms < told_ms.saturating_add(self.ttl_ms / TOLD_DIVISOR));
        let bound = Bound {
            binding,
            until_ms: now_ms.saturating_add(self.ttl_ms),
            told_ms: told_ms.or(Some(now_ms)),
        };
        shard.insert(key, bound);
        told_ms.is_none()
    }

    /// Binds the session to the mapping whose answer is about to end, before it is known what of its prompt is cached there.
    /// [`Self::bind`] follows, and says whether others should be told.
    pub fn hold(&self, key: SessionKey, mapping: u64, now_ms: u64) {
        let Some(mut shard) = self.shard(key) else {
            return;
        };
        let before = shard.get(&key).filter(|bound| bound.until_ms > now_ms);
        if before.is_some_and(|bound| bound.binding.mapping == mapping) {
            return;
        }
        if before.is_none() && shard.len() >= PER_SHARD {
            evict(&mut shard, now_ms);
        }
        let bound = Bound {
            binding: Binding {
                mapping,
                cached_tokens: 0,
            },
            until_ms: now_ms.saturating_add(self.ttl_ms),
            told_ms: None,
        };
        shard.insert(key, bound);
    }

    /// Uniform keys are spread by their first byte.
    fn shard(&self, key: SessionKey) -> Option<MutexGuard<'_, HashMap<SessionKey, Bound>>> {
        let [first, ..] = key.0;
        let shard = self.shards.get(usize::from(first) % SHARDS)?;
        Some(shard.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Drops expired bindings, or the older half if none has expired. This is rare, and costs less than an order that every
/// request maintains.
fn evict(shard: &mut HashMap<SessionKey, Bound>, now_ms: u64) {
    shard.retain(|_, binding| binding.until_ms > now_ms);
    if shard.len() >= PER_SHARD {
        let mut ends: Vec<u64> = shard.values().map(|binding| binding.until_ms).collect();
        let middle = ends.len() / 2;
        let (_, median, _) = ends.select_nth_unstable(middle);
        let median = *median;
        shard.retain(|_, binding| binding.until_ms > median);
    }
}

/// Returns the expected cost of a call of so many prompt and completion tokens, of whose prompt so many are cached.
pub(super) fn expected_cost(prices: &PriceSet, tokens: [u64; 2], cached_tokens: u64) -> f64 {
    let [prompt, completion] = tokens;
    let cached = cached_tokens.min(prompt);
    let cached_price = prices.cached_input.unwrap_or(prices.input);
    let cost = |price: crate::money::Price, tokens: u64| price.as_f64() * tokens as f64;
    cost(prices.input, prompt - cached)
        + cost(cached_price, cached)
        + cost(prices.output, completion)
        + prices.request.as_f64()
}

/// Returns whether a session should leave its provider for a cheaper one, given what its next call is expected to cost here
/// and there. What is cached here makes staying cheaper. An unknown price moves no session.
pub(super) fn pays_to_move(here: Option<f64>, there: Option<f64>) -> bool {
    here.zip(there)
        .is_some_and(|(here, there)| there < here * MAX_MOVED_COST)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::money::Price;

    fn key(number: u64) -> SessionKey {
        let mut key = [0; 16];
        key[..8].copy_from_slice(&number.to_le_bytes());
        SessionKey(key)
    }

    fn to(mapping: u64) -> Binding {
        Binding {
            mapping,
            ..Binding::default()
        }
    }

    #[test]
    fn sessions_are_of_one_organization_and_scope_and_ids_have_any_length() {
        let keys = SessionKeys::new(&[1; 32]);
        let own = keys.key("org", "m", b"s");
        assert_eq!(own, keys.key("org", "m", b"s"));
        let long = vec![b'x'; 10_000];
        let longer = vec![b'x'; 10_001];
        let other_secret = SessionKeys::new(&[2; 32]);
        for other in [
            keys.key("other", "m", b"s"),
            keys.key("org", "n", b"s"),
            keys.key("org", "m", b"t"),
            keys.key("orgm", "", b"s"),
            keys.key("org", "ms", b""),
            keys.key("org", "m", &long),
            keys.key("org", "m", &longer),
            other_secret.key("org", "m", b"s"),
        ] {
            assert_ne!(own, other);
        }
        assert_ne!(keys.key("org", "m", &long), keys.key("org", "m", &longer));
        assert_ne!(keys.prove(own, b"a"), keys.prove(own, b"b"));
        assert_ne!(keys.prove(own, b"a"), keys.prove(key(1), b"a"));
    }

    #[test]
    fn use_keeps_a_session_alive_and_memory_is_bounded() {
        let affinity = SessionAffinity::new(1000);
        let own = key(7);
        affinity.bind(own, to(3), 0);
        assert_eq!(affinity.find(own, 999), Some(to(3)));
        assert_eq!(affinity.find(own, 1000), None);
        affinity.bind(own, to(3), 900);
        assert_eq!(affinity.find(own, 1899), Some(to(3)));
        let spread =
            |number: u64| SessionKey(u128::from(number).wrapping_mul(u128::MAX / 7).to_be_bytes());
        for number in 0..400_000 {
            affinity.bind(spread(number), to(0), 5000 + number / 1000);
        }
        let found = (0..400_000).filter(|number| affinity.find(spread(*number), 5000).is_some());
        assert!(found.count() <= SHARDS * PER_SHARD);
    }

    #[test]
    fn another_time_to_live_counts_for_what_is_bound_from_then_on() {
        let old = SessionAffinity::new(1000);
        old.bind(key(1), to(1), 0);
        let new = old.with_ttl(10);
        assert_eq!(new.find(key(1), 999), Some(to(1)));
        new.bind(key(2), to(2), 0);
        assert_eq!(old.find(key(2), 9), Some(to(2)));
        assert_eq!(old.find(key(2), 10), None);
    }

    #[test]
    fn others_are_told_of_new_and_moved_sessions_and_now_and_then() {
        let affinity = SessionAffinity::new(1000);
        let told = [
            (to(1), 0, true),
            (to(1), 200, false),
            (to(1), 249, false),
            (to(1), 250, true),
            (to(1), 499, false),
            (to(2), 500, true),
            (to(2), 501, false),
        ];
        for (binding, now_ms, is_told) in told {
            assert_eq!(affinity.bind(key(1), binding, now_ms), is_told, "{now_ms}");
        }
    }

    #[test]
    fn a_session_is_held_before_others_are_told_of_it() {
        let affinity = SessionAffinity::new(1000);
        let cached = |mapping, cached_tokens| Binding {
            mapping,
            cached_tokens,
        };
        affinity.hold(key(1), 1, 0);
        assert_eq!(affinity.find(key(1), 1), Some(to(1)));
        assert!(affinity.bind(key(1), cached(1, 9), 2), "nobody was told");
        affinity.hold(key(1), 1, 3);
        assert_eq!(affinity.find(key(1), 4), Some(cached(1, 9)), "it stays");
        affinity.hold(key(1), 2, 5);
        assert_eq!(affinity.find(key(1), 6), Some(to(2)), "it moves");
        assert!(affinity.bind(key(1), to(2), 7));
        affinity.hold(key(1), 2, 1007);
        assert_eq!(affinity.find(key(1), 1008), Some(to(2)), "it is over");
    }

    #[test]
    fn what_is_cached_keeps_a_session_where_it_is() {
        let prices = |input, cached: Option<&str>, output| PriceSet {
            input: Price::per_million(input).unwrap(),
            cached_input: cached.map(|cached| Price::per_million(cached).unwrap()),
            output: Price::per_million(output).unwrap(),
            ..PriceSet::default()
        };
        let (here, there) = (prices("10", Some("1"), "10"), prices("2", None, "2"));
        let tokens = [100_000, 500];
        let cost = |prices, cached| Some(expected_cost(prices, tokens, cached));
        // Five times as dear, but most of its prompt is cached: staying costs 0.105, moving 0.201.
        assert!(!pays_to_move(cost(&here, 100_000), cost(&there, 0)));
        // Without a cache moving saves four fifths.
        assert!(pays_to_move(cost(&here, 0), cost(&there, 0)));
        // What saves less than three fifths moves no session.
        assert!(!pays_to_move(cost(&here, 60_000), cost(&there, 0)));
        assert!(!pays_to_move(cost(&here, 0), None) && !pays_to_move(None, cost(&there, 0)));
    }
}
