//! Credentials of the decision endpoints: an SDK key, a token, or both.
//!
//! A protocol decides which of them are required. Their formats are the same for all protocols.
//! Source: docs/decision-agent.md 5, docs/decisions.md 20, 21.

use http::HeaderMap;
use http::header::{AUTHORIZATION, HeaderName};
use serde::Deserialize;

use crate::auth::claims::{ClaimRules, Texts};
use crate::auth::jwks::{KeySet, read_key_id};
use crate::auth::jwt::{InvalidToken, JwtTokens};
use crate::fault::{Fault, FaultKind};

/// The longest part of an SDK key.
const MAX_KEY_BYTES: usize = 128;

/// The places of SDK keys, and the tokens that count.
pub struct SdkRules {
    pub headers: Vec<HeaderName>,
    /// Our tokens, where clients are configured.
    pub tokens: Option<JwtTokens>,
    /// Tokens of another issuer count, which publishes its keys.
    pub trusts_foreign: bool,
    /// The issuer and the audience that tokens have to name.
    pub claim_rules: ClaimRules,
}

/// The grant of valid credentials.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum SdkKeyGrant {
    /// The project of one SDK key. The access token follows after a colon, if the key came with one.
    Key(Box<str>),
    /// The projects of several SDK keys in a token. The request names none of them.
    Several,
}

impl SdkKeyGrant {
    /// Returns the SDK key. Errors: 400 if there are several.
    pub fn into_key(self, rules: &SdkRules) -> Result<Box<str>, Fault> {
        match self {
            Self::Key(key) => Ok(key),
            Self::Several => {
                let message = format!(
                    "the token is good for several SDK keys: name one in the header {}",
                    rules.header_name()
                );
                Err(Fault::new(FaultKind::Invalid, message))
            }
        }
    }
}

impl SdkRules {
    /// Returns whether tokens count at all.
    pub(super) fn checks_tokens(&self) -> bool {
        self.tokens.is_some() || self.trusts_foreign
    }

    /// Returns the SDK keys of a token. A foreign token names the key that signed it, and ours do not.
    ///
    /// `foreign` contains the known keys of foreign tokens. Errors: [`InvalidToken`].
    pub(super) fn granted_keys(
        &self,
        token: &str,
        foreign: Option<&KeySet>,
        now_s: u64,
    ) -> Result<Vec<String>, InvalidToken> {
        #[derive(Deserialize)]
        struct Claims {
            iss: Option<String>,
            aud: Option<Texts>,
            sdk_keys: Option<Vec<String>>,
        }
        let names_key = self.trusts_foreign && read_key_id(token).is_ok();
        match &self.tokens {
            Some(ours) if !names_key => ours.verify(token, now_s),
            _ => {
                read_key_id(token)?;
                let set = foreign.ok_or(InvalidToken::UnknownKey)?;
                let claims: Claims = set.verify(token, now_s)?;
                let audience = claims.aud.as_ref();
                self.claim_rules.check(claims.iss.as_deref(), audience)?;
                claims.sdk_keys.ok_or(InvalidToken::NoSdkKeys)
            }
        }
    }

    /// Returns the SDK key in a request's headers.
    ///
    /// Errors: `malformed_as` for a malformed key, and 400 for headers with different keys.
    pub(super) fn presented_key<'h>(
        &self,
        headers: &'h HeaderMap,
        malformed_as: FaultKind,
    ) -> Result<Option<&'h str>, Fault> {
        let mut found: Option<&str> = None;
        let all = self.headers.iter().flat_map(|name| headers.get_all(name));
        for value in all {
            let value = value.to_str().map_err(|_| malformed(malformed_as))?.trim();
            if found.is_some_and(|other| other != value) {
                return Err(Fault::new(
                    FaultKind::Invalid,
                    "the headers name different SDK keys",
                ));
            }
            found = Some(value);
        }
        let Some(key) = found.filter(|key| !key.is_empty()) else {
            return Ok(None);
        };
        match is_sdk_key(key) {
            true => Ok(Some(key)),
            false => Err(malformed(malformed_as)),
        }
    }

    /// Copies credentials from one request to another request without any.
    pub(super) fn lend_credentials(&self, from: &HeaderMap, to: &mut HeaderMap) {
        let names = || self.headers.iter().chain([&AUTHORIZATION]);
        if names().any(|name| to.contains_key(name)) {
            return;
        }
        for name in names() {
            for value in from.get_all(name) {
                to.append(name.clone(), value.clone());
            }
        }
    }

    /// Returns the name of the header for SDK keys, as messages to callers name it.
    pub(super) fn header_name(&self) -> &str {
        self.headers.first().map_or("", HeaderName::as_str)
    }
}

