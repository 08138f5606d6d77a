#![allow(clippy::unwrap_used, reason = "tests")]
use super::*;

/// The time of AWS's test suite: 30 August 2015, 12:36:00.
const TIME_S: u64 = 1_440_938_160;

fn keys(session_token: Option<&str>) -> AwsKeys {
    AwsKeys {
        access_key_id: "AKIDEXAMPLE".into(),
        secret_access_key: SecretText::new("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
        session_token: session_token.map(SecretText::new),
    }
}

fn scope(service: &str) -> SigningScope {
    SigningScope {
        region: "us-east-1".into(),
        service: service.into(),
    }
}

fn map(headers: &[(&'static str, &str)]) -> HeaderMap {
    let headers = headers.iter().map(|(name, value)| {
        let name = HeaderName::from_static(name);
        (name, HeaderValue::from_str(value).unwrap())
    });
    headers.collect()
}

fn parts<'a>(method: &'a str, target: &'a str, body_hash: &'a BodyHash) -> SignedParts<'a> {
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    };
    SignedParts {
        method,
        path,
        query,
        body_hash,
    }
}

/// A case of the suite: method and target, headers beside `host`, the body, the signature.
type Case = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static str,
    &'static str,
);

/// Cases of AWS's public test suite, each by its signature.
const SUITE: &[Case] = &[
    (
        "GET",
        "/",
        &[],
        "",
        "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
    ),
    (
        "GET",
        "/example/..",
        &[],
        "",
        "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
    ),
    (
        "GET",
        "//example//",
        &[],
        "",
        "9a624bd73a37c9a373b5312afbebe7a714a789de108f0bdfe846570885f57e84",
    ),
    (
        "GET",
        "/?Param2=value2&Param1=value1",
        &[],
        "",
        "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
    ),
    (
        "GET",
        "/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
        &[],
        "",
        "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f",
    ),
    (
        "GET",
        "/ሴ",
        &[],
        "",
        "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85",
    ),
    (
        "GET",
        "/example space/",
        &[],
        "",
        "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741",
    ),
    (
        "GET",
        "/",
        &[("my-header1", " value1"), ("my-header2", " \"a   b   c\"")],
        "",
        "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736",
    ),
    (
        "POST",
        "/",
        &[],
        "",
        "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
    ),
    (
        "POST",
        "/?Param1=value1",
        &[],
        "",
        "28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11",
    ),
    (
        "POST",
        "/",
        &[("content-type", "application/x-www-form-urlencoded")],
        "Param1=value1",
        "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
    ),
];

#[test]
fn signatures_are_those_of_the_public_test_suite() {
    for (method, target, headers, body, signature) in SUITE {
        let mut signed = map(headers);
        signed.insert("host", HeaderValue::from_static("example.amazonaws.com"));
        let hash = BodyHash::from_slices([body.as_bytes()]);
        let (keys, scope) = (keys(None), scope("service"));
        sign(
            &mut signed,
            parts(method, target, &hash),
            (&keys, &scope),
            TIME_S,
        )
        .unwrap();
        assert_eq!(signed["x-amz-date"], "20150830T123600Z");
        let value = signed["authorization"].to_str().unwrap();
        assert!(value.ends_with(signature), "{method} {target}: {value}");
    }
}

#[test]
fn the_header_is_that_of_the_documentation() {
    let mut headers = map(&[
        ("host", "iam.amazonaws.com"),
        (
            "content-type",
            "application/x-www-form-urlencoded; charset=utf-8",
        ),
        ("authorization", "Bearer stale"),
    ]);
    let hash = BodyHash::from_slices([]);
    let target = "/?Action=ListUsers&Version=2010-05-08";
    let (keys, scope) = (keys(None), scope("iam"));
    sign(
        &mut headers,
        parts("GET", target, &hash),
        (&keys, &scope),
        TIME_S,
    )
    .unwrap();
    assert_eq!(
        headers["authorization"],
        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, \
         SignedHeaders=content-type;host;x-amz-date, \
         Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"
    );
    assert!(headers["authorization"].is_sensitive());
}

