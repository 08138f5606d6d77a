//! What an access token opens: `/mcp` alone, as the key that it stands for, within its scopes.

use filters::accounts::{AccessToken, KeyHash};
use filters::audit::PROGRAM;
use serde_json::json;

use super::is_open;
use crate::support::ask::Ask;
use crate::support::boot::{Gateway, MODELS};
use crate::support::client::ask;
use crate::support::oauth::{Tokens, allowed, call, error, refresh};
use crate::support::until;

#[test]
fn a_call_is_the_keys_and_the_log_names_the_client() {
    let gateway = Gateway::start("", MODELS);
    let tokens = allowed(gateway.address(), &gateway.key, "account:read");
    let status = |credential: &str| {
        let answer = ask(gateway.address(), &call(credential, "key-status"));
        let id = answer.header("x-request-id").unwrap().to_owned();
        (answer.json()["result"]["structuredContent"].clone(), id)
    };
    let (with_token, id) = status(&tokens.access);
    let (with_key, id_of_key) = status(&gateway.key);
    assert_eq!(with_token, with_key);
    let (line, line_of_key) = (gateway.log_line(&id), gateway.log_line(&id_of_key));
    assert_eq!(line["key_id"], line_of_key["key_id"]);
    assert_eq!(
        (&line["client_id"], &line["tool"]),
        (&json!(tokens.client), &json!("key-status"))
    );
    assert!(line_of_key["client_id"].is_null());
}

#[test]
fn a_tool_beyond_the_scopes_is_refused_with_what_it_needs() {
    let gateway = Gateway::start("", MODELS);
    let tokens = allowed(gateway.address(), &gateway.key, "models");
    let answer = ask(gateway.address(), &call(&tokens.access, "get-account"));
    assert_eq!((answer.status(), &answer.json()["id"]), (403, &json!(7)));
    assert_eq!(
        answer.header("www-authenticate"),
        Some(
            "Bearer error=\"insufficient_scope\", scope=\"models account:read\", \
             resource_metadata=\"http://localhost/.well-known/oauth-protected-resource/mcp\""
        )
    );
    assert_eq!(
        ask(gateway.address(), &call(&tokens.access, "list-models")).status(),
        200
    );
    let account = allowed(gateway.address(), &gateway.key, "account:read");
    let models = json!({"uri": "weirgate://models"});
    for (method, params) in [
        ("resources/read", models),
        ("resources/read", json!({"uri": "weirgate://flags"})),
        ("prompts/get", json!({"name": "hi"})),
        ("prompts/list", json!({})),
    ] {
        let request = |token: &str| {
            let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
            ask(
                gateway.address(),
                &Ask::post("/mcp", body.to_string()).key(token),
            )
            .status()
        };
        let is_flags = params["uri"] == "weirgate://flags";
        assert_eq!(request(&account.access), 403, "{method} {params}");
        assert_eq!(request(&tokens.access), if is_flags { 403 } else { 200 });
        assert_eq!(request(&gateway.key), 200);
    }
}

#[test]
fn no_other_route_knows_an_access_token() {
    let upstream =
        crate::support::upstream::Upstream::always(crate::support::script::Reply::json(200, "{}"));
    let graph = format!("[graph]\nupstream = \"{}\"\n", upstream.url());
    let gateway = Gateway::start(&graph, MODELS);
    let tokens = allowed(gateway.address(), &gateway.key, "models account:read");
    for token in [&tokens.access, &tokens.refresh] {
        for request in [
            Ask::get("/v1/models"),
            Ask::get("/v1/key"),
            Ask::post("/v1/chat/completions", "{}"),
        ] {
            assert_eq!(ask(gateway.address(), &request.key(token)).status(), 401);
        }
        let forwarded = Ask::post("/content/v2", "{\"query\":\"{ a }\"}").key(token);
        assert_eq!(ask(gateway.address(), &forwarded).status(), 404);
    }
    assert!(upstream.requests().is_empty(), "no token leaves");
    let refused = ask(gateway.address(), &call(&tokens.refresh, "get-account"));
    assert_eq!(refused.status(), 401, "a refresh token is no access token");
}

#[test]
fn a_token_of_another_audience_another_server_or_another_time_is_refused() {
    let gateway = Gateway::start("", MODELS);
    let tokens = allowed(gateway.address(), &gateway.key, "account:read");
    let proxy = &gateway.running.app.proxy;
    let good = proxy.tokens.read(tokens.access.as_bytes()).unwrap();
    let status = |token: &AccessToken| {
        let text = proxy.tokens.write(token).unwrap();
        ask(gateway.address(), &call(&text, "get-account")).status()
    };
    assert_eq!(status(&good), 200);
    let now_ms = jiff::Timestamp::now().as_millisecond();
    assert!((1..=900_000).contains(&(good.expires_ms - now_ms)));
    for audience in [
        "https://other.example/mcp",
        "http://localhost",
        "http://localhost/v1/key",
    ] {
        let token = AccessToken {
            audience: audience.into(),
            ..good.clone()
        };
        assert_eq!(status(&token), 401, "{audience}");
    }
    assert_eq!(
        status(&AccessToken {
            expires_ms: now_ms,
            ..good.clone()
        }),
        401
    );
    let unknown = KeyHash::from_bytes([9; 32]);
    assert_eq!(
        status(&AccessToken {
            key: unknown,
            ..good
        }),
        401
    );
    let elsewhere = call(&tokens.access, "get-account").without("Host");
    let elsewhere = elsewhere.header("Host", "localhost:81");
    assert_eq!(ask(gateway.address(), &elsewhere).status(), 401);
    let other = Gateway::start("", MODELS);
    assert!(!is_open(&other, &tokens), "another secret");
}

#[test]
fn a_revoked_key_ends_its_tokens_within_a_second() {
    let gateway = Gateway::start("", MODELS);
    let tokens: Vec<Tokens> = (0..2)
        .map(|_| allowed(gateway.address(), &gateway.key, "account:read"))
        .collect();
    // `change` fails if it takes longer than a second.
    gateway.change(async |store| {
        let key = store.keys("acme").await.unwrap().remove(0);
        store.by(&PROGRAM).revoke_key(&key.id, 1).await.unwrap();
    });
    for tokens in tokens {
        let answer = ask(gateway.address(), &call(&tokens.access, "get-account"));
        assert_eq!(answer.status(), 401);
        let challenge = answer.header("www-authenticate").unwrap();
        assert!(
            challenge.starts_with("Bearer error=\"invalid_token\""),
            "{challenge}"
        );
        let refused = ask(gateway.address(), &refresh(&tokens.client, &tokens.refresh));
        assert_eq!(error(&refused), (400, "invalid_grant".to_owned()));
    }
}

#[test]
fn an_ended_grant_ends_its_tokens_within_a_second_and_after_a_restart() {
    let gateway = Gateway::start("", MODELS);
    let tokens = allowed(gateway.address(), &gateway.key, "account:read");
    let proxy = &gateway.running.app.proxy;
    let grant_id = proxy
        .tokens
        .read(tokens.access.as_bytes())
        .unwrap()
        .grant_id;
    let now_ms = jiff::Timestamp::now().as_millisecond();
    gateway.change(async |store| store.end_oauth_grant(&grant_id, now_ms).await.unwrap());
    assert!(!is_open(&gateway, &tokens));
    let gateway = gateway.restart();
    until("the gateway answers", || {
        ask(gateway.address(), &call(&gateway.key, "get-account")).status() == 200
    });
    assert!(!is_open(&gateway, &tokens));
}
