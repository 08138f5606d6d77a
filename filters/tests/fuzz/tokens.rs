//! Tokens, key sets, requests for tokens, and credentials of the decision endpoints.

use std::sync::LazyLock;

use filters::auth::claims::ClaimRules;
use filters::auth::jwks::{KeySet, read_key_id};
use filters::auth::jwt::JwtTokens;
use filters::decisions::credentials::{SdkKeyGrant, SdkRules, split_key};
use filters::decisions::protocol::{Agent, Document, Protocol};
use filters::decisions::token::TokenRequest;
use filters::decisions::webhook;
use filters::graph::credentials::TenantClaims;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};

use crate::choices::Choices;
use crate::run::run;
use crate::{damage, grammar};

pub const NOW_S: u64 = 1_800_000_000;
const KEY: &[u8] = b"0123456789abcdef0123456789abcdef";

pub static OURS: LazyLock<JwtTokens> = LazyLock::new(|| tokens(KEY));

fn tokens(key: &[u8]) -> JwtTokens {
    JwtTokens::new(&[key.to_vec()], 60, ClaimRules::default()).unwrap()
}

/// A token with any header and any claims, signed by one of two keys.
pub fn token(choices: &mut Choices<'_>) -> String {
    let claims = json!({"exp?": {"$one": [NOW_S + 60, NOW_S - 60, "$number", "$any"]}, "nbf?": {"$one": [0, "$number"]}, "iss?": "$text",
        "aud?": {"$one": ["$text", ["a"]]}, "sdk_keys?": {"$one": [["k1"], {"$many": "$text"}, "$any"]}});
    let claims = grammar::compose(choices, &claims);
    let algorithm = *choices.pick(&[Algorithm::HS256, Algorithm::HS384, Algorithm::HS512]);
    let key = *choices.pick(&[KEY, b"another key"]);
    let header = Header {
        kid: choices.once_in(2).then(|| choices.text()),
        ..Header::new(algorithm)
    };
    encode(&header, &claims, &EncodingKey::from_secret(key)).unwrap()
}

#[test]
fn only_what_we_signed_is_our_token() {
    run("tokens: our own", |choices| {
        let keys = vec!["k1".to_owned(), choices.text()];
        let (ours, _) = OURS.issue(&keys, NOW_S).unwrap();
        assert_eq!(OURS.verify(&ours, NOW_S).as_ref(), Ok(&keys));
        assert!(
            tokens(b"another key of thirty-two bytes!")
                .verify(&ours, NOW_S)
                .is_err()
        );
        let damaged = damage::bytes(choices, ours.clone().into_bytes());
        let damaged = String::from_utf8_lossy(&damaged);
        if damaged != ours {
            assert!(OURS.verify(&damaged, NOW_S).is_err(), "{damaged}");
        }
        let other = token(choices);
        let _ = OURS.verify(&other, NOW_S);
    });
}

#[test]
fn any_key_set_is_read_or_refused() {
    let grammar = json!({"keys": {"$many": {"$one": [
        {"kty": "EC", "crv": "P-256", "kid": "ec", "x": "o8bUs5KQkw46-LX6dc5CgFJ1Z5Hy3NqE366PmkeJNwU", "y": "or5_ZxQvltORA0YTfScyYj4lVEhjZ6_UdikAlJCJowk", "use?": {"$one": ["sig", "enc"]}},
        {"kty": "OKP", "crv": "Ed25519", "kid": "ed", "alg?": "EdDSA", "x": "-y5ebrqFiygkDYUjQ6G_atjgZ8E6IZyhypOB1_AuLbA"},
        {"kty": "RSA", "kid": "rsa", "n": {"$one": ["AQAB", "$text"]}, "e": "AQAB"}, {"kty": "oct", "kid": "ours", "k": "c2VjcmV0"}, {"kty": "$text"}, "$any"]}}});
    run("tokens: key sets", |choices| {
        let set = grammar::compose(choices, &grammar);
        let set = damage::tree(choices, set);
        let set = grammar::write(choices, &set);
        let set = damage::bytes(choices, set);
        let Ok(set) = KeySet::parse(&set) else { return };
        let token = token(choices);
        // Nobody signs with a public key: a set never accepts what a shared secret signed.
        assert!(set.verify::<Value>(&token, NOW_S).is_err(), "{token}");
        let damaged = damage::bytes(choices, token.into_bytes());
        let damaged = String::from_utf8_lossy(&damaged);
        assert!(set.verify::<Value>(&damaged, NOW_S).is_err(), "{damaged}");
        let _ = read_key_id(&damaged);
        let claims = TenantClaims::from_unverified_token(&damaged);
        assert!(claims.is_none_or(|claims| !claims.is_verified));
    });
}

