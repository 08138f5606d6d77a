//! Who asks for decisions: an SDK key, a token, or both. Source: docs/decision-agent.md 5, docs/decisions.md 20, 21.

use http::HeaderMap;
use http::header::{AUTHORIZATION, HeaderName};
use serde::Deserialize;

use crate::auth::jwks::{KeySet, read_key_id};
use crate::auth::jwt::{InvalidToken, JwtTokens};
use crate::fault::{AgentForm, Fault, FaultKind};

/// The longest SDK key.
const KEY_BYTES: usize = 128;

/// How SDK keys and tokens are asked for.
pub struct SdkRules {
    /// Headers that carry the SDK key.
    pub headers: Vec<HeaderName>,
    /// Our tokens, where clients are configured.
    pub tokens: Option<JwtTokens>,
    /// Tokens of somebody else count, whose keys are published.
    pub trusts_foreign: bool,
    /// The agent of old: with clients both are needed, and every failure is 401.
    pub is_agent: bool,
}

/// The SDK key whose project is asked, with its access token behind a colon where it came with one.
///
/// `foreign` holds the keys of foreign tokens, as far as they are known. Errors: 400 for keys that differ or are
/// malformed, 401 for no credentials or a bad token, 403 for a key that the token does not name.
pub fn sdk_key(
    headers: &HeaderMap,
    rules: &SdkRules,
    foreign: Option<&KeySet>,
    now_s: u64,
) -> Result<Box<str>, Fault> {
    let key = presented(headers, rules)?;
    if rules.tokens.is_none() && !rules.trusts_foreign {
        return match key {
            Some(key) => Ok(key.into()),
            None if !rules.is_agent && token(headers, rules).is_some() => {
                Err(unauthenticated("no tokens are issued here"))
            }
            None => Err(missing(rules)),
        };
    }
    match (key, token(headers, rules)) {
        (Some(key), None) if !rules.is_agent => Ok(key.into()),
        (None, None) | (None, Some(_)) if rules.is_agent => Err(missing(rules)),
        (None, None) => Err(missing(rules)),
        (Some(_), None) => Err(unauthorized(rules, InvalidToken::Empty)),
        (key, Some(token)) => {
            let granted = granted(token, rules, foreign, now_s);
            let granted = granted.map_err(|error| unauthorized(rules, error))?;
            match key {
                Some(key) if granted.iter().any(|one| one == key) => Ok(key.into()),
                Some(_) => Err(refused(rules)),
                None => only(granted, rules),
            }
        }
    }
}

/// The SDK keys of a token: foreign ones name the key that signed them, ours do not.
fn granted(
    token: &str,
    rules: &SdkRules,
    foreign: Option<&KeySet>,
    now_s: u64,
) -> Result<Vec<String>, InvalidToken> {
    #[derive(Deserialize)]
    struct Claims {
        sdk_keys: Option<Vec<String>>,
    }
    let names_key = rules.trusts_foreign && read_key_id(token).is_ok();
    match &rules.tokens {
        Some(ours) if !names_key => ours.verify(token, now_s),
        _ => {
            read_key_id(token)?;
            let set = foreign.ok_or(InvalidToken::UnknownKey)?;
            let claims: Claims = set.verify(token, now_s)?;
            claims.sdk_keys.ok_or(InvalidToken::NoSdkKeys)
        }
    }
}

/// The one key of a token that came without a key header.
fn only(granted: Vec<String>, rules: &SdkRules) -> Result<Box<str>, Fault> {
    let mut granted = granted.into_iter();
    match (granted.next(), granted.next()) {
        (Some(key), None) => Ok(key.into()),
        (None, _) => Err(refused(rules)),
        (Some(_), Some(_)) => {
            let message = format!(
                "the token is good for several SDK keys: name one in the header {}",
                name(rules)
            );
            Err(Fault::new(FaultKind::Invalid, message))
        }
    }
}

fn presented<'h>(headers: &'h HeaderMap, rules: &SdkRules) -> Result<Option<&'h str>, Fault> {
    let mut found: Option<&str> = None;
    let all = rules.headers.iter().flat_map(|name| headers.get_all(name));
    for value in all {
        let value = value.to_str().map_err(|_| malformed())?.trim();
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
    let colon = key.bytes().position(|b| b == b':');
    let (name, token) = match colon.and_then(|at| key.split_at_checked(at)) {
        Some((name, token)) => (name, token.strip_prefix(':')),
        None => (key, None),
    };
    if is_good(name) && token.is_none_or(is_good) {
        Ok(Some(key))
    } else {
        Err(malformed())
    }
}

