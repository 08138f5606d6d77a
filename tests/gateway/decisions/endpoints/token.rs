//! `POST /oauth/token`, and the access that a token gives.

use argon2::password_hash::{PasswordHasher, SaltString};
use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use serde_json::{Value, json};

use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::{Answer, ask};
use crate::support::flags::gateway_with_env;
use crate::support::issuer;
use crate::support::script::Reply;
use crate::support::upstream::{ClosedPort, Upstream};

fn gateway() -> Gateway {
    let salt = SaltString::from_b64("c2FsdHNhbHQ").unwrap();
    let argon = argon2::Argon2::default()
        .hash_password(b"open sesame", &salt)
        .unwrap();
    let bcrypt = BASE64.encode(bcrypt::hash(b"raw bytes", 4).unwrap());
    let clients = format!(
        "token_keys = [{{ env = \"TOKEN_KEY\" }}]\ntoken_ttl_s = 60\n\
         [[decisions.clients]]\nid = \"shop\"\nsecret_hash = \"{argon}\"\nsdk_keys = [\"sandbox\"]\n\
         [[decisions.clients]]\nid = \"old\"\nsecret_hash = \"{bcrypt}\"\nsdk_keys = [\"sandbox\", \"other\"]\n"
    );
    gateway_with_env(&clients, &[("TOKEN_KEY", &BASE64.encode([7; 32]))])
}

fn form(gateway: &Gateway, body: &str) -> Answer {
    let request = Ask::new("POST", "/oauth/token")
        .header("Content-Type", "application/x-www-form-urlencoded")
        .body(body);
    ask(gateway.address(), &request)
}

fn decide(token: &str) -> Ask {
    Ask::post("/v1/decide?keys=dark_mode", "{\"userId\":\"u\"}").key(token)
}

/// Contract: decision-agent 1 It returns the
/// Contract: decision-agent 2.2 token
/// Contract: decision-agent 4 POST /oauth/token
/// Contract: decision-agent 4 6
/// Contract: decision-agent 5 1
/// Contract: decision-agent 5 3
/// Contract: decision-agent 7 403
/// Contract: decision-agent 9 1
#[test]
fn a_client_gets_a_token_and_the_token_opens_its_keys() {
    let gateway = gateway();
    let ask_for = json!({"grant_type": "client_credentials", "client_id": "shop", "client_secret": "open sesame"});
    let answer = ask(
        gateway.address(),
        &Ask::post("/oauth/token", ask_for.to_string()),
    )
    .json();
    assert_eq!(
        (&answer["token_type"], &answer["expires_in"]),
        (&"bearer".into(), &60.into())
    );
    let token = answer["access_token"].as_str().unwrap();
    assert_eq!(ask(gateway.address(), &decide(token)).status(), 200);
    let other = decide(token).header("X-Platform-SDK-Key", "other");
    assert_eq!(ask(gateway.address(), &other).status(), 403);
    assert_eq!(ask(gateway.address(), &decide("x.y.z")).status(), 401);
    // A valid key suffices beside a token that is none.
    let beside = decide("x.y.z").header("X-Platform-SDK-Key", "sandbox");
    assert_eq!(ask(gateway.address(), &beside).status(), 200);

    let secret = BASE64.encode(b"raw bytes");
    let body = format!(
        "grant_type=client_credentials&client_id=old&client_secret={}",
        secret.replace('=', "%3D")
    );
    let old = form(&gateway, &body).json();
    let token = old["access_token"].as_str().unwrap();
    assert_eq!(ask(gateway.address(), &decide(token)).status(), 400);
    let named = decide(token).header("X-Platform-SDK-Key", "sandbox");
    assert_eq!(ask(gateway.address(), &named).status(), 200);
}

/// Contract: decision-agent 7 401+
#[test]
fn an_invalid_token_request_is_explained() {
    let gateway = gateway();
    for (body, status, error) in [
        ("", 400, "invalid_request"),
        ("grant_type=password", 400, "unsupported_grant_type"),
        ("grant_type=client_credentials", 401, "invalid_client"),
        (
            "grant_type=client_credentials&client_id=shop&client_secret=wrong",
            401,
            "invalid_client",
        ),
        (
            "grant_type=client_credentials&client_id=nobody&client_secret=x",
            401,
            "invalid_client",
        ),
    ] {
        let answer = form(&gateway, body);
        assert_eq!(
            (answer.status(), &answer.json()["error"]),
            (status, &Value::from(error)),
            "{body}"
        );
        let description = &answer.json()["error_description"];
        assert!(status != 401 || description.is_string(), "{body}");
    }
    let text = Ask::new("POST", "/oauth/token")
        .header("Content-Type", "text/plain")
        .body("x");
    assert_eq!(ask(gateway.address(), &text).status(), 415);
}

