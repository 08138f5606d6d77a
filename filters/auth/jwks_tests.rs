#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use jsonwebtoken::{EncodingKey, Header, encode};
use serde_json::{Value, json};

use super::*;

/// Made only for these tests.
const EC: &str = "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgAxf+UGMwNePR01m6K/lGhX31f20TraEelgTVZB8p5mKhRANCAASjxtSzkpCTDjr4tfp1zkKAUnVnkfLc2oTfro+aR4k3BaK+f2cUL5bTkQNGE30nMmI+JVRIY2ev1HYpAJSQiaMJ";
const ED: &str = "MC4CAQAwBQYDK2VwBCIEIGDE6ixKAgQfcBvcC0gdkK0gyIO6l0g7uHRz+bECST8G";
const RSA_N: &str = "lYYJLq-m8q0NyeHpkRw8NbDDQSrAJHeSFo8YNDCJq5jwsWLUJ_SQwH9quK16xYU6Xk7Y6HnDmwA9Qfg2NgORasky0cK_GEBuGQcf04tC-OU6X4u53gab35Z5qV7mH2jpti8985I7Dfkfk-ivjvzCfpw1CJgczs4BF5Xf_ZFpCV01xTotGIU3_eY1MlM8nqE4eIGaY5umlZsMQG42die2ycvhCp6wSy_MoRP4uxOmd8dJE1QSrdBj3J-5dAiuNR8jOGX9_YInCYGHq-k5r47AfdlYzq_0GUqdPSOVnuSVEBXRnvgRyGIlqzK2izTqHFIKhYk4UM2zBKMZV83jxA4SWQ";
/// Signed by the private half of the key.
const RS256: &str = "eyJhbGciOiJSUzI1NiIsImtpZCI6InJzYSJ9.eyJleHAiOjQxMDI0NDQ4MDAsInNka19rZXlzIjpbImEiXX0.UCzRth8Y0mF5FUohQXu6gZdnTWW4jRNehkisrgWiAqlep3YVvlA1hKzOu8IBNVDBQajmlt9Xy_rgNC6FP2jK_C7PETFnEi6QR1YHytZl-bIfKVeZO12GXaZxz28fVUO0tk3WLgn-iby3ag-nMDteH1u5F3QryzwoWM6aN0bpo-n7aYGCiP0p_wMXUSlLfvHBNqPzPI9l-uq6A0xRKJMcCt096oq08_Jz7B5dElWpK58-sOoDNK-T8xIEnYmyySCqz-ElFlXJH_IvM_56C2yjEhtFSkxrZcW1iZQniXgkIXa43bO7hB85hk5wl2E_eojvLhm0jc-XW24A-MtfBuutMQ";

fn published() -> Value {
    json!({"keys": [
        {"kty": "EC", "crv": "P-256", "kid": "ec", "x": "o8bUs5KQkw46-LX6dc5CgFJ1Z5Hy3NqE366PmkeJNwU",
         "y": "or5_ZxQvltORA0YTfScyYj4lVEhjZ6_UdikAlJCJowk"},
        {"kty": "OKP", "crv": "Ed25519", "kid": "ed", "alg": "EdDSA", "use": "sig",
         "x": "-y5ebrqFiygkDYUjQ6G_atjgZ8E6IZyhypOB1_AuLbA"},
        {"kty": "RSA", "kid": "rsa", "n": RSA_N, "e": "AQAB"},
        {"kty": "oct", "kid": "shared", "k": "c2VjcmV0"},
        {"kty": "from the future", "kid": "new"},
    ]})
}

fn set() -> KeySet {
    KeySet::parse(published().to_string().as_bytes()).unwrap()
}

fn signed(algorithm: Algorithm, id: Option<&str>, claims: &Value) -> String {
    let der = |text| BASE64_STANDARD.decode(text).unwrap();
    let key = match algorithm {
        Algorithm::ES256 => EncodingKey::from_ec_der(&der(EC)),
        Algorithm::EdDSA => EncodingKey::from_ed_der(&der(ED)),
        _ => EncodingKey::from_secret(b"secret"),
    };
    let header = Header {
        kid: id.map(str::to_owned),
        ..Header::new(algorithm)
    };
    encode(&header, claims, &key).unwrap()
}

fn keys(token: &str) -> Result<Vec<String>, InvalidToken> {
    let claims: Value = set().verify(token, 100)?;
    let keys = claims["sdk_keys"].as_array().unwrap();
    Ok(keys
        .iter()
        .map(|key| key.as_str().unwrap().to_owned())
        .collect())
}

#[test]
fn every_published_kind_of_key_verifies_its_tokens() {
    let claims = json!({"sdk_keys": ["a"], "exp": 200});
    for token in [
        signed(Algorithm::ES256, Some("ec"), &claims),
        signed(Algorithm::EdDSA, Some("ed"), &claims),
        RS256.to_owned(),
    ] {
        assert_eq!(keys(&token), Ok(vec!["a".to_owned()]), "{token}");
    }
}

