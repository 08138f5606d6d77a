//! Public keys that somebody else signs tokens with, by id.
//!
//! Which algorithms a key may be used with is the key's business, never the token's: a token that names another is
//! refused, so a public key never passes as a shared secret. Source: docs/decisions.md 22, RFC 7517, RFC 8725 3.1.

use std::collections::HashMap;

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, JwkSet, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::jwt::BadToken;

/// A key set.
pub struct KeySet {
    keys: HashMap<Box<str>, JwkKey>,
}

struct JwkKey {
    algorithms: &'static [Algorithm],
    verifies: DecodingKey,
}

/// What a token says, with its times beside it.
#[derive(Deserialize)]
struct Timed<C> {
    exp: Option<f64>,
    nbf: Option<f64>,
    #[serde(flatten)]
    claims: C,
}

impl KeySet {
    /// Reads a key set. Keys without an id, for encryption, or of a kind that cannot verify are passed over.
    ///
    /// Errors: what is no key set, or has no key that could be used.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        // Key by key: one of a kind that nobody knows must not take the others with it.
        #[derive(Deserialize)]
        struct Written {
            keys: Vec<serde_json::Value>,
        }
        let written: Written =
            serde_json::from_slice(text).map_err(|error| format!("no key set: {error}"))?;
        let read = written.keys.into_iter();
        let read = read.filter_map(|key| serde_json::from_value::<Jwk>(key).ok());
        let set = JwkSet {
            keys: read.collect(),
        };
        let keys: HashMap<_, _> = set.keys.iter().filter_map(usable).collect();
        if keys.is_empty() {
            return Err("no key in it has an id and can verify signatures".to_owned());
        }
        Ok(Self { keys })
    }

    /// Whether there is a key of this id.
    pub fn holds(&self, id: &str) -> bool {
        self.keys.contains_key(id)
    }

    /// What a token claims, once its signature and its times have been checked.
    ///
    /// Errors: [`BadToken`]. Cost: one signature.
    pub fn verify<C: DeserializeOwned>(&self, token: &str, now_s: u64) -> Result<C, BadToken> {
        let id = key_id(token)?;
        let key = self.keys.get(&*id).ok_or(BadToken::UnknownKey)?;
        let header = decode_header(token).map_err(|_| BadToken::Signature)?;
        if !key.algorithms.contains(&header.alg) {
            return Err(BadToken::Signature);
        }
        let read = decode::<Timed<C>>(token, &key.verifies, &unjudged(header.alg));
        let timed = read.map_err(|_| BadToken::Signature)?.claims;
        in_time(timed.exp, timed.nbf, now_s)?;
        Ok(timed.claims)
    }
}

/// The id of the key that a token says it was signed with.
///
/// Errors: it is no token, or says nothing of a key.
pub fn key_id(token: &str) -> Result<String, BadToken> {
    let header = decode_header(token).map_err(|_| BadToken::Signature)?;
    header.kid.ok_or(BadToken::NoKeyId)
}

/// Signatures alone are judged: times are, by [`in_time`], against the time passed in.
pub(super) fn unjudged(algorithm: Algorithm) -> Validation {
    let mut rules = Validation::new(algorithm);
    rules.validate_exp = false;
    rules.validate_nbf = false;
    rules.validate_aud = false;
    rules.required_spec_claims.clear();
    rules
}

/// Whether a token counts now: `exp` has to be there, `nbf` is obeyed, and nothing is forgiven.
pub(super) fn in_time(exp: Option<f64>, nbf: Option<f64>, now_s: u64) -> Result<(), BadToken> {
    let now = now_s as f64;
    if exp.ok_or(BadToken::Endless)? <= now {
        return Err(BadToken::Expired);
    }
    if nbf.is_some_and(|nbf| nbf > now) {
        return Err(BadToken::TooEarly);
    }
    Ok(())
}

fn usable(jwk: &Jwk) -> Option<(Box<str>, JwkKey)> {
    if jwk.common.public_key_use == Some(PublicKeyUse::Encryption) {
        return None;
    }
    let of_kind = algorithms(&jwk.algorithm);
    let algorithms = match jwk.common.key_algorithm {
        None => of_kind,
        Some(named) => {
            let named: Algorithm = named.to_string().parse().ok()?;
            let at = of_kind.iter().position(|one| *one == named)?;
            of_kind.get(at..=at)?
        }
    };
    let key = JwkKey {
        algorithms,
        verifies: DecodingKey::from_jwk(jwk).ok()?,
    };
    let id = jwk.common.key_id.as_deref()?;
    (!algorithms.is_empty()).then(|| (id.into(), key))
}

/// What a key of this kind can verify. A shared secret in a published set would be none.
fn algorithms(kind: &AlgorithmParameters) -> &'static [Algorithm] {
    match kind {
        AlgorithmParameters::RSA(_) => &[
            Algorithm::RS256,
            Algorithm::RS384,
            Algorithm::RS512,
            Algorithm::PS256,
            Algorithm::PS384,
            Algorithm::PS512,
        ],
        AlgorithmParameters::EllipticCurve(key) => match key.curve {
            EllipticCurve::P256 => &[Algorithm::ES256],
            EllipticCurve::P384 => &[Algorithm::ES384],
            EllipticCurve::P521 | EllipticCurve::Ed25519 => &[],
        },
        AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => {
            &[Algorithm::EdDSA]
        }
        AlgorithmParameters::OctetKeyPair(_) | AlgorithmParameters::OctetKey(_) => &[],
    }
}

#[cfg(test)]
#[path = "jwks_tests.rs"]
mod tests;
