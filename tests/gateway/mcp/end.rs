//! `DELETE /mcp`: the end of a session.

use serde_json::json;

use crate::mcp::sessions::{SESSION, begin};
use crate::mcp::{code, rpc};
use crate::support::ask::Ask;
use crate::support::boot::{Gateway, MODELS, create_key};
use crate::support::client::ask;

#[test]
fn a_session_that_was_ended_is_none_any_more() {
    let gateway = Gateway::start("", MODELS);
    let (ended, other) = (begin(&gateway, &gateway.key), begin(&gateway, &gateway.key));
    let delete = |session: &str| Ask::new("DELETE", "/mcp").header(SESSION, session);
    let own = delete(&ended).key(&gateway.key);
    let foreign = gateway.change(create_key);
    let answer = ask(gateway.address(), &delete(&ended).key(&foreign));
    assert_eq!(code(&answer), (404, json!(-32000)));
    assert_eq!(ask(gateway.address(), &delete(&ended)).status(), 401);
    let answer = ask(gateway.address(), &own);
    assert_eq!((answer.status(), answer.text()), (204, ""));
    let ping = rpc(&gateway, "ping", json!({}));
    let answer = ask(gateway.address(), &ping.clone().header(SESSION, &ended));
    assert_eq!(code(&answer), (404, json!(-32000)));
    assert_eq!(ask(gateway.address(), &own).status(), 404);
    assert_eq!(
        ask(gateway.address(), &ping.header(SESSION, &other)).status(),
        200
    );
}

#[test]
fn an_end_names_one_session_of_a_revision_that_has_some() {
    let gateway = Gateway::start("", MODELS);
    let session = begin(&gateway, &gateway.key);
    let bare = Ask::new("DELETE", "/mcp").key(&gateway.key);
    let of = |revision: &str| bare.clone().header("MCP-Protocol-Version", revision);
    let doubled = bare
        .clone()
        .header(SESSION, &session)
        .header(SESSION, &session);
    for request in [
        bare.clone(),
        doubled,
        of("2024-11-05").header(SESSION, &session),
    ] {
        let answer = ask(gateway.address(), &request);
        assert_eq!(code(&answer), (400, json!(-32600)), "{}", answer.text());
    }
    let answer = ask(
        gateway.address(),
        &of("2026-07-28").header(SESSION, &session),
    );
    assert_eq!(
        (answer.status(), answer.header("allow")),
        (405, Some("POST"))
    );
    let page = bare
        .header(SESSION, &session)
        .header("Origin", "https://evil.example.com");
    assert_eq!(ask(gateway.address(), &page).status(), 403);
}