#[test]
fn a_foreign_token_counts_once_its_issuer_publishes_the_key() {
    let published = Upstream::sequence([
        Reply::json(200, issuer::key_set("other")),
        Reply::json(200, issuer::key_set(issuer::KEY_ID)),
    ]);
    let foreign = format!("jwks_url = \"{}/keys\"", published.url());
    let gateway = gateway_with_env(&foreign, &[]);
    published.wait_requests(1);
    let good = json!({"sdk_keys": ["sandbox"], "exp": issuer::NEVER});
    let status = |id: &str, claims: &Value| {
        ask(gateway.address(), &decide(&issuer::token(id, claims))).status()
    };
    assert_eq!(status("other", &good), 200);
    assert_eq!(
        status("other", &json!({"sdk_keys": ["sandbox"], "exp": 1})),
        401
    );
    assert_eq!(
        status(
            "other",
            &json!({"sdk_keys": ["elsewhere"], "exp": issuer::NEVER})
        ),
        401
    );
    assert_eq!(status("other", &json!({"exp": issuer::NEVER})), 401);
    // The keys were just fetched: no caller can cause another fetch at once.
    assert_eq!(status(issuer::KEY_ID, &good), 401);
    assert_eq!(published.requests().len(), 1);
    let key = Ask::post("/v1/decide?keys=dark_mode", "{\"userId\":\"u\"}");
    let key = key.header("X-Platform-SDK-Key", "sandbox");
    assert_eq!(ask(gateway.address(), &key).status(), 200);
}

#[test]
fn without_its_issuer_a_gateway_starts_and_foreign_tokens_do_not_count() {
    let closed = ClosedPort::take();
    let foreign = format!("jwks_url = \"{}/keys\"", closed.url());
    let gateway = gateway_with_env(&foreign, &[]);
    let good = json!({"sdk_keys": ["sandbox"], "exp": issuer::NEVER});
    let asked = decide(&issuer::token(issuer::KEY_ID, &good));
    assert_eq!(ask(gateway.address(), &asked).status(), 401);
}

/// The header counts before the key is looked for, so the second fetch of keys never comes.
#[test]
fn a_token_that_demands_more_or_is_for_others_is_refused() {
    let published = Upstream::always(Reply::json(200, issuer::key_set(issuer::KEY_ID)));
    let foreign = format!(
        "jwks_url = \"{}/keys\"\ntoken_issuer = \"https://id\"\ntoken_audience = \"flags\"",
        published.url()
    );
    let gateway = gateway_with_env(&foreign, &[]);
    published.wait_requests(1);
    let status = |header: Value, issuer: &str, audience: Value| {
        let claims =
            json!({"sdk_keys": ["sandbox"], "exp": issuer::NEVER, "iss": issuer, "aud": audience});
        let token = issuer::token_with(&header, &claims);
        ask(gateway.address(), &decide(&token)).status()
    };
    let header = |more: Value| {
        let mut header = json!({"alg": "ES256", "kid": issuer::KEY_ID});
        let more = more.as_object().unwrap().clone();
        header.as_object_mut().unwrap().extend(more);
        header
    };
    let flags = json!(["flags", "other"]);
    assert_eq!(status(header(json!({})), "https://id", flags.clone()), 200);
    for demand in [json!({"crit": ["exp"]}), json!({"b64": false})] {
        assert_eq!(status(header(demand), "https://id", flags.clone()), 401);
    }
    assert_eq!(status(header(json!({})), "https://other", flags), 401);
    assert_eq!(status(header(json!({})), "https://id", json!("other")), 401);
}

#[test]
fn the_original_agent_tells_why_a_token_does_not_count() {
    let published = Upstream::always(Reply::json(200, issuer::key_set(issuer::KEY_ID)));
    let agent = format!(
        "compat = \"agent\"\njwks_url = \"{}/keys\"",
        published.url()
    );
    let gateway = gateway_with_env(&agent, &[]);
    let asked = |token: &str| {
        let asked = decide(token).header("X-Platform-SDK-Key", "sandbox");
        ask(gateway.address(), &asked)
    };
    let changed = asked("a.b.c");
    assert_eq!(
        (changed.status(), changed.text()),
        (
            401,
            "{\"error\": \"unauthorized\", \"reason\": \"signature is invalid\"}\n"
        )
    );
    let ended = asked(&issuer::token(
        issuer::KEY_ID,
        &json!({"sdk_keys": ["sandbox"]}),
    ));
    assert_eq!(ended.text(), "{\"error\":\"token expired\"}\n");
    let other = asked(&issuer::token(
        issuer::KEY_ID,
        &json!({"sdk_keys": ["x"], "exp": issuer::NEVER}),
    ));
    assert_eq!(other.status(), 401);
    let text = Ask::new("POST", "/v1/decide")
        .header("Content-Type", "text/plain")
        .body("{}");
    let good = issuer::token(
        issuer::KEY_ID,
        &json!({"sdk_keys": ["sandbox"], "exp": issuer::NEVER}),
    );
    let text = text.key(&good).header("X-Platform-SDK-Key", "sandbox");
    let refused = ask(gateway.address(), &text);
    assert_eq!((refused.status(), refused.text()), (415, ""));
}
