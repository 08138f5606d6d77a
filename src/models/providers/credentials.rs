//! Credentials of one provider: their owner, their order of use, and their cool-down after failures.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use filters::accounts::OwnCredentialKind;
use filters::fault::Fault;
use filters::models::wires::{Failure, FailureKind};
use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderName, HeaderValue};
use sha2::Sha256;

use crate::cloud_credentials::CredentialSource;
use crate::config::Secret;

/// The cool-down of a refused key.
const REFUSED_MS: u64 = 300_000;
/// The number of other failures in a row after which a key cools down. Source: docs/facts/model-gateway.md 4.3.
const MAX_FAILURES: u32 = 3;
/// The cool-down of a key after [`MAX_FAILURES`].
const FAILING_MS: u64 = 30_000;

/// Stands for the account of the caller in state of providers.
const PASSED_ID: &str = "caller";

/// The keys of one provider that one caller's requests may use.
#[derive(Default)]
pub struct KeyPool {
    credentials: Vec<Arc<Credential>>,
    turn: AtomicUsize,
}

/// A credential and its health.
pub struct Credential {
    /// The secret; `None` if the provider needs none.
    pub secret: Option<Secret>,
    /// 16 hex digits that identify the secret without revealing it. Source: docs/decisions.md 3.
    pub fingerprint: Option<Arc<str>>,
    /// The identity of a BYOK key; `None` for another one.
    pub byok: Option<ByokKey>,
    /// What it is, if the caller has brought it with the request.
    pub passed: Option<OwnCredentialKind>,
    /// How requests carry it, once one has needed that.
    form: OnceLock<Box<CredentialForm>>,
    /// The end of its cool-down, in milliseconds of the monotonic clock.
    cool_until_ms: AtomicU64,
    failures_in_a_row: AtomicU32,
    /// The latest end of its rests, so that a key that has none is not locked.
    last_rest_ms: AtomicU64,
    /// Until when it rests, by the id of the candidate: providers limit each model on its own.
    rests: Mutex<HashMap<u64, u64>>,
}

/// How requests to a provider carry a credential. A key belongs to one provider, so it has one form, and another for each
/// time that a reload changes how its provider takes credentials.
struct CredentialForm {
    /// The [`FormId`] of its provider.
    id: FormId,
    /// The source of what requests carry in place of the secret, once a request has needed it; `None`: there is none.
    source: OnceLock<Option<Arc<CredentialSource>>>,
    /// Its header, once a request has needed it.
    header: OnceLock<(HeaderName, HeaderValue)>,
    next: OnceLock<Box<Self>>,
}

/// Names how a provider takes credentials. Providers that take them differently have different ones.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FormId(u64);

impl FormId {
    /// Returns one that no provider has.
    pub fn unused() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl CredentialForm {
    fn new(id: FormId) -> Box<Self> {
        Box::new(Self {
            id,
            source: OnceLock::new(),
            header: OnceLock::new(),
            next: OnceLock::new(),
        })
    }
}

/// The identity of a BYOK key.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ByokKey {
    /// `pk_` and a uuid.
    pub id: Arc<str>,
    pub label: Arc<str>,
}

impl KeyPool {
    /// Creates a pool. The first credential has the first turn.
    pub fn new(credentials: Vec<Arc<Credential>>) -> Self {
        let turn = AtomicUsize::new(0);
        Self { credentials, turn }
    }

    /// Returns a pool of the same keys, which have not failed yet. Those that a previous pool has are its own.
    pub fn afresh(&self, previous: Option<&Self>) -> Self {
        let keys = self.credentials.iter().map(|key| {
            let known = previous.and_then(|pool| pool.find_secret(key.secret.as_ref()));
            known.map_or_else(|| Arc::new(key.afresh()), Arc::clone)
        });
        Self::new(keys.collect())
    }

    /// Returns the platform key of this secret; `None` is that of a provider that needs no key, or has a source.
    pub(super) fn find_secret(&self, secret: Option<&Secret>) -> Option<&Arc<Credential>> {
        let mut keys = self.credentials.iter();
        keys.find(|key| !key.is_byok() && key.secret.as_ref() == secret)
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.credentials.len()
    }

