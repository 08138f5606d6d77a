//! Tokens of the decision endpoints: HS256, issued and verified against a given time.
//!
//! Source: docs/decisions.md 22, docs/facts/decision-engine.md E. The algorithm is bound to the key: a token that names
//! another is refused.

use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, decode, encode};
use serde::{Deserialize, Serialize};

use super::jwks::{check_times, signature_only};

/// The keys of tokens. It has no `Debug`, because the keys are secrets.
pub struct JwtTokens {
    signing_key: EncodingKey,
    verifying_keys: Vec<DecodingKey>,
    ttl_s: u64,
}

/// Why a token is invalid.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum InvalidToken {
    /// The token is empty.
    Empty,
    /// Malformed, another algorithm, or signed by another key.
    Signature,
    /// It has expired.
    Expired,
    /// It has no expiry.
    NoExpiry,
    /// It is not valid yet.
    NotYetValid,
    /// It names no SDK keys.
    NoSdkKeys,
    /// It does not name the key that signed it.
    NoKeyId,
    /// It names a key that is not published.
    UnknownKey,
}

impl InvalidToken {
    /// Returns the message for the caller.
    pub fn message(self) -> &'static str {
        match self {
            Self::Empty => "empty token",
            Self::Signature => "signature is invalid",
            Self::Expired | Self::NoExpiry => "token expired",
            Self::NotYetValid => "token is not valid yet",
            Self::NoSdkKeys => "invalid claims: sdk_keys not found, or have the wrong type",
            Self::NoKeyId => "the token names no key: kid is required",
            Self::UnknownKey => "the token's key is not known here",
        }
    }
}

#[derive(Serialize)]
struct IssuedClaims<'a> {
    iss: &'a str,
    sdk_keys: &'a [String],
    exp: u64,
}

#[derive(Deserialize)]
struct JwtClaims {
    exp: Option<f64>,
    nbf: Option<f64>,
    sdk_keys: Option<Vec<String>>,
}

impl JwtTokens {
    /// Creates tokens from keys: the first signs, all verify. Returns `None` without keys.
    pub fn new(keys: &[Vec<u8>], ttl_s: u64) -> Option<Self> {
        Some(Self {
            signing_key: EncodingKey::from_secret(keys.first()?),
            verifying_keys: keys
                .iter()
                .map(|key| DecodingKey::from_secret(key))
                .collect(),
            ttl_s,
        })
    }

    /// Issues a token for these SDK keys. Returns it with its lifetime in seconds.
    pub fn issue(&self, sdk_keys: &[String], now_s: u64) -> Option<(String, u64)> {
        let claims = IssuedClaims {
            iss: "Weirgate",
            sdk_keys,
            exp: now_s.saturating_add(self.ttl_s),
        };
        let token = encode(&Header::new(Algorithm::HS256), &claims, &self.signing_key).ok()?;
        Some((token, self.ttl_s))
    }

    /// Returns the SDK keys that a token is valid for.
    ///
    /// Errors: [`InvalidToken`]. Cost: one HMAC-SHA256 per key.
    pub fn verify(&self, token: &str, now_s: u64) -> Result<Vec<String>, InvalidToken> {
        if token.is_empty() {
            return Err(InvalidToken::Empty);
        }
        let rules = signature_only(Algorithm::HS256);
        let mut keys = self.verifying_keys.iter();
        let found = keys.find_map(|key| decode::<JwtClaims>(token, key, &rules).ok());
        let claims = found.ok_or(InvalidToken::Signature)?.claims;
        check_times(claims.exp, claims.nbf, now_s)?;
        claims.sdk_keys.ok_or(InvalidToken::NoSdkKeys)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;

    fn tokens(keys: &[&[u8]]) -> JwtTokens {
        let keys: Vec<Vec<u8>> = keys.iter().map(|key| key.to_vec()).collect();
        JwtTokens::new(&keys, 60).unwrap()
    }

    fn signed(claims: &serde_json::Value, header: &Header, key: &[u8]) -> String {
        encode(header, claims, &EncodingKey::from_secret(key)).unwrap()
    }

    #[test]
    fn a_token_is_good_until_its_end_and_by_every_key() {
        let (old, new) = (tokens(&[b"old"]), tokens(&[b"new", b"old"]));
        let keys = ["a".to_owned(), "b".to_owned()];
        let (token, ttl) = old.issue(&keys, 100).unwrap();
        assert_eq!(ttl, 60);
        assert_eq!(new.verify(&token, 159).unwrap(), keys);
        assert_eq!(new.verify(&token, 160), Err(InvalidToken::Expired));
        assert_eq!(
            tokens(&[b"new"]).verify(&token, 100),
            Err(InvalidToken::Signature)
        );
    }

    #[test]
    fn what_is_wrong_with_a_token_is_told() {
        let ours = tokens(&[b"key"]);
        let hs256 = Header::new(Algorithm::HS256);
        let keys = serde_json::json!({"sdk_keys": ["a"], "exp": 200});
        let none = "eyJhbGciOiJub25lIn0.eyJzZGtfa2V5cyI6WyJhIl0sImV4cCI6MjAwfQ.";
        for (token, expected) in [
            (String::new(), InvalidToken::Empty),
            ("a.b".to_owned(), InvalidToken::Signature),
            (none.to_owned(), InvalidToken::Signature),
            (
                signed(&keys, &Header::new(Algorithm::HS384), b"key"),
                InvalidToken::Signature,
            ),
            (
                signed(&serde_json::json!({"sdk_keys": ["a"]}), &hs256, b"key"),
                InvalidToken::NoExpiry,
            ),
            (
                signed(&serde_json::json!({"exp": 200}), &hs256, b"key"),
                InvalidToken::NoSdkKeys,
            ),
            (
                signed(
                    &serde_json::json!({"sdk_keys": [], "exp": 200, "nbf": 150}),
                    &hs256,
                    b"key",
                ),
                InvalidToken::NotYetValid,
            ),
        ] {
            assert_eq!(ours.verify(&token, 100), Err(expected), "{token}");
        }
    }
}