/// Returns whether a text has the form of an SDK key, with or without a token behind a colon.
pub fn is_sdk_key(key: &str) -> bool {
    let colon = key.bytes().position(|b| b == b':');
    let (name, token) = match colon.and_then(|at| key.split_at_checked(at)) {
        Some((name, token)) => (name, token.strip_prefix(':')),
        None => (key, None),
    };
    is_key_part(name) && token.is_none_or(is_key_part)
}

/// Returns whether a part of an SDK key has only valid bytes.
fn is_key_part(part: &str) -> bool {
    let is_of_a_key = |b: u8| matches!(b, b'+' | b'/' | b'=' | b'_' | b'-' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z');
    (1..=MAX_KEY_BYTES).contains(&part.len())
        && part.bytes().fold(true, |good, b| good & is_of_a_key(b))
}

/// Returns an SDK key without its access token.
pub fn key_name(sdk_key: &str) -> &str {
    split_key(sdk_key).0
}

/// Splits an SDK key at its colon into the key and the access token, which is empty if there is no colon.
pub fn split_key(sdk_key: &str) -> (&str, &str) {
    sdk_key.split_once(':').unwrap_or((sdk_key, ""))
}

/// Returns the token of the header `Authorization`.
pub(super) fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    const SCHEME: &str = "bearer ";
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?.trim();
    let scheme = value.get(..SCHEME.len())?;
    scheme
        .eq_ignore_ascii_case(SCHEME)
        .then(|| value.get(SCHEME.len()..))
        .flatten()
        .map(str::trim)
}

pub(super) fn malformed(kind: FaultKind) -> Fault {
    Fault::new(kind, "sdkKey failed validation")
}

