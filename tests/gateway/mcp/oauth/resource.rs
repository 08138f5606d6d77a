//! `GET /.well-known/oauth-protected-resource`: whose tokens the MCP server takes.

use serde_json::json;

use crate::support::ask::Ask;
use crate::support::boot::{Gateway, MODELS};
use crate::support::client::ask;
use crate::support::oauth::{ISSUER, RESOURCE};

/// Contract: model-gateway 5 4
/// Source: model-gateway 1
/// Contract: model-gateway 1 /mcp is a
#[test]
fn the_resource_names_its_server_and_its_scopes() {
    let gateway = Gateway::start("", MODELS);
    let answer = ask(
        gateway.address(),
        &Ask::get("/.well-known/oauth-protected-resource"),
    );
    assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
    let document = answer.json();
    assert_eq!(document["resource"], RESOURCE);
    assert_eq!(document["authorization_servers"], json!([ISSUER]));
    assert_eq!(document["bearer_methods_supported"], json!(["header"]));
    assert_eq!(
        document["scopes_supported"],
        json!(["models", "decisions", "limits:read", "account:read"])
    );
}

#[test]
fn elsewhere_there_is_none() {
    let gateway = Gateway::start("", MODELS);
    let request = Ask::get("/.well-known/oauth-protected-resource").without("Host");
    let answer = ask(gateway.address(), &request.header("Host", "gw.example"));
    assert_eq!(answer.status(), 404);
}
