//! The subject that a request counts for: the tenant of a valid credential, else the client's address.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use md5::{Digest, Md5};
use serde_json::json;
use sha2::Sha256;

use super::*;
use crate::support::issuer;
use crate::support::upstream::ClosedPort;

/// Base64 of `secret`, as secrets of applications are written.
const SECRET: &str = "c2VjcmV0";
/// One query of the tenant, one of an address, in a window that outlasts every test.
const TIGHT: &str = "window_s = 3600\ncategories = { query = { default = 1, maximum = 1 } }";

/// Makes the n-th request with a proof.
type Proof = fn(u32) -> Ask;

/// The subject whose limit is used up.
fn tenant_of(gateway: &Gateway, request: impl Fn(u32) -> Ask) -> String {
    for turn in 0..5 {
        let answer = gateway.graph(&request(turn));
        if answer.status() == 429 {
            let body = answer.json();
            return body["details"]["tenantId"].as_str().unwrap().to_owned();
        }
        assert_eq!(answer.status(), 200);
    }
    panic!("never refused")
}

fn with_secret(service: &Upstream) -> Gateway {
    let url = service.url();
    let toml = format!(
        "[graph]\nupstream = \"{url}\"\n{TIGHT}\n[[graph.tenants]]\nid = \"t1\"\nsingle_keys = [\"k1\", \"k2\"]\n\
         app_keys = [{{ key = \"app\", secret = {{ env = \"APP_SECRET\" }} }}, {{ key = \"unproved\" }}]\n\
         bearer = [{{ issuer = \"https://id\", audience = \"graph\" }}]\n"
    );
    Gateway::start_with_env(&toml, "", &[("APP_SECRET", SECRET)])
}

fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(now.as_millis()).unwrap()
}

/// Returns the text that a client of the service signs.
fn signed(method: &str, path: &str, body: &str, nonce: &str, at_ms: i64) -> Ask {
    let md5 = STANDARD.encode(Md5::digest(body));
    let message = format!("app{method}{path}{at_ms}{nonce}{md5}");
    let mut mac = Hmac::<Sha256>::new_from_slice(b"secret").unwrap();
    mac.update(message.as_bytes());
    let signature = STANDARD.encode(mac.finalize().into_bytes());
    Ask::new(method, path)
        .header(
            "authorization",
            &format!("epi-hmac app:{at_ms}:{nonce}:{signature}"),
        )
        .body(body)
}

fn basic(key: &str, secret: &str) -> Ask {
    let pair = STANDARD.encode(format!("{key}:{secret}"));
    Ask::post("/content/v2", QUERY).header("authorization", &format!("Basic {pair}"))
}

