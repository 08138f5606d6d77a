//! `POST /mcp/oauth/token`, and what an access token opens.

mod access;
mod fleet;

use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use serde_json::json;

use crate::support::boot::{Gateway, MODELS};
use crate::support::client::ask;
use crate::support::oauth::{
    REDIRECT_URI, Tokens, VERIFIER, allowed, authorization, call, client, code, error, exchange,
    form, page, post, refresh, registration, tokens,
};
use crate::support::until;

fn invalid_grant() -> (u16, String) {
    (400, "invalid_grant".to_owned())
}

fn is_open(gateway: &Gateway, tokens: &Tokens) -> bool {
    let request = call(&tokens.access, "get-account");
    ask(gateway.address(), &request).status() == 200
}

#[test]
fn a_code_becomes_tokens() {
    let gateway = Gateway::start("", MODELS);
    let client = client(gateway.address());
    let code = code(
        gateway.address(),
        &client,
        &gateway.key,
        "models account:read",
    );
    let answer = ask(gateway.address(), &exchange(&client, &code, &[]));
    let body = answer.json();
    assert_eq!(
        (&body["token_type"], &body["expires_in"]),
        (&json!("Bearer"), &json!(900))
    );
    assert_eq!(body["scope"], "models account:read");
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let tokens = tokens(&client, &answer);
    assert!(tokens.access.starts_with("wga_") && tokens.refresh.starts_with("wgr_"));
    assert!(is_open(&gateway, &tokens));
}

#[test]
fn a_code_that_is_used_again_ends_what_it_became() {
    let gateway = Gateway::start("", MODELS);
    let client = client(gateway.address());
    let code = code(gateway.address(), &client, &gateway.key, "account:read");
    let request = exchange(&client, &code, &[]);
    let tokens = tokens(&client, &ask(gateway.address(), &request));
    assert!(is_open(&gateway, &tokens));
    assert_eq!(error(&ask(gateway.address(), &request)), invalid_grant());
    until("the access token ends", || !is_open(&gateway, &tokens));
    let refused = ask(gateway.address(), &refresh(&client, &tokens.refresh));
    assert_eq!(error(&refused), invalid_grant());
}

#[test]
fn a_code_is_for_its_client_its_redirect_uri_and_its_verifier() {
    let gateway = Gateway::start("", MODELS);
    let (client, other) = (client(gateway.address()), client(gateway.address()));
    let wrong_verifier = VERIFIER.replace('d', "e");
    for (name, value, expected) in [
        ("client_id", &*other, "invalid_grant"),
        (
            "redirect_uri",
            "http://127.0.0.1:7778/callback",
            "invalid_grant",
        ),
        ("redirect_uri", "http://127.0.0.1/callback", "invalid_grant"),
        ("code_verifier", &wrong_verifier, "invalid_grant"),
        ("redirect_uri", "", "invalid_request"),
        ("code_verifier", "", "invalid_request"),
        ("code_verifier", "short", "invalid_request"),
        ("resource", "https://other.example/mcp", "invalid_target"),
    ] {
        let code = code(gateway.address(), &client, &gateway.key, "models");
        let answer = ask(
            gateway.address(),
            &exchange(&client, &code, &[(name, value)]),
        );
        assert_eq!(error(&answer), (400, expected.to_owned()), "{name} {value}");
        // Whoever guesses has one try.
        let is_used = expected == "invalid_grant";
        let right = ask(gateway.address(), &exchange(&client, &code, &[]));
        assert_eq!(
            right.status(),
            if is_used { 400 } else { 200 },
            "{name} {value}"
        );
    }
    let unknown = ask(gateway.address(), &exchange(&client, "wgc_0", &[]));
    assert_eq!(error(&unknown), invalid_grant());
}

#[test]
fn a_code_is_good_for_a_minute() {
    let gateway = Gateway::start("", MODELS);
    let client = client(gateway.address());
    let page = page(gateway.address(), &authorization(&client, "models", &[]));
    ask(gateway.address(), &form(&page, &gateway.key, "allow"));
    let hash = gateway.running.app.proxy.pepper.hash_secret(b"wgc_old");
    let request = json!({"client_id": client, "redirect_uri": REDIRECT_URI, "state": null,
        "challenge": crate::support::oauth::CHALLENGE, "scopes": 1, "resource": "http://localhost/mcp"});
    let now_ms = jiff::Timestamp::now().as_millisecond();
    gateway.change(async |store| {
        let key = store.keys("acme").await.unwrap().remove(0);
        let code = weirgate::store::NewCode {
            hash: hash.as_bytes(),
            client_id: &client,
            document: None,
            key_id: &key.id,
            request: &request.to_string(),
            expires_at_ms: now_ms,
        };
        store
            .answer_consent(("page", code.hash), now_ms, Some(&code), now_ms)
            .await
            .unwrap()
    });
    let answer = ask(gateway.address(), &exchange(&client, "wgc_old", &[]));
    assert_eq!(error(&answer), invalid_grant());
    assert!(answer.text().contains("expired"), "{}", answer.text());
}

