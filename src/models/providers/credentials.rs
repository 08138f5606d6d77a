//! Credentials for one provider: whose they are, which one's turn it is, which ones rest.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use filters::models::wires::{Failure, FailureKind};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::config::Secret;

/// How long a key that was refused is left alone, and one that was throttled.
const REFUSED_MS: u64 = 300_000;
const THROTTLED_MS: u64 = 10_000;
/// Other failures in a row after which a key rests, and how long. Source: docs/facts/model-gateway.md 4.3.
const MAX_FAILURES: u32 = 3;
const FAILING_MS: u64 = 30_000;

/// The keys for one provider that one caller's requests may use.
#[derive(Default)]
pub struct KeyPool {
    list: Vec<Arc<Credential>>,
    turn: AtomicUsize,
}

/// A credential and what is known of its health.
pub struct Credential {
    /// The text; `None` where the provider needs none.
    pub secret: Option<Secret>,
    /// 16 hex digits that stand for it. Source: docs/decisions.md 3.
    pub fingerprint: Option<Box<str>>,
    /// Its row, where it is the caller's own; `None`: the platform's.
    pub own: Option<ByokKey>,
    /// When it is tried again without need, in milliseconds of the process's clock.
    cool_until_ms: AtomicU64,
    failed_in_a_row: AtomicU32,
}

/// Which of the caller's own keys it is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ByokKey {
    /// `pk_` and a uuid.
    pub id: Box<str>,
    /// What the owner calls it.
    pub label: Box<str>,
}

impl KeyPool {
    /// These keys, the first of which has the first turn.
    pub fn new(list: Vec<Arc<Credential>>) -> Self {
        let turn = AtomicUsize::new(0);
        Self { list, turn }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The key at this place.
    pub fn get(&self, at: usize) -> Option<&Credential> {
        self.list.get(at).map(|key| &**key)
    }

    /// Whether they are the caller's own.
    pub fn are_own(&self) -> bool {
        self.list.first().is_some_and(|key| key.own.is_some())
    }

    /// The key of this id among the caller's own.
    pub fn find_own(&self, id: &str) -> Option<&Arc<Credential>> {
        let is_it = |key: &&Arc<Credential>| key.own.as_ref().is_some_and(|own| *own.id == *id);
        self.list.iter().find(is_it)
    }

    /// The key to use: the next one in turn that is neither tried (`tried` has its bit) nor resting, else the one
    /// that rests for the shortest time. A rest never leaves a provider without keys.
    pub fn pick(&self, tried: u64, now_ms: u64) -> usize {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let untried = |at: &usize| *at >= 64 || tried & (1 << at) == 0;
        let cools = |at: usize| self.get(at).map_or(u64::MAX, Credential::cools_until_ms);
        let count = self.list.len().max(1);
        let in_turn: Vec<usize> = (0..count)
            .map(|at| (at + turn) % count)
            .filter(untried)
            .collect();
        let ready = in_turn.iter().copied().find(|at| cools(*at) <= now_ms);
        ready
            .or_else(|| in_turn.into_iter().min_by_key(|at| cools(*at)))
            .unwrap_or(0)
    }
}

impl Credential {
    /// What is used where a provider needs no credential.
    pub fn none() -> Self {
        Self {
            secret: None,
            fingerprint: None,
            own: None,
            cool_until_ms: AtomicU64::new(0),
            failed_in_a_row: AtomicU32::new(0),
        }
    }

    /// A credential with its fingerprint under this key; `own` where it is a caller's.
    pub fn new(secret: Secret, fingerprint_key: &[u8], own: Option<ByokKey>) -> Self {
        let digest = Hmac::<Sha256>::new_from_slice(fingerprint_key).map(|mac| {
            mac.chain_update(secret.expose().as_bytes())
                .finalize()
                .into_bytes()
        });
        let hex = |digest: &[u8]| digest.iter().take(8).map(|b| format!("{b:02x}")).collect();
        Self {
            secret: Some(secret),
            fingerprint: digest.ok().map(|digest| hex(&digest)),
            own,
            ..Self::none()
        }
    }

    /// Leaves the key alone for a while, where an attempt's failure says something about it.
    pub fn failed(&self, failure: &Failure, now_ms: u64) {
        let pause_ms = match failure.kind {
            FailureKind::Status(429) => THROTTLED_MS,
            _ if failure.is_about_the_key() => REFUSED_MS,
            _ if !failure.is_retryable => return,
            _ => {
                let failed = self.failed_in_a_row.fetch_add(1, Ordering::Relaxed) + 1;
                if failed < MAX_FAILURES {
                    return;
                }
                FAILING_MS
            }
        };
        self.cool_until_ms
            .store(now_ms + pause_ms, Ordering::Relaxed);
    }

    /// An attempt with it was answered.
    pub fn answered(&self) {
        self.failed_in_a_row.store(0, Ordering::Relaxed);
        self.cool_until_ms.store(0, Ordering::Relaxed);
    }

    fn cools_until_ms(&self) -> u64 {
        self.cool_until_ms.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
#[path = "credentials_tests.rs"]
mod tests;
