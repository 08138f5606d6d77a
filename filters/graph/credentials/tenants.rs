//! Finds the tenant of a credential and verifies the credential.

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

use super::claims::TenantClaims;
use super::nonces::Nonces;
use super::presented::{Basic, PresentedCredential, Signed};

/// How much the timestamp of a signature may differ from the clock. Source: docs/decisions.md 27.
const LEEWAY_MS: i64 = 300_000;

/// The kind of a credential, whether or not it is valid.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum CredentialKind {
    Absent,
    /// A public key.
    Single,
    /// An application's key, with a signature or its secret.
    App,
    Bearer,
    /// An unknown scheme, or a malformed value.
    Other,
}

/// The tenant of a request and the kind of its credential.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Identity {
    /// The tenant that the request counts for. Without one it counts for the client's address.
    pub tenant: Option<Arc<str>>,
    pub kind: CredentialKind,
}

/// The inputs that verify a credential.
#[derive(Clone, Copy)]
pub struct VerificationInputs<'r> {
    pub method: &'r str,
    /// Path and query as received, byte for byte.
    pub path_and_query: &'r str,
    /// MD5 of the whole body, present if [`Tenants::needs_body`] returned true.
    pub body_md5: Option<[u8; 16]>,
    /// Unix time.
    pub now_ms: i64,
    pub accepts_single_key: bool,
    /// The claims of the token, verified if [`Tenants::required_key_set`] names a key set.
    pub claims: Option<&'r TenantClaims>,
}

/// The tenants by their credentials. It has no `Debug`, because it holds secrets.
#[derive(Default)]
pub struct Tenants {
    single: HashMap<Box<str>, Arc<str>>,
    app: HashMap<Box<str>, App>,
    issuers: Vec<Issuer>,
}

struct App {
    tenant: Arc<str>,
    secret: Option<Secret>,
}

struct Secret {
    text: Box<str>,
    /// Absent if the text is not base64; signatures never verify then.
    mac: Option<Hmac<Sha256>>,
}

struct Issuer {
    tenant: Arc<str>,
    issuer: Box<str>,
    audience: Option<Box<str>>,
    key_set: Option<usize>,
}

impl Tenants {
    /// Adds a public key.
    pub fn add_single(&mut self, tenant: &Arc<str>, key: &str) {
        self.single.insert(key.into(), Arc::clone(tenant));
    }

    /// Adds an application's key. Without a secret, requests with this key are accepted unverified.
    pub fn add_app(&mut self, tenant: &Arc<str>, key: &str, secret: Option<&str>) {
        let app = App {
            tenant: Arc::clone(tenant),
            secret: secret.map(Secret::new),
        };
        self.app.insert(key.into(), app);
    }

    /// Adds an issuer of tokens for one audience or for any. `key_set` is the number of the key set that verifies the
    /// tokens; without one they are accepted unverified.
    pub fn add_issuer(
        &mut self,
        tenant: &Arc<str>,
        issuer: &str,
        audience: Option<&str>,
        key_set: Option<usize>,
    ) {
        self.issuers.push(Issuer {
            tenant: Arc::clone(tenant),
            issuer: issuer.into(),
            audience: audience.map(Into::into),
            key_set,
        });
    }

    /// Returns whether verification needs the body: the credential is a timely signature by an application with a known
    /// secret.
    pub fn needs_body(&self, presented: &PresentedCredential<'_>, now_ms: i64) -> bool {
        let PresentedCredential::Signed(signed) = presented else {
            return false;
        };
        let app = self.app.get(signed.key);
        app.is_some_and(|app| app.secret.is_some()) && signed_at(signed, now_ms).is_some()
    }

    /// Returns the number of the key set that must verify a token with these claims, if its issuer has one.
    pub fn required_key_set(&self, claims: &TenantClaims) -> Option<usize> {
        self.find_issuer(claims)?.key_set
    }