#[test]
fn refresh_tokens_rotate_and_an_old_one_ends_the_grant() {
    let gateway = Gateway::start("", MODELS);
    let first = allowed(gateway.address(), &gateway.key, "account:read");
    let next = |of: &Tokens| {
        let answer = ask(gateway.address(), &refresh(&of.client, &of.refresh));
        tokens(&of.client, &answer)
    };
    let second = next(&first);
    assert_ne!(first.refresh, second.refresh);
    // The answer was lost, so the client asks again, and gets the same.
    assert_eq!(next(&first).refresh, second.refresh);
    let third = next(&second);
    assert!(is_open(&gateway, &third));
    let stolen = ask(gateway.address(), &refresh(&first.client, &first.refresh));
    assert_eq!(error(&stolen), invalid_grant());
    until("the access tokens end", || {
        !is_open(&gateway, &third) && !is_open(&gateway, &first)
    });
    let refused = ask(gateway.address(), &refresh(&third.client, &third.refresh));
    assert_eq!(error(&refused), invalid_grant());
}

#[test]
fn a_refresh_token_is_for_its_client_and_for_no_more_than_was_allowed() {
    let gateway = Gateway::start("", MODELS);
    let tokens = allowed(gateway.address(), &gateway.key, "models account:read");
    let other = client(gateway.address());
    let ask_for = |client: &str, token: &str, scope: &str| {
        let fields = [
            ("grant_type", "refresh_token"),
            ("client_id", client),
            ("refresh_token", token),
            ("scope", scope),
        ];
        ask(gateway.address(), &post("/mcp/oauth/token", &fields))
    };
    let refused = ask_for(&other, &tokens.refresh, "models");
    assert_eq!(error(&refused), invalid_grant());
    let refused = ask_for(&tokens.client, &tokens.refresh, "models decisions");
    assert_eq!(error(&refused), (400, "invalid_scope".to_owned()));
    for token in ["", "wgr_", "wgr_AAAA", &tokens.access, &gateway.key] {
        let refused = ask_for(&tokens.client, token, "models");
        assert_eq!(refused.status(), 400, "{token}");
    }
    let narrow = ask_for(&tokens.client, &tokens.refresh, "models");
    assert_eq!(narrow.json()["scope"], "models");
    let again = ask_for(
        &tokens.client,
        narrow.json()["refresh_token"].as_str().unwrap(),
        "",
    );
    assert_eq!(
        again.json()["scope"],
        "models account:read",
        "the grant is as it was"
    );
}

#[test]
fn a_client_with_a_secret_has_to_know_it() {
    let gateway = Gateway::start("", MODELS);
    let metadata = json!({"redirect_uris": [REDIRECT_URI], "grant_types": ["authorization_code"]});
    let registered = ask(gateway.address(), &registration(&metadata)).json();
    let (id, secret) = (
        registered["client_id"].as_str().unwrap(),
        registered["client_secret"].as_str().unwrap(),
    );
    let basic = |secret: &str| format!("Basic {}", BASE64.encode(format!("{id}:{secret}")));
    let code = code(gateway.address(), id, &gateway.key, "models");
    let bare = exchange("", &code, &[]);
    for request in [
        exchange(id, &code, &[]),
        exchange(id, &code, &[("client_secret", "wgs_wrong")]),
        bare.clone().header("Authorization", &basic("wgs_wrong")),
        bare.clone().header("Authorization", "Basic x"),
        bare.clone()
            .header("Authorization", &format!("Bearer {secret}")),
    ] {
        let answer = ask(gateway.address(), &request);
        assert_eq!(error(&answer), (401, "invalid_client".to_owned()));
        assert!(
            answer
                .header("www-authenticate")
                .unwrap()
                .starts_with("Basic")
        );
    }
    let right = bare.header("Authorization", &basic(secret));
    let answer = ask(gateway.address(), &right);
    assert_eq!(answer.status(), 200, "{}", answer.text());
    assert!(
        answer.json()["refresh_token"].is_null(),
        "it asked for none"
    );
    let public = client(gateway.address());
    let secret = [("client_secret", "wgs_x")];
    let answer = ask(gateway.address(), &exchange(&public, &code, &secret));
    assert_eq!(error(&answer), (401, "invalid_client".to_owned()));
}

#[test]
fn a_request_that_is_none_is_explained() {
    let gateway = Gateway::start("", MODELS);
    let client = client(gateway.address());
    let with = |fields: &[(&str, &str)]| ask(gateway.address(), &post("/mcp/oauth/token", fields));
    for (fields, status, expected) in [
        (&[][..], 400, "invalid_request"),
        (&[("grant_type", "password")], 400, "unsupported_grant_type"),
        (
            &[("grant_type", "client_credentials")],
            400,
            "unsupported_grant_type",
        ),
        (
            &[("grant_type", "authorization_code")],
            400,
            "invalid_request",
        ),
        (
            &[
                ("grant_type", "authorization_code"),
                ("client_id", "client_0"),
            ],
            401,
            "invalid_client",
        ),
        (
            &[("grant_type", "authorization_code"), ("client_id", &client)],
            400,
            "invalid_request",
        ),
        (
            &[
                ("grant_type", "refresh_token"),
                ("grant_type", "refresh_token"),
            ],
            400,
            "invalid_request",
        ),
    ] {
        assert_eq!(
            error(&with(fields)),
            (status, expected.to_owned()),
            "{fields:?}"
        );
    }
    let json = crate::support::ask::Ask::post("/mcp/oauth/token", "{}");
    assert_eq!(
        error(&ask(gateway.address(), &json)),
        (400, "invalid_request".to_owned())
    );
    let large = post("/mcp/oauth/token", &[("code", &"a".repeat(100_000))]);
    assert_eq!(ask(gateway.address(), &large).status(), 413);
}