#[test]
fn a_token_counts_only_with_the_key_and_the_algorithm_that_are_published() {
    let claims = json!({"sdk_keys": ["a"], "exp": 200});
    let late = json!({"sdk_keys": ["a"], "exp": 100});
    let early = json!({"sdk_keys": ["a"], "exp": 200, "nbf": 101});
    let endless = json!({"sdk_keys": ["a"]});
    for (algorithm, id, claims, expected) in [
        (Algorithm::ES256, None, &claims, InvalidToken::NoKeyId),
        (
            Algorithm::ES256,
            Some("other"),
            &claims,
            InvalidToken::UnknownKey,
        ),
        (
            Algorithm::ES256,
            Some("ed"),
            &claims,
            InvalidToken::Signature,
        ),
        (
            Algorithm::HS256,
            Some("rsa"),
            &claims,
            InvalidToken::Signature,
        ),
        (
            Algorithm::HS256,
            Some("shared"),
            &claims,
            InvalidToken::UnknownKey,
        ),
        (Algorithm::ES256, Some("ec"), &late, InvalidToken::Expired),
        (
            Algorithm::ES256,
            Some("ec"),
            &early,
            InvalidToken::NotYetValid,
        ),
        (
            Algorithm::ES256,
            Some("ec"),
            &endless,
            InvalidToken::NoExpiry,
        ),
    ] {
        let token = signed(algorithm, id, claims);
        assert_eq!(keys(&token), Err(expected), "{algorithm:?} {id:?} {claims}");
    }
}

#[test]
fn a_changed_token_does_not_count() {
    let token = signed(
        Algorithm::ES256,
        Some("ec"),
        &json!({"sdk_keys": ["a"], "exp": 200}),
    );
    let other = signed(
        Algorithm::ES256,
        Some("ec"),
        &json!({"sdk_keys": ["b"], "exp": 200}),
    );
    let (head, _) = other.rsplit_once('.').unwrap();
    let (_, signature) = token.rsplit_once('.').unwrap();
    assert_eq!(
        keys(&format!("{head}.{signature}")),
        Err(InvalidToken::Signature)
    );
    for token in ["", "a", "a.b.c", "eyJhbGciOiJub25lIiwia2lkIjoiZWMifQ.e30."] {
        assert_eq!(keys(token), Err(InvalidToken::Signature), "{token}");
    }
}

#[test]
fn a_set_without_a_key_that_verifies_is_refused() {
    for text in [
        "",
        "[]",
        "{}",
        r#"{"keys": []}"#,
        r#"{"keys": [{"kty": "oct", "kid": "a", "k": "AA"}]}"#,
    ] {
        assert!(KeySet::parse(text.as_bytes()).is_err(), "{text}");
    }
    let encrypts =
        r#"{"keys": [{"kty": "RSA", "use": "enc", "kid": "a", "n": "AQAB", "e": "AQAB"}]}"#;
    assert!(KeySet::parse(encrypts.as_bytes()).is_err());
}

#[test]
fn a_token_names_its_key() {
    assert_eq!(read_key_id(RS256).as_deref(), Ok("rsa"));
    assert_eq!(read_key_id("a.b.c"), Err(InvalidToken::Signature));
}

/// The header is judged before the key is looked for, so such a token causes no fetch of keys.
#[test]
fn a_header_that_demands_an_extension_is_refused_before_its_key_is_looked_for() {
    let encode = |text: &str| base64::prelude::BASE64_URL_SAFE_NO_PAD.encode(text);
    for header in [
        r#"{"alg":"ES256","kid":"unknown","crit":["exp"]}"#,
        r#"{"alg":"ES256","kid":"ec","b64":false}"#,
    ] {
        let claims = encode(r#"{"sdk_keys":["a"],"exp":200}"#);
        let signed = format!("{}.{claims}", encode(header));
        let key = EncodingKey::from_ec_der(&BASE64_STANDARD.decode(EC).unwrap());
        let signature =
            jsonwebtoken::crypto::sign(signed.as_bytes(), &key, Algorithm::ES256).unwrap();
        let token = format!("{signed}.{signature}");
        assert_eq!(
            read_key_id(&token),
            Err(InvalidToken::Extension),
            "{header}"
        );
        assert_eq!(keys(&token), Err(InvalidToken::Extension), "{header}");
    }
}

#[test]
fn a_set_contains_the_keys_that_can_verify() {
    let mut keys = published();
    let odd = json!({"kty": "OKP", "crv": "P-256", "kid": "odd", "x": "-y5ebrqFiygkDYUjQ6G_atjgZ8E6IZyhypOB1_AuLbA"});
    keys["keys"].as_array_mut().unwrap().push(odd);
    let set = KeySet::parse(keys.to_string().as_bytes()).unwrap();
    let contained = ["ec", "ed", "rsa", "shared", "new", "odd"].map(|id| set.contains(id));
    assert_eq!(contained, [true, true, true, false, false, false]);
}

#[test]
fn a_token_is_valid_from_its_second_on_and_until_its_last() {
    assert_eq!(check_times(Some(101.0), Some(100.0), 100), Ok(()));
    let expired = check_times(Some(100.0), None, 100);
    assert_eq!(expired, Err(InvalidToken::Expired));
    let early = check_times(Some(200.0), Some(101.0), 100);
    assert_eq!(early, Err(InvalidToken::NotYetValid));
}

#[test]
fn each_refusal_of_a_token_says_why() {
    for (error, words) in [
        (InvalidToken::Empty, "empty"),
        (InvalidToken::Signature, "signature"),
        (InvalidToken::Extension, "extension"),
        (InvalidToken::Issuer, "issuer"),
        (InvalidToken::Audience, "audience"),
        (InvalidToken::Expired, "expired"),
        (InvalidToken::NoExpiry, "expired"),
        (InvalidToken::NotYetValid, "not valid yet"),
        (InvalidToken::NoSdkKeys, "sdk_keys"),
        (InvalidToken::NoKeyId, "kid"),
        (InvalidToken::UnknownKey, "not known"),
    ] {
        assert!(error.message().contains(words), "{error:?}");
    }
}
