//! `GET /.well-known/oauth-protected-resource/mcp`: the document that a refusal names.

use crate::support::ask::Ask;
use crate::support::boot::{Gateway, MODELS};
use crate::support::client::ask;

#[test]
fn a_refusal_leads_to_it() {
    let gateway = Gateway::start("", MODELS);
    let refused = ask(gateway.address(), &Ask::post("/mcp", "{}"));
    let challenge = refused.header("www-authenticate").unwrap();
    let (_, rest) = challenge
        .split_once("resource_metadata=\"http://localhost")
        .unwrap();
    let path = rest.split('"').next().unwrap();
    assert_eq!(path, "/.well-known/oauth-protected-resource/mcp");
    let document = ask(gateway.address(), &Ask::get(path)).json();
    let root = ask(
        gateway.address(),
        &Ask::get("/.well-known/oauth-protected-resource"),
    );
    assert_eq!(document, root.json());
}
