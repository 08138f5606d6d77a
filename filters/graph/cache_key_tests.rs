#![allow(clippy::unwrap_used, reason = "tests")]

use http::HeaderValue;
use proptest::prelude::*;

use super::*;

const BODY: &str = r#"{"query":"{ a }","variables":{"x":1}}"#;

fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        headers.append(*name, HeaderValue::from_static(value));
    }
    headers
}

/// A query of tenant t1 by a public key.
fn cache_request<'r>(query: &'r str, headers: &'r HeaderMap) -> CacheRequest<'r> {
    CacheRequest {
        tenant: Some("t1"),
        credential_kind: "single",
        is_public: true,
        method: &Method::POST,
        path: "/content/v2",
        query,
        headers,
    }
}

fn key(request: &CacheRequest<'_>, body: &str) -> Result<CacheKey, Bypass> {
    let head = HeadKey::from_request(request)?;
    let is_read_only = head.is_read_only(body.as_bytes());
    is_read_only
        .then(|| head.to_cache_key(body.as_bytes()))
        .ok_or(Bypass::Document)
}

fn post(
    query: &str,
    lines: &[(&'static str, &'static str)],
    body: &str,
) -> Result<CacheKey, Bypass> {
    key(&cache_request(query, &headers(lines)), body)
}

fn get(query: &str) -> Result<CacheKey, Bypass> {
    let headers = HeaderMap::new();
    let request = CacheRequest {
        method: &Method::GET,
        ..cache_request(query, &headers)
    };
    key(&request, "")
}

fn plain() -> CacheKey {
    post("", &[], BODY).unwrap()
}

#[test]
fn the_same_request_has_the_same_key() {
    assert_eq!(post("", &[], BODY), Ok(plain()));
}

#[test]
fn public_keys_of_a_tenant_share_a_key() {
    assert_eq!(post("auth=one", &[], BODY), Ok(plain()));
    assert_eq!(post("auth=two", &[], BODY), Ok(plain()));
    assert_eq!(
        post("", &[("authorization", "epi-single one")], BODY),
        Ok(plain())
    );
}

