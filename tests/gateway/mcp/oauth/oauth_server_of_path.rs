//! `GET /.well-known/oauth-authorization-server/mcp`: the same document, for clients that put the path of the MCP server behind.

use crate::support::ask::Ask;
use crate::support::boot::{Gateway, MODELS};
use crate::support::client::ask;

#[test]
fn it_is_the_document_of_the_origin() {
    let gateway = Gateway::start("", MODELS);
    let at = |path: &str| ask(gateway.address(), &Ask::get(path));
    let of_path = at("/.well-known/oauth-authorization-server/mcp");
    assert_eq!(of_path.status(), 200);
    assert_eq!(
        of_path.json(),
        at("/.well-known/oauth-authorization-server").json()
    );
    assert_eq!(
        at("/.well-known/oauth-authorization-server/other").status(),
        404
    );
    assert_eq!(at("/.well-known/openid-configuration").status(), 404);
}