#[test]
fn any_request_for_a_token_is_read_or_refused() {
    run("tokens: requests", |choices| {
        let secret = choices.text();
        let is_json = choices.once_in(2);
        let body = if is_json {
            let body = json!({"grant_type": {"$one": ["client_credentials", "$text"]}, "client_id": "c", "client_secret": secret, "more?": "$any"});
            let body = grammar::compose(choices, &body);
            grammar::write(choices, &body)
        } else {
            let mut form = form_urlencoded::Serializer::new(String::new());
            form.append_pair("grant_type", "client_credentials")
                .append_pair("client_id", "c")
                .append_pair("client_secret", &secret);
            form.finish().into_bytes()
        };
        let damaged = damage::bytes(choices, body.clone());
        let kinds = [
            "application/x-www-form-urlencoded",
            "application/json; charset=utf-8",
            "text/plain",
            "application/JSON",
        ];
        let kind = if damaged == body {
            kinds[usize::from(is_json)]
        } else {
            *choices.pick(&kinds)
        };
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(kind))]);
        match TokenRequest::read(&headers, &damaged) {
            Ok(Some(request)) if damaged == body => {
                assert_eq!(request.client_secret, secret);
                let _ = request.check();
            }
            Ok(Some(request)) => drop(request.check()),
            Ok(None) => assert_eq!(kind, "text/plain"),
            Err(fault) => assert_eq!(fault.status(), 400),
        }
    });
}

#[test]
fn no_credentials_of_decisions_are_granted_without_one() {
    let name = HeaderName::from_static("x-platform-sdk-key");
    let other = HeaderName::from_static("x-optimizely-sdk-key");
    let open = SdkRules {
        headers: vec![name.clone(), other.clone()],
        tokens: None,
        trusts_foreign: false,
        claim_rules: ClaimRules::default(),
    };
    let closed = SdkRules {
        headers: open.headers.clone(),
        tokens: Some(tokens(KEY)),
        trusts_foreign: false,
        claim_rules: ClaimRules::default(),
    };
    run("tokens: credentials of decisions", |choices| {
        let mut headers = HeaderMap::new();
        for header in [&name, &other] {
            if choices.once_in(2) {
                let value = damage::bytes(choices, b"sdk-key_1:token".to_vec());
                if let Ok(value) = HeaderValue::from_bytes(&value) {
                    headers.append(header, value);
                }
            }
        }
        if choices.once_in(2) {
            let value = format!("Bearer {}", token(choices)).into_bytes();
            let value = damage::bytes(choices, value);
            if let Ok(value) = HeaderValue::from_bytes(&value) {
                headers.insert(AUTHORIZATION, value);
            }
        }
        for protocol in [&Document as &dyn Protocol, &Agent] {
            for rules in [&open, &closed] {
                match protocol.credentials(&headers, rules, None, NOW_S) {
                    Ok(SdkKeyGrant::Several) => {}
                    Ok(SdkKeyGrant::Key(key)) => {
                        assert!(!key.is_empty() && key.len() <= 257);
                        let (name, token) = split_key(&key);
                        assert!(name.len() + token.len() <= key.len());
                    }
                    Err(fault) => assert!(matches!(fault.status(), 400 | 401 | 403), "{fault:?}"),
                }
            }
        }
    });
}

#[test]
fn a_signature_of_a_webhook_fits_its_body_alone() {
    run("tokens: webhooks", |choices| {
        let body = grammar::compose(
            choices,
            &json!({"project_id": {"$one": [1, "p", "$any"]}, "event": "project.datafile_updated", "data?": "$any"}),
        );
        let body = damage::bytes(choices, body.to_string().into_bytes());
        let given = damage::bytes(
            choices,
            b"sha1=0123456789012345678901234567890123456789".to_vec(),
        );
        assert!(webhook::check_signature(Some(b"secret"), &body, &given).is_err());
        for protocol in [&Document as &dyn Protocol, &Agent] {
            let _ = protocol.read_webhook(&body);
            let _ = protocol.read_topic(&String::from_utf8_lossy(&given));
        }
    });
}
