//! `POST /mcp/oauth/register`: clients make themselves known.

use serde_json::{Value, json};

use crate::support::ask::Ask;
use crate::support::boot::{Gateway, MODELS};
use crate::support::client::ask;
use crate::support::oauth::{self, error, registration};

#[test]
fn a_client_is_told_what_it_has_registered() {
    let gateway = Gateway::start("", MODELS);
    let metadata = json!({"client_name": "An editor", "redirect_uris": ["http://127.0.0.1/callback"],
        "token_endpoint_auth_method": "none", "logo_uri": "https://editor.example/logo.png"});
    let answer = ask(gateway.address(), &registration(&metadata));
    assert_eq!(answer.status(), 201);
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let client = answer.json();
    assert!(client["client_id"].as_str().unwrap().starts_with("client_"));
    assert_eq!(client["client_name"], "An editor");
    assert_eq!(
        client["grant_types"],
        json!(["authorization_code", "refresh_token"])
    );
    assert!(client["client_secret"].is_null() && client["logo_uri"].is_null());
    let with_secret = json!({"redirect_uris": ["https://app.example/cb"]});
    let client = ask(gateway.address(), &registration(&with_secret)).json();
    assert!(
        client["client_secret"]
            .as_str()
            .unwrap()
            .starts_with("wgs_")
    );
    assert_eq!(client["client_secret_expires_at"], 0);
    assert_eq!(client["token_endpoint_auth_method"], "client_secret_basic");
}

#[test]
fn what_nobody_may_register_is_refused_and_not_kept() {
    let gateway = Gateway::start("", MODELS);
    let with_uris = |uris: Vec<String>| json!({"redirect_uris": uris});
    let uri = |number: usize| format!("https://a.example/{number}");
    let (redirect, metadata) = ("invalid_redirect_uri", "invalid_client_metadata");
    for (body, status, expected) in [
        (
            with_uris((0..10_000).map(uri).collect()),
            413,
            "invalid_request",
        ),
        (with_uris((0..11).map(uri).collect()), 400, redirect),
        (with_uris(Vec::new()), 400, redirect),
        (
            json!({"redirect_uris": ["http://app.example/cb"]}),
            400,
            redirect,
        ),
        (
            json!({"redirect_uris": ["javascript:alert(1)"]}),
            400,
            redirect,
        ),
        (
            json!({"redirect_uris": [uri(0)], "grant_types": ["implicit"]}),
            400,
            metadata,
        ),
        (json!([]), 400, metadata),
    ] {
        let answer = ask(gateway.address(), &registration(&body));
        assert_eq!(error(&answer), (status, expected.to_owned()));
    }
    let wrong = Ask::post("/mcp/oauth/register", "{");
    assert_eq!(ask(gateway.address(), &wrong).status(), 400);
    let kept = gateway.beside(async |store| store.oauth_clients().await.unwrap());
    assert!(kept.is_empty(), "{kept:?}");
}

#[test]
fn an_address_registers_some_clients_a_minute() {
    let gateway = Gateway::start("", MODELS);
    let metadata = json!({"redirect_uris": ["https://app.example/cb"]});
    let mut statuses = Vec::new();
    while statuses.last() != Some(&429) && statuses.len() < 70 {
        let answer = ask(gateway.address(), &registration(&metadata));
        statuses.push(answer.status());
        if answer.status() == 429 {
            crate::support::client::check_limit_headers(&answer);
            assert_eq!(error(&answer).1, "temporarily_unavailable");
        }
    }
    // At the end of a minute it may be twice as many.
    assert!((31..=61).contains(&statuses.len()), "{statuses:?}");
    assert!(statuses.iter().rev().skip(1).all(|status| *status == 201));
}

#[test]
fn it_is_off_where_the_server_is() {
    let gateway = Gateway::start("", MODELS);
    let metadata: Value = json!({"redirect_uris": ["https://app.example/cb"]});
    let elsewhere = registration(&metadata).without("Host");
    let answer = ask(gateway.address(), &elsewhere.header("Host", "gw.example"));
    assert_eq!(answer.status(), 404);
    assert!(oauth::client(gateway.address()).starts_with("client_"));
}
