//! `POST /mcp/oauth/revoke`: a client ends what it was allowed.

use filters::audit::PROGRAM;
use serde_json::json;

use crate::support::ask::Ask;
use crate::support::boot::{Gateway, MODELS};
use crate::support::client::ask;
use crate::support::oauth::{Tokens, allowed, call, client, error, post, refresh};
use crate::support::until;

fn revocation(client: &str, token: &str) -> Ask {
    post(
        "/mcp/oauth/revoke",
        &[("client_id", client), ("token", token)],
    )
}

fn status(gateway: &Gateway, tokens: &Tokens) -> u16 {
    ask(gateway.address(), &call(&tokens.access, "get-account")).status()
}

#[test]
fn either_token_ends_both() {
    let gateway = Gateway::start("", MODELS);
    for by_access in [true, false] {
        let tokens = allowed(gateway.address(), &gateway.key, "account:read");
        let other = allowed(gateway.address(), &gateway.key, "account:read");
        assert_eq!(status(&gateway, &tokens), 200);
        let token = if by_access {
            &tokens.access
        } else {
            &tokens.refresh
        };
        let answer = ask(gateway.address(), &revocation(&tokens.client, token));
        assert_eq!((answer.status(), answer.json()), (200, json!({})));
        until("the access token ends", || status(&gateway, &tokens) == 401);
        let refused = ask(gateway.address(), &refresh(&tokens.client, &tokens.refresh));
        assert_eq!(error(&refused), (400, "invalid_grant".to_owned()));
        assert_eq!(status(&gateway, &other), 200, "another grant goes on");
        let again = ask(gateway.address(), &revocation(&tokens.client, token));
        assert_eq!(again.status(), 200);
    }
}

#[test]
fn nobody_ends_what_is_anothers() {
    let gateway = Gateway::start("", MODELS);
    let tokens = allowed(gateway.address(), &gateway.key, "account:read");
    let other = client(gateway.address());
    for token in [&tokens.access, &tokens.refresh] {
        let answer = ask(gateway.address(), &revocation(&other, token));
        assert_eq!(error(&answer), (400, "unauthorized_client".to_owned()));
        let answer = ask(gateway.address(), &revocation("client_0", token));
        assert_eq!(error(&answer), (401, "invalid_client".to_owned()));
    }
    for token in ["wgr_x", "wga_x", "x", &gateway.key] {
        let answer = ask(gateway.address(), &revocation(&other, token));
        assert_eq!(answer.status(), 200, "what is no token is no good anyway");
    }
    let answer = ask(
        gateway.address(),
        &post("/mcp/oauth/revoke", &[("client_id", &other)]),
    );
    assert_eq!(error(&answer), (400, "invalid_request".to_owned()));
    assert_eq!(status(&gateway, &tokens), 200);
}

#[test]
fn an_operator_ends_a_client_with_all_its_grants() {
    let gateway = Gateway::start("", MODELS);
    let tokens = allowed(gateway.address(), &gateway.key, "account:read");
    gateway.change(async |store| {
        store
            .by(&PROGRAM)
            .revoke_oauth_client(&tokens.client, 1)
            .await
            .unwrap()
    });
    assert_eq!(status(&gateway, &tokens), 401);
    let refused = ask(gateway.address(), &refresh(&tokens.client, &tokens.refresh));
    assert_eq!(error(&refused), (401, "invalid_client".to_owned()));
}
