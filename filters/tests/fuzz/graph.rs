//! Requests of the graph service: operations, documents, credentials, cache keys and `Cache-Control`.

use std::collections::BTreeMap;
use std::sync::Arc;

use filters::graph::credentials::{
    Nonces, PresentedCredential, TenantClaims, Tenants, VerificationInputs,
};
use filters::graph::operation::OperationRow;
use filters::graph::{
    CacheRequest, HeadKey, Operations, age_s, fresh_for_s, is_cacheable, is_upstream_hit,
};
use filters::proxy::normalise;
use http::header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, VARY};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use serde_json::json;

use crate::choices::Choices;
use crate::damage;
use crate::run::run;

#[test]
fn any_path_is_an_operation() {
    let operations =
        Operations::parse(std::iter::empty::<OperationRow<'_>>(), &BTreeMap::new()).unwrap();
    run("graph: operations", |choices| {
        const PARTS: [&str; 12] = [
            "/content/v2",
            "/",
            "api",
            "content",
            "v3",
            "types",
            "%2e",
            "..",
            "{x}",
            "*",
            "sources",
            "graph",
        ];
        let path: String = (0..choices.below(7))
            .map(|_| [*choices.pick(&PARTS), "/"].concat())
            .collect();
        let path = damage::bytes(choices, path.into_bytes());
        let Ok(path) = normalise(&String::from_utf8_lossy(&path)).map(|path| path.into_owned())
        else {
            return;
        };
        let method = *choices.pick(&[
            "GET", "POST", "PUT", "DELETE", "OPTIONS", "HEAD", "get", "M-SEARCH",
        ]);
        let _ = operations.find(method, &path);
        // Who has several spellings of a method counts on one row.
        let found = |method: &str| format!("{:?}", operations.find(method, &path));
        assert_eq!(found("POST"), found("post"), "{path}");
    });
}

/// A document, and whether it only reads. Texts and comments hold what would be an operation elsewhere.
pub fn document(choices: &mut Choices<'_>) -> (String, bool) {
    const READS: [&str; 9] = [
        "{ a }",
        "query { a }",
        "query Q($x: Int = 1) @d { mutation: a { b } }",
        "fragment F on T { a }",
        "# mutation { x }\n",
        "query { a(x: \"} mutation { \\\" \") }",
        "{ a(x: \"\"\" } mutation { \\\"\"\" \" \"\"\") }",
        "query subscriptions { a }",
        ",\u{feff} ",
    ];
    const WRITES: [&str; 4] = [
        "mutation { a }",
        "mutation M($x: Int) { a }",
        "subscription S { a }",
        "mutation@d{a}",
    ];
    let mut text = "{ a } ".to_owned();
    let mut reads = true;
    for _ in 0..choices.below(6) {
        if choices.once_in(4) {
            let writes = *choices.pick(&WRITES);
            text.push_str(writes);
            reads = false;
        } else {
            let reads = *choices.pick(&READS);
            text.push_str(reads);
        }
        let between = *choices.pick(&[" ", "\n", "\r\n", "\t,"]);
        text.push_str(between);
    }
    (text, reads)
}

#[test]
fn a_document_that_writes_is_never_cached() {
    run("graph: documents", |choices| {
        let (text, reads) = document(choices);
        let kind = *choices.pick(&["application/json", "application/graphql"]);
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(kind))]);
        let request = CacheRequest {
            tenant: Some("t"),
            credential_kind: "single",
            is_public: true,
            method: &Method::POST,
            path: "/content/v2",
            query: "",
            headers: &headers,
        };
        let body = if kind.ends_with("json") {
            json!({"query": text}).to_string()
        } else {
            text
        };
        let Ok(head) = HeadKey::from_request(&request) else {
            return;
        };
        assert_eq!(head.is_read_only(body.as_bytes()), reads, "{body}");
        let damaged = damage::bytes(choices, body.clone().into_bytes());
        let _ = head.is_read_only(&damaged);
        assert_eq!(
            head.to_cache_key(&damaged) == head.to_cache_key(body.as_bytes()),
            damaged == body.as_bytes()
        );
    });
}

/// One way in which a request differs from another.
fn differ<'r>(
    choices: &mut Choices<'_>,
    base: CacheRequest<'r>,
    others: &'r [HeaderMap],
) -> CacheRequest<'r> {
    match choices.below(6) {
        0 => CacheRequest {
            tenant: Some("t2"),
            ..base
        },
        1 => CacheRequest {
            credential_kind: "app",
            ..base
        },
        2 => CacheRequest {
            method: &Method::GET,
            ..base
        },
        3 => CacheRequest {
            path: "/content/v3",
            ..base
        },
        4 => {
            let query = *choices.pick(&["stored=true", "b=1", "a=2", "a=1&a=1"]);
            CacheRequest { query, ..base }
        }
        _ => CacheRequest {
            headers: choices.pick(others),
            ..base
        },
    }
}

