//! Tokens of the decision endpoints: HS256, issued and checked against a time that is passed in.
//!
//! Source: docs/decisions.md 22, docs/facts/decision-engine.md E. The algorithm is bound to the key: a token that
//! names another is refused.

use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, decode, encode};
use serde::{Deserialize, Serialize};

use super::jwks::{in_time, unjudged};

/// Keys of tokens. It has no `Debug`: they are secrets.
pub struct JwtTokens {
    signs: EncodingKey,
    verify: Vec<DecodingKey>,
    ttl_s: u64,
}

/// Why a token does not count.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BadToken {
    /// Nothing was sent.
    Empty,
    /// Not a token of ours: malformed, of another algorithm, or signed by another key.
    Signature,
    /// It is past its end.
    Expired,
    /// It has no end.
    Endless,
    /// It does not count yet.
    TooEarly,
    /// It names no SDK keys.
    NoKeys,
    /// It does not say which key signed it.
    NoKeyId,
    /// The key that it names is not among those that are published.
    UnknownKey,
}

impl BadToken {
    /// What the caller is told.
    pub fn message(self) -> &'static str {
        match self {
            Self::Empty => "empty token",
            Self::Signature => "signature is invalid",
            Self::Expired | Self::Endless => "token expired",
            Self::TooEarly => "token is not valid yet",
            Self::NoKeys => "invalid claims: sdk_keys not found, or have the wrong type",
            Self::NoKeyId => "the token names no key: kid is required",
            Self::UnknownKey => "the token's key is not known here",
        }
    }
}

#[derive(Serialize)]
struct Issued<'a> {
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
    /// Keys as bytes: the first signs, all verify. `None` without any.
    pub fn new(keys: &[Vec<u8>], ttl_s: u64) -> Option<Self> {
        Some(Self {
            signs: EncodingKey::from_secret(keys.first()?),
            verify: keys
                .iter()
                .map(|key| DecodingKey::from_secret(key))
                .collect(),
            ttl_s,
        })
    }

    /// A token for these SDK keys, and for how many seconds it is good.
    pub fn issue(&self, sdk_keys: &[String], now_s: u64) -> Option<(String, u64)> {
        let claims = Issued {
            iss: "Weirgate",
            sdk_keys,
            exp: now_s.saturating_add(self.ttl_s),
        };
        let token = encode(&Header::new(Algorithm::HS256), &claims, &self.signs).ok()?;
        Some((token, self.ttl_s))
    }

    /// The SDK keys that a token is good for.
    ///
    /// Errors: [`BadToken`]. Cost: one HMAC-SHA256 per key.
    pub fn verify(&self, token: &str, now_s: u64) -> Result<Vec<String>, BadToken> {
        if token.is_empty() {
            return Err(BadToken::Empty);
        }
        let rules = unjudged(Algorithm::HS256);
        let mut keys = self.verify.iter();
        let found = keys.find_map(|key| decode::<JwtClaims>(token, key, &rules).ok());
        let claims = found.ok_or(BadToken::Signature)?.claims;
        in_time(claims.exp, claims.nbf, now_s)?;
        claims.sdk_keys.ok_or(BadToken::NoKeys)
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
        assert_eq!(new.verify(&token, 160), Err(BadToken::Expired));
        assert_eq!(
            tokens(&[b"new"]).verify(&token, 100),
            Err(BadToken::Signature)
        );
    }

    #[test]
    fn what_is_wrong_with_a_token_is_told() {
        let ours = tokens(&[b"key"]);
        let hs256 = Header::new(Algorithm::HS256);
        let keys = serde_json::json!({"sdk_keys": ["a"], "exp": 200});
        let none = "eyJhbGciOiJub25lIn0.eyJzZGtfa2V5cyI6WyJhIl0sImV4cCI6MjAwfQ.";
        for (token, expected) in [
            (String::new(), BadToken::Empty),
            ("a.b".to_owned(), BadToken::Signature),
            (none.to_owned(), BadToken::Signature),
            (
                signed(&keys, &Header::new(Algorithm::HS384), b"key"),
                BadToken::Signature,
            ),
            (
                signed(&serde_json::json!({"sdk_keys": ["a"]}), &hs256, b"key"),
                BadToken::Endless,
            ),
            (
                signed(&serde_json::json!({"exp": 200}), &hs256, b"key"),
                BadToken::NoKeys,
            ),
            (
                signed(
                    &serde_json::json!({"sdk_keys": [], "exp": 200, "nbf": 150}),
                    &hs256,
                    b"key",
                ),
                BadToken::TooEarly,
            ),
        ] {
            assert_eq!(ours.verify(&token, 100), Err(expected), "{token}");
        }
    }
}