#[test]
fn every_part_makes_another_key() {
    let none = HeaderMap::new();
    let base = cache_request("", &none);
    let others = [
        key(
            &CacheRequest {
                tenant: Some("t2"),
                ..base
            },
            BODY,
        ),
        key(
            &CacheRequest {
                credential_kind: "app",
                ..base
            },
            BODY,
        ),
        key(
            &CacheRequest {
                path: "/Content/v2",
                ..base
            },
            BODY,
        ),
        key(&base, r#"{"query":"{ b }"}"#),
        post("stored=true", &[], BODY),
        post("", &[("cg-username", "a")], BODY),
        post("", &[("cg-roles", "a")], BODY),
        post("", &[("cg-anything-new", "a")], BODY),
        post("", &[("accept-encoding", "gzip")], BODY),
        post("", &[("accept", "*/*")], BODY),
        post("", &[("content-type", "application/json")], BODY),
        post("", &[("origin", "https://a")], BODY),
        get("query={a}"),
    ];
    let mut seen = vec![plain()];
    for key in others.map(Result::unwrap) {
        assert!(!seen.contains(&key));
        seen.push(key);
    }
}

#[test]
fn a_header_that_changes_nothing_makes_no_other_key() {
    assert_eq!(
        post("", &[("user-agent", "a"), ("x-request-id", "b")], BODY),
        Ok(plain())
    );
}

#[test]
fn the_order_of_names_is_nothing_and_that_of_values_something() {
    assert_eq!(post("a=1&b=2", &[], BODY), post("b=2&a=1", &[], BODY));
    assert_ne!(post("a=1&a=2", &[], BODY), post("a=2&a=1", &[], BODY));
    assert_ne!(post("a=1&%61=2", &[], BODY), post("%61=2&a=1", &[], BODY));
    let order = |first, second| post("", &[("cg-roles", first), ("cg-roles", second)], BODY);
    assert_ne!(order("a", "b"), order("b", "a"));
}

#[test]
fn parts_cannot_run_into_each_other() {
    assert_ne!(post("ab=c", &[], BODY), post("a=bc", &[], BODY));
    assert_ne!(post("a=b&c=d", &[], BODY), post("a=bc&=d", &[], BODY));
    assert_ne!(
        post("", &[("cg-roles", "a, b")], BODY),
        post("", &[("cg-roles", "a"), ("cg-roles", "b")], BODY)
    );
}

#[test]
fn only_public_keys_of_known_tenants_are_cached_for() {
    let none = HeaderMap::new();
    let base = cache_request("", &none);
    assert_eq!(
        key(
            &CacheRequest {
                tenant: None,
                ..base
            },
            BODY
        ),
        Err(Bypass::Private)
    );
    assert_eq!(
        key(
            &CacheRequest {
                is_public: false,
                ..base
            },
            BODY
        ),
        Err(Bypass::Private)
    );
}

#[test]
fn a_client_that_wants_a_fresh_answer_gets_one() {
    for (query, lines) in [
        ("cache=false", &[][..]),
        ("%63ache=FALSE", &[]),
        ("", &[("cache-control", "no-store")]),
        (
            "",
            &[
                ("cache-control", "max-age=0"),
                ("cache-control", "x, No-Cache"),
            ],
        ),
        ("", &[("pragma", "no-cache")]),
    ] {
        assert_eq!(
            post(query, lines, BODY),
            Err(Bypass::NoCache),
            "{query} {lines:?}"
        );
    }
    assert_ne!(
        post("cache=true", &[("cache-control", "max-age=0")], BODY),
        Err(Bypass::NoCache)
    );
}

#[test]
fn requests_whose_answers_fit_nobody_else_pass_by() {
    for line in [
        ("range", "bytes=0-1"),
        ("if-none-match", "\"a\""),
        ("if-modified-since", "x"),
        ("cookie", "a=b"),
        ("connection", "keep-alive, content-type"),
        ("content-encoding", "gzip"),
    ] {
        assert_eq!(
            post("", &[line], BODY),
            Err(Bypass::Unshareable),
            "{line:?}"
        );
    }
    let two = [
        ("content-type", "application/json"),
        ("content-type", "application/graphql"),
    ];
    assert_eq!(post("", &two, BODY), Err(Bypass::Unshareable));
}

#[test]
fn other_methods_pass_by() {
    let none = HeaderMap::new();
    for method in [&Method::PUT, &Method::HEAD, &Method::DELETE] {
        let request = CacheRequest {
            method,
            ..cache_request("query={a}", &none)
        };
        assert_eq!(key(&request, ""), Err(Bypass::Method));
    }
}

#[test]
fn mutations_pass_by_however_they_come() {
    for body in [
        r#"{"query":"mutation { a }"}"#,
        r#"{"query":"\u006dutation { a }"}"#,
        r#"{"query":"{ a }","query":"mutation { a }"}"#,
        r#"{"query":"mutation { a }","query":"{ a }"}"#,
        r#"[{"query":"{ a }"}]"#,
        r#"{"extensions":{"persistedQuery":{}}}"#,
        r#"{"query":null}"#,
        "",
        "query={a}",
    ] {
        assert_eq!(post("", &[], body), Err(Bypass::Document), "{body}");
    }
    for query in [
        "query=mutation{a}",
        "query={a}&mutation=x",
        "query=%6dutation+%7Ba%7D",
        "",
        "query={a}&query={b}",
    ] {
        assert_eq!(get(query), Err(Bypass::Document), "{query}");
    }
    assert_eq!(post("query=mutation{a}", &[], BODY), Err(Bypass::Document));
}

#[test]
fn a_get_with_a_body_passes_by() {
    let headers = HeaderMap::new();
    let request = CacheRequest {
        method: &Method::GET,
        ..cache_request("query={a}", &headers)
    };
    assert!(key(&request, "").is_ok());
    assert_eq!(key(&request, "{ a }"), Err(Bypass::Document));
}

#[test]
fn a_document_may_come_as_such() {
    let content_type = [("content-type", "application/graphql; charset=utf-8")];
    assert!(post("", &content_type, "{ a }").is_ok());
    assert_eq!(
        post("", &content_type, "mutation { a }"),
        Err(Bypass::Document)
    );
    assert_eq!(
        post("", &[("content-type", "text/plain")], BODY),
        Err(Bypass::Document)
    );
}

proptest! {
    #[test]
    fn any_request_is_judged_without_a_panic(query: String, body: Vec<u8>) {
        let none = HeaderMap::new();
        if let Ok(head) = HeadKey::from_request(&cache_request(&query, &none)) {
            let _ = (head.is_read_only(&body), head.to_cache_key(&body));
        }
        let _ = get(&query);
    }
}

#[test]
fn a_connection_that_names_no_header_may_be_cached() {
    for value in ["close", "Keep-Alive", "keep-alive , close", ""] {
        assert!(names_nothing(value.as_bytes()), "{value}");
    }
    for value in ["te", "close, accept", "close\tx", "\"close\""] {
        assert!(!names_nothing(value.as_bytes()), "{value}");
    }
}