pub(super) fn unauthenticated(message: impl Into<std::borrow::Cow<'static, str>>) -> Fault {
    Fault::new(FaultKind::Unauthenticated, message)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::decisions::protocol::{Agent, Document, Protocol};

    fn rules(has_tokens: bool) -> SdkRules {
        SdkRules {
            headers: ["x-platform-sdk-key", "x-optimizely-sdk-key"]
                .map(HeaderName::from_static)
                .into(),
            tokens: has_tokens
                .then(|| JwtTokens::new(&[b"key".to_vec()], 60, ClaimRules::default()).unwrap()),
            trusts_foreign: false,
            claim_rules: ClaimRules::default(),
        }
    }

    fn asked(
        protocol: &dyn Protocol,
        rules: &SdkRules,
        given: &[(&'static str, &str)],
    ) -> Result<String, u16> {
        let mut headers = HeaderMap::new();
        for (name, value) in given {
            headers.append(*name, value.parse().unwrap());
        }
        protocol
            .credentials(&headers, rules, None, 0)
            .and_then(|granted| granted.into_key(rules))
            .map(|key| key.into())
            .map_err(|fault| fault.status())
    }

    fn issued(rules: &SdkRules, keys: &[&str]) -> String {
        let keys: Vec<String> = keys.iter().map(|&key| key.to_owned()).collect();
        let token = rules.tokens.as_ref().unwrap().issue(&keys, 0).unwrap();
        format!("Bearer {}", token.0)
    }

    #[test]
    fn the_only_key_of_a_token_has_the_form_of_a_key() {
        let rules = rules(true);
        for (key, expected) in [
            ("k1:t", Ok("k1:t".to_owned())),
            ("", Err(401)),
            ("../x", Err(401)),
        ] {
            let token = issued(&rules, &[key]);
            let given = [("authorization", &*token)];
            assert_eq!(asked(&Document, &rules, &given), expected, "{key}");
        }
    }

    /// Source: docs/decision-agent.md 5.1: `Either scheme is accepted for every operation`.
    /// Contract: decision-agent 5 1
    #[test]
    fn a_key_or_a_token_suffices_in_document_mode() {
        let rules = rules(true);
        let (one, two) = (issued(&rules, &["a"]), issued(&rules, &["a", "b"]));
        for (given, expected) in [
            (vec![("x-platform-sdk-key", "a")], Ok("a")),
            (vec![("x-optimizely-sdk-key", "a:t")], Ok("a:t")),
            (vec![("authorization", &*one)], Ok("a")),
            (vec![("authorization", &*two)], Err(400)),
            (
                vec![("authorization", &*two), ("x-platform-sdk-key", "b")],
                Ok("b"),
            ),
            (
                vec![("authorization", &*two), ("x-platform-sdk-key", "c")],
                Err(403),
            ),
            (
                vec![("authorization", "Bearer x"), ("x-platform-sdk-key", "b")],
                Ok("b"),
            ),
            (vec![("authorization", "Bearer x")], Err(401)),
            (vec![], Err(401)),
        ] {
            assert_eq!(
                asked(&Document, &rules, &given),
                expected.map(str::to_owned),
                "{given:?}"
            );
        }
    }

    #[test]
    fn the_original_agent_wants_both_and_says_401() {
        let rules = rules(true);
        let one = issued(&rules, &["a"]);
        let bare = one.strip_prefix("Bearer ").unwrap();
        for (given, expected) in [
            (vec![("x-platform-sdk-key", "a")], Err(401)),
            (vec![("authorization", &*one)], Err(400)),
            (
                vec![("authorization", &*one), ("x-platform-sdk-key", "b")],
                Err(401),
            ),
            (
                vec![("authorization", &*one), ("x-platform-sdk-key", "a")],
                Ok("a"),
            ),
            (vec![("jwt", bare), ("x-platform-sdk-key", "a")], Ok("a")),
            (vec![("auth", bare), ("x-platform-sdk-key", "a")], Ok("a")),
            (
                vec![
                    ("jwt", bare),
                    ("authorization", bare),
                    ("x-platform-sdk-key", "a"),
                ],
                Err(401),
            ),
        ] {
            assert_eq!(
                asked(&Agent, &rules, &given),
                expected.map(str::to_owned),
                "{given:?}"
            );
        }
    }

    #[test]
    fn a_bare_token_counts_for_the_original_agent_alone() {
        let rules = rules(true);
        let one = issued(&rules, &["a"]);
        let bare = one.strip_prefix("Bearer ").unwrap();
        assert_eq!(asked(&Document, &rules, &[("jwt", bare)]), Err(401));
    }

    #[test]
    fn keys_that_differ_are_refused() {
        let given = [("x-platform-sdk-key", "a"), ("x-optimizely-sdk-key", "b")];
        assert_eq!(asked(&Document, &rules(false), &given), Err(400));
    }

    /// Source: docs/decision-agent.md 5.3: `Invalid credentials yield 401`. The original agent says 400.
    #[test]
    fn a_malformed_key_is_an_invalid_credential() {
        let long = "a".repeat(129);
        for has_tokens in [false, true] {
            let rules = rules(has_tokens);
            for key in ["a b", "a/../b?", "a:", &long] {
                let given = [("x-platform-sdk-key", key)];
                assert_eq!(asked(&Document, &rules, &given), Err(401), "{key}");
                assert_eq!(asked(&Agent, &rules, &given), Err(400), "{key}");
            }
        }
    }
}
