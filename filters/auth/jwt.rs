//! Tokens of the decision endpoints: HS256, issued and verified against a given time.
//!
//! Source: docs/decisions.md 22, docs/facts/decision-engine.md E. The algorithm is bound to the key: a token that names
//! another is refused.

use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, decode, encode};
use serde::{Deserialize, Serialize};

use super::claims::{ClaimRules, Texts};
use super::jwks::{check_header, check_times, signature_only};

/// The issuer of our tokens, unless another is configured.
const ISSUER: &str = "Weirgate";

/// The keys of tokens. The type has no `Debug`, because the keys are secrets.
pub struct JwtTokens {
    claim_rules: ClaimRules,
    signing_key: EncodingKey,
    verifying_keys: Vec<DecodingKey>,
    ttl_s: u64,
}

/// Why a token is invalid.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum InvalidToken {
    Empty,
    /// The token is malformed, uses another algorithm, or was signed by another key.
    Signature,
    /// The header demands an extension.
    Extension,
    Issuer,
    Audience,
    Expired,
    NoExpiry,
    NotYetValid,
    /// The token names no SDK keys.
    NoSdkKeys,
    /// The token does not name the key that signed it.
    NoKeyId,
    UnknownKey,
}

impl InvalidToken {
    /// Returns the message for the caller.
    pub fn message(self) -> &'static str {
        match self {
            Self::Empty => "empty token",
            Self::Signature => "signature is invalid",
            Self::Extension => {
                "the token's header demands an extension: crit and b64 are not supported"
            }
            Self::Issuer => "the token has another issuer",
            Self::Audience => "the token is for another audience",
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
    #[serde(skip_serializing_if = "Option::is_none")]
    aud: Option<&'a str>,
    sdk_keys: &'a [String],
    exp: u64,
}

#[derive(Deserialize)]
struct JwtClaims {
    iss: Option<String>,
    aud: Option<Texts>,
    exp: Option<f64>,
    nbf: Option<f64>,
    sdk_keys: Option<Vec<String>>,
}

impl JwtTokens {
    /// Creates tokens from keys: the first signs, all verify. Returns `None` without keys.
    pub fn new(keys: &[Vec<u8>], ttl_s: u64, claim_rules: ClaimRules) -> Option<Self> {
        Some(Self {
            claim_rules,
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
            iss: self.claim_rules.issuer.as_deref().unwrap_or(ISSUER),
            aud: self.claim_rules.audience.as_deref(),
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
        check_header(token)?;
        let rules = signature_only(Algorithm::HS256);
        let mut keys = self.verifying_keys.iter();
        let found = keys.find_map(|key| decode::<JwtClaims>(token, key, &rules).ok());
        let claims = found.ok_or(InvalidToken::Signature)?.claims;
        check_times(claims.exp, claims.nbf, now_s)?;
        let audience = claims.aud.as_ref();
        self.claim_rules.check(claims.iss.as_deref(), audience)?;
        claims.sdk_keys.ok_or(InvalidToken::NoSdkKeys)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use base64::Engine;
    use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;

    use super::*;

    fn tokens(keys: &[&[u8]]) -> JwtTokens {
        let keys: Vec<Vec<u8>> = keys.iter().map(|key| key.to_vec()).collect();
        JwtTokens::new(&keys, 60, ClaimRules::default()).unwrap()
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

    /// RFC 7515 4.1.11: who does not understand a critical extension must refuse the token. RFC 7797: so is an unencoded
    /// payload.
    #[test]
    fn a_header_that_demands_an_extension_is_refused() {
        let ours = tokens(&[b"key"]);
        let claims = serde_json::json!({"sdk_keys": ["a"], "exp": 200});
        let signing = EncodingKey::from_secret(b"key");
        for (header, expected) in [
            (r#"{"alg":"HS256","b64":true}"#, None),
            (
                r#"{"alg":"HS256","crit":["exp"]}"#,
                Some(InvalidToken::Extension),
            ),
            (
                r#"{"alg":"HS256","crit":[]}"#,
                Some(InvalidToken::Extension),
            ),
            (
                r#"{"alg":"HS256","crit":null}"#,
                Some(InvalidToken::Extension),
            ),
            (
                r#"{"alg":"HS256","b64":false}"#,
                Some(InvalidToken::Extension),
            ),
            (
                r#"{"alg":"HS256","b64":null}"#,
                Some(InvalidToken::Extension),
            ),
            (
                r#"{"alg":"HS256","crit":["b64"],"b64":false}"#,
                Some(InvalidToken::Extension),
            ),
            (r#"["HS256"]"#, Some(InvalidToken::Signature)),
        ] {
            let encode = |text: &str| BASE64.encode(text);
            let signed = format!("{}.{}", encode(header), encode(&claims.to_string()));
            let algorithm = Algorithm::HS256;
            let mac = jsonwebtoken::crypto::sign(signed.as_bytes(), &signing, algorithm).unwrap();
            let found = ours.verify(&format!("{signed}.{mac}"), 100).err();
            assert_eq!(found, expected, "{header}");
        }
    }

    #[test]
    fn issuer_and_audience_count_where_they_are_set_and_our_tokens_carry_them() {
        let rules = ClaimRules {
            issuer: Some("https://id".into()),
            audience: Some("flags".into()),
        };
        let ours = JwtTokens::new(&[b"key".to_vec()], 60, rules).unwrap();
        let keys = ["a".to_owned()];
        let (token, _) = ours.issue(&keys, 100).unwrap();
        assert_eq!(ours.verify(&token, 100).unwrap(), keys);
        let hs256 = Header::new(Algorithm::HS256);
        for (issuer, audience, expected) in [
            ("\"https://id\"", "[\"x\",\"flags\"]", None),
            ("\"https://id\"", "\"flags\"", None),
            ("\"https://other\"", "\"flags\"", Some(InvalidToken::Issuer)),
            ("null", "\"flags\"", Some(InvalidToken::Issuer)),
            ("\"https://id\"", "[\"flag\"]", Some(InvalidToken::Audience)),
            ("\"https://id\"", "null", Some(InvalidToken::Audience)),
            ("\"https://id\"", "7", Some(InvalidToken::Signature)),
        ] {
            let claims =
                format!("{{\"sdk_keys\":[\"a\"],\"exp\":200,\"iss\":{issuer},\"aud\":{audience}}}");
            let claims = serde_json::from_str(&claims).unwrap();
            let found = ours.verify(&signed(&claims, &hs256, b"key"), 100).err();
            assert_eq!(found, expected, "{claims}");
        }
    }
}