    /// Returns the identity of a request.
    ///
    /// A credential counts only if it is known, and verified if a secret or a key set is configured: others must not
    /// use up a tenant's window. `nonces` records the nonce of a verified signature. Cost: one look-up; for signatures
    /// and secrets a hash over a short text. Source: docs/decisions.md 27.
    pub fn identify(
        &self,
        presented: &PresentedCredential<'_>,
        inputs: &VerificationInputs<'_>,
        nonces: &Nonces,
    ) -> Identity {
        let (kind, tenant) = match presented {
            PresentedCredential::Absent => (CredentialKind::Absent, None),
            PresentedCredential::Other => (CredentialKind::Other, None),
            PresentedCredential::Single(key) => {
                (CredentialKind::Single, self.find_single(key, inputs))
            }
            PresentedCredential::Basic(basic) => (CredentialKind::App, self.find_basic(basic)),
            PresentedCredential::Signed(signed) => (
                CredentialKind::App,
                self.find_signed(signed, inputs, nonces),
            ),
            PresentedCredential::Bearer(_) => (CredentialKind::Bearer, self.find_bearer(inputs)),
        };
        Identity {
            tenant: tenant.cloned(),
            kind,
        }
    }

    fn find_single(&self, key: &str, inputs: &VerificationInputs<'_>) -> Option<&Arc<str>> {
        self.single.get(key).filter(|_| inputs.accepts_single_key)
    }

    fn find_basic(&self, basic: &Basic) -> Option<&Arc<str>> {
        let (key, secret) = basic.parts();
        let app = self.app.get(key)?;
        let is_accepted = app
            .secret
            .as_ref()
            .is_none_or(|known| known.matches(secret));
        is_accepted.then_some(&app.tenant)
    }

    fn find_signed(
        &self,
        signed: &Signed<'_>,
        inputs: &VerificationInputs<'_>,
        nonces: &Nonces,
    ) -> Option<&Arc<str>> {
        let app = self.app.get(signed.key)?;
        let at_ms = signed_at(signed, inputs.now_ms)?;
        // Nonces of unverified signatures are not recorded: anyone could use them up.
        if let Some(secret) = &app.secret {
            let is_fresh = secret.has_signed(signed, inputs)
                && nonces.spend(signed.key, signed.nonce, at_ms + LEEWAY_MS, inputs.now_ms);
            if !is_fresh {
                return None;
            }
        }
        Some(&app.tenant)
    }

    fn find_bearer(&self, inputs: &VerificationInputs<'_>) -> Option<&Arc<str>> {
        let claims = inputs.claims?;
        let issuer = self.find_issuer(claims)?;
        let is_accepted = claims.is_verified || issuer.key_set.is_none();
        is_accepted.then_some(&issuer.tenant)
    }

    /// An issuer with a matching audience takes precedence over one for any audience.
    fn find_issuer(&self, claims: &TenantClaims) -> Option<&Issuer> {
        let candidates = || {
            self.issuers
                .iter()
                .filter(|known| *known.issuer == *claims.issuer)
        };
        let named = candidates().find(|known| {
            let audience = known.audience.as_deref();
            audience.is_some_and(|wanted| claims.audiences.iter().any(|given| given == wanted))
        });
        named.or_else(|| candidates().find(|known| known.audience.is_none()))
    }
}

/// Returns the time of a signature, if it is near enough to the clock.
fn signed_at(signed: &Signed<'_>, now_ms: i64) -> Option<i64> {
    let at_ms: i64 = signed.timestamp_ms.parse().ok()?;
    let is_timely = at_ms.abs_diff(now_ms) <= LEEWAY_MS.unsigned_abs();
    is_timely.then_some(at_ms)
}

impl Secret {
    fn new(text: &str) -> Self {
        let bytes = STANDARD.decode(text).ok();
        Self {
            text: text.into(),
            mac: bytes.and_then(|bytes| Hmac::new_from_slice(&bytes).ok()),
        }
    }

    fn matches(&self, text: &str) -> bool {
        self.text.as_bytes().ct_eq(text.as_bytes()).into()
    }

    /// Source: docs/facts/graph-service.md 1.3.
    fn has_signed(&self, signed: &Signed<'_>, inputs: &VerificationInputs<'_>) -> bool {
        let (Some(mac), Some(body)) = (&self.mac, inputs.body_md5) else {
            return false;
        };
        let Ok(signature) = STANDARD.decode(signed.signature) else {
            return false;
        };
        let body = STANDARD.encode(body);
        let parts = [
            signed.key,
            inputs.method,
            inputs.path_and_query,
            signed.timestamp_ms,
            signed.nonce,
            &body,
        ];
        let mut mac = mac.clone();
        parts.iter().for_each(|part| mac.update(part.as_bytes()));
        mac.verify_slice(&signature).is_ok()
    }
}

#[cfg(test)]
#[path = "tenants_tests.rs"]
mod tests;