#[test]
fn requests_that_differ_in_anything_have_different_keys() {
    let lines = [
        ("accept", "text/html"),
        ("origin", "https://a.example"),
        ("accept-encoding", "gzip"),
        ("cg-username", "ann"),
        ("cg-roles", "x"),
    ];
    let others: Vec<HeaderMap> = lines
        .map(|(name, value)| {
            HeaderMap::from_iter([
                (
                    HeaderName::from_static(name),
                    HeaderValue::from_static(value),
                ),
                (CONTENT_TYPE, HeaderValue::from_static("application/json")),
            ])
        })
        .into();
    let plain =
        HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
    run("graph: cache keys", |choices| {
        let base = CacheRequest {
            tenant: Some("t"),
            credential_kind: "single",
            is_public: true,
            method: &Method::POST,
            path: "/content/v2",
            query: "a=1",
            headers: &plain,
        };
        let other = differ(choices, base, &others);
        let key = |request: &CacheRequest<'_>, body: &[u8]| {
            HeadKey::from_request(request)
                .ok()
                .map(|head| head.to_cache_key(body))
        };
        let (text, _) = document(choices);
        let body = json!({"query": text}).to_string();
        if let (Some(one), Some(two)) = (key(&base, body.as_bytes()), key(&other, body.as_bytes()))
        {
            assert_ne!(one, two, "{other:?}");
        }
    });
}

#[test]
fn any_credential_is_read_and_only_known_ones_count() {
    let mut tenants = Tenants::default();
    let tenant: Arc<str> = "t1".into();
    tenants.add_single(&tenant, "single-key");
    tenants.add_app(&tenant, "app", Some("c2VjcmV0"));
    tenants.add_issuer(&tenant, "https://issuer", Some("aud"), Some(0));
    let nonces = Nonces::default();
    run("graph: credentials", |choices| {
        const LINES: [&str; 7] = [
            "epi-single single-key",
            "epi-hmac app:1800000000000:nonce:c2ln",
            "Basic YXBwOnNlY3JldA==",
            "Bearer e30.eyJpc3MiOiJodHRwczovL2lzc3VlciIsImF1ZCI6ImF1ZCJ9.c2ln",
            "epi-single other",
            "Negotiate x",
            "",
        ];
        let mut headers = HeaderMap::new();
        for _ in 0..choices.below(3) {
            let line = {
                let line = choices.pick(&LINES).as_bytes().to_vec();
                damage::bytes(choices, line)
            };
            if let Ok(value) = HeaderValue::from_bytes(&line) {
                headers.append(AUTHORIZATION, value);
            }
        }
        let query = {
            let line = choices
                .pick(&[
                    "auth=single-key",
                    "a=b",
                    "",
                    "auth=x&auth=y",
                    "AUTH=single-key",
                ])
                .as_bytes()
                .to_vec();
            damage::bytes(choices, line)
        };
        let query = String::from_utf8_lossy(&query).into_owned();
        let Ok(presented) = PresentedCredential::from_request(&headers, Some(&query)) else {
            return;
        };
        let now_ms = 1_800_000_000_000;
        let _ = tenants.needs_body(&presented, now_ms);
        let claims = match &presented {
            PresentedCredential::Bearer(token) => TenantClaims::from_unverified_token(token),
            _ => None,
        };
        let inputs = VerificationInputs {
            method: "POST",
            path_and_query: "/content/v2",
            body_md5: Some([0; 16]),
            now_ms,
            accepts_single_key: true,
            claims: claims.as_ref(),
        };
        let identity = tenants.identify(&presented, &inputs, &nonces);
        if identity.tenant.is_some() {
            let is_known = match &presented {
                PresentedCredential::Single(key) => &**key == "single-key",
                // The secret as it is configured, in Basic credentials.
                PresentedCredential::Basic(basic) => basic.parts() == ("app", "c2VjcmV0"),
                _ => false,
            };
            assert!(is_known, "{headers:?} {query}");
        }
    });
}

#[test]
fn a_response_that_forbids_it_is_never_cached() {
    const DIRECTIVES: [&str; 12] = [
        "max-age=60",
        "s-maxage=\"5\"",
        "private",
        "no-store",
        "No-Cache",
        "public",
        "private=\"set-cookie\"",
        "max-age",
        "=",
        "\"private\"",
        "stale-while-revalidate=9",
        "max-age=99999999999999999999",
    ];
    run("graph: Cache-Control", |choices| {
        let directives: Vec<&str> = (0..choices.below(5))
            .map(|_| *choices.pick(&DIRECTIVES))
            .collect();
        let line = directives.join(*choices.pick(&[",", ", ", " ,\t"]));
        let damaged = damage::bytes(choices, line.clone().into_bytes());
        let mut headers = HeaderMap::new();
        for line in [line.as_bytes(), &damaged] {
            if let Ok(value) = HeaderValue::from_bytes(line) {
                headers.append(CACHE_CONTROL, value);
            }
        }
        for name in ["age", "x-cache", "cf-cache-status"] {
            let value = damage::bytes(choices, b"HIT, 5".to_vec());
            if let Ok(value) = HeaderValue::from_bytes(&value) {
                headers.append(name, value);
            }
        }
        let vary = *choices.pick(&[
            "",
            "Accept",
            "accept-encoding, ORIGIN",
            "*",
            "Cookie",
            "cg-roles",
        ]);
        headers.insert(VARY, HeaderValue::from_static(vary));
        let forbids = |directive: &str| {
            ["private", "no-store", "no-cache"]
                .contains(&directive.split('=').next().unwrap().to_lowercase().as_str())
        };
        let must_not =
            directives.iter().any(|directive| forbids(directive)) || matches!(vary, "*" | "Cookie");
        let status = *choices.pick(&[200, 206, 404]);
        if is_cacheable(StatusCode::from_u16(status).unwrap(), &headers) {
            assert!(!must_not && status == 200, "{headers:?}");
        }
        let (fresh, _) = (
            fresh_for_s(&headers),
            (age_s(&headers), is_upstream_hit(&headers)),
        );
        let names_an_age = headers
            .get_all(CACHE_CONTROL)
            .iter()
            .any(|line| line.as_bytes().contains(&b'='));
        assert!(fresh.is_none() || names_an_age);
    });
}
