//! Key sets: public keys by id, which verify tokens of other issuers.
//!
//! The key determines the algorithms, never the token: a token that names another algorithm is refused, so a public key
//! is never used as a shared secret. Source: docs/decisions.md 22, RFC 7517, RFC 8725 3.1.

use std::collections::HashMap;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, JwkSet, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::jwt::InvalidToken;

/// A key set.
pub struct KeySet {
    keys: HashMap<Box<str>, JwkKey>,
}

struct JwkKey {
    algorithms: &'static [Algorithm],
    decoding_key: DecodingKey,
}

/// The claims of a token, with its times beside them.
#[derive(Deserialize)]
struct TimedClaims<C> {
    exp: Option<f64>,
    nbf: Option<f64>,
    #[serde(flatten)]
    claims: C,
}

impl KeySet {
    /// Parses a key set. Keys without an id, for encryption, or of an unsupported type are skipped.
    ///
    /// Errors: `text` is no key set, or has no usable key.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        // Keys are parsed one by one, so that one of an unknown type does not invalidate the others.
        #[derive(Deserialize)]
        struct KeySetDocument {
            keys: Vec<Value>,
        }
        let document: KeySetDocument =
            serde_json::from_slice(text).map_err(|error| format!("no key set: {error}"))?;
        let read = document.keys.into_iter();
        let read = read.filter_map(|key| serde_json::from_value::<Jwk>(key).ok());
        let set = JwkSet {
            keys: read.collect(),
        };
        let keys: HashMap<_, _> = set.keys.iter().filter_map(to_jwk_key).collect();
        if keys.is_empty() {
            return Err("no key in it has an id and can verify signatures".to_owned());
        }
        Ok(Self { keys })
    }

    /// Returns whether the set has a key with this id.
    pub fn contains(&self, id: &str) -> bool {
        self.keys.contains_key(id)
    }

    /// Returns the claims of a token after verifying its signature and its times.
    ///
    /// Errors: [`InvalidToken`]. Cost: one signature.
    pub fn verify<C: DeserializeOwned>(&self, token: &str, now_s: u64) -> Result<C, InvalidToken> {
        let id = read_key_id(token)?;
        let key = self.keys.get(&*id).ok_or(InvalidToken::UnknownKey)?;
        let header = decode_header(token).map_err(|_| InvalidToken::Signature)?;
        if !key.algorithms.contains(&header.alg) {
            return Err(InvalidToken::Signature);
        }
        let read = decode::<TimedClaims<C>>(token, &key.decoding_key, &signature_only(header.alg));
        let timed = read.map_err(|_| InvalidToken::Signature)?.claims;
        check_times(timed.exp, timed.nbf, now_s)?;
        Ok(timed.claims)
    }
}

/// Checks that the header of a token demands no extension that this code does not know. The library ignores such
/// demands, which RFC 7515 4.1.11 forbids.
///
/// Errors: not a token; [`InvalidToken::Extension`] for `crit`, and for `b64` other than true.
pub(super) fn check_header(token: &str) -> Result<(), InvalidToken> {
    let header = token.split('.').next().unwrap_or_default();
    let header = BASE64.decode(header).map_err(|_| InvalidToken::Signature)?;
    let header: Map<String, Value> =
        serde_json::from_slice(&header).map_err(|_| InvalidToken::Signature)?;
    let is_encoded = header
        .get("b64")
        .is_none_or(|b64| *b64 == Value::Bool(true));
    match is_encoded && !header.contains_key("crit") {
        true => Ok(()),
        false => Err(InvalidToken::Extension),
    }
}

/// Returns the id of the key that the token names.
///
/// Errors: the text is no token, its header demands an extension, or it names no key.
pub fn read_key_id(token: &str) -> Result<String, InvalidToken> {
    check_header(token)?;
    let header = decode_header(token).map_err(|_| InvalidToken::Signature)?;
    header.kid.ok_or(InvalidToken::NoKeyId)
}

/// Only signatures are validated here; [`check_times`] validates times against the given clock.
pub(super) fn signature_only(algorithm: Algorithm) -> Validation {
    let mut rules = Validation::new(algorithm);
    rules.validate_exp = false;
    rules.validate_nbf = false;
    rules.validate_aud = false;
    rules.required_spec_claims.clear();
    rules
}

/// Checks that a token is valid now: `exp` is required, `nbf` is obeyed, without leeway.
pub(super) fn check_times(
    exp: Option<f64>,
    nbf: Option<f64>,
    now_s: u64,
) -> Result<(), InvalidToken> {
    let now = now_s as f64;
    if exp.ok_or(InvalidToken::NoExpiry)? <= now {
        return Err(InvalidToken::Expired);
    }
    if nbf.is_some_and(|nbf| nbf > now) {
        return Err(InvalidToken::NotYetValid);
    }
    Ok(())
}

fn to_jwk_key(jwk: &Jwk) -> Option<(Box<str>, JwkKey)> {
    if jwk.common.public_key_use == Some(PublicKeyUse::Encryption) {
        return None;
    }
    let allowed = allowed_algorithms(&jwk.algorithm);
    let algorithms = match jwk.common.key_algorithm {
        None => allowed,
        Some(named) => {
            let named: Algorithm = named.to_string().parse().ok()?;
            let at = allowed.iter().position(|one| *one == named)?;
            allowed.get(at..=at)?
        }
    };
    let key = JwkKey {
        algorithms,
        decoding_key: DecodingKey::from_jwk(jwk).ok()?,
    };
    let id = jwk.common.key_id.as_deref()?;
    (!algorithms.is_empty()).then(|| (id.into(), key))
}

/// Returns the algorithms that a key of this type may verify. A shared secret in a published set verifies nothing.
fn allowed_algorithms(kind: &AlgorithmParameters) -> &'static [Algorithm] {
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
