#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use http::HeaderValue;
use proptest::prelude::*;

use super::*;

fn headers(lines: &[&str]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in lines {
        headers.append(
            AUTHORIZATION,
            HeaderValue::from_bytes(line.as_bytes()).unwrap(),
        );
    }
    headers
}

/// Describes the credential that a request presents.
fn describe(lines: &[&str], query: &str) -> Result<String, ConflictingCredentials> {
    let headers = headers(lines);
    Ok(
        match PresentedCredential::from_request(&headers, Some(query))? {
            PresentedCredential::Absent => "nothing".to_owned(),
            PresentedCredential::Single(key) => format!("single {key}"),
            PresentedCredential::Signed(signed) => format!(
                "signed {} {} {} {}",
                signed.key, signed.timestamp_ms, signed.nonce, signed.signature
            ),
            PresentedCredential::Basic(basic) => {
                let (key, secret) = basic.parts();
                format!("basic {key} {secret}")
            }
            PresentedCredential::Bearer(token) => format!("bearer {token}"),
            PresentedCredential::Other => "other".to_owned(),
        },
    )
}

fn presented(text: &str) -> Result<String, ConflictingCredentials> {
    Ok(text.to_owned())
}

#[test]
fn a_public_key_comes_in_the_query_or_the_header() {
    assert_eq!(describe(&[], "a=1&auth=k1&b"), presented("single k1"));
    assert_eq!(describe(&["epi-single k1"], ""), presented("single k1"));
    assert_eq!(
        describe(&["Epi-Single  k1 "], "auth="),
        presented("single k1")
    );
}

#[test]
fn a_key_in_the_query_may_be_encoded() {
    assert_eq!(describe(&[], "auth=a%2Bb%3d"), presented("single a+b="));
    assert_eq!(describe(&[], "%61uth=k1"), presented("single k1"));
    assert_eq!(describe(&[], "AUTH=k1"), presented("single k1"));
}

#[test]
fn the_schemes_are_told_apart() {
    assert_eq!(describe(&[], ""), presented("nothing"));
    assert_eq!(describe(&[""], ""), presented("nothing"));
    assert_eq!(
        describe(&["epi-hmac k:1:n:s="], ""),
        presented("signed k 1 n s=")
    );
    assert_eq!(describe(&["basic azE6czpz"], ""), presented("basic k1 s:s"));
    assert_eq!(describe(&["BEARER a.b.c"], ""), presented("bearer a.b.c"));
    assert_eq!(describe(&["epi-obo x"], ""), presented("other"));
}

#[test]
fn what_is_malformed_is_no_credential() {
    for line in [
        "epi-single",
        "epi-single ",
        "epi-single a b",
        "epi-single a,epi-single b",
        "epi-hmac k:1:n",
        "epi-hmac k:1:n:s:t",
        "epi-hmac :1:n:s",
        "epi-hmac k:1::s",
        "basic %%%",
        "basic azE=",
        "basic /////w==",
        "Bearer a, Bearer b",
        "k1",
        "é",
    ] {
        assert_eq!(describe(&[line], ""), presented("other"), "{line}");
    }
}

#[test]
fn two_credentials_are_refused() {
    assert_eq!(
        describe(&["epi-single a", "epi-single a"], ""),
        Err(ConflictingCredentials::Authorization)
    );
    assert_eq!(
        describe(&["epi-single a", ""], ""),
        Err(ConflictingCredentials::Authorization)
    );
    assert_eq!(
        describe(&[], "auth=a&auth=a"),
        Err(ConflictingCredentials::Auth)
    );
    assert_eq!(
        describe(&[], "auth=a&%61UTH=b"),
        Err(ConflictingCredentials::Auth)
    );
    assert_eq!(
        describe(&[], "auth&auth=b"),
        Err(ConflictingCredentials::Auth)
    );
    assert_eq!(
        describe(&["epi-single a"], "auth=b"),
        Err(ConflictingCredentials::Both)
    );
    assert_eq!(
        describe(&["Bearer a.b.c"], "auth=b"),
        Err(ConflictingCredentials::Both)
    );
    assert_eq!(
        describe(&["epi-obo x"], "auth=b"),
        Err(ConflictingCredentials::Both)
    );
}

#[test]
fn the_same_public_key_in_both_places_is_one() {
    assert_eq!(describe(&["epi-single a"], "auth=a"), presented("single a"));
}

#[test]
fn two_credentials_are_the_callers_fault() {
    for conflict in [
        ConflictingCredentials::Authorization,
        ConflictingCredentials::Auth,
        ConflictingCredentials::Both,
    ] {
        assert_eq!(Fault::from(conflict).status(), 400);
    }
}

proptest! {
    #[test]
    fn any_query_and_header_are_read_without_a_panic(
        query: String,
        line in proptest::collection::vec(prop_oneof![0x20..=0x7e_u8, 0x80..=0xff_u8], 0..64),
    ) {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, HeaderValue::from_bytes(&line).unwrap());
        let _ = PresentedCredential::from_request(&headers, Some(&query));
    }
}