/// The body may be in slices, and a model's id is encoded twice in the signature.
#[test]
fn a_request_to_bedrock_is_signed_as_the_vendor_signs_it() {
    let path = "/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse";
    let body = r#"{"messages":[{"role":"user","content":[{"text":"hi"}]}]}"#;
    let (first, last) = body.as_bytes().split_at(20);
    for (token, names, signature) in [
        (
            None,
            "content-type;host;x-amz-date",
            "6b18186d5132c71249f705372d764ddfd8a9890b662230fb355af564c05e1c35",
        ),
        (
            Some("TOKEN"),
            "content-type;host;x-amz-date;x-amz-security-token",
            "41d6e62c52031a06df71b9e0c7934f4d386013a202b2563437253b6bc14d9459",
        ),
    ] {
        let mut headers = map(&[
            ("host", "bedrock-runtime.us-east-1.amazonaws.com"),
            ("content-type", "application/json"),
        ]);
        let hash = BodyHash::from_slices([first, last]);
        let (keys, scope) = (keys(token), scope("bedrock"));
        // 2 January 2026, 03:04:05.
        sign(
            &mut headers,
            parts("POST", path, &hash),
            (&keys, &scope),
            1_767_323_045,
        )
        .unwrap();
        let value = headers["authorization"].to_str().unwrap();
        let expected = format!("SignedHeaders={names}, Signature={signature}");
        assert!(value.ends_with(&expected), "{value}");
        let has_token = headers
            .get("x-amz-security-token")
            .map(|it| it.is_sensitive());
        assert_eq!(has_token, token.map(|_| true));
    }
    assert_eq!(canonical_path("/model/a%3A0/b"), "/model/a%253A0/b");
}

#[test]
fn a_time_beyond_the_calendar_and_a_key_with_a_line_end_are_refused() {
    let hash = BodyHash::from_slices([]);
    let all = |keys: &AwsKeys, now_s| {
        let request = parts("GET", "/", &hash);
        sign(
            &mut HeaderMap::new(),
            request,
            (keys, &scope("bedrock")),
            now_s,
        )
    };
    assert!(all(&keys(None), TIME_S).is_some());
    assert!(all(&keys(None), u64::MAX).is_none());
    assert!(all(&keys(Some("a\nb")), TIME_S).is_none());
}

#[test]
fn a_long_key_counts_by_its_hash() {
    let long = "k".repeat(100);
    let expected = Hmac::<Sha256>::new_from_slice(long.as_bytes()).unwrap();
    let expected = expected.chain_update(b"text").finalize().into_bytes();
    assert_eq!(mac(long.as_bytes(), b"text")[..], expected[..]);
}

#[test]
fn nothing_prints_a_secret() {
    let shown = format!("{:?}", keys(Some("TOKEN")));
    assert!(
        !shown.contains("wJalr") && !shown.contains("TOKEN"),
        "{shown}"
    );
}

/// Source: the example `PUT Object` of S3's documentation of signatures in headers.
#[test]
fn s3_takes_paths_as_they_are_sent() {
    let hash = BodyHash::from_slices([&b"Welcome to Amazon S3."[..]]);
    let keys = AwsKeys {
        access_key_id: "AKIAIOSFODNN7EXAMPLE".into(),
        secret_access_key: SecretText::new("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
        session_token: None,
    };
    let mut headers = map(&[
        ("date", "Fri, 24 May 2013 00:00:00 GMT"),
        ("host", "examplebucket.s3.amazonaws.com"),
        ("x-amz-content-sha256", &hash.to_hex()),
        ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
    ]);
    let request = parts("PUT", "/test%24file.text", &hash);
    sign(&mut headers, request, (&keys, &scope(S3)), 1_369_353_600).unwrap();
    let value = headers["authorization"].to_str().unwrap();
    let signature = "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd";
    assert!(value.ends_with(signature), "{value}");
}