    /// Returns whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.credentials.is_empty()
    }

    /// Returns the key at an index.
    pub fn get(&self, index: usize) -> Option<&Credential> {
        self.credentials.get(index).map(|key| &**key)
    }

    /// Returns whether the provider bills the organization or the caller for them.
    pub fn is_byok(&self) -> bool {
        let first = self.credentials.first();
        first.is_some_and(|key| key.is_byok())
    }

    /// Returns what the caller has brought with the request; `None`: these are keys that are stored.
    pub fn passed(&self) -> Option<OwnCredentialKind> {
        self.credentials.first().and_then(|key| key.passed)
    }

    /// Returns the platform key with this fingerprint; `None` is that of a provider that needs no key.
    pub fn find(&self, fingerprint: Option<&str>) -> Option<&Arc<Credential>> {
        let mut keys = self.credentials.iter();
        keys.find(|key| !key.is_byok() && key.fingerprint.as_deref() == fingerprint)
    }

    /// Returns the BYOK key of this id.
    pub fn find_byok(&self, id: &str) -> Option<&Arc<Credential>> {
        let has_id = |key: &&Arc<Credential>| key.byok.as_ref().is_some_and(|byok| *byok.id == *id);
        self.credentials.iter().find(has_id)
    }

    /// Returns until when all keys rest or cool down for a candidate; `None`: one is ready.
    pub fn rest_until_ms(&self, candidate: u64, now_ms: u64) -> Option<u64> {
        let ends = self.credentials.iter();
        let first = ends.map(|key| key.rest_until_ms(candidate, now_ms)).min()?;
        (first > now_ms).then_some(first)
    }

    /// Returns the index of the key to use for a candidate. Keys take turns; keys with their bit in `tried` and keys that
    /// rest or cool down are passed over. If all others do, it returns the one with the earliest end, so a cool-down never
    /// leaves a provider without keys.
    pub fn pick(&self, tried: u64, candidate: u64, now_ms: u64) -> usize {
        if self.credentials.len() < 2 {
            return 0;
        }
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let is_untried = |index: &usize| *index >= 64 || tried & (1 << index) == 0;
        let rest_until_ms = |index: usize| {
            let key = self.get(index);
            key.map_or(u64::MAX, |key| key.rest_until_ms(candidate, now_ms))
        };
        let count = self.credentials.len();
        let in_turn = || {
            (0..count)
                .map(|index| (index + turn) % count)
                .filter(is_untried)
        };
        let ready = in_turn().find(|index| rest_until_ms(*index) <= now_ms);
        ready
            .or_else(|| in_turn().min_by_key(|index| rest_until_ms(*index)))
            .unwrap_or(0)
    }
}

impl Credential {
    /// Returns whether it is not the platform's: the provider bills another one for it.
    pub fn is_byok(&self) -> bool {
        self.byok.is_some() || self.passed.is_some()
    }

    /// Returns what tells the accounts apart that state of providers belongs to; `None` for a platform key.
    pub fn own_id(&self) -> Option<&str> {
        let passed = self.passed.map(|_| PASSED_ID);
        self.byok.as_ref().map(|own| &*own.id).or(passed)
    }

    /// Returns the credential of a provider that needs none.
    pub fn none() -> Self {
        Self {
            secret: None,
            fingerprint: None,
            byok: None,
            passed: None,
            form: OnceLock::new(),
            cool_until_ms: AtomicU64::new(0),
            failures_in_a_row: AtomicU32::new(0),
            last_rest_ms: AtomicU64::new(0),
            rests: Mutex::default(),
        }
    }

    fn afresh(&self) -> Self {
        let source = self.form.get().and_then(|form| {
            let source = form.source.get()?.clone()?;
            Some((form.id, source))
        });
        Self {
            secret: self.secret.clone(),
            fingerprint: self.fingerprint.clone(),
            byok: self.byok.clone(),
            passed: self.passed,
            ..source.map_or_else(Self::none, |(form, source)| Self::from_source(source, form))
        }
    }

    /// Returns a credential that a source gives to providers of this form.
    pub fn from_source(source: Arc<CredentialSource>, form: FormId) -> Self {
        let credential = Self::none();
        _ = credential.form(form).source.set(Some(source));
        credential
    }

    /// Returns how a provider of this form takes it.
    fn form(&self, id: FormId) -> &CredentialForm {
        let mut form = self.form.get_or_init(|| CredentialForm::new(id));
        while form.id != id {
            form = form.next.get_or_init(|| CredentialForm::new(id));
        }
        form
    }

    /// Creates the credential that a caller has brought with a request. It has no fingerprint, because nothing of it is shown.
    pub fn passed(secret: Secret, kind: OwnCredentialKind) -> Self {
        Self {
            secret: Some(secret),
            passed: Some(kind),
            ..Self::none()
        }
    }

