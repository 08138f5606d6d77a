//! Whose credential it is: the snapshot of all tenants, and what it takes to believe one.

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

/// How far the moment of a signature may be off. Source: docs/decisions.md 27.
const LEEWAY_MS: i64 = 300_000;

/// What kind of credential came, whether or not it counts.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum CredentialKind {
    /// None.
    Nothing,
    /// A public key.
    Single,
    /// An application's key, signed or with its secret.
    App,
    /// A token.
    Bearer,
    /// Something else.
    Other,
}

/// Whose request it is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Identity {
    /// The tenant it counts for; without one it counts for the client's address.
    pub tenant: Option<Arc<str>>,
    /// What came.
    pub class: CredentialKind,
}

/// What a credential is checked against, beside itself.
#[derive(Clone, Copy)]
pub struct VerificationInputs<'r> {
    /// As the request line has it.
    pub method: &'r str,
    /// As the request line has it, byte for byte.
    pub path_and_query: &'r str,
    /// MD5 of the whole body, where [`Tenants::needs_body`] asked for it.
    pub body_md5: Option<[u8; 16]>,
    /// Unix time.
    pub now_ms: i64,
    /// Whether a public key is a credential for this operation.
    pub takes_single_key: bool,
    /// What the token says, once [`Tenants::needs_key_set`] was answered.
    pub claims: Option<&'r TenantClaims>,
}

/// The tenants by their credentials. It has no `Debug`: it holds secrets.
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
    /// Absent where the text is no base64: then nothing can be signed with it.
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

    /// Adds an application's key; without a secret it is believed unseen.
    pub fn add_app(&mut self, tenant: &Arc<str>, key: &str, secret: Option<&str>) {
        let app = App {
            tenant: Arc::clone(tenant),
            secret: secret.map(Secret::new),
        };
        self.app.insert(key.into(), app);
    }

    /// Adds an issuer of tokens, for one audience or any. `key_set` numbers what verifies them; without one they are
    /// believed unseen.
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

    /// Whether believing this needs the body: it is signed, by an application whose secret we have.
    pub fn needs_body(&self, presented: &PresentedCredential<'_>) -> bool {
        let PresentedCredential::Signed(signed) = presented else {
            return false;
        };
        let app = self.app.get(signed.key);
        app.is_some_and(|app| app.secret.is_some())
    }

    /// The number of the key set that has to verify a token that says this, if any has to.
    pub fn needs_key_set(&self, claims: &TenantClaims) -> Option<usize> {
        self.issuer(claims)?.key_set
    }

    /// Whose request it is.
    ///
    /// A credential counts only if it is known, and verified where a secret or a key set is configured; a tenant's
    /// window is nobody else's to use up. `nonces` learns the nonce of a signature that was verified. Cost: one
    /// look-up; for signatures and secrets a hash over a short text. Source: docs/decisions.md 27.
    pub fn identify(
        &self,
        presented: &PresentedCredential<'_>,
        proof: &VerificationInputs<'_>,
        nonces: &Nonces,
    ) -> Identity {
        let (class, tenant) = match presented {
            PresentedCredential::Nothing => (CredentialKind::Nothing, None),
            PresentedCredential::Other => (CredentialKind::Other, None),
            PresentedCredential::Single(key) => (CredentialKind::Single, self.single(key, proof)),
            PresentedCredential::Basic(basic) => (CredentialKind::App, self.basic(basic)),
            PresentedCredential::Signed(signed) => {
                (CredentialKind::App, self.signed(signed, proof, nonces))
            }
            PresentedCredential::Bearer(_) => (CredentialKind::Bearer, self.bearer(proof)),
        };
        Identity {
            tenant: tenant.cloned(),
            class,
        }
    }

    fn single(&self, key: &str, proof: &VerificationInputs<'_>) -> Option<&Arc<str>> {
        self.single.get(key).filter(|_| proof.takes_single_key)
    }

    fn basic(&self, basic: &Basic) -> Option<&Arc<str>> {
        let (key, secret) = basic.parts();
        let app = self.app.get(key)?;
        let is_believed = app.secret.as_ref().is_none_or(|known| known.is(secret));
        is_believed.then_some(&app.tenant)
    }

    fn signed(
        &self,
        signed: &Signed<'_>,
        proof: &VerificationInputs<'_>,
        nonces: &Nonces,
    ) -> Option<&Arc<str>> {
        let app = self.app.get(signed.key)?;
        let at_ms: i64 = signed.timestamp_ms.parse().ok()?;
        if at_ms.abs_diff(proof.now_ms) > LEEWAY_MS.unsigned_abs() {
            return None;
        }
        // Without a secret anyone could spend nonces, so they are not looked at.
        if let Some(secret) = &app.secret {
            let is_fresh = secret.has_signed(signed, proof)
                && nonces.spend(signed.key, signed.nonce, at_ms + LEEWAY_MS, proof.now_ms);
            if !is_fresh {
                return None;
            }
        }
        Some(&app.tenant)
    }

    fn bearer(&self, proof: &VerificationInputs<'_>) -> Option<&Arc<str>> {
        let claims = proof.claims?;
        let issuer = self.issuer(claims)?;
        let is_believed = claims.is_verified || issuer.key_set.is_none();
        is_believed.then_some(&issuer.tenant)
    }

    /// An issuer that names an audience goes before one for any.
    fn issuer(&self, claims: &TenantClaims) -> Option<&Issuer> {
        let own = || {
            self.issuers
                .iter()
                .filter(|known| *known.issuer == *claims.issuer)
        };
        let named = own().find(|known| {
            let audience = known.audience.as_deref();
            audience.is_some_and(|wanted| claims.audiences.iter().any(|given| given == wanted))
        });
        named.or_else(|| own().find(|known| known.audience.is_none()))
    }
}

impl Secret {
    fn new(text: &str) -> Self {
        let bytes = STANDARD.decode(text).ok();
        Self {
            text: text.into(),
            mac: bytes.and_then(|bytes| Hmac::new_from_slice(&bytes).ok()),
        }
    }

    fn is(&self, text: &str) -> bool {
        self.text.as_bytes().ct_eq(text.as_bytes()).into()
    }

    /// Source: docs/facts/graph-service.md 1.3.
    fn has_signed(&self, signed: &Signed<'_>, proof: &VerificationInputs<'_>) -> bool {
        let (Some(mac), Some(body)) = (&self.mac, proof.body_md5) else {
            return false;
        };
        let Ok(signature) = STANDARD.decode(signed.signature) else {
            return false;
        };
        let body = STANDARD.encode(body);
        let parts = [
            signed.key,
            proof.method,
            proof.path_and_query,
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