/// Whether a part of an SDK key has only bytes that may stand in one.
fn is_good(part: &str) -> bool {
    let is_of_a_key = |b: u8| matches!(b, b'+' | b'/' | b'=' | b'_' | b'-' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z');
    (1..=KEY_BYTES).contains(&part.len())
        && part.bytes().fold(true, |good, b| good & is_of_a_key(b))
}

/// The token that came, if one did; the agent of old takes it bare from headers of its own too.
pub fn token<'h>(headers: &'h HeaderMap, rules: &SdkRules) -> Option<&'h str> {
    if !rules.is_agent || headers.contains_key(AUTHORIZATION) {
        return bearer(headers);
    }
    let bare = ["jwt", "auth"].iter().find_map(|name| headers.get(*name))?;
    Some(bare.to_str().ok()?.trim())
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    const SCHEME: &str = "bearer ";
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?.trim();
    let scheme = value.get(..SCHEME.len())?;
    scheme
        .eq_ignore_ascii_case(SCHEME)
        .then(|| value.get(SCHEME.len()..))
        .flatten()
        .map(str::trim)
}

fn name(rules: &SdkRules) -> String {
    let name = rules.headers.first().map_or("", HeaderName::as_str);
    if rules.is_agent {
        return "X-Optimizely-SDK-Key".to_owned();
    }
    name.to_owned()
}

fn missing(rules: &SdkRules) -> Fault {
    if rules.is_agent {
        let message = format!("missing required {} header", name(rules));
        return Fault::new(FaultKind::Invalid, message);
    }
    unauthenticated(format!(
        "an SDK key or a token is required: send the header {} or `Authorization: Bearer <token>`",
        name(rules)
    ))
}

fn refused(rules: &SdkRules) -> Fault {
    if rules.is_agent {
        return unauthenticated(
            "SDK key given in X-Optimizely-Sdk-Key header was not found in the SDK keys in this token's claims",
        );
    }
    let message = "the SDK key is not among those of the token";
    Fault::new(FaultKind::Forbidden, message)
}

/// The agent of old has one word for a token that it cannot read, and tells the reason beside it.
fn unauthorized(rules: &SdkRules, error: InvalidToken) -> Fault {
    match error.agent_reason() {
        Some(reason) if rules.is_agent => unauthenticated("unauthorized")
            .with_detail(reason)
            .with_agent_form(AgentForm::Reason),
        _ => unauthenticated(error.message()),
    }
}

fn malformed() -> Fault {
    Fault::new(FaultKind::Invalid, "sdkKey failed validation")
}

fn unauthenticated(message: impl Into<std::borrow::Cow<'static, str>>) -> Fault {
    Fault::new(FaultKind::Unauthenticated, message)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn rules(is_agent: bool, has_tokens: bool) -> SdkRules {
        SdkRules {
            headers: ["x-platform-sdk-key", "x-optimizely-sdk-key"]
                .map(HeaderName::from_static)
                .into(),
            tokens: has_tokens.then(|| JwtTokens::new(&[b"key".to_vec()], 60).unwrap()),
            trusts_foreign: false,
            is_agent,
        }
    }

    fn asked(rules: &SdkRules, given: &[(&'static str, &str)]) -> Result<String, u16> {
        let mut headers = HeaderMap::new();
        for (name, value) in given {
            headers.append(*name, value.parse().unwrap());
        }
        sdk_key(&headers, rules, None, 0)
            .map(|key| key.into())
            .map_err(|fault| fault.status())
    }

    fn issued(rules: &SdkRules, keys: &[&str]) -> String {
        let keys: Vec<String> = keys.iter().map(|&key| key.to_owned()).collect();
        let token = rules.tokens.as_ref().unwrap().issue(&keys, 0).unwrap();
        format!("Bearer {}", token.0)
    }

    #[test]
    fn a_key_or_a_token_suffices_in_document_mode() {
        let rules = rules(false, true);
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
                Err(401),
            ),
            (vec![], Err(401)),
        ] {
            assert_eq!(
                asked(&rules, &given),
                expected.map(str::to_owned),
                "{given:?}"
            );
        }
    }

    #[test]
    fn the_agent_of_old_wants_both_and_says_401() {
        let rules = rules(true, true);
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
                asked(&rules, &given),
                expected.map(str::to_owned),
                "{given:?}"
            );
        }
    }

    #[test]
    fn a_bare_token_counts_for_the_agent_of_old_alone() {
        let rules = rules(false, true);
        let one = issued(&rules, &["a"]);
        let bare = one.strip_prefix("Bearer ").unwrap();
        assert_eq!(asked(&rules, &[("jwt", bare)]), Err(401));
    }

    #[test]
    fn keys_that_differ_or_are_malformed_are_refused() {
        let rules = rules(false, false);
        for given in [
            vec![("x-platform-sdk-key", "a"), ("x-optimizely-sdk-key", "b")],
            vec![("x-platform-sdk-key", "a b")],
            vec![("x-platform-sdk-key", "a/../b?")],
            vec![("x-platform-sdk-key", "a:")],
        ] {
            assert_eq!(asked(&rules, &given), Err(400), "{given:?}");
        }
        assert_eq!(
            asked(&rules, &[("x-platform-sdk-key", &"a".repeat(129))]),
            Err(400)
        );
    }
}