    /// Creates a credential with its fingerprint under this key; `byok` identifies a BYOK key.
    pub fn new(secret: Secret, fingerprint_key: &[u8], byok: Option<ByokKey>) -> Self {
        let digest = Hmac::<Sha256>::new_from_slice(fingerprint_key).map(|mac| {
            mac.chain_update(secret.expose().as_bytes())
                .finalize()
                .into_bytes()
        });
        let hex = |digest: &[u8]| -> String {
            digest.iter().take(8).map(|b| format!("{b:02x}")).collect()
        };
        Self {
            secret: Some(secret),
            fingerprint: digest.ok().map(|digest| hex(&digest).into()),
            byok,
            ..Self::none()
        }
    }

    /// Returns its source for providers of this form. `make` makes that of an organization's key.
    pub(super) fn source(
        &self,
        form: FormId,
        make: impl FnOnce(&Secret) -> Option<CredentialSource>,
    ) -> Option<&Arc<CredentialSource>> {
        let own = || self.secret.as_ref().filter(|_| self.byok.is_some());
        let source = &self.form(form).source;
        let source = source.get_or_init(|| own().and_then(make).map(Arc::new));
        source.as_ref()
    }

    /// Returns its header for providers of this form, which `make` makes of the secret; `None` if there is no secret.
    pub(super) fn header(
        &self,
        form: FormId,
        make: impl FnOnce(&str) -> Result<(HeaderName, HeaderValue), Fault>,
    ) -> Result<Option<&(HeaderName, HeaderValue)>, Fault> {
        let Some(secret) = &self.secret else {
            return Ok(None);
        };
        let known = &self.form(form).header;
        if let Some(header) = known.get() {
            return Ok(Some(header));
        }
        let header = make(secret.expose())?;
        Ok(Some(known.get_or_init(|| header)))
    }

    /// Lets the key rest for a candidate until this time, because its limit there is used up.
    pub fn rest(&self, candidate: u64, until_ms: u64) {
        let mut rests = self.rests.lock().unwrap_or_else(PoisonError::into_inner);
        rests.insert(candidate, until_ms);
        self.last_rest_ms.fetch_max(until_ms, Ordering::Relaxed);
    }

    /// Returns whether it rests or cools down for a candidate.
    pub fn rests(&self, candidate: u64, now_ms: u64) -> bool {
        self.rest_until_ms(candidate, now_ms) > now_ms
    }

    /// Records a failed attempt. The key cools down if the failure is its fault or repeats; one that is throttled rests
    /// instead.
    pub fn record_failure(&self, failure: &Failure, now_ms: u64) {
        let cool_down_ms = match failure.kind {
            FailureKind::Status(429) if !failure.blames_key => return,
            // The source fetches anew, and rests by itself.
            _ if self.has_source() && failure.is_about_the_key() => return,
            _ if failure.is_about_the_key() => REFUSED_MS,
            _ if !failure.is_retryable => return,
            _ => {
                let failures = self.failures_in_a_row.fetch_add(1, Ordering::Relaxed) + 1;
                if failures < MAX_FAILURES {
                    return;
                }
                FAILING_MS
            }
        };
        self.cool_until_ms
            .store(now_ms + cool_down_ms, Ordering::Relaxed);
    }

    fn has_source(&self) -> bool {
        let mut form = self.form.get();
        while let Some(known) = form {
            if known.source.get().is_some_and(Option::is_some) {
                return true;
            }
            form = known.next.get();
        }
        false
    }

    /// Records a successful attempt, which ends the cool-down.
    pub fn record_success(&self) {
        self.failures_in_a_row.store(0, Ordering::Relaxed);
        self.cool_until_ms.store(0, Ordering::Relaxed);
    }

    /// Returns until when it rests or cools down for a candidate; a past time: it is ready.
    fn rest_until_ms(&self, candidate: u64, now_ms: u64) -> u64 {
        let cool_until_ms = self.cool_until_ms.load(Ordering::Relaxed);
        if self.last_rest_ms.load(Ordering::Relaxed) <= now_ms {
            return cool_until_ms;
        }
        let rests = self.rests.lock().unwrap_or_else(PoisonError::into_inner);
        let rest = rests.get(&candidate).copied().unwrap_or_default();
        cool_until_ms.max(rest)
    }
}

#[cfg(test)]
#[path = "credentials_tests.rs"]
mod tests;
