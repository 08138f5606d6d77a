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

/// What a request presents, in words.
fn read(lines: &[&str], query: &str) -> Result<String, ConflictingCredentials> {
    let headers = headers(lines);
    Ok(match PresentedCredential::read(&headers, Some(query))? {
        PresentedCredential::Nothing => "nothing".to_owned(),
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
    })
}

fn said(text: &str) -> Result<String, ConflictingCredentials> {
    Ok(text.to_owned())
}

#[test]
fn a_public_key_comes_in_the_query_or_the_header() {
    assert_eq!(read(&[], "a=1&auth=k1&b"), said("single k1"));
    assert_eq!(read(&["epi-single k1"], ""), said("single k1"));
    assert_eq!(read(&["Epi-Single  k1 "], "auth="), said("single k1"));
}

#[test]
fn a_key_in_the_query_may_be_encoded() {
    assert_eq!(read(&[], "auth=a%2Bb%3d"), said("single a+b="));
    assert_eq!(read(&[], "%61uth=k1"), said("single k1"));
    assert_eq!(read(&[], "AUTH=k1"), said("single k1"));
}

#[test]
fn the_schemes_are_told_apart() {
    assert_eq!(read(&[], ""), said("nothing"));
    assert_eq!(read(&[""], ""), said("nothing"));
    assert_eq!(read(&["epi-hmac k:1:n:s="], ""), said("signed k 1 n s="));
    assert_eq!(read(&["basic azE6czpz"], ""), said("basic k1 s:s"));
    assert_eq!(read(&["BEARER a.b.c"], ""), said("bearer a.b.c"));
    assert_eq!(read(&["epi-obo x"], ""), said("other"));
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
        assert_eq!(read(&[line], ""), said("other"), "{line}");
    }
}

#[test]
fn two_credentials_are_refused() {
    assert_eq!(
        read(&["epi-single a", "epi-single a"], ""),
        Err(ConflictingCredentials::Authorization)
    );
    assert_eq!(
        read(&["epi-single a", ""], ""),
        Err(ConflictingCredentials::Authorization)
    );
    assert_eq!(
        read(&[], "auth=a&auth=a"),
        Err(ConflictingCredentials::Auth)
    );
    assert_eq!(
        read(&[], "auth=a&%61UTH=b"),
        Err(ConflictingCredentials::Auth)
    );
    assert_eq!(read(&[], "auth&auth=b"), Err(ConflictingCredentials::Auth));
    assert_eq!(
        read(&["epi-single a"], "auth=b"),
        Err(ConflictingCredentials::Both)
    );
    assert_eq!(
        read(&["Bearer a.b.c"], "auth=b"),
        Err(ConflictingCredentials::Both)
    );
    assert_eq!(
        read(&["epi-obo x"], "auth=b"),
        Err(ConflictingCredentials::Both)
    );
}

#[test]
fn the_same_public_key_in_both_places_is_one() {
    assert_eq!(read(&["epi-single a"], "auth=a"), said("single a"));
}

#[test]
fn two_credentials_are_the_callers_fault() {
    for doubled in [
        ConflictingCredentials::Authorization,
        ConflictingCredentials::Auth,
        ConflictingCredentials::Both,
    ] {
        assert_eq!(Fault::from(doubled).status(), 400);
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
        let _ = PresentedCredential::read(&headers, Some(&query));
    }
}