#[test]
fn each_proof_of_a_tenant_counts_for_it() {
    let service = service();
    let proofs: [(&str, Proof); 6] = [
        ("auth", |_| Ask::post("/content/v2?auth=k1", QUERY)),
        ("epi-single", |_| {
            Ask::post("/content/v2", QUERY).header("authorization", "epi-single k2")
        }),
        ("hmac", |turn| {
            signed(
                "POST",
                "/content/v2?a=%7e",
                QUERY,
                &turn.to_string(),
                now_ms(),
            )
        }),
        ("basic", |_| basic("app", SECRET)),
        ("unproved", |_| basic("unproved", "any")),
        ("bearer", |_| {
            let claims = URL_SAFE_NO_PAD.encode(r#"{"iss":"https://id","aud":"graph"}"#);
            Ask::post("/content/v2", QUERY).key(&format!("e30.{claims}.c2ln"))
        }),
    ];
    for (name, proof) in proofs {
        let gateway = with_secret(&service);
        assert_eq!(tenant_of(&gateway, proof), "t1", "{name}");
    }
}

#[test]
fn what_proves_nothing_counts_for_the_address() {
    let service = service();
    let proofs: [(&str, Proof); 9] = [
        ("nothing", |_| Ask::post("/content/v2", QUERY)),
        ("unknown key", |turn| {
            Ask::post(&format!("/content/v2?auth=x{turn}"), QUERY)
        }),
        ("wrong secret", |turn| basic("app", &format!("{turn}"))),
        ("unknown app", |turn| basic(&format!("x{turn}"), SECRET)),
        ("old signature", |turn| {
            signed(
                "POST",
                "/content/v2",
                QUERY,
                &turn.to_string(),
                now_ms() - 301_000,
            )
        }),
        ("body changed", |turn| {
            signed("POST", "/content/v2", QUERY, &turn.to_string(), now_ms()).body("{}")
        }),
        ("other issuer", |_| {
            let claims = URL_SAFE_NO_PAD.encode(r#"{"iss":"https://other","aud":"graph"}"#);
            Ask::post("/content/v2", QUERY).key(&format!("e30.{claims}.c2ln"))
        }),
        ("garbage", |turn| {
            Ask::post("/content/v2", QUERY).header("authorization", &format!("x{turn}"))
        }),
        ("obo", |_| {
            Ask::post("/content/v2", QUERY).header("authorization", "epi-obo x")
        }),
    ];
    for (name, proof) in proofs {
        let gateway = with_secret(&service);
        assert_eq!(tenant_of(&gateway, proof), "unidentified", "{name}");
        let own = gateway.graph(&Ask::post("/content/v2?auth=k1", QUERY));
        assert_eq!(
            own.status(),
            200,
            "{name}: the tenant's own window is untouched"
        );
    }
}

#[test]
fn a_signature_counts_once() {
    let service = service();
    let gateway = with_secret(&service);
    let at_ms = now_ms();
    let request = signed("POST", "/content/v2", QUERY, "n", at_ms);
    assert_eq!(tenant_of(&gateway, |_| request.clone()), "unidentified");
    let next = gateway.graph(&signed("POST", "/content/v2", QUERY, "m", at_ms));
    assert_eq!(next.json()["details"]["tenantId"], "t1");
}

#[test]
fn a_signed_body_of_any_size_is_forwarded_whole() {
    let service = service();
    let gateway = with_secret(&service);
    let body = "x".repeat(300_000);
    let path = "/api/content/v2/data?id=%C3%A9";
    for (turn, chunk) in [(0, None), (1, Some(7000))] {
        let mut request = signed("POST", path, &body, &turn.to_string(), now_ms());
        if let Some(bytes) = chunk {
            request = request.chunked(bytes);
        }
        let answer = gateway.graph(&request);
        assert_eq!((answer.status(), answer.text()), (200, DATA));
        assert_eq!(limit(&answer).0, "500");
        let received = service.request(turn);
        assert_eq!(
            (received.path.as_str(), received.body.len()),
            (path, body.len())
        );
        assert!(
            received
                .header("authorization")
                .unwrap()
                .starts_with("epi-hmac app:")
        );
    }
}

#[test]
fn a_signed_request_without_a_body_passes() {
    let service = service();
    let gateway = with_secret(&service);
    let answer = gateway.graph(&signed("GET", "/api/content/v3/types", "", "n", now_ms()));
    assert_eq!((answer.status(), answer.text()), (200, DATA));
    let empty = signed("DELETE", "/api/content/v2/data?id=a", "", "o", now_ms()).chunked(1);
    assert_eq!(gateway.graph(&empty).status(), 200);
}

#[test]
fn a_public_key_is_no_credential_of_management() {
    let service = service();
    let gateway = before(&service, "", "limits = { \"GET /api/webhooks\" = 7 }");
    let answer = gateway.graph(&Ask::get("/api/webhooks?auth=k1"));
    assert_eq!(limit(&answer).0, "1000");
}

#[test]
fn keys_of_one_tenant_share_its_window() {
    let service = service();
    let gateway = with_secret(&service);
    assert_eq!(
        gateway
            .graph(&Ask::post("/content/v2?auth=k1", QUERY))
            .status(),
        200
    );
    assert_eq!(
        gateway
            .graph(&Ask::post("/content/v2?auth=k2", QUERY))
            .status(),
        429
    );
    assert_eq!(gateway.graph(&basic("app", SECRET)).status(), 429);
}

#[test]
fn two_credentials_are_refused_with_the_limit_and_go_nowhere() {
    let service = service();
    let gateway = before(&service, "", "");
    let plain = || Ask::post("/content/v2?auth=k1", QUERY);
    for request in [
        Ask::post("/content/v2?auth=k1&auth=k1", QUERY),
        Ask::post("/content/v2?auth=k1&%61uth=k2", QUERY),
        Ask::post("/content/v2?auth=k1&AUTH=k2", QUERY),
        plain().header("authorization", "epi-single k2"),
        plain().header("authorization", "Basic eDp5"),
        plain()
            .header("authorization", "x")
            .header("authorization", "y"),
    ] {
        let answer = gateway.graph(&request);
        assert_eq!((answer.status(), limit(&answer)), (400, ("1500", "10")));
    }
    assert_eq!(service.requests().len(), 0);
    let same = plain().header("authorization", "epi-single k1");
    assert_eq!(gateway.graph(&same).status(), 200);
}

/// A gateway whose tenants share an issuer with a key set and differ by audience.
fn with_key_set(service: &Upstream, keys: &str) -> Gateway {
    let bearer = |audience: &str| {
        format!(
            "bearer = [{{ issuer = \"https://id\", audience = \"{audience}\", jwks_url = \"{keys}/keys\" }}]\n"
        )
    };
    let toml = format!(
        "[graph]\nupstream = \"{}\"\n{TIGHT}\n[[graph.tenants]]\nid = \"t1\"\n{}[[graph.tenants]]\nid = \"t2\"\n{}",
        service.url(),
        bearer("one"),
        bearer("two"),
    );
    Gateway::start(&toml, "")
}

fn token(audience: &str, exp: u64) -> String {
    let claims = json!({"iss": "https://id", "aud": audience, "exp": exp});
    issuer::token(issuer::KEY_ID, &claims)
}

#[test]
fn a_token_counts_for_the_tenant_of_its_audience_once_it_is_verified() {
    let service = service();
    let published = Upstream::always(Reply::json(200, issuer::key_set(issuer::KEY_ID)));
    let never = issuer::NEVER;
    let good = token("two", never);
    let (head, signature) = good.rsplit_once('.').unwrap();
    let forged = format!("{head}.{}", signature.chars().rev().collect::<String>());
    for (token, tenant) in [
        (token("one", never), "t1"),
        (good.clone(), "t2"),
        (token("two", 1), "unidentified"),
        (token("three", never), "unidentified"),
        (forged, "unidentified"),
    ] {
        let gateway = with_key_set(&service, &published.url());
        let request = |_| Ask::post("/content/v2", QUERY).key(&token);
        assert_eq!(tenant_of(&gateway, request), tenant);
    }
}

#[test]
fn without_its_issuer_a_token_counts_for_the_address() {
    let service = service();
    let closed = ClosedPort::take();
    let gateway = with_key_set(&service, &closed.url());
    let token = token("one", issuer::NEVER);
    let request = |_| Ask::post("/content/v2", QUERY).key(&token);
    assert_eq!(tenant_of(&gateway, request), "unidentified");
}
